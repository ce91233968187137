/* Of Arduino's core, what examples of bundles call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

class Print {
 public:
  void begin(unsigned long baud);
  void println(const char *text);
  void println(long number);
  void println(unsigned long number);
  void println(double number, int digits);
};

extern Print Serial;

void delay(unsigned long milliseconds);
void setup();
void loop();
