"""
The functions of one float, one row each; operator class, words, interpreter, importers and gradient are derived from
it.

Machine code is derived as well if the function is exact; for others, `glow_mlir.codegen.math` has an approximation of
the same name. All public names of this module are functions and words of `glow_mlir.kernels`.
"""

import math as _math

from glow_mlir.dialects.scalar_function import ScalarFunction as _Function

_absolute = _Function("abs", "Absolute value.", operator="", mlir="absf", is_exact=True)
acos = _Function("acos", "Inverse cosine.", lambda x, y: -1 / sqrt(1 - x * x), "arccos", onnx="Acos", aten="acos")
acosh = _Function(
    "acosh", "Inverse hyperbolic cosine.", lambda x, y: 1 / sqrt(x * x - 1), "arccosh", onnx="Acosh", aten="acosh"
)
asin = _Function("asin", "Inverse sine.", lambda x, y: 1 / sqrt(1 - x * x), "arcsin", onnx="Asin", aten="asin")
asinh = _Function(
    "asinh", "Inverse hyperbolic sine.", lambda x, y: 1 / sqrt(x * x + 1), "arcsinh", onnx="Asinh", aten="asinh"
)
atan = _Function("atan", "Inverse tangent.", lambda x, y: 1 / (x * x + 1), "arctan", onnx="Atan", aten="atan")
atanh = _Function(
    "atanh", "Inverse hyperbolic tangent.", lambda x, y: 1 / (1 - x * x), "arctanh", onnx="Atanh", aten="atanh"
)
ceil = _Function(
    "ceil", "Smallest integer not below x.", lambda x, y: 0, onnx="Ceil", aten="ceil", is_exact=True, is_step=True
)
cos = _Function("cos", "Cosine of radians.", lambda x, y: -sin(x), onnx="Cos", aten="cos")
cosh = _Function("cosh", "Hyperbolic cosine.", lambda x, y: sinh(x), onnx="Cosh", aten="cosh")
erf = _Function(
    "erf",
    "Gauss's error function.",
    lambda x, y: exp(-(x * x)) * (2 / _math.sqrt(_math.pi)),
    reference=_math.erf,
    onnx="Erf",
    aten="erf",
    bounds=(-1.0, 1.0),
)
exp = _Function("exp", "Natural exponential.", lambda x, y: y, onnx="Exp", aten="exp", bounds=(0.0, _math.inf))
expm1 = _Function("expm1", "exp(x) - 1, without cancellation for small x.", lambda x, y: y + 1, aten="expm1")
floor = _Function(
    "floor", "Largest integer not above x.", lambda x, y: 0, onnx="Floor", aten="floor", is_exact=True, is_step=True
)
log = _Function("log", "Natural logarithm.", lambda x, y: 1 / x, onnx="Log", aten="log")
log1p = _Function("log1p", "log(1 + x), without cancellation for small x.", lambda x, y: 1 / (x + 1), aten="log1p")
round_even = _Function(
    "round_even",
    "Nearest integer, halves to the even one.",
    lambda x, y: 0,
    reference="round",
    operator="round",
    onnx="Round",
    aten="round",
    mlir="roundeven",
    is_exact=True,
    is_step=True,
)
sin = _Function("sin", "Sine of radians.", lambda x, y: cos(x), onnx="Sin", aten="sin")
sinh = _Function("sinh", "Hyperbolic sine.", lambda x, y: cosh(x), onnx="Sinh", aten="sinh")
sqrt = _Function(
    "sqrt",
    "Square root; NaN below zero.",
    lambda x, y: 0.5 / y,
    onnx="Sqrt",
    aten="sqrt",
    bounds=(0.0, _math.inf),
    is_exact=True,
)
tan = _Function("tan", "Tangent of radians.", lambda x, y: y * y + 1, onnx="Tan", aten="tan")
tanh = _Function("tanh", "Hyperbolic tangent.", lambda x, y: 1 - y * y, operator="")
trunc = _Function(
    "trunc", "The integer next to x towards zero.", lambda x, y: 0, operator="", is_exact=True, is_step=True
)
