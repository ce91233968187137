/* Reads an image of a handwritten digit on a microcontroller: constants in flash, two regions in RAM, no libc. */

#include "digits.h"

#define ALIGNED __attribute__((aligned(DIGITS_ALIGNMENT)))

static ALIGNED uint8_t mutables[DIGITS_MUTABLES_SIZE];
static ALIGNED uint8_t activations[DIGITS_ACTIVATIONS_SIZE];

/* 8 lines of 8 pixels, from 0 to 16. */
static const uint8_t image[64] = {
    0, 0, 4,  9,  12, 16, 8,  0, /**/ 0, 0, 15, 15, 8,  8,  2,  0, /**/
    0, 4, 16, 11, 4,  1,  0,  0, /**/ 0, 8, 16, 16, 16, 14, 0,  0, /**/
    0, 0, 11, 9,  8,  16, 0,  0, /**/ 0, 0, 0,  0,  7,  16, 0,  0, /**/
    0, 0, 0,  8,  16, 12, 0,  0, /**/ 0, 0, 3,  13, 9,  1,  0,  0,
};

enum { SYS_WRITE0 = 0x04, SYS_EXIT = 0x18, STOPPED = 0x20026 };

/* Asks the debugger, or an emulator in its place: https://github.com/ARM-software/abi-aa, semihosting. */
static void ask_host(uint32_t operation, const void *argument) {
  register uint32_t number __asm__("r0") = operation;
  register const void *value __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xAB" : "+r"(number) : "r"(value) : "memory");
}

int main(void) {
  float *input = (float *)(void *)(mutables + DIGITS_INPUT_IMAGE_OFFSET);
  const float *probabilities = (const float *)(const void *)(mutables + DIGITS_OUTPUT_PROBABILITIES_OFFSET);
  const glow_arguments call = DIGITS_ARGUMENTS(digits_constants, mutables, activations);
  for (int pixel = 0; pixel < 64; ++pixel) {
    input[pixel] = (float)image[pixel] / 16.0F; /* from 0 to 1, as the model expects */
  }
  const int32_t status = digits_run(&call);
  if (status != DIGITS_OK) {
    ask_host(SYS_WRITE0, digits_error_text(status));
    return 1;
  }
  int best = 0;
  for (int digit = 1; digit < 10; ++digit) {
    best = probabilities[digit] > probabilities[best] ? digit : best;
  }
  char answer[] = {'d', 'i', 'g', 'i', 't', ' ', (char)('0' + best), '\n', '\0'};
  ask_host(SYS_WRITE0, answer);
  return 0;
}

/* What the processor runs first: it gets variables their values, switches the FPU on, and calls the program. */
extern uint32_t data_in_flash[], data_begin[], data_end[], bss_begin[], bss_end[], stack_top[];

void reset(void);

void reset(void) {
  volatile uint32_t *const access = (volatile uint32_t *)0xE000ED88; /* CPACR */
  *access |= 0xFU << 20;
  __asm__ volatile("dsb\n\tisb");
  const volatile uint32_t *from = data_in_flash;
  for (volatile uint32_t *to = data_begin; to != data_end; ++to) {
    *to = *from++;
  }
  for (volatile uint32_t *to = bss_begin; to != bss_end; ++to) {
    *to = 0;
  }
  (void)main();
  ask_host(SYS_EXIT, (const void *)STOPPED);
  for (;;) {
  }
}

static void fault(void) {
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
};
