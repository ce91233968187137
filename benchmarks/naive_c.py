"""
A naive translation of a model to C, as one would write it by hand: a function of plain nested loops for each layer.

It is made of the instructions of a compiled function before any of them is fused or tiled, whose buffers all are dense,
and has the same interface as machine code: constants, bindings, activations. Borders of convolutions are filled
buffers, so that no loop has a test inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage, constant_array
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.storage import ConstantOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, FuncOp, ViewOp, WeightOp
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.quant import parameters_of, zero_point_of
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.ir.rewriting import low_functions

TYPES = {
    "float32": "float",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int32": "int32_t",
}
"""Element type of numpy → that of C."""

ALIGNMENT = 16

HEADER = """\
#include <stdint.h>
static float expf(float x) {
  union { int32_t bits; float value; } power;
  if (x < -87.0f) return 0.0f;
  if (x > 88.0f) x = 88.0f;
  int32_t n = (int32_t)(x * 1.44269504f + (x < 0 ? -0.5f : 0.5f));
  x = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
  power.bits = (n + 127) << 23;
  float p = 1.9875691500e-4f;
  p = p * x + 1.3981999507e-3f;
  p = p * x + 8.3334519073e-3f;
  p = p * x + 4.1665795894e-2f;
  p = p * x + 1.6666665459e-1f;
  p = p * x + 5.0000001201e-1f;
  return (p * x * x + x + 1.0f) * power.value;
}
static float sqrtf(float x) { return __builtin_sqrtf(x); }
static float tanhf(float x) { return 1.0f - 2.0f / (expf(2.0f * x) + 1.0f); }
static float least(float a, float b) { return a < b ? a : b; }
static float most(float a, float b) { return a > b ? a : b; }
static float nearest(float x) { return (float)(int32_t)(x + (x < 0 ? -0.5f : 0.5f)); }
static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
"""


@dataclass
class Translation:
    """A translation: C text, the constants region, and the bytes of activations."""

    text: str
    constants: np.ndarray
    activations: int


def translated(module: ModuleOp) -> Translation:
    """The C of the only function of a module at the stage `instructions`."""
    (function,) = low_functions(module)
    return _Writer(function, Storage(module)).run()


@dataclass
class _Writer:
    """Writes one function."""

    function: FuncOp
    storage: Storage
    layers: list[str] = field(default_factory=list[str])
    calls: list[str] = field(default_factory=list[str])
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    blobs: list[bytes] = field(default_factory=list[bytes])
    constants: int = 0
    activations: int = 0

    def run(self) -> Translation:
        """Write everything."""
        for op in self.function.body.block.ops:
            self._write(op)
        entry = "int main(const void *constants, void *const *bindings, void *activations, const void *parallel) {\n"
        body = "".join(f"  {call}\n" for call in self.calls)
        text = HEADER + "".join(self.layers) + entry + "  (void)parallel;\n" + body + "  return 0;\n}\n"
        return Translation(text, np.frombuffer(b"".join(self.blobs), np.uint8), self.activations)

    def _write(self, op: Operation) -> None:
        if isinstance(op, WeightOp):
            self._weight(op)
        elif isinstance(op, AllocOp):
            self.names[op.result] = f"((void *)((char *)activations + {self.activations}))"
            size = math.prod(shape_of(op.result)) * numpy_dtype(element_of(op.result)).itemsize
            self.activations += -(-size // ALIGNMENT) * ALIGNMENT
        elif isinstance(op, ViewOp):
            self.names[op.result] = self.names[op.operands[0]]
        elif not isinstance(op, DeallocOp):
            self._layer(op)

    def _weight(self, op: WeightOp) -> None:
        stored = self.storage.by_name[op.storage_name]
        if isinstance(stored, ConstantOp):
            data = np.ascontiguousarray(constant_array(stored)).tobytes()
            self.names[op.result] = f"((const void *)((const char *)constants + {self.constants}))"
            data += bytes(-len(data) % ALIGNMENT)
            self.blobs.append(data)
            self.constants += len(data)
        else:
            self.names[op.result] = f"bindings[{self.function.binding_names.index(op.storage_name)}]"

    def _layer(self, op: Operation) -> None:
        kind, number = op.name.removeprefix("glow_low."), len(self.layers)
        write = LAYERS.get(kind) or _elementwise
        values = list(op.operands)
        name = f"layer_{number}_{kind}"
        assert isinstance(op, Instruction)
        outputs = len(op.outputs())
        parameters = [
            f"{'' if position < outputs else 'const '}{ctype(value)} *{'yabcdefgh'[position]}"
            for position, value in enumerate(values)
        ]
        self.layers.append(f"static void {name}({', '.join(parameters)}) {{\n{write(op, values)}}}\n")
        self.calls.append(f"{name}({', '.join(self.names[value] for value in values)});")


def ctype(value: SSAValue) -> str:
    """The type in C of the elements of a buffer."""
    return TYPES[numpy_dtype(element_of(value)).name]


def loops(sizes: Sequence[int], names: str) -> str:
    """Nested loops from 0."""
    return " ".join(f"for (int {n} = 0; {n} < {size}; {n}++)" for n, size in zip(names, sizes, strict=True))


def _zero(value: SSAValue) -> str:
    return "0.0f" if ctype(value) == "float" else "0"


def _conv(op: Operation, values: Sequence[SSAValue]) -> str:
    y, x, filter_, *bias = values
    _, height, width, outputs = shape_of(y)
    _, _, line, channels = shape_of(x)
    _, rows, columns, depth = shape_of(filter_)
    down, right = ints(op.properties["strides"])
    step, (sum_type, start) = outputs // (channels // depth), (ctype(y), _zero(y))
    begin = "c[o]" if bias else start
    group = "0" if channels == depth else f"o / {step} * {depth}"
    return (
        f"  {loops((height, width, outputs), 'hwo')} {{\n    {sum_type} s = {begin};\n"
        f"    {loops((rows, columns, depth), 'rki')}\n"
        f"      s += ({sum_type})a[((h * {down} + r) * {line} + w * {right} + k) * {channels} + {group} + i] *\n"
        f"           b[((o * {rows} + r) * {columns} + k) * {depth} + i];\n"
        f"    y[(h * {width} + w) * {outputs} + o] = s;\n  }}\n"
    )


def _matmul(op: Operation, values: Sequence[SSAValue]) -> str:
    y, left, _, *bias = values
    rows, columns = shape_of(y)[-2:]
    depth = shape_of(left)[-1]
    is_turned = bool(integer(op.properties["transpose_right"])) if "transpose_right" in op.properties else False
    place = f"j * {depth} + i" if is_turned else f"i * {columns} + j"
    return (
        f"  {loops((rows, columns), 'rj')} {{\n    {ctype(y)} s = {'c[j]' if bias else _zero(y)};\n"
        f"    {loops((depth,), 'i')} s += ({ctype(y)})a[r * {depth} + i] * b[{place}];\n"
        f"    y[r * {columns} + j] = s;\n  }}\n"
    )


def _pad(op: Operation, values: Sequence[SSAValue]) -> str:
    y, x, *value = values
    pads, sizes, own = ints(op.properties["pads"]), shape_of(y), shape_of(x)
    names = "ijkl"[: len(sizes)]
    axes = [axis for axis in range(len(sizes)) if sizes[axis] != own[axis]]
    inside = " && ".join(f"{names[a]} >= {pads[a]} && {names[a]} < {pads[a] + own[a]}" for a in axes)
    source = " + ".join(f"({n} - {pads[a]}) * {math.prod(own[a + 1 :])}" for a, n in enumerate(names))
    target = " + ".join(f"{n} * {math.prod(sizes[a + 1 :])}" for a, n in enumerate(names))
    return f"  {loops(sizes, names)} y[{target}] = {inside or 1} ?\n      a[{source}] : {'*b' if value else '0'};\n"


def _max_pool(op: Operation, values: Sequence[SSAValue]) -> str:
    y, x = values
    _, height, width, channels = shape_of(y)
    line = shape_of(x)[2]
    (rows, columns), (down, right) = ints(op.properties["kernel_shape"]), ints(op.properties["strides"])
    place = f"a[((h * {down} + r) * {line} + w * {right} + k) * {channels} + i]"
    first = f"a[(h * {down} * {line} + w * {right}) * {channels} + i]"
    return (
        f"  {loops((height, width, channels), 'hwi')} {{\n    {ctype(y)} s = {first};\n"
        f"    {loops((rows, columns), 'rk')} if ({place} > s) s = {place};\n"
        f"    y[(h * {width} + w) * {channels} + i] = s;\n  }}\n"
    )


def _sum_pool(op: Operation, values: Sequence[SSAValue]) -> str:
    """Of windows without padding, as whole images are."""
    y, x = values
    _, height, width, channels = shape_of(y)
    line, zero = shape_of(x)[2], zero_point_of(element_of(x))
    (rows, columns), strides = ints(op.properties["kernel_shape"]), op.properties.get("strides")
    down, right = (1, 1) if strides is None else ints(strides)
    place = f"a[((h * {down} + r) * {line} + w * {right} + k) * {channels} + i]"
    return (
        f"  {loops((height, width, channels), 'hwi')} {{\n    {ctype(y)} s = 0;\n"
        f"    {loops((rows, columns), 'rk')} s += {place} - ({zero});\n"
        f"    y[(h * {width} + w) * {channels} + i] = s;\n  }}\n"
    )


def _reduce(op: Operation, values: Sequence[SSAValue]) -> str:
    y, x = values
    channels = shape_of(x)[-1]
    pixels = math.prod(shape_of(x)) // channels
    scale = f" / {pixels}" if op.name.endswith("mean") else ""
    return (
        f"  {loops((channels,), 'i')} {{\n    {ctype(y)} s = 0;\n"
        f"    {loops((pixels,), 'p')} s += a[p * {channels} + i];\n    y[i] = s{scale};\n  }}\n"
    )


def _transpose(op: Operation, values: Sequence[SSAValue]) -> str:
    y, x = values
    order, sizes, own = ints(op.properties["permutation"]), shape_of(y), shape_of(x)
    steps = [math.prod(own[axis + 1 :]) for axis in range(len(own))]
    names = "ijkl"[: len(sizes)]
    source = " + ".join(f"{n} * {steps[axis]}" for n, axis in zip(names, order, strict=True))
    target = " + ".join(f"{n} * {math.prod(sizes[axis + 1 :])}" for axis, n in enumerate(names))
    return f"  {loops(sizes, names)} y[{target}] = a[{source}];\n"


def _softmax(op: Operation, values: Sequence[SSAValue]) -> str:
    *rows, size = shape_of(values[0])
    return (
        f"  {loops((math.prod(rows),), 'r')} {{\n    float m = a[r * {size}], s = 0.0f;\n"
        f"    {loops((size,), 'i')} m = most(m, a[r * {size} + i]);\n"
        f"    {loops((size,), 'i')} s += y[r * {size} + i] = expf(a[r * {size} + i] - m);\n"
        f"    {loops((size,), 'i')} y[r * {size} + i] /= s;\n  }}\n"
    )


def _layer_normalization(op: Operation, values: Sequence[SSAValue]) -> str:
    *rows, size = shape_of(values[0])
    epsilon = op.properties["epsilon"]
    assert isinstance(epsilon, FloatAttr)
    return (
        f"  {loops((math.prod(rows),), 'r')} {{\n    float m = 0.0f, v = 0.0f;\n"
        f"    {loops((size,), 'i')} m += a[r * {size} + i] / {size};\n"
        f"    {loops((size,), 'i')} v += (a[r * {size} + i] - m) * (a[r * {size} + i] - m) / {size};\n"
        f"    {loops((size,), 'i')} y[r * {size} + i] =\n"
        f"      (a[r * {size} + i] - m) / sqrtf(v + {epsilon.value.data}f) * b[i] + c[i];\n  }}\n"
    )


def _lstm(op: Operation, values: Sequence[SSAValue]) -> str:
    y, last, *_ = values
    steps, (_, hidden) = shape_of(y)[0], shape_of(last)
    gates = 4 * hidden
    # y: all hidden states, a: the last, b: the last cells; c: gates of inputs, d: weights, e and f: begin.
    return (
        f"  float g[{gates}];\n"
        f"  {loops((hidden,), 'h')} {{ a[h] = e[h]; b[h] = f[h]; }}\n"
        f"  {loops((steps,), 't')} {{\n"
        f"    {loops((gates,), 'j')} {{\n      float s = c[t * {gates} + j];\n"
        f"      {loops((hidden,), 'i')} s += a[i] * d[i * {gates} + j];\n      g[j] = s;\n    }}\n"
        f"    {loops((hidden,), 'h')} {{\n"
        f"      b[h] = sigmoid(g[{2 * hidden} + h]) * b[h] + sigmoid(g[h]) * tanhf(g[{3 * hidden} + h]);\n"
        f"      a[h] = y[t * {hidden} + h] = sigmoid(g[{hidden} + h]) * tanhf(b[h]);\n    }}\n  }}\n"
    )


def _attention(op: Operation, values: Sequence[SSAValue]) -> str:
    _, queries, keys, _ = values
    *heads, rows, width = shape_of(queries)
    count, scale = shape_of(keys)[-2], op.properties["scale"]
    assert isinstance(scale, FloatAttr)
    return (
        f"  float p[{count}];\n  {loops((math.prod(heads), rows), 'hr')} {{\n    float m = -1e30f, z = 0.0f;\n"
        f"    {loops((count,), 'k')} {{\n      float s = 0.0f;\n      {loops((width,), 'i')} s +=\n"
        f"        a[(h * {rows} + r) * {width} + i] * b[(h * {count} + k) * {width} + i];\n"
        f"      p[k] = s * {scale.value.data}f;\n      m = most(m, p[k]);\n    }}\n"
        f"    {loops((count,), 'k')} z += p[k] = expf(p[k] - m);\n"
        f"    {loops((width,), 'i')} {{\n      float s = 0.0f;\n"
        f"      {loops((count,), 'k')} s += p[k] * c[(h * {count} + k) * {width} + i];\n"
        f"      y[(h * {rows} + r) * {width} + i] = s / z;\n    }}\n  }}\n"
    )


def _splat(op: Operation, values: Sequence[SSAValue]) -> str:
    value = op.properties["value"]
    assert isinstance(value, FloatAttr | IntegerAttr)
    return f"  {loops((math.prod(shape_of(values[0])),), 'i')} y[i] = {value.value.data};\n"


def _elementwise(op: Operation, values: Sequence[SSAValue]) -> str:
    """Each element by itself; operands with fewer elements repeat along the first axes."""
    y = values[0]
    size = math.prod(shape_of(y))
    arguments: list[str] = []
    for letter, value in zip("abcdefgh", values[1:], strict=False):
        own = math.prod(shape_of(value))
        index = "i" if own == size else "0" if own == 1 else f"i % {own}"
        arguments.append(f"{letter}[{index}]")
    return f"  {loops((size,), 'i')} y[i] = {FORMULAS[op.name.removeprefix('glow_low.')](op, y, *arguments)};\n"


def _code(y: SSAValue, value: str) -> str:
    """The nearest code, within its range."""
    kind = np.iinfo(numpy_dtype(element_of(y)))
    return f"({ctype(y)})least(most(nearest({value}) + {zero_point_of(element_of(y))}, {kind.min}), {kind.max})"


def _scale(codes: SSAValue) -> str:
    """The scale of codes."""
    known = parameters_of(element_of(codes))
    return f"{1.0 if known is None else known[0]}f"


def _add(op: Operation, y: SSAValue, left: str, right: str) -> str:
    return f"{left} + {right}"


def _cast(op: Operation, y: SSAValue, x: str) -> str:
    return f"({ctype(y)}){x}"


def _clip(op: Operation, y: SSAValue, x: str, lower: str, upper: str) -> str:
    return f"least(most({x}, {lower}), {upper})"


def _copy(op: Operation, y: SSAValue, x: str) -> str:
    return x


def _dequantize(op: Operation, y: SSAValue, x: str, scale: str = "") -> str:
    codes = op.operands[1]
    return f"({x} - {zero_point_of(element_of(codes))}) * {scale or _scale(codes)}"


def _quantize(op: Operation, y: SSAValue, x: str) -> str:
    return _code(y, f"{x} / {_scale(y)}")


def _relu(op: Operation, y: SSAValue, x: str) -> str:
    return f"most({x}, 0.0f)"


def _rescale(op: Operation, y: SSAValue, x: str, scale: str, offset: str = "0.0f") -> str:
    return _code(y, f"{x} * {scale} + {offset}")


def _swish(op: Operation, y: SSAValue, x: str) -> str:
    alpha = op.properties.get("alpha")
    factor = alpha.value.data if isinstance(alpha, FloatAttr) else 1.0
    return f"{x} * sigmoid({factor}f * {x})"


FORMULAS: dict[str, Callable[..., str]] = {
    "add": _add,
    "cast": _cast,
    "clip": _clip,
    "copy": _copy,
    "dequantize": _dequantize,
    "quantize": _quantize,
    "relu": _relu,
    "rescale": _rescale,
    "swish": _swish,
}
"""Instruction → what it computes of an element, in C."""

LAYERS: dict[str, Callable[[Operation, Sequence[SSAValue]], str]] = {
    "attention": _attention,
    "conv": _conv,
    "layer_normalization": _layer_normalization,
    "lstm_recurrence": _lstm,
    "matmul": _matmul,
    "max_pool": _max_pool,
    "pad": _pad,
    "reduce_mean": _reduce,
    "reduce_sum": _reduce,
    "softmax": _softmax,
    "splat": _splat,
    "sum_pool": _sum_pool,
    "transpose": _transpose,
}
"""Instruction → its loops, in C; the others compute each element by itself."""
