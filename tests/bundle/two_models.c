/* Calls two bundles, one of them with two entries, in every way that there is; ends with the line of what is wrong. */

#define _XOPEN_SOURCE 600

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cut.h"
#include "free.debug.h"
#include "pair.h"
#include "seen.debug.h"

#define CHECK(holds)     \
  do {                   \
    if (!(holds)) {      \
      return __LINE__;   \
    }                    \
  } while (0)

#define ALIGNED __attribute__((aligned(PAIR_ALIGNMENT)))

static ALIGNED uint8_t constants[PAIR_CONSTANTS_SIZE];
static ALIGNED uint8_t cut_constants[] = {
#include "cut.weights.txt"
};
static ALIGNED uint8_t free_constants[] = {
#include "free.weights.txt"
};
static ALIGNED uint8_t mutables[4][PAIR_MUTABLES_SIZE + PAIR_ALIGNMENT];
static ALIGNED uint8_t activations[4][PAIR_ACTIVATIONS_SIZE + PAIR_ALIGNMENT];
static ALIGNED uint8_t cut_mutables[CUT_MUTABLES_SIZE];
static ALIGNED uint8_t cut_activations[CUT_ACTIVATIONS_SIZE];
static ALIGNED uint8_t free_mutables[FREE_MUTABLES_SIZE];
static ALIGNED uint8_t free_activations[FREE_ACTIVATIONS_SIZE];

static int read_file(const char *path, void *to, size_t size) {
  FILE *file = fopen(path, "rb");
  size_t count = file == NULL ? 0 : fread(to, 1, size, file);
  if (file != NULL) {
    (void)fclose(file);
  }
  return count == size;
}

/* The table has 10 * row + column. */
static int static_form(void) {
  glow_arguments arguments = PAIR_ARGUMENTS(constants, mutables[0], activations[0]);
  const int64_t rows[2] = {2, 1};
  float found[8];
  memcpy(mutables[0] + PAIR_LOOKUP_INPUT_INT__OFFSET, rows, PAIR_LOOKUP_INPUT_INT__SIZE);
  CHECK(pair_lookup(&arguments) == PAIR_OK);
  memcpy(found, mutables[0] + PAIR_LOOKUP_OUTPUT_INT__2_OFFSET, PAIR_LOOKUP_OUTPUT_INT__2_SIZE);
  CHECK(found[0] == 20.0F && found[3] == 23.0F && found[4] == 10.0F && found[7] == 13.0F);
  return 0;
}

static int direct_form(void) {
  glow_arguments arguments = PAIR_ARGUMENTS(constants, NULL, activations[0]);
  const int64_t rows[2] = {0, 2};
  const int64_t outside[2] = {0, 3};
  float found[8];
  pair_lookup_buffers buffers = {rows, found};
  CHECK(pair_lookup_direct(&arguments, &buffers) == PAIR_OK);
  CHECK(found[1] == 1.0F && found[5] == 21.0F);
  buffers.int_ = outside;
  CHECK(pair_lookup_direct(&arguments, &buffers) == PAIR_FAILURE_1);
  CHECK(strstr(pair_error_text(PAIR_FAILURE_1), "range") != NULL);
  buffers.int_ = NULL;
  CHECK(pair_lookup_direct(&arguments, &buffers) == PAIR_ERROR_ARGUMENTS);
  CHECK(pair_lookup_direct(&arguments, NULL) == PAIR_ERROR_ARGUMENTS);
  return 0;
}

/* The state begins with 0.5 and adds the input up; the output is the table, and the state on top. */
static int state(void) {
  glow_arguments arguments = PAIR_ARGUMENTS(constants, mutables[0], activations[0]);
  const float one[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  float found[12];
  CHECK(pair_initialize(&arguments) == PAIR_OK);
  for (int call = 1; call <= 3; ++call) {
    memcpy(mutables[0] + PAIR_COUNT_INPUT_UNNAMED_OFFSET, one, sizeof one);
    CHECK(pair_count(&arguments) == PAIR_OK);
    memcpy(found, mutables[0] + PAIR_COUNT_OUTPUT_X1ST_OFFSET, PAIR_COUNT_OUTPUT_X1ST_SIZE);
    CHECK(found[11] == 23.5F + (float)call);
  }
  CHECK(pair_initialize(&arguments) == PAIR_OK);
  CHECK(pair_count(&arguments) == PAIR_OK);
  memcpy(found, mutables[0] + PAIR_COUNT_OUTPUT_X1ST_OFFSET, PAIR_COUNT_OUTPUT_X1ST_SIZE);
  CHECK(found[11] == 24.5F);
  return 0;
}

static int mistakes(void) {
  const glow_arguments right = PAIR_ARGUMENTS(constants, mutables[0], activations[0]);
  glow_arguments wrong = right;
  CHECK(pair_count(NULL) == PAIR_ERROR_ARGUMENTS);
  wrong.version = CUT_VERSION;
  CHECK(pair_count(&wrong) == PAIR_ERROR_VERSION);
  wrong = right;
  wrong.constants = NULL;
  CHECK(pair_count(&wrong) == PAIR_ERROR_REGION);
  wrong = right;
  wrong.mutables = NULL;
  CHECK(pair_count(&wrong) == PAIR_ERROR_REGION);
  wrong = right;
  wrong.mutables = mutables[0] + 4;
  CHECK(pair_count(&wrong) == PAIR_ERROR_ALIGNMENT);
  wrong = right;
  wrong.constants = constants + 4;
  CHECK(pair_count(&wrong) == PAIR_ERROR_ALIGNMENT);
  wrong = right;
  constants[PAIR_CONSTANTS_SIZE - 8] ^= 1;
  CHECK(pair_count(&wrong) == PAIR_ERROR_WEIGHTS);
  constants[PAIR_CONSTANTS_SIZE - 8] ^= 1;
  CHECK(strcmp(pair_error_text(PAIR_OK), "success") == 0);
  CHECK(strstr(pair_error_text(PAIR_ERROR_VERSION), "different bundles") != NULL);
  return 0;
}

static void *many_lookups(void *given) {
  uint8_t *own = (uint8_t *)given;
  const long number = (own - mutables[0]) / (long)sizeof mutables[0];
  const glow_arguments arguments = PAIR_ARGUMENTS(constants, own, activations[number]);
  for (int call = 0; call < 200; ++call) {
    const int64_t rows[2] = {number % 3, call % 3};
    float found[8];
    memcpy(own + PAIR_LOOKUP_INPUT_INT__OFFSET, rows, sizeof rows);
    if (pair_lookup(&arguments) != PAIR_OK) {
      return given;
    }
    memcpy(found, own + PAIR_LOOKUP_OUTPUT_INT__2_OFFSET, sizeof found);
    if (found[0] != 10.0F * (float)rows[0] || found[4] != 10.0F * (float)rows[1]) {
      return given;
    }
  }
  return NULL;
}

static int four_threads(void) {
  pthread_t threads[4];
  for (int number = 0; number < 4; ++number) {
    CHECK(pthread_create(&threads[number], NULL, many_lookups, mutables[number]) == 0);
  }
  for (int number = 0; number < 4; ++number) {
    void *failed = NULL;
    CHECK(pthread_join(threads[number], &failed) == 0 && failed == NULL);
  }
  return 0;
}

static size_t depth_of(void *(*call)(void *)) {
  enum { ROOM = 1 << 16, PAINT = 0xA5 };
  static ALIGNED uint8_t stack[ROOM];
  pthread_attr_t attributes;
  pthread_t thread;
  size_t untouched = 0;
  void *failed = stack;
  memset(stack, PAINT, sizeof stack);
  if (pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, sizeof stack) == 0 &&
      pthread_create(&thread, &attributes, call, mutables[0]) == 0) {
    (void)pthread_join(thread, &failed);
  }
  while (failed == NULL && untouched < sizeof stack && stack[untouched] == PAINT) {
    ++untouched;
  }
  return sizeof stack - untouched;
}

static void *one_lookup(void *given) {
  const int64_t rows[2] = {0, 1};
  float found[8];
  const pair_lookup_buffers buffers = {rows, found};
  const glow_arguments arguments = PAIR_ARGUMENTS(constants, given, activations[0]);
  return pair_lookup_direct(&arguments, &buffers) == PAIR_OK ? NULL : given;
}

static void *no_lookup(void *given) {
  return pair_lookup_direct(given, NULL) == PAIR_OK ? given : NULL;
}

/* The stack of a call is within what the header says, beside a call that is refused at once. */
static int stack_bound(void) {
  const uint32_t wrong = PAIR_VERSION + 1;
  memcpy(mutables[0], &wrong, sizeof wrong);
  const size_t least = depth_of(no_lookup);
  const size_t most = depth_of(one_lookup);
  CHECK(least < 60000 && most < 60000);
  CHECK(most <= least + PAIR_STACK_SIZE + 256 && PAIR_STACK_SIZE >= 16 && PAIR_STACK_SIZE < 2048);
  return 0;
}

/* A parallel-for that runs parts from the last to the first, and counts them. */
static void backwards(void *context, void (*task)(void *data, int64_t part, int64_t worker), void *data,
                      int64_t parts) {
  int64_t *count = (int64_t *)context;
  for (int64_t part = parts - 1; part >= 0; --part) {
    task(data, part, part % 2);
    ++*count;
  }
}

static int parallel(void) {
  int64_t count = 0;
  const glow_parallel two = {backwards, &count};
  glow_arguments arguments = CUT_ARGUMENTS(cut_constants, cut_mutables, cut_activations);
  float alone[CUT_OUTPUT_RESULT_SIZE / sizeof(float)];
  float *x = (float *)(void *)(cut_mutables + CUT_INPUT_X_OFFSET);
  for (size_t at = 0; at < CUT_INPUT_X_SIZE / sizeof(float); ++at) {
    x[at] = (float)(at % 13) - 6.0F;
  }
  CHECK(sizeof cut_constants == CUT_CONSTANTS_SIZE);
  CHECK(cut_run(&arguments) == CUT_OK && count == 0);
  memcpy(alone, cut_mutables + CUT_OUTPUT_RESULT_OFFSET, sizeof alone);
  memset(cut_mutables + CUT_OUTPUT_RESULT_OFFSET, 0xFF, sizeof alone);
  arguments.parallel = &two;
  CHECK(cut_run(&arguments) == CUT_OK && count > 1);
  CHECK(memcmp(alone, cut_mutables + CUT_OUTPUT_RESULT_OFFSET, sizeof alone) == 0);
  return 0;
}

/* Runs an entry of any bundle that takes `given`, and copies what it gives; knows nothing but the description. */
static int run_any(const glow_config *config, const char *name, const void *given, void *found) {
  static ALIGNED uint8_t own_mutables[1024];
  static ALIGNED uint8_t own_activations[1024];
  glow_arguments arguments = {config->version, constants, own_mutables, own_activations, NULL, NULL, NULL};
  const glow_entry *entry = config->entries;
  CHECK(config->mutables <= sizeof own_mutables && config->activations <= sizeof own_activations);
  CHECK(config->abi == 2 && config->alignment == PAIR_ALIGNMENT && config->constants == sizeof constants);
  CHECK(config->constants_data == NULL && config->initialize != NULL);
  CHECK(config->initialize(&arguments) == 0);
  while (strcmp(entry->name, name) != 0) {
    CHECK(++entry < config->entries + config->entry_count);
  }
  for (size_t number = 0; number < entry->symbol_count; ++number) {
    const glow_symbol *symbol = &entry->symbols[number];
    if (symbol->kind == 0) {
      memcpy(own_mutables + symbol->offset, given, symbol->size);
    }
  }
  CHECK(entry->run(&arguments) == 0);
  for (size_t number = 0; number < entry->symbol_count; ++number) {
    const glow_symbol *symbol = &entry->symbols[number];
    if (symbol->kind == 1) {
      CHECK(strcmp(symbol->type, "float32") == 0 && symbol->rank == 2 && symbol->shape[1] == 4);
      memcpy(found, own_mutables + symbol->offset, symbol->size);
    }
  }
  return 0;
}

static int dynamic_form(void) {
  const float one[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  const int64_t rows[2] = {2, 0};
  float found[12];
  int line = run_any(&pair_config, "count", one, found);
  CHECK(line == 0 && found[4] == 11.5F);
  line = run_any(&pair_config, "lookup", rows, found);
  CHECK(line == 0 && found[3] == 23.0F);
  CHECK(strcmp(pair_config.error_text(0), "success") == 0 && strcmp(pair_config.name, "pair") == 0);
  return 0;
}

/* Rows that a call does not have stay as they are. */
static int sizes_at_run_time(void) {
  glow_arguments arguments = FREE_ARGUMENTS(free_constants, free_mutables, free_activations);
  int64_t sizes[1] = {2};
  float *x = (float *)(void *)(free_mutables + FREE_INPUT_X_OFFSET);
  float *y = (float *)(void *)(free_mutables + FREE_OUTPUT_RESULT_OFFSET);
  const free_run_buffers buffers = {x, y, sizes, NULL};
  CHECK(FREE_INPUT_X_SIZE == 3 * 4 * sizeof(float) && FREE_SIZE_0 == 0);
  x[7] = 7.0F;
  x[8] = 8.0F;
  CHECK(free_run(&arguments) == FREE_ERROR_ARGUMENTS);
  arguments.sizes = sizes;
  CHECK(free_run(&arguments) == FREE_OK && y[7] == -7.0F && y[8] == 0.0F);
  sizes[0] = 3;
  CHECK(free_run_direct(&arguments, &buffers) == FREE_OK && y[8] == -8.0F);
  sizes[0] = 4;
  CHECK(free_run(&arguments) == FREE_ERROR_SIZES && free_run_direct(&arguments, &buffers) == FREE_ERROR_SIZES);
  sizes[0] = 0;
  CHECK(free_run(&arguments) == FREE_ERROR_SIZES);
  return 0;
}

/* What is written has the sizes of the call, and nothing from beyond them. */
static int watched_sizes_at_run_time(void) {
  glow_arguments arguments = FREE_ARGUMENTS(free_constants, free_mutables, free_activations);
  int64_t sizes[1] = {2};
  char line[256];
  FILE *file = tmpfile();
  const glow_observer writer = {NULL, glow_dump_text, file};
  memset(free_mutables, 0, sizeof free_mutables);
  arguments.sizes = sizes;
  arguments.observer = &writer;
  CHECK(file != NULL && free_run(&arguments) == FREE_OK);
  rewind(file);
  CHECK(fgets(line, sizeof line, file) != NULL && strstr(line, "[2, 4]: -0 -0 -0 -0 -0 -0 -0 -0\n") != NULL);
  CHECK(fclose(file) == 0);
  return 0;
}

/* What callbacks have been told of. */
struct told {
  int before;
  int after;
  uint64_t cycles;
  float last;
};

static void count_before(void *context, const glow_instruction *instruction, void *const *addresses,
                         const int64_t *extents, uint64_t cycles) {
  struct told *told = (struct told *)context;
  (void)addresses;
  (void)extents;
  told->before += instruction->number == (uint32_t)told->before && told->before == told->after;
  told->cycles = cycles;
}

static void count_after(void *context, const glow_instruction *instruction, void *const *addresses,
                        const int64_t *extents, uint64_t cycles) {
  struct told *told = (struct told *)context;
  (void)extents;
  told->after += instruction->buffer_count > 0 && instruction->kind[0] != '\0' && cycles >= told->cycles;
  for (uint32_t number = 0; number < instruction->buffer_count; ++number) {
    const glow_buffer *buffer = &instruction->buffers[number];
    if (buffer->use == 1 && buffer->rank == 2) {
      memcpy(&told->last, (const float *)addresses[number] + 2 * buffer->strides[0] + 3, sizeof told->last);
    }
  }
}

static int instrumented(void) {
  static ALIGNED uint8_t own[SEEN_MUTABLES_SIZE];
  static ALIGNED uint8_t own_activations[SEEN_ACTIVATIONS_SIZE];
  const float one[4] = {1.0F, 1.0F, 1.0F, 1.0F};
  struct told told = {0, 0, 0, 0.0F};
  const glow_observer counter = {count_before, count_after, &told};
  glow_arguments arguments = SEEN_ARGUMENTS(seen_constants, own, own_activations);
  char line[256];
  float found[12];
  float state[4] = {0.5F, 0.5F, 0.5F, 0.5F};
  seen_run_buffers buffers = {one, state, found, &counter};
  FILE *file = tmpfile();
  const glow_observer writer = {NULL, glow_dump_text, file};
  CHECK(seen_run_direct(&arguments, &buffers) == SEEN_OK);
  CHECK(told.before > 0 && told.before == told.after && told.last == found[11] && found[11] == 24.5F);
  CHECK(seen_initialize(&arguments) == SEEN_OK);
  memcpy(own + SEEN_INPUT_UNNAMED_OFFSET, one, sizeof one);
  arguments.observer = &writer;
  CHECK(file != NULL && seen_run(&arguments) == SEEN_OK);
  rewind(file);
  CHECK(fgets(line, sizeof line, file) != NULL && strstr(line, "float32[") != NULL && strstr(line, "1.5") != NULL);
  CHECK(fclose(file) == 0);
  arguments.observer = NULL;
  CHECK(seen_run(&arguments) == SEEN_OK);
  return 0;
}

int main(int count, char **arguments) {
  int (*const tests[])(void) = {static_form, direct_form, state, mistakes, four_threads, stack_bound, parallel, dynamic_form, sizes_at_run_time, watched_sizes_at_run_time,
                              instrumented};
  if (count != 2 || !read_file(arguments[1], constants, sizeof constants)) {
    return 1;
  }
  for (size_t number = 0; number < sizeof tests / sizeof tests[0]; ++number) {
    const int line = tests[number]();
    if (line != 0) {
      (void)printf("line %d\n", line);
      return 1;
    }
  }
  return 0;
}
