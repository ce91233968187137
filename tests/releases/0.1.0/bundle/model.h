/* The bundle 'model' for x86_64-unknown-linux-gnu, x86-64, +sse2. Written by glow-compile. */

#ifndef GLOW_BUNDLE_MODEL_H
#define GLOW_BUNDLE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef GLOW_BUNDLE_TYPES_2
#define GLOW_BUNDLE_TYPES_2
/* What all bundles share. */

/* Runs task(data, part, worker) once for each part from 0 to parts - 1, and returns when all are done. Parts may run at
   the same time; a worker, from 0 to threads - 1, has one at a time. */
typedef struct glow_parallel {
  void (*run)(void *context, void (*task)(void *data, int64_t part, int64_t worker), void *data, int64_t parts);
  void *context;
} glow_parallel;

/* A buffer of an instruction: its elements are at the address that the callback gets. */
typedef struct glow_buffer {
  const char *operand;
  const char *type;       /* element type, as float32 */
  uint32_t use;           /* 0 read, 1 written, 2 both, 3 scratch */
  uint32_t rank;
  const int64_t *shape;   /* the largest, where sizes are known at run time only */
  const int64_t *strides; /* in elements */
} glow_buffer;

/* An instruction: the nodes of the model that it comes from, its kind, and its number in the entry. */
typedef struct glow_instruction {
  const char *name;
  const char *kind;
  uint32_t number;
  uint32_t buffer_count;
  const glow_buffer *buffers;
} glow_instruction;

/* Gets the addresses of all buffers, and, where sizes are known at run time only, those of all axes of all buffers in a
   row; else `extents` is null, and shapes are as the buffers say. */
typedef void glow_callback(void *context, const glow_instruction *instruction, void *const *addresses,
                           const int64_t *extents, uint64_t cycles);

/* What instrumented bundles call around each instruction; either may be null. */
typedef struct glow_observer {
  glow_callback *before;
  glow_callback *after;
  void *context;
} glow_observer;

/* What a call gets. Whoever calls owns all memory; calls may happen at the same time if they share constants alone. */
typedef struct glow_arguments {
  uint32_t version;              /* that of the header */
  const void *constants;         /* read alone */
  void *mutables;                /* inputs, outputs and state */
  void *activations;             /* undefined between calls */
  const glow_parallel *parallel; /* null: the caller computes alone */
  int64_t *sizes;                /* of what is known at run time only, in the order of the header */
  const glow_observer *observer; /* of instrumented bundles, or null */
} glow_arguments;

/* What a bundle says of itself to a program that runs any: the entries, and where their inputs and outputs are. */
typedef struct glow_symbol {
  const char *name;
  const char *type;       /* element type, as float32 */
  uint32_t kind;          /* 0 input, 1 output, 2 state, 3 packed state */
  uint32_t rank;
  const int64_t *shape;   /* the largest, where sizes are known at run time only */
  size_t offset;          /* in the mutables, in bytes */
  size_t size;
} glow_symbol;

typedef struct glow_entry {
  const char *name;
  int32_t (*run)(const glow_arguments *arguments);
  size_t mutables;
  size_t activations;
  size_t sizes;           /* how many sizes the arguments have */
  size_t symbol_count;
  const glow_symbol *symbols;
} glow_entry;

typedef struct glow_config {
  uint32_t abi;
  uint32_t version;
  const char *name;
  size_t alignment;
  size_t constants;
  size_t mutables;        /* enough for each entry, as the next */
  size_t activations;
  const void *constants_data;                             /* null: they are in a file */
  int32_t (*initialize)(const glow_arguments *arguments); /* null: there is no state */
  const char *(*error_text)(int32_t status);
  size_t entry_count;
  const glow_entry *entries;
} glow_config;
#endif

#define MODEL_VERSION UINT32_C(0x47f621da)
#define MODEL_ALIGNMENT 64 /* of all regions, in bytes, as all sizes are */
#define MODEL_CONSTANTS_SIZE 464
#define MODEL_MUTABLES_SIZE 128
#define MODEL_ACTIVATIONS_SIZE 64
#define MODEL_STACK_SIZE 88 /* the most that a call takes */
#define MODEL_ARGUMENTS(constants, mutables, activations) {MODEL_VERSION, (constants), (mutables), (activations), 0, 0, 0}

enum model_error {
  MODEL_OK = 0, /* success */
  MODEL_ERROR_PROCESSOR = -1, /* the vectors of this processor have another length than those that the code is made for */
  MODEL_ERROR_ARGUMENTS = -2, /* the arguments, or a pointer to a buffer, are null */
  MODEL_ERROR_VERSION = -3, /* the header and the object are of different bundles */
  MODEL_ERROR_REGION = -4, /* a region is null */
  MODEL_ERROR_ALIGNMENT = -5, /* a region does not begin at a multiple of 64 bytes */
  MODEL_ERROR_WEIGHTS = -6, /* the constants are not those of this bundle */
  MODEL_ERROR_SIZES = -7 /* a size is not within its bounds */
};

/* ---- run: places in the mutables */

#define MODEL_INPUT_X_OFFSET 0 /* input 'x': float32[2, 4], tensor<2x4xf32> */
#define MODEL_INPUT_X_SIZE 32
#define MODEL_OUTPUT_Y_OFFSET 64 /* output 'y': float32[2, 3], tensor<2x3xf32> */
#define MODEL_OUTPUT_Y_SIZE 24

/* A pointer for each input, output and state of model_run_direct, aligned to its elements. */
typedef struct model_run_buffers {
  const float *x; /* input 'x': float32[2, 4], tensor<2x4xf32> */
  float *y; /* output 'y': float32[2, 3], tensor<2x3xf32> */
} model_run_buffers;

/* Computes on three regions. */
int32_t model_run(const glow_arguments *arguments);

/* Computes on the buffers where they are; the mutables are not used. */
int32_t model_run_direct(const glow_arguments *arguments, const model_run_buffers *buffers);

/* What both call, with the pointers of the buffers in a row; it checks nothing. */
int32_t model_run_call(const void *constants, void *const *bindings, void *activations, const glow_parallel *parallel);

/* What a status means. */
const char *model_error_text(int32_t status);

#ifdef __cplusplus
}
#endif
#endif
