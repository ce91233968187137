"""
A bundle as a precompiled Arduino library.

See https://docs.arduino.cc/arduino-cli/library-specification for fields and folders.
"""

from __future__ import annotations

from collections.abc import Iterator

from glow_mlir.bundle.compile import Bundle
from glow_mlir.bundle.debug_header import debug_header
from glow_mlir.bundle.header import c_type, header
from glow_mlir.bundle.layout import BindingSlot, EntryLayout
from glow_mlir.bundle.package_form import PackageForm, archived
from glow_mlir.errors import OptionError

SKETCH = "examples/Run/Run.ino"
"""The example, shown by Arduino's menu below the name of the library."""

_PRINTED = {
    "float": "Serial.println(static_cast<double>({}), 6)",
    "double": "Serial.println({}, 6)",
    "uint32_t": "Serial.println(static_cast<unsigned long>({}))",
    "int64_t": "print_64(static_cast<uint64_t>({}), true)",
    "uint64_t": "print_64(static_cast<uint64_t>({}), false)",
}
"""C type → code that prints it; other integers are printed as `long`, which has 32 bits on the boards."""

PRINT_64 = """\
// Prints an integer of 64 bits, for which `Serial` of many boards has no function.
static void print_64(uint64_t bits, bool is_signed) {
  const bool is_negative = is_signed && (bits >> 63) != 0;
  uint64_t rest = is_negative ? 0 - bits : bits;
  char text[21];
  char *begin = text + sizeof(text) - 1;
  *begin = '\\0';
  do {
    *--begin = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (is_negative) {
    *--begin = '-';
  }
  Serial.println(begin);
}
""".splitlines()
"""A function of the sketch for outputs with 64-bit integers."""


def properties(bundle: Bundle, _: str) -> str:
    """Arduino's properties of the library."""
    name, report = bundle.name, bundle.report
    memory = report.mutables + report.activations
    fields = {
        "name": name,
        "version": f"1.0.0+{bundle.version:08x}",
        "author": "glow-compile",
        "maintainer": "glow-compile",
        "sentence": f"The model '{name}', compiled for {bundle.layout.target.cpu}.",
        "paragraph": f"It takes {report.flash} bytes of flash, {memory} of RAM, and at most {report.stack} of stack.",
        "category": "Data Processing",
        "url": "https://arxiv.org/abs/1805.00907",
        "architectures": "*",
        "includes": f"{name}.h",
        "precompiled": "true",
        "ldflags": f"-l{name}",
    }
    return "".join(f"{field}={value}\n" for field, value in fields.items())


def keywords(bundle: Bundle, _: str) -> str:
    """The names that Arduino's editor highlights: types, functions and constants."""
    layout = bundle.layout
    macros = [f"{layout.macro}_{own}" for own in ("ALIGNMENT", "ARGUMENTS", "OK", "MUTABLES_SIZE", "ACTIVATIONS_SIZE")]
    found = {
        "KEYWORD1": ["glow_arguments", *(f"{entry.symbol}_buffers" for entry in layout.entries)],
        "KEYWORD2": [
            *(symbol for entry in layout.entries for symbol in (entry.symbol, f"{entry.symbol}_direct")),
            f"{layout.name}_error_text",
            *([f"{layout.name}_initialize"] if layout.state else []),
        ],
        "LITERAL1": [*macros, *(f"{slot.macro}_OFFSET" for entry in layout.entries for slot in entry.slots)],
    }
    return "".join(f"{name}\t{kind}\n" for kind, names in found.items() for name in names)


def sketch(bundle: Bundle, _: str) -> str:
    """A program that calls the first entry on zeros instead of measurements, and prints its outputs."""
    layout, entry = bundle.layout, bundle.layout.entries[0]
    name, macro = layout.name, layout.macro
    outputs = [slot for slot in entry.slots if slot.binding.role == "output"]
    has_64 = any(slot.binding.dtype in ("int64", "uint64") for slot in outputs)
    arguments = f"static glow_arguments arguments = {macro}_ARGUMENTS({name}_constants, mutables, activations);"
    lines = [
        f"// Calls the model '{name}' once a second, on inputs of zeros, and prints its outputs.",
        f"#include <{name}.h>",
        "",
        f"static uint8_t mutables[{macro}_MUTABLES_SIZE] __attribute__((aligned({macro}_ALIGNMENT)));",
        f"static uint8_t activations[{macro}_ACTIVATIONS_SIZE] __attribute__((aligned({macro}_ALIGNMENT)));",
        arguments,
        *_sizes(entry),
        "",
        *([*PRINT_64, ""] if has_64 else []),
        "void setup() {",
        "  Serial.begin(115200);",
        *(["  arguments.sizes = sizes;"] if entry.entry.symbols else []),
        *([f"  {name}_initialize(&arguments);"] if layout.state else []),
        "}",
        "",
        "void loop() {",
        *(line for slot in entry.slots if slot.binding.role == "input" for line in _written(slot)),
        f"  const int32_t status = {entry.symbol}(&arguments);",
        f"  if (status != {macro}_OK) {{",
        f"    Serial.println({name}_error_text(status));",
        "    return;",
        "  }",
        *(line for slot in outputs for line in _printed(slot)),
        "  delay(1000);",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _sizes(entry: EntryLayout) -> Iterator[str]:
    """The sizes that are known only at run time, set to the largest that fit."""
    if symbols := entry.entry.symbols:
        yield f"static int64_t sizes[] = {{{', '.join(str(symbol.most) for symbol in symbols)}}};"


def _written(slot: BindingSlot) -> Iterator[str]:
    """The code that fills an input."""
    kind, variable = c_type(slot.binding.dtype), _variable(slot)
    yield f"  {kind} *const {variable} = reinterpret_cast<{kind} *>({slot.region} + {slot.macro}_OFFSET);"
    yield f"  for (size_t at = 0; at < {slot.macro}_SIZE / sizeof({kind}); ++at) {{"
    yield f"    {variable}[at] = 0;"
    yield "  }"


def _printed(slot: BindingSlot) -> Iterator[str]:
    """The code that prints an output; elements without a C type are printed as bits."""
    kind, variable = c_type(slot.binding.dtype), _variable(slot)
    text = _PRINTED.get(kind, "Serial.println(static_cast<long>({}))").format(f"{variable}[at]")
    yield f"  const {kind} *const {variable} ="
    yield f"      reinterpret_cast<const {kind} *>({slot.region} + {slot.macro}_OFFSET);"
    yield f"  for (size_t at = 0; at < {slot.macro}_SIZE / sizeof({kind}); ++at) {{"
    yield f"    {text};"
    yield "  }"


def _variable(slot: BindingSlot) -> str:
    """The sketch's variable for an input or output, distinct from its own variables and Arduino's macros."""
    return f"{slot.binding.role}_{slot.field}"


def check(bundle: Bundle) -> None:
    """Raise `OptionError` for a processor that no Arduino board has."""
    target = bundle.layout.target
    if not target.is_cortex_m:
        reason = f"a library of Arduino is for a processor by its name, not for {target.triple}"
        raise OptionError(reason, hint="--target cortex-m4, …, or --package cmake")


ARDUINO = PackageForm(
    {
        "library.properties": properties,
        "keywords.txt": keywords,
        "src/{name}.h": lambda bundle, _: header(bundle),
        "src/{name}.debug.h": lambda bundle, _: debug_header(bundle.name) if bundle.form.instrumented else None,
        "src/{cpu}/lib{name}.a": archived,
        SKETCH: sketch,
    },
    has_constants=True,
    check=check,
)
"""A folder in Arduino's folder `libraries`; its subfolder `{cpu}` is the board's `build.mcu`."""
