// Compiles many LLVM IR files to assembly with libLLVM's C interface, each in a process of its own.
//
// usage: compile COUNT CPU_SECONDS MEMORY_BYTES; reads 0.ll, 1.ll, ... in the current folder and writes <number>.<name>.s
// for each target below. Prints a line "<number> <name> <wait status>" for each; messages go to <number>.<name>.err, where
// "@opt" and "@llc" say which step had begun. The same as `opt -O3 | llc -O3` with that triple and processor, without the
// start of two programs for each.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

// The part of llvm-c that is used; the package with the library brings no headers.
typedef struct LLVMOpaqueContext *LLVMContextRef;
typedef struct LLVMOpaqueModule *LLVMModuleRef;
typedef struct LLVMOpaqueMemoryBuffer *LLVMMemoryBufferRef;
typedef struct LLVMTarget *LLVMTargetRef;
typedef struct LLVMOpaqueTargetMachine *LLVMTargetMachineRef;
typedef struct LLVMOpaqueTargetData *LLVMTargetDataRef;
typedef struct LLVMOpaquePassBuilderOptions *LLVMPassBuilderOptionsRef;
typedef struct LLVMOpaqueError *LLVMErrorRef;
enum { CODEGEN_AGGRESSIVE = 3, RELOC_DEFAULT = 0, CODE_MODEL_DEFAULT = 0, ASSEMBLY_FILE = 0 };

#define DECLARE_TARGET(name)                    \
  void LLVMInitialize##name##TargetInfo(void);  \
  void LLVMInitialize##name##Target(void);      \
  void LLVMInitialize##name##TargetMC(void);    \
  void LLVMInitialize##name##AsmPrinter(void);
#define INITIALIZE_TARGET(name)           \
  (LLVMInitialize##name##TargetInfo(), LLVMInitialize##name##Target(), LLVMInitialize##name##TargetMC(), \
   LLVMInitialize##name##AsmPrinter())
DECLARE_TARGET(X86)
DECLARE_TARGET(AArch64)

LLVMContextRef LLVMContextCreate(void);
int LLVMCreateMemoryBufferWithContentsOfFile(const char *path, LLVMMemoryBufferRef *buffer, char **message);
LLVMMemoryBufferRef LLVMCreateMemoryBufferWithMemoryRange(const char *data, size_t bytes, const char *name, int ends_in_zero);
char *LLVMPrintModuleToString(LLVMModuleRef module);
int LLVMParseIRInContext(LLVMContextRef context, LLVMMemoryBufferRef buffer, LLVMModuleRef *module, char **message);
int LLVMGetTargetFromTriple(const char *triple, LLVMTargetRef *target, char **message);
LLVMTargetMachineRef LLVMCreateTargetMachine(LLVMTargetRef target, const char *triple, const char *cpu, const char *features,
                                             int level, int reloc, int code_model);
void LLVMSetTargetMachineAsmVerbosity(LLVMTargetMachineRef machine, int verbose);
LLVMTargetDataRef LLVMCreateTargetDataLayout(LLVMTargetMachineRef machine);
void LLVMSetModuleDataLayout(LLVMModuleRef module, LLVMTargetDataRef layout);
void LLVMSetTarget(LLVMModuleRef module, const char *triple);
LLVMPassBuilderOptionsRef LLVMCreatePassBuilderOptions(void);
LLVMErrorRef LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine, LLVMPassBuilderOptionsRef options);
char *LLVMGetErrorMessage(LLVMErrorRef error);
int LLVMTargetMachineEmitToFile(LLVMTargetMachineRef machine, LLVMModuleRef module, const char *path, int type, char **message);

struct target {
  const char *name, *triple, *cpu;
};
static const struct target targets[] = {
    {"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3"},
    {"neoverse-v2", "aarch64-unknown-linux-gnu", "neoverse-v2"},
};
enum { NUM_TARGETS = sizeof targets / sizeof *targets };

static void fail(const char *message) {
  fprintf(stderr, "error: %s\n", message ? message : "no message");
  fflush(stderr);
  _exit(1);
}

static void compile(int number, const struct target *target) {
  char from[64], to[96], *message = NULL;
  snprintf(from, sizeof from, "%d.ll", number);
  snprintf(to, sizeof to, "%d.%s.s", number, target->name);
  fputs("@opt\n", stderr);
  LLVMTargetRef llvm_target;
  if (LLVMGetTargetFromTriple(target->triple, &llvm_target, &message)) fail(message);
  LLVMTargetMachineRef machine = LLVMCreateTargetMachine(llvm_target, target->triple, target->cpu, "", CODEGEN_AGGRESSIVE,
                                                         RELOC_DEFAULT, CODE_MODEL_DEFAULT);
  LLVMSetTargetMachineAsmVerbosity(machine, 1); // spills and loops are marked in comments
  LLVMMemoryBufferRef buffer;
  LLVMModuleRef module;
  if (LLVMCreateMemoryBufferWithContentsOfFile(from, &buffer, &message)) fail(message);
  if (LLVMParseIRInContext(LLVMContextCreate(), buffer, &module, &message)) fail(message);
  LLVMSetTarget(module, target->triple);
  LLVMSetModuleDataLayout(module, LLVMCreateTargetDataLayout(machine));
  LLVMErrorRef error = LLVMRunPasses(module, "default<O3>", machine, LLVMCreatePassBuilderOptions());
  if (error) fail(LLVMGetErrorMessage(error));
  fputs("@llc\n", stderr);
  // Printed and read again, as between the two programs: code generation follows the order of a value's uses, which text
  // does not keep, so that anyone can repeat a label with `opt -S | llc`.
  char *text = LLVMPrintModuleToString(module);
  buffer = LLVMCreateMemoryBufferWithMemoryRange(text, strlen(text), "optimized", 1);
  if (LLVMParseIRInContext(LLVMContextCreate(), buffer, &module, &message)) fail(message);
  if (LLVMTargetMachineEmitToFile(machine, module, to, ASSEMBLY_FILE, &message)) fail(message);
  fflush(stderr);
  _exit(0); // nothing is freed
}

static void limit(int resource, rlim_t most) {
  struct rlimit limits = {most, most};
  if (setrlimit(resource, &limits)) fail("setrlimit");
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  INITIALIZE_TARGET(X86);
  INITIALIZE_TARGET(AArch64);
  for (int number = 0; number < atoi(argv[1]); ++number)
    for (int t = 0; t < NUM_TARGETS; ++t) {
      pid_t child = fork();
      if (child < 0) return 3;
      if (child == 0) {
        char log[96];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(log, sizeof log, "%d.%s.err", number, targets[t].name);
        int file = open(log, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        if (file < 0 || dup2(file, 2) < 0) _exit(1);
        limit(RLIMIT_CPU, (rlim_t)atol(argv[2]));
        limit(RLIMIT_AS, (rlim_t)atoll(argv[3]));
        limit(RLIMIT_CORE, 0);
        compile(number, &targets[t]);
      }
      int status = 0;
      if (waitpid(child, &status, 0) != child) return 3;
      printf("%d %s %d\n", number, targets[t].name, status);
    }
  return 0;
}
