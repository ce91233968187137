"""The header of a bundle: sizes, places, types and functions as C99 and C++ read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from glow_mlir.bundle.compile import Bundle
from glow_mlir.bundle.interface import ARGUMENTS, ERRORS, STATUS
from glow_mlir.bundle.layout import BundleLayout, EntryLayout, Place
from glow_mlir.bundle.names import comment
from glow_mlir.runtime.bundle import ABI
from glow_mlir.support.dtypes import BFLOAT16, named_dtype
from glow_mlir.transforms.allocate import ALIGNMENT

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

typedef void glow_callback(void *context, const glow_instruction *instruction, void *const *addresses,
                           uint64_t cycles);

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

_C_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t", "float16": "uint16_t", BFLOAT16: "uint16_t"}
"""Element type → that of C, where it is not the same word; narrower ones are bytes."""


def c_type(dtype: str) -> str:
    """The type of C that an element has; what C has no type for is bits."""
    if dtype in _C_TYPES:
        return _C_TYPES[dtype]
    kind = named_dtype(dtype)
    return f"{dtype}_t" if kind.kind in "iu" and dtype.endswith(("8", "16", "32", "64")) else "uint8_t"


def header(bundle: Bundle) -> str:
    """The text of the header of a bundle."""
    layout, form = bundle.layout, bundle.form
    guard = f"GLOW_BUNDLE_{layout.macro}_H"
    parts = [
        f"/* {_about(layout)} */\n",
        f"#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        TYPES,
        _macros(bundle),
        _requirements(bundle.artifact.manifest.requirements),
        _errors(layout),
        _constants(layout) if form.constants else "",
        _config(layout) if form.config else "",
        *(_entry(entry) for entry in layout.entries),
        _shared_functions(layout),
        "#ifdef __cplusplus\n}\n#endif\n#endif\n",
    ]
    return "\n".join(filter(None, parts))


def _about(layout: BundleLayout) -> str:
    target = layout.target
    words = filter(None, (target.triple, target.cpu, target.features))
    return f"The bundle '{layout.name}' for {comment(', '.join(words))}. Written by glow-compile."


def _macros(bundle: Bundle) -> str:
    """Version, sizes and alignment of the regions, and how arguments begin."""
    layout, macro = bundle.layout, bundle.layout.macro
    return _defines(
        [
            (f"{macro}_VERSION", f"UINT32_C(0x{bundle.version:08x})", ""),
            (f"{macro}_ALIGNMENT", str(ALIGNMENT), "of all regions, in bytes, as all sizes are"),
            (f"{macro}_CONSTANTS_SIZE", str(layout.constants), ""),
            # Arrays of C are not empty.
            (f"{macro}_MUTABLES_SIZE", str(max(1, layout.mutables)), ""),
            (f"{macro}_ACTIVATIONS_SIZE", str(max(1, layout.activations)), ""),
            (f"{macro}_STACK_SIZE", str(bundle.report.stack), "the most that a call takes"),
            (
                f"{macro}_ARGUMENTS(constants, mutables, activations)",
                f"{{{macro}_VERSION, (constants), (mutables), (activations){', 0' * (len(ARGUMENTS) - 4)}}}",
                "",
            ),
        ]
    )


def _requirements(symbols: Sequence[str]) -> str:
    return f"/* The object needs from a linker: {comment(', '.join(symbols))}. */\n" if symbols else ""


def _errors(layout: BundleLayout) -> str:
    """The statuses of all functions."""
    macro = layout.macro
    lines = [f"enum {layout.name}_error {{"]
    members = [
        (f"{macro}_{'' if name == 'OK' else 'ERROR_'}{name}", STATUS[name], text) for name, text in ERRORS.items()
    ]
    for number, text in enumerate(layout.failures, 1):
        members.append((f"{macro}_FAILURE_{number}", number, text))
    for position, (name, number, text) in enumerate(members):
        separator = "," if position + 1 < len(members) else ""
        lines.append(f"  {name} = {number}{separator} /* {comment(text)} */")
    return "\n".join([*lines, "};\n"])


def _constants(layout: BundleLayout) -> str:
    return f"/* The constants, in the object itself. */\nextern const uint8_t {layout.name}_constants[];\n"


def _config(layout: BundleLayout) -> str:
    return f"/* What the bundle says of itself. */\nextern const glow_config {layout.name}_config;\n"


def _entry(layout: EntryLayout) -> str:
    """Places, buffers and functions of an entry."""
    rows: list[tuple[str, str, str]] = []
    for place in layout.places:
        prefix = f"{layout.macro}_{_ROLES[place.binding.role]}_{place.field.upper()}"
        rows += [
            (f"{prefix}_OFFSET", str(place.offset), _described(place)),
            (f"{prefix}_SIZE", str(place.binding.nbytes), ""),
        ]
    for position, symbol in enumerate(layout.entry.symbols):
        name = f"{layout.macro}_SIZE_{position}"
        rows.append((name, str(position), f"sizes[{position}] is {symbol.name}, from {symbol.least} to {symbol.most}"))
    symbol = layout.symbol
    return "\n".join(
        [
            f"/* ---- {layout.name}: places in the mutables */\n",
            _defines(rows),
            f"/* A pointer for each input, output and state of {symbol}_direct, aligned to its elements. */",
            f"typedef struct {symbol}_buffers {{",
            *(f"  {line}" for line in _members(layout)),
            f"}} {symbol}_buffers;\n",
            "/* Computes on three regions. */",
            f"int32_t {symbol}(const glow_arguments *arguments);\n",
            "/* Computes on the buffers where they are; the mutables are not used. */",
            f"int32_t {symbol}_direct(const glow_arguments *arguments, const {symbol}_buffers *buffers);\n",
            "/* What both call, with the pointers of the buffers in a row; it checks nothing. */",
            f"int32_t {layout.entry.name}(const void *constants, void *const *bindings, void *activations, "
            "const glow_parallel *parallel);\n",
        ]
    )


_ROLES = {"input": "INPUT", "output": "OUTPUT", "state": "STATE", "packed": "PACKED"}


def _members(layout: EntryLayout) -> Iterable[str]:
    for place in layout.places:
        constant = "const " if place.binding.role == "input" else ""
        yield f"{constant}{c_type(place.binding.dtype)} *{place.field}; /* {_described(place)} */"
    if layout.entry.symbols:
        yield "int64_t *sizes; /* as in the arguments */"
    if layout.entry.observed:
        yield "const glow_observer *observer; /* or null */"
    if not layout.places and not layout.entry.symbols:
        yield "const void *nothing;"


def _described(place: Place) -> str:
    """What an input, output or state is, in words."""
    binding = place.binding
    shape = ", ".join(map(str, binding.declared))
    count = math.prod(binding.shape)
    room = f", room for {count} elements" if binding.sizes else ""
    return comment(f"{binding.role} '{binding.name}': {binding.dtype}[{shape}]{room}, {place.type}")


def _shared_functions(layout: BundleLayout) -> str:
    """What a bundle has once."""
    found = [
        "/* What a status means. */",
        f"const char *{layout.name}_error_text(int32_t status);\n",
    ]
    if layout.state:
        found += [
            "/* Gives all state in the mutables the values with which it begins. */",
            f"int32_t {layout.name}_initialize(const glow_arguments *arguments);\n",
        ]
    return "\n".join(found)


def _defines(rows: Sequence[tuple[str, str, str]]) -> str:
    """Macros, each with a comment where there is one."""
    return "".join(f"#define {name} {value}{f' /* {text} */' if text else ''}\n" for name, value, text in rows)
