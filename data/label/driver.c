// Runs compiled kernels, each in a child process: `count` calls each once (under callgrind), `time` measures some, `call`
// calls one without a child (for a debugger).
//
// The kernels come from an assembly file that defines `irgauge_num_kernels` and `irgauge_kernels` (see executable.py). The
// children are forked from one parent whose state does not depend on which kernels there are, operands, heap and stack lie
// at fixed addresses, and the caches are swept before the operands are written: a kernel's counts are the same alone and
// among others.
#define _GNU_SOURCE
#include <alloca.h>
#include <immintrin.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#define MAX_ARGUMENTS 32
#define LINE 64
#define PATTERN 1021 // a prime, so that the pattern does not line up with rows
#define HEAP_BYTES (256ull << 20)
#define ARENA_ADDRESS ((char *)0x10000000000ull)
#define STACK_ALIGNMENT (128ull << 10) // 1 MiB / 8 ways: the low bits that choose a cache set
#define MAX_REPEATS 64

enum { F16, BF16, F32, F64, I1, I8, I16, I32, I64, INTEGER_SCALAR };

struct argument {
  uint64_t kind;
  uint64_t bytes; // of the memref; the value itself for an integer scalar
};

typedef void *P;
typedef void kernel_fn(double, double, double, double, double, double, double, double, P, P, P, P, P, P, P, P, P, P, P, P, P,
                       P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P);

struct kernel {
  kernel_fn *entry;
  uint64_t num_arguments;
  const struct argument *arguments;
};

extern const uint64_t irgauge_num_kernels;
extern const struct kernel irgauge_kernels[];

static struct kernel kernel; // the one that this process runs
static P operands[MAX_ARGUMENTS];
static char *heap_begin, *heap_next, *heap_end;

// memref.alloc becomes malloc, which executable.py renames. Blocks come from a fixed arena, the same in every run; a freed
// block is given out again, last one first, when the same size is asked for.
#define MAX_SIZES 256
struct header {
  size_t bytes;
  struct header *next;
};
static struct header *freed[MAX_SIZES];
static size_t freed_bytes[MAX_SIZES], num_sizes;

static struct header **freed_of(size_t bytes) {
  for (size_t i = 0; i < num_sizes; ++i)
    if (freed_bytes[i] == bytes) return &freed[i];
  if (num_sizes == MAX_SIZES) return NULL;
  freed_bytes[num_sizes] = bytes;
  freed[num_sizes] = NULL;
  return &freed[num_sizes++];
}

void *irgauge_aligned_alloc(size_t alignment, size_t bytes) {
  struct header **list = freed_of(bytes);
  if (list && *list && (uintptr_t)(*list + 1) % alignment == 0) {
    struct header *block = *list;
    *list = block->next;
    return block + 1;
  }
  if (alignment < LINE) alignment = LINE;
  char *at = (char *)(((uintptr_t)heap_next + sizeof(struct header) + alignment - 1) / alignment * alignment);
  if (bytes > (size_t)(heap_end - at)) {
    fputs("the kernel allocates more than 256 MiB\n", stderr);
    exit(3);
  }
  heap_next = at + bytes;
  ((struct header *)at - 1)->bytes = bytes;
  return at;
}
void *irgauge_malloc(size_t bytes) { return irgauge_aligned_alloc(LINE, bytes); }
void *irgauge_calloc(size_t count, size_t bytes) {
  size_t all = bytes != 0 && count > HEAP_BYTES / bytes ? HEAP_BYTES + 1 : count * bytes; // too much, as malloc will say
  return memset(irgauge_malloc(all), 0, all);
}
void irgauge_free(void *pointer) {
  struct header *block = (struct header *)pointer - 1;
  struct header **list = pointer ? freed_of(block->bytes) : NULL;
  if (!list) return;
  block->next = *list;
  *list = block;
}

static void reset_heap(void) {
  heap_next = heap_begin;
  num_sizes = 0;
}

#define RANDOM_STATE 0x9e3779b97f4a7c15ull
static uint64_t random_state = RANDOM_STATE;
static uint64_t next_random(void) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return random_state >> 33;
}

static size_t element_bytes(uint64_t kind) {
  static const size_t bytes[] = {[F16] = 2, [BF16] = 2, [F32] = 4, [F64] = 8, [I1] = 1, [I8] = 1, [I16] = 2, [I32] = 4, [I64] = 8};
  return bytes[kind];
}

// Non-zero floating-point values in [0.5, 1.5), integers in [0, 4).
static void fill(char *at, uint64_t kind, uint64_t bytes) {
  static char pattern[PATTERN * 8];
  size_t width = element_bytes(kind);
  for (size_t i = 0; i < PATTERN; ++i) {
    uint64_t random = next_random();
    double real = 0.5 + (double)random / (double)(1ull << 31);
    float single = (float)real;
    uint32_t bits;
    memcpy(&bits, &single, 4);
    uint16_t brain = (uint16_t)(bits >> 16);
    uint16_t half = (uint16_t)_cvtss_sh(single, 0);
    uint64_t whole = kind == I1 ? random & 1 : random & 3;
    const void *from = kind == F64 ? (void *)&real : kind == F32 ? (void *)&single : kind == BF16 ? (void *)&brain : kind == F16 ? (void *)&half : (void *)&whole;
    memcpy(pattern + i * width, from, width);
  }
  for (uint64_t done = 0; done < bytes; done += PATTERN * width) {
    uint64_t left = bytes - done;
    memcpy(at + done, pattern, left < PATTERN * width ? left : PATTERN * width);
  }
}


static void place_operands(void) {
  uint64_t total = 0;
  for (uint64_t i = 0; i < kernel.num_arguments; ++i)
    if (kernel.arguments[i].kind != INTEGER_SCALAR) total += kernel.arguments[i].bytes + 2 * LINE;
  total = (total + 4095) / 4096 * 4096;
  char *arena = mmap(ARENA_ADDRESS, total + HEAP_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (arena != ARENA_ADDRESS) {
    perror("no memory for the operands");
    exit(3);
  }
  heap_begin = arena + total;
  heap_end = heap_begin + HEAP_BYTES;
  for (uint64_t i = 0; i < kernel.num_arguments; ++i) {
    const struct argument *argument = &kernel.arguments[i];
    if (argument->kind == INTEGER_SCALAR) {
      operands[i] = (P)(uintptr_t)argument->bytes;
      continue;
    }
    operands[i] = arena;
    fill(arena, argument->kind, argument->bytes);
    arena += (argument->bytes + LINE - 1) / LINE * LINE + LINE; // aligned to a line, a line apart
  }
}

static double element(const char *at, uint64_t kind) {
  uint16_t half;
  uint32_t bits;
  float single;
  double real;
  switch (kind) {
  case F16: memcpy(&half, at, 2); return _cvtsh_ss(half);
  case BF16: memcpy(&half, at, 2); bits = (uint32_t)half << 16; memcpy(&single, &bits, 4); return single;
  case F32: memcpy(&single, at, 4); return single;
  case F64: memcpy(&real, at, 8); return real;
  case I1: return *(const uint8_t *)at & 1;
  case I8: return *(const int8_t *)at;
  case I16: { int16_t v; memcpy(&v, at, 2); return v; }
  case I32: { int32_t v; memcpy(&v, at, 4); return v; }
  default: { int64_t v; memcpy(&v, at, 8); return (double)v; }
  }
}

// What the operands hold, as a weighted sum: variants of one program must agree up to rounding. `scale` is the sum of
// the absolute values with the same weights.
static void sum_operands(double *sum, double *scale) {
  *sum = *scale = 0;
  for (uint64_t i = 0; i < kernel.num_arguments; ++i) {
    const struct argument *argument = &kernel.arguments[i];
    if (argument->kind == INTEGER_SCALAR) continue;
    size_t width = element_bytes(argument->kind);
    for (uint64_t at = 0; at + width <= argument->bytes; at += width) {
      double weight = 0.5 + (double)((at * 2654435761u + i * 40503u) >> 8 & 0xffff) / 65536;
      double term = weight * element((char *)operands[i] + at, argument->kind);
      *sum += term;
      *scale += term < 0 ? -term : term;
    }
  }
}

// About 1.5 as f64, in its low half as f32, in the low half of that as f16 (0.125 as bf16): a floating-point scalar of any
// width gets a normal number.
static double scalar(void) {
  uint64_t bits = 0x3ff800003fc03e00ull;
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

// By the System V calling convention, arguments that a function does not have do no harm.
static void call_kernel(void) {
  double s = scalar();
  P *o = operands;
  reset_heap();
  kernel.entry(s, s, s, s, s, s, s, s, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11], o[12], o[13],
                 o[14], o[15], o[16], o[17], o[18], o[19], o[20], o[21], o[22], o[23], o[24], o[25], o[26], o[27], o[28],
                 o[29], o[30], o[31]);
}

static double clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double reference_data[2048];

// A fixed piece of work, half arithmetic latency and half L1 traffic: its time shows how fast the core runs just now.
__attribute__((noinline)) static double reference_kernel(void) {
  double sum = 0;
  for (int i = 0; i < 2048; ++i) sum = sum * 0.5 + reference_data[i];
  return sum;
}

static double time_reference_ns(void) {
  volatile double sink = 0;
  double best = 1e30;
  for (int repeat = 0; repeat < 9; ++repeat) {
    double start = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < 20; ++i) sink += reference_kernel();
    double each = (clock_ns(CLOCK_MONOTONIC) - start) / 20;
    if (each < best) best = each;
  }
  return best;
}

static void time_kernel(int repeats, double min_repeat_ns) {
  double before = time_reference_ns();
  call_kernel(); // warm: operands, page tables, branch predictor
  double sum, scale;
  sum_operands(&sum, &scale);
  call_kernel();
  uint64_t calls = 1;
  double took;
  for (;;) {
    double start = clock_ns(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < calls; ++i) call_kernel();
    took = clock_ns(CLOCK_MONOTONIC) - start;
    if (took >= min_repeat_ns) break;
    uint64_t wanted = took > 0 ? (uint64_t)((double)calls * min_repeat_ns * 1.1 / took) + 1 : calls * 10;
    calls = wanted > calls * 10 ? calls * 10 : wanted > calls ? wanted : calls + 1;
  }
  static double each[MAX_REPEATS];
  for (int repeat = 0; repeat < repeats; ++repeat) {
    double start = clock_ns(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < calls; ++i) call_kernel();
    each[repeat] = (clock_ns(CLOCK_MONOTONIC) - start) / (double)calls;
  }
  printf("%llu %.3f %.3f %.17g %.17g", (unsigned long long)calls, before, time_reference_ns(), sum, scale);
  for (int repeat = 0; repeat < repeats; ++repeat) printf(" %.4f", each[repeat]);
  printf("\n");
}

// What a kernel may call: all of it is in every program, so that each lies at the same address whichever kernels there are.
// Clang's runtime has conversions to bf16 that this compiler's may lack. They return in a vector register, as _Float16 does.
static _Float16 half_register(uint16_t bits) {
  _Float16 result;
  memcpy(&result, &bits, 2);
  return result;
}
_Float16 irgauge_truncsfbf2(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (value != value) return half_register((uint16_t)(bits >> 16 | 0x40));
  return half_register((uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}
_Float16 irgauge_truncdfbf2(double value) {
  float single = (float)value; // rounded to odd first: the second rounding then sees whether the first lost something
  uint32_t bits;
  memcpy(&bits, &single, 4);
  if ((double)single != value && value == value && (bits & 0x7f800000) != 0x7f800000) {
    int too_far = single < 0 ? (double)single < value : (double)single > value;
    if (too_far) --bits;
    bits |= 1;
    memcpy(&single, &bits, 4);
  }
  return irgauge_truncsfbf2(single);
}
// Never run. The linker gives each function that is chosen by processor an entry of its table when it sees the first call;
// here all are called, so that the table is the same whatever the kernels call.
#define CALL(name) "call " #name "@PLT\n"
#define BOTH(name) CALL(name) CALL(name##f)
__asm__(".text\nirgauge_library:\n" // clang-format off
    CALL(memset) CALL(memcpy) CALL(memmove) CALL(memcmp) CALL(__truncdfhf2) CALL(__truncsfhf2) CALL(__extendhfsf2) CALL(__divti3)
    CALL(__modti3) CALL(__udivti3) CALL(__umodti3) CALL(__multi3)
    BOTH(acos) BOTH(acosh) BOTH(asin) BOTH(asinh) BOTH(atan) BOTH(atan2) BOTH(atanh) BOTH(cbrt) BOTH(ceil) BOTH(copysign)
    BOTH(cos) BOTH(cosh) BOTH(erf) BOTH(erfc) BOTH(exp) BOTH(exp2) BOTH(exp10) BOTH(expm1) BOTH(fabs) BOTH(floor) BOTH(fma) BOTH(fmax)
    BOTH(fmin) BOTH(fmod) BOTH(frexp) BOTH(ldexp) BOTH(log) BOTH(log10) BOTH(log1p) BOTH(log2) BOTH(logb) BOTH(nearbyint) BOTH(pow)
    BOTH(remainder) BOTH(rint) BOTH(round) BOTH(roundeven) BOTH(sin) BOTH(sincos) BOTH(sinh) BOTH(sqrt) BOTH(tan) BOTH(tanh)
    BOTH(tgamma) BOTH(lgamma) BOTH(trunc)); // clang-format on
// Behind the kernels' data, which differ in size: the C library's first heap, where its thread-local data lie, begins here.
__asm__(".section .kernels.end,\"aw\",@nobits\n.zero 64\n.text\n");

// More lines than both simulated caches hold, twice; reading all leaves the same lines in them whatever was there.
#define SWEEP_BYTES (2ull << 20)
static char swept[SWEEP_BYTES] __attribute__((aligned(128 << 10)));
__asm__(".section .text.irgauge_sweep,\"ax\",@progbits\n.p2align 16\nirgauge_sweep_code:\n.rept 4370\n"
        ".byte 0x66,0x66,0x66,0x66,0x66,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\n.endr\nret\n.text\n"); // nops of 64 KiB: twice the cache
extern void irgauge_sweep_code(void);

__attribute__((noinline)) static void sweep_caches(void) {
  irgauge_sweep_code();
  for (size_t at = 0; at < SWEEP_BYTES; at += LINE) __asm__ volatile("movb (%0), %%al" ::"r"(swept + at) : "rax");
}

// Brings callgrind's branch predictors to one state whatever ran before: the C library's start depends on the length of
// the folder's name. Conditional branches: 2^14 two-bit counters, chosen by the 7 low bits of the address and the last 7
// outcomes. For each history (set by 7 branches whose outcomes are its bits) 128 branches, one for each of the address
// bits, are not taken; after some rounds of all that, any start has led to the same counters. Indirect jumps: 2^9
// targets, chosen by the 9 low bits of the address, are jumped from once; `zero` hides from the simulator where they go.
__asm__(".text\n.p2align 9\nirgauge_train_predictors:\n"
        "shll $7, %edi\nleal -1(%rdi), %ecx\n"
        "1:\n.rept 128\ncall 8f\nbtl $31, %ecx\njc 3f\n3:\n.endr\n" // 11 bytes each, odd: all low bits come up
        "subl $1, %ecx\njns 1b\n"
        ".rept 512\nlea 4f(%rip), %rax\naddq %rsi, %rax\njmp *%rax\n4: .byte 0x0f,0x1f,0x44,0,0\n.endr\n" // 17 bytes each
        "ret\n"
        "8:\n.irp bit,6,5,4,3,2,1,0\nbtl $\\bit, %ecx\njc 9f\n9:\n.endr\nret\n");
extern void irgauge_train_predictors(int rounds, long zero);

static void limit(int resource, rlim_t most) {
  struct rlimit limits = {most, most};
  setrlimit(resource, &limits);
}

static uint64_t cpu_seconds;

static void prepare(uint64_t number) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, cpu_seconds);
  kernel = irgauge_kernels[number];
  sweep_caches();
  place_operands();
}

// The parent does the same for every kernel, in registers and on the same lines of its stack, without a branch that could
// go another way: the fork, the wait and the report are plain system calls. Prints "<process> <wait status>" as two
// numbers of 8 bytes each.
static inline long system_call(long number, long a, long b, long c, long d) {
  register long r10 __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
}

#define WARM_ROUNDS 64 // without a child: after them the state of caches and predictors does not move any more

__attribute__((noinline)) static void count_all(void) {
  irgauge_train_predictors(8, 0);
  sweep_caches(); // what the simulator has translated once, children inherit
  for (int kind = F16; kind < INTEGER_SCALAR; ++kind) fill(swept, kind, 3 * PATTERN * element_bytes(kind));
  random_state = RANDOM_STATE;
  volatile struct {
    int64_t process, status;
  } report;
  static volatile const long calls[2] = {SYS_getpid, SYS_fork};
  for (uint64_t number = 0; number < irgauge_num_kernels + WARM_ROUNDS; ++number) {
    report.status = 0;
    report.process = system_call(calls[number >= WARM_ROUNDS], 0, 0, 0, 0);
    if (report.process == 0) {
      prepare(number - WARM_ROUNDS);
      CALLGRIND_ZERO_STATS;
      call_kernel();
      system_call(SYS_exit_group, 0, 0, 0, 0);
    }
    system_call(SYS_wait4, report.process, (long)&report.status, 0, 0);
    system_call(SYS_write, 1, (long)&report, sizeof report, 0);
  }
}

static int time_in_child(uint64_t number, int repeats, double min_repeat_ns) {
  pid_t child = fork();
  if (child == 0) {
    prepare(number);
    printf("%llu ", (unsigned long long)number);
    time_kernel(repeats, min_repeat_ns);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 3;
  if (status != 0) printf("%llu failed %d\n", (unsigned long long)number, status);
  fflush(stdout);
  return 0;
}

// usage: count CPU_SECONDS | time CPU_SECONDS REPEATS MIN_REPEAT_NS NUMBER... | call NUMBER
int main(int argc, char **argv) {
  if (argc < 3) return 2;
  size_t below = (uintptr_t)__builtin_frame_address(0) % STACK_ALIGNMENT;
  volatile char *pad = alloca(below + 1); // frames of the kernel start at the same place whatever the environment holds
  pad[0] = 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 0; i < 2048; ++i) reference_data[i] = 0.5 + 1e-4 * i;
  memset(swept, 1, sizeof swept);
  _mm_setcsr(_mm_getcsr() | 0x8040); // denormals are zero: they would change the time
  cpu_seconds = strtoull(argv[2], NULL, 10);
  if (strcmp(argv[1], "count") == 0) {
    count_all();
  } else if (strcmp(argv[1], "time") == 0 && argc > 5) {
    int repeats = atoi(argv[3]), failed = 0;
    if (repeats < 1 || repeats > MAX_REPEATS) return 2;
    for (int i = 5; i < argc && !failed; ++i) {
      uint64_t number = strtoull(argv[i], NULL, 10);
      if (number >= irgauge_num_kernels) return 2;
      failed = time_in_child(number, repeats, atof(argv[4]));
    }
    return failed;
  } else if (strcmp(argv[1], "call") == 0) {
    cpu_seconds = RLIM_INFINITY;
    prepare(strtoull(argv[2], NULL, 10));
    call_kernel();
  } else {
    return 2;
  }
  return 0;
}
