/* Reads an image of a handwritten digit with the bundle `digits`: its three regions are arrays of this program. */

#include <stdio.h>

#include "digits.h"

#define ALIGNED __attribute__((aligned(DIGITS_ALIGNMENT)))

static ALIGNED uint8_t constants[DIGITS_CONSTANTS_SIZE];
static ALIGNED uint8_t mutables[DIGITS_MUTABLES_SIZE];
static ALIGNED uint8_t activations[DIGITS_ACTIVATIONS_SIZE];

/* 8 lines of 8 pixels, from 0 to 16. */
static const uint8_t image[64] = {
    0, 0, 4,  9,  12, 16, 8,  0, /**/ 0, 0, 15, 15, 8,  8,  2,  0, /**/
    0, 4, 16, 11, 4,  1,  0,  0, /**/ 0, 8, 16, 16, 16, 14, 0,  0, /**/
    0, 0, 11, 9,  8,  16, 0,  0, /**/ 0, 0, 0,  0,  7,  16, 0,  0, /**/
    0, 0, 0,  8,  16, 12, 0,  0, /**/ 0, 0, 3,  13, 9,  1,  0,  0,
};

int main(int count, char **arguments) {
  const char *path = count > 1 ? arguments[1] : "digits.weights.bin";
  FILE *file = fopen(path, "rb");
  if (file == NULL || fread(constants, 1, sizeof constants, file) != sizeof constants) {
    (void)fprintf(stderr, "%s: cannot be read\n", path);
    return 1;
  }
  (void)fclose(file);

  /* One pointer for each input and output: nothing is copied. */
  float pixels[DIGITS_INPUT_IMAGE_SIZE / sizeof(float)];
  float probabilities[DIGITS_OUTPUT_PROBABILITIES_SIZE / sizeof(float)];
  const glow_arguments call = DIGITS_ARGUMENTS(constants, mutables, activations);
  const digits_run_buffers buffers = {pixels, probabilities};
  for (int pixel = 0; pixel < 64; ++pixel) {
    pixels[pixel] = (float)image[pixel] / 16.0F; /* from 0 to 1, as the model expects */
  }
  const int32_t status = digits_run_direct(&call, &buffers);
  if (status != DIGITS_OK) {
    (void)fprintf(stderr, "digits: %s\n", digits_error_text(status));
    return 1;
  }

  int best = 0;
  for (int digit = 1; digit < 10; ++digit) {
    best = probabilities[digit] > probabilities[best] ? digit : best;
  }
  (void)printf("digit %d\n", best);
  return 0;
}
