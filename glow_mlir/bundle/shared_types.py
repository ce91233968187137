"""The C types shared by all bundles, included in each header."""

from __future__ import annotations

from glow_mlir.runtime.bundle import ABI

TYPES = f"""\
#ifndef GLOW_BUNDLE_TYPES_{ABI}
#define GLOW_BUNDLE_TYPES_{ABI}
/* What all bundles share. */

/* Runs task(data, part, worker) once for each part from 0 to parts - 1, and returns when all are done. Parts may run at
   the same time; a worker, from 0 to threads - 1, has one at a time. */
typedef struct glow_parallel {{
  void (*run)(void *context, void (*task)(void *data, int64_t part, int64_t worker), void *data, int64_t parts);
  void *context;
}} glow_parallel;

/* A buffer of an instruction: its elements are at the address that the callback gets. */
typedef struct glow_buffer {{
  const char *operand;
  const char *type;       /* element type, as float32 */
  uint32_t use;           /* 0 read, 1 written, 2 both, 3 scratch */
  uint32_t rank;
  const int64_t *shape;   /* the largest, where sizes are known at run time only */
  const int64_t *strides; /* in elements */
}} glow_buffer;

/* An instruction: the nodes of the model that it comes from, its kind, and its number in the entry. */
typedef struct glow_instruction {{
  const char *name;
  const char *kind;
  uint32_t number;
  uint32_t buffer_count;
  const glow_buffer *buffers;
}} glow_instruction;

/* Gets the addresses of all buffers, and, where sizes are known at run time only, those of all axes of all buffers in a
   row; else `extents` is null, and shapes are as the buffers say. */
typedef void glow_callback(void *context, const glow_instruction *instruction, void *const *addresses,
                           const int64_t *extents, uint64_t cycles);

/* What instrumented bundles call around each instruction; either may be null. */
typedef struct glow_observer {{
  glow_callback *before;
  glow_callback *after;
  void *context;
}} glow_observer;

/* What a call gets. Whoever calls owns all memory; calls may happen at the same time if they share constants alone. */
typedef struct glow_arguments {{
  uint32_t version;              /* that of the header */
  const void *constants;         /* read alone */
  void *mutables;                /* inputs, outputs and state */
  void *activations;             /* undefined between calls */
  const glow_parallel *parallel; /* null: the caller computes alone */
  int64_t *sizes;                /* of what is known at run time only, in the order of the header */
  const glow_observer *observer; /* of instrumented bundles, or null */
}} glow_arguments;

/* What a bundle says of itself to a program that runs any: the entries, and where their inputs and outputs are. */
typedef struct glow_symbol {{
  const char *name;
  const char *type;       /* element type, as float32 */
  uint32_t kind;          /* 0 input, 1 output, 2 state, 3 packed state */
  uint32_t rank;
  const int64_t *shape;   /* the largest, where sizes are known at run time only */
  size_t offset;          /* in the mutables, in bytes */
  size_t size;
}} glow_symbol;

typedef struct glow_entry {{
  const char *name;
  int32_t (*run)(const glow_arguments *arguments);
  size_t mutables;
  size_t activations;
  size_t sizes;           /* how many sizes the arguments have */
  size_t symbol_count;
  const glow_symbol *symbols;
}} glow_entry;

typedef struct glow_config {{
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
}} glow_config;
#endif
"""
