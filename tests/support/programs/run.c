// Runs the entry of a compiled model once: reads what it needs from the file run.in, writes what comes out to run.out.
//
// Stands alone: Linux is called directly, and a Cortex-M asks its debugger (semihosting), so that one compiler without
// any library builds it for all processors. run.in has numbers of 32 bits - bytes of constants and of activations, how
// many bindings there are, and the bytes of each - and then constants and bindings, as they are.
// run.out gets the status of the entry, how many ticks of the board.s clock it took where there is one, how many
// bytes of the stack, and then all bindings. Whoever traces this program finds the model between `main` and the return to
// `call_model`.

typedef unsigned int u32;
typedef unsigned long word;

extern int model_entry(const void *constants, void *const *bindings, void *activations, const void *parallel)
    __asm__("main");

#ifndef ROOM
#define ROOM (48u << 20)
#endif
#define MOST_BINDINGS 64
#define PAINT 0xa5a5a5a5u

static unsigned char room[ROOM] __attribute__((aligned(64)));
static u32 used;

#if defined(__thumb__)

static int semihosting(int operation, const void *arguments) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static int open_file(const char *name, int is_written) {
    u32 length = 0;
    while (name[length]) length++;
    word arguments[3] = {(word)name, is_written ? 5 : 1, length};
    return semihosting(0x01, arguments);
}

static void transfer(int file, void *data, u32 size, int is_written) {
    word arguments[3] = {(word)file, (word)data, size};
    semihosting(is_written ? 0x05 : 0x06, arguments);
}

static void end(int code) {
    word arguments[2] = {0x20026, (word)code};
    semihosting(0x20, arguments);
    for (;;) {
    }
}

#define SYSTICK ((volatile u32 *)0xe000e010)

static void start_clock(void) {
    SYSTICK[1] = 0xffffff;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
    while (!SYSTICK[2]) {
    }
}

static u32 clock(void) { return 0xffffff - SYSTICK[2]; }

extern u32 stack_limit[], stack_top[];

#define STACK_LIMIT(own) ((void)(own), stack_limit)
#define STACK_POINTER(place) __asm__ volatile("mov %0, sp" : "=r"(place))

#else

#if defined(__aarch64__)
static long call(long number, long a, long b, long c, long d) {
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
                      x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
enum { OPEN_AT = 56, READ = 63, WRITE = 64, EXIT = 93 };
#define STACK_POINTER(place) __asm__ volatile("mov %0, sp" : "=r"(place))
#elif defined(__riscv)
static long call(long number, long a, long b, long c, long d) {
    register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c,
                      a3 __asm__("a3") = d;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3) : "memory");
    return a0;
}
enum { OPEN_AT = 56, READ = 63, WRITE = 64, EXIT = 93 };
#define STACK_POINTER(place) __asm__ volatile("mv %0, sp" : "=r"(place))
#else
static long call(long number, long a, long b, long c, long d) {
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return number;
}
enum { OPEN_AT = 257, READ = 0, WRITE = 1, EXIT = 60 };
#define STACK_POINTER(place) __asm__ volatile("mov %%rsp, %0" : "=r"(place))
#endif

#define STACK_LIMIT(own) ((own) - (64 << 10) / sizeof(u32))

static int open_file(const char *name, int is_written) {
    return (int)call(OPEN_AT, -100, (long)name, is_written ? 01101 : 0, 0644);
}

static void transfer(int file, void *data, u32 size, int is_written) {
    unsigned char *place = data;
    while (size) {
        long done = call(is_written ? WRITE : READ, file, (long)place, size, 0);
        if (done <= 0) call(EXIT, 98, 0, 0, 0);
        place += done;
        size -= (u32)done;
    }
}

static void end(int code) {
    for (;;) call(EXIT, code, 0, 0, 0);
}

static void start_clock(void) {}
static u32 clock(void) { return 0; }

#endif

__attribute__((always_inline)) static inline void paint_stack(void) {
    volatile u32 *own;
    STACK_POINTER(own);
    for (volatile u32 *place = STACK_LIMIT(own); place < own; place++) *place = PAINT;
}

__attribute__((always_inline)) static inline u32 stack_bytes(void) {
    volatile u32 *own;
    STACK_POINTER(own);
    volatile u32 *place = STACK_LIMIT(own);
    while (place < own && *place == PAINT) place++;
    return (u32)((own - place) * (int)sizeof(u32));
}

static void *take(u32 size) {
    unsigned char *found = room + used;
    used += (size + 63u) & ~63u;
    if (used > ROOM) end(99);
    return found;
}

static u32 number(int file) {
    u32 found;
    transfer(file, &found, sizeof found, 0);
    return found;
}

__attribute__((noinline)) static void call_model(const void *constants, void **bindings, void *activations, u32 *report) {
    paint_stack();
    start_clock();
    u32 begin = clock();
    report[0] = (u32)model_entry(constants, bindings, activations, 0);
    report[1] = clock() - begin;
    report[2] = stack_bytes();
}

static void run(void) {
    static void *bindings[MOST_BINDINGS];
    static u32 sizes[MOST_BINDINGS];
    int file = open_file("run.in", 0);
    u32 constants_bytes = number(file), activations_bytes = number(file), count = number(file);
    for (u32 i = 0; i < count; i++) sizes[i] = number(file);
    void *constants = take(constants_bytes);
    if (constants_bytes) transfer(file, constants, constants_bytes, 0);
    for (u32 i = 0; i < count; i++) {
        bindings[i] = take(sizes[i]);
        if (sizes[i]) transfer(file, bindings[i], sizes[i], 0);
    }
    void *activations = take(activations_bytes);
    u32 report[3];
    call_model(constants, bindings, activations, report);
    file = open_file("run.out", 1);
    transfer(file, report, sizeof report, 1);
    for (u32 i = 0; i < count; i++)
        if (sizes[i]) transfer(file, bindings[i], sizes[i], 1);
    end(0);
}

#if defined(__thumb__)
void reset(void) {
    *(volatile u32 *)0xe000ed88 |= 0xfu << 20;  // The FPU, and with it Helium.
    __asm__ volatile("dsb\n isb");
#if defined(__ARM_FEATURE_MVE)
    __asm__ volatile("vmsr fpscr, %0" ::"r"(0x40000));  // Vectors are not cut at their ends.
#endif
    run();
}
static void fault(void) { end(97); }
// Libraries of arithmetic ask for what unwinds the stack, which nobody does here.
void __aeabi_unwind_cpp_pr0(void) {}
void __aeabi_unwind_cpp_pr1(void) {}
__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top, (const void *)reset, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault};
#elif defined(__riscv)
__attribute__((naked)) void _start(void) {
    __asm__ volatile(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n call begin");
}
void begin(void) { run(); }
#elif defined(__aarch64__)
void _start(void) { run(); }
#else
__attribute__((force_align_arg_pointer)) void _start(void) { run(); }
#endif
