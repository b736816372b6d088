// Counts the instructions of one call of a program's first kernel by single-stepping: nothing of valgrind is in it.
//
// usage: step PROGRAM ENTRY_ADDRESS_HEX SIZE_HEX; prints all instructions, and those between the addresses.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int bad, const char *what) {
  if (bad) {
    perror(what);
    exit(1);
  }
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  uint64_t entry = strtoull(argv[2], NULL, 16), end = entry + strtoull(argv[3], NULL, 16);
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execl(argv[1], argv[1], "call", "0", (char *)NULL);
    _exit(127);
  }
  int status;
  waitpid(child, &status, 0);
  check(!WIFSTOPPED(status), "the program did not start");

  long code = ptrace(PTRACE_PEEKTEXT, child, entry, NULL);
  check(ptrace(PTRACE_POKETEXT, child, entry, (code & ~0xffL) | 0xcc) != 0, "breakpoint");
  check(ptrace(PTRACE_CONT, child, NULL, NULL) != 0, "continue");
  waitpid(child, &status, 0);
  check(!WIFSTOPPED(status), "the kernel was not reached");
  struct user_regs_struct registers;
  ptrace(PTRACE_GETREGS, child, NULL, &registers);
  registers.rip = entry;
  ptrace(PTRACE_SETREGS, child, NULL, &registers);
  ptrace(PTRACE_POKETEXT, child, entry, code);

  uint64_t back = (uint64_t)ptrace(PTRACE_PEEKDATA, child, registers.rsp, NULL);
  uint64_t steps = 0, own = 0;
  do {
    own += registers.rip >= entry && registers.rip < end;
    check(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0, "step");
    waitpid(child, &status, 0);
    check(!WIFSTOPPED(status), "the program ended inside the kernel");
    ++steps;
    ptrace(PTRACE_GETREGS, child, NULL, &registers);
  } while (registers.rip != back);
  printf("%llu %llu\n", (unsigned long long)steps, (unsigned long long)own);
  ptrace(PTRACE_KILL, child, NULL, NULL);
  return 0;
}
