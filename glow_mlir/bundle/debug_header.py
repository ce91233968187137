"""The header for instrumented bundles: callbacks that write the results of instructions."""

from __future__ import annotations

from glow_mlir.runtime.bundle import ABI

_TEXT = """\
/* Callbacks for the observer of the bundle '{name}': they write what each instruction wrote to the FILE in `context`.
   Written by glow-compile. */

#include "{name}.h"

#ifndef GLOW_BUNDLE_CALLBACKS_{abi}
#define GLOW_BUNDLE_CALLBACKS_{abi}
/* What all instrumented bundles share. */

#include <stdio.h>
#include <string.h>

/* The bytes of an element of that type. */
static inline size_t glow_element_size(const char *type) {{
  const char *const digits = type + strcspn(type, "0123456789");
  return strstr(digits, "64") != NULL ? 8 : strstr(digits, "32") != NULL ? 4 : strstr(digits, "16") != NULL ? 2 : 1;
}}

/* Writes an element as a number; one of a type that C lacks as its bits. */
static inline void glow_print_element(FILE *file, const char *type, const unsigned char *at) {{
  float single;
  double number;
  int64_t integer = 0;
  const size_t size = glow_element_size(type);
  if (strcmp(type, "float32") == 0) {{
    memcpy(&single, at, sizeof single);
    (void)fprintf(file, "%.9g", (double)single);
  }} else if (strcmp(type, "float64") == 0) {{
    memcpy(&number, at, sizeof number);
    (void)fprintf(file, "%.17g", number);
  }} else {{
    for (size_t byte = 0; byte < size; ++byte) {{
      integer |= (int64_t)((uint64_t)at[byte] << (8 * byte));
    }}
    if (strncmp(type, "int", 3) == 0 && size < 8 && (at[size - 1] & 0x80) != 0) {{
      integer -= (int64_t)1 << (8 * size);
    }}
    (void)fprintf(file, "%lld", (long long)integer);
  }}
}}

/* Calls `write` for each element of a buffer of that shape, the last axis first. */
static inline void glow_each_element(const glow_buffer *buffer, const int64_t *shape, const void *address, FILE *file,
                                     void (*write)(FILE *file, const char *type, const unsigned char *at)) {{
  int64_t count = 1;
  const int64_t size = (int64_t)glow_element_size(buffer->type);
  for (uint32_t axis = 0; axis < buffer->rank; ++axis) {{
    count *= shape[axis];
  }}
  for (int64_t number = 0; number < count; ++number) {{
    int64_t rest = number;
    int64_t offset = 0;
    for (uint32_t axis = buffer->rank; axis-- > 0;) {{
      offset += rest % shape[axis] * buffer->strides[axis];
      rest /= shape[axis];
    }}
    write(file, buffer->type, (const unsigned char *)address + offset * size);
  }}
}}

static inline void glow_write_text(FILE *file, const char *type, const unsigned char *at) {{
  (void)fputc(' ', file);
  glow_print_element(file, type, at);
}}

static inline void glow_write_bytes(FILE *file, const char *type, const unsigned char *at) {{
  (void)fwrite(at, 1, glow_element_size(type), file);
}}

/* Writes a line about a value: number, kind and name of the instruction, operand, type and shape. */
static inline void glow_dump_head(FILE *file, const glow_instruction *instruction, const glow_buffer *buffer,
                                  const int64_t *shape) {{
  (void)fprintf(file, "%u %s '%s' %s %s[", (unsigned)instruction->number, instruction->kind, instruction->name,
                buffer->operand, buffer->type);
  for (uint32_t axis = 0; axis < buffer->rank; ++axis) {{
    (void)fprintf(file, axis == 0 ? "%lld" : ", %lld", (long long)shape[axis]);
  }}
  (void)fputc(']', file);
}}

static inline void glow_dump(FILE *file, const glow_instruction *instruction, void *const *addresses,
                             const int64_t *extents,
                             void (*write)(FILE *file, const char *type, const unsigned char *at),
                             const char *middle) {{
  uint32_t axes = 0;
  for (uint32_t number = 0; number < instruction->buffer_count; ++number) {{
    const glow_buffer *buffer = &instruction->buffers[number];
    const int64_t *shape = extents == NULL ? buffer->shape : extents + axes;
    if (buffer->use == 1 || buffer->use == 2) {{
      glow_dump_head(file, instruction, buffer, shape);
      (void)fputs(middle, file);
      glow_each_element(buffer, shape, addresses[number], file, write);
      (void)fputc('\\n', file);
    }}
    axes += buffer->rank;
  }}
}}

/* For `after`: each value in a line of text. */
static inline void glow_dump_text(void *context, const glow_instruction *instruction, void *const *addresses,
                                  const int64_t *extents, uint64_t cycles) {{
  (void)cycles;
  glow_dump((FILE *)context, instruction, addresses, extents, glow_write_text, ":");
}}

/* For `after`: a line of text, and behind it the elements of the value as bytes, one after the other. */
static inline void glow_dump_binary(void *context, const glow_instruction *instruction, void *const *addresses,
                                    const int64_t *extents, uint64_t cycles) {{
  (void)cycles;
  glow_dump((FILE *)context, instruction, addresses, extents, glow_write_bytes, "\\n");
}}

#endif
"""


def debug_header(name: str) -> str:
    """The text of the header for a bundle of that name."""
    return _TEXT.format(name=name, abi=ABI)
