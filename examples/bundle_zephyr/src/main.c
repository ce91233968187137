/* Reads an image of a handwritten digit in a thread of Zephyr: constants in flash, two regions in RAM. */

#include <zephyr/sys/printk.h>

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

int main(void) {
  static float pixels[64], probabilities[10];
  const glow_arguments call = DIGITS_ARGUMENTS(digits_constants, mutables, activations);
  const digits_run_buffers buffers = {pixels, probabilities};
  for (int pixel = 0; pixel < 64; ++pixel) {
    pixels[pixel] = (float)image[pixel] / 16.0F; /* from 0 to 1, as the model expects */
  }
  const int32_t status = digits_run_direct(&call, &buffers);
  if (status != DIGITS_OK) {
    printk("%s\n", digits_error_text(status));
    return 0;
  }
  int best = 0;
  for (int digit = 1; digit < 10; ++digit) {
    best = probabilities[digit] > probabilities[best] ? digit : best;
  }
  printk("digit %d\n", best);
  return 0;
}
