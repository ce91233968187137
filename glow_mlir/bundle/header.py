"""The header of a bundle: sizes, offsets, types and functions in C99 and C++."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from glow_mlir.bundle.compile import Bundle
from glow_mlir.bundle.interface import ARGUMENTS, ERRORS, STATUS
from glow_mlir.bundle.layout import BindingSlot, BundleLayout, EntryLayout
from glow_mlir.bundle.names import comment
from glow_mlir.bundle.shared_types import TYPES
from glow_mlir.support.dtypes import BFLOAT16, named_dtype

_C_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t", "float16": "uint16_t", BFLOAT16: "uint16_t"}
"""Element type → C type, if the names differ; narrower ones are bytes."""


def c_type(dtype: str) -> str:
    """The C type of an element; types that C lacks are represented as bits."""
    if dtype in _C_TYPES:
        return _C_TYPES[dtype]
    kind = named_dtype(dtype)
    return f"{dtype}_t" if kind.kind in "iu" and dtype.endswith(("8", "16", "32", "64")) else "uint8_t"


def c_float(number: float) -> str:
    """A 32-bit number in C, with the fewest digits that preserve its value."""
    digits = str(np.float32(number))
    return f"{digits if set(digits) & set('.e') else digits + '.0'}F"


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
    """A line that describes the bundle; the manifest has all features if the line only counts them."""
    target = layout.target
    where = "" if target.features in target.machine else f" ({layout.name}.json has them all)"
    return f"The bundle '{layout.name}' for {comment(target.machine + where)}. Written by glow-compile."


def _macros(bundle: Bundle) -> str:
    """Version, sizes and alignment of the regions, and the initializer of arguments."""
    layout, macro = bundle.layout, bundle.layout.macro
    return _defines(
        [
            (f"{macro}_VERSION", f"UINT32_C(0x{bundle.version:08x})", ""),
            (f"{macro}_ALIGNMENT", str(layout.alignment), "of all regions, in bytes, as all sizes are"),
            (f"{macro}_CONSTANTS_SIZE", str(layout.constants), ""),
            # C arrays cannot be empty.
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
    """Offsets, buffers and functions of an entry."""
    rows: list[tuple[str, str, str]] = []
    for slot in layout.slots:
        rows += [
            (f"{slot.macro}_OFFSET", str(slot.offset), _described(slot)),
            (f"{slot.macro}_SIZE", str(slot.binding.nbytes), ""),
        ]
        if slot.quantization is not None:
            rows += [
                (
                    f"{slot.macro}_SCALE",
                    c_float(slot.quantization.scale),
                    "an integer q stands for (q - ZERO_POINT) * SCALE",
                ),
                (f"{slot.macro}_ZERO_POINT", f"({slot.quantization.zero_point})", ""),
            ]
    for position, symbol in enumerate(layout.entry.symbols):
        name = f"{layout.macro}_SIZE_{position}"
        rows.append((name, str(position), f"sizes[{position}] is {symbol.name}, from {symbol.least} to {symbol.most}"))
    symbol = layout.symbol
    regions = dict.fromkeys(slot.region for slot in layout.slots)
    return "\n".join(
        [
            f"/* ---- {layout.name}: places in the {' and '.join(regions) or 'mutables'} */\n",
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


def _members(layout: EntryLayout) -> Iterable[str]:
    for slot in layout.slots:
        constant = "const " if slot.binding.role == "input" else ""
        yield f"{constant}{c_type(slot.binding.dtype)} *{slot.field}; /* {comment(_described(slot))} */"
    if layout.entry.symbols:
        yield "int64_t *sizes; /* as in the arguments */"
    if layout.entry.observed:
        yield "const glow_observer *observer; /* or null */"
    if not layout.slots and not layout.entry.symbols:
        yield "const void *nothing;"


def _described(slot: BindingSlot) -> str:
    """A description of an input, output or state."""
    binding = slot.binding
    shape = ", ".join(map(str, binding.declared))
    count = math.prod(binding.shape)
    capacity = f", room for {count} elements" if binding.sizes else ""
    where = ", in the activations" if slot.is_reused else ""
    return f"{binding.role} '{binding.name}': {binding.dtype}[{shape}]{capacity}, {slot.type}{where}"


def _shared_functions(layout: BundleLayout) -> str:
    """The functions that exist once per bundle."""
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
    """Macros, each with an optional comment."""
    return "".join(f"#define {name} {value}{f' /* {comment(text)} */' if text else ''}\n" for name, value, text in rows)
