// Runs pass pipelines with libMLIR's C interface, each in a process of its own: `mlir-opt --mlir-print-local-scope` without
// its start, which takes ten times as long as the passes.
//
// usage: mlir_opt CPU_SECONDS MEMORY_BYTES; reads requests "<bytes of pipeline> <bytes of module>\n<pipeline><module>" until
// the end of its input. Answers each with "<wait status> <bytes of module> <bytes of messages>\n<module><messages>".
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// The part of mlir-c that is used; the package with the library brings no headers.
typedef struct { void *ptr; } Handle;
typedef struct { const char *data; size_t length; } String;
typedef struct { int8_t value; } Result;
typedef void (*Write)(String text, void *to);

Handle mlirDialectRegistryCreate(void);
void mlirRegisterAllDialects(Handle registry);
void mlirRegisterAllPasses(void);
Handle mlirContextCreateWithRegistry(Handle registry, bool threads);
Handle mlirModuleCreateParse(Handle context, String text);
Handle mlirModuleGetOperation(Handle module);
Handle mlirPassManagerCreate(Handle context);
Handle mlirPassManagerGetAsOpPassManager(Handle manager);
void mlirPassManagerEnableVerifier(Handle manager, bool enable);
Result mlirParsePassPipeline(Handle op_manager, String pipeline, Write write, void *to);
Result mlirPassManagerRunOnOp(Handle manager, Handle op);
Handle mlirOpPrintingFlagsCreate(void);
void mlirOpPrintingFlagsUseLocalScope(Handle flags);
void mlirOperationPrintWithFlags(Handle op, Handle flags, Write write, void *to);

static void write_text(String text, void *to) { fwrite(text.data, 1, text.length, to); }

static int optimize(Handle context, String pipeline, String text, FILE *out) {
  Handle module = mlirModuleCreateParse(context, text);
  if (!module.ptr) return 1;
  Handle op = mlirModuleGetOperation(module), manager = mlirPassManagerCreate(context);
  mlirPassManagerEnableVerifier(manager, true);
  if (pipeline.length) {
    if (!mlirParsePassPipeline(mlirPassManagerGetAsOpPassManager(manager), pipeline, write_text, stderr).value) return 1;
    if (!mlirPassManagerRunOnOp(manager, op).value) return 1;
  }
  Handle flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsUseLocalScope(flags);
  mlirOperationPrintWithFlags(op, flags, write_text, out);
  fputc('\n', out);
  return fflush(out) != 0;
}

static void limit(int resource, rlim_t most) {
  struct rlimit limits = {most, most};
  if (setrlimit(resource, &limits)) _exit(1);
}

static void send_file(int file, size_t bytes) {
  void *text = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
  if (text == MAP_FAILED) exit(3);
  fwrite(text, 1, bytes, stdout);
  if (bytes) munmap(text, bytes);
  close(file);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Handle registry = mlirDialectRegistryCreate();
  mlirRegisterAllDialects(registry);
  mlirRegisterAllPasses();
  Handle context = mlirContextCreateWithRegistry(registry, false);
  size_t bytes[2];
  while (scanf("%zu %zu", &bytes[0], &bytes[1]) == 2 && getchar() == '\n') {
    char *text = malloc(bytes[0] + bytes[1] + 2);
    char *module = text + bytes[0] + 1;
    if (!text || fread(text, 1, bytes[0], stdin) != bytes[0] || fread(module, 1, bytes[1], stdin) != bytes[1]) return 3;
    text[bytes[0]] = module[bytes[1]] = 0; // the parser reads up to a zero
    int out = memfd_create("module", 0), err = memfd_create("messages", 0);
    pid_t child = fork();
    if (out < 0 || err < 0 || child < 0) return 3;
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      limit(RLIMIT_CPU, (rlim_t)atol(argv[1]));
      limit(RLIMIT_AS, (rlim_t)atoll(argv[2]));
      limit(RLIMIT_CORE, 0);
      if (dup2(err, 2) < 0) _exit(1);
      int status = optimize(context, (String){text, bytes[0]}, (String){module, bytes[1]}, fdopen(out, "w"));
      fflush(stderr);
      _exit(status); // nothing is freed
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 3;
    size_t printed = lseek(out, 0, SEEK_END), said = lseek(err, 0, SEEK_END);
    printf("%d %zu %zu\n", status, printed, said);
    send_file(out, printed);
    send_file(err, said);
    if (fflush(stdout)) return 3;
    free(text);
  }
  return 0;
}
