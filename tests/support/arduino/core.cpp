/*
 * A core for the boards MPS2 of Arm, as QEMU has them: `Serial` is what a debugger would show, and the program ends where
 * a sketch waits. The linker script is that of examples/bundle_cortex_m.
 */
#include "Arduino.h"

enum { SYS_WRITE0 = 0x04, SYS_EXIT = 0x18, STOPPED = 0x20026 };

static void ask_host(uint32_t operation, const void *argument) {
  register uint32_t number __asm__("r0") = operation;
  register const void *value __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xAB" : "+r"(number) : "r"(value) : "memory");
}

Print Serial;

void Print::begin(unsigned long) {}

void Print::println(const char *text) {
  ask_host(SYS_WRITE0, text);
  ask_host(SYS_WRITE0, "\n");
}

static void print_integer(unsigned long rest, bool is_negative) {
  char text[24];
  char *at = text + sizeof text;
  *--at = '\0';
  do {
    *--at = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (is_negative) {
    *--at = '-';
  }
  Serial.println(at);
}

void Print::println(long number) {
  print_integer(number < 0 ? -static_cast<unsigned long>(number) : static_cast<unsigned long>(number), number < 0);
}

void Print::println(unsigned long number) { print_integer(number, false); }

void Print::println(double number, int digits) {
  char text[24] = {number < 0 ? '-' : '+'};
  double rest = number < 0 ? -number : number;
  const long whole = static_cast<long>(rest);
  char *at = text + 12;
  for (long left = whole; at != text + 1; left /= 10) {
    *--at = static_cast<char>('0' + left % 10);
  }
  at = text + 12;
  *at++ = '.';
  for (rest -= static_cast<double>(whole); digits-- != 0; ) {
    rest *= 10;
    const int digit = static_cast<int>(rest);
    *at++ = static_cast<char>('0' + digit);
    rest -= digit;
  }
  println(text);
}

void delay(unsigned long) { ask_host(SYS_EXIT, reinterpret_cast<const void *>(STOPPED)); }

extern uint32_t data_in_flash[], data_begin[], data_end[], bss_begin[], bss_end[], stack_top[];

extern "C" void reset() {
  *reinterpret_cast<volatile uint32_t *>(0xE000ED88) |= 0xFU << 20; /* the FPU */
  __asm__ volatile("dsb\n\tisb");
  const volatile uint32_t *from = data_in_flash;
  for (volatile uint32_t *to = data_begin; to != data_end; ++to) {
    *to = *from++;
  }
  for (volatile uint32_t *to = bss_begin; to != bss_end; ++to) {
    *to = 0;
  }
  setup();
  for (;;) {
    loop();
  }
}

extern const void *const vectors[2];
__attribute__((section(".vectors"), used)) const void *const vectors[2] = {stack_top,
                                                                          reinterpret_cast<const void *>(&reset)};
