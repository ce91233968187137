"""PyTorch's equivalents of ONNX's operators, run eagerly: a peer where an operator is in the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
from onnx import helper

from sweep.points import Point

Tensor = Any
Attributes = Mapping[str, Any]
_TYPES = ("float32", "float16", "float64", "bool", "int8", "uint8", "int16", "int32", "int64")

Equivalent = Callable[[Sequence[Tensor], Attributes], Tensor]
"""An operator's function of its operands (`None` where absent) and attributes."""


def is_installed() -> bool:
    """Whether there is PyTorch."""
    return find_spec("torch") is not None


def torch_call(point: Point, threads: int) -> Callable[[], Tensor] | None:
    """The call of a point of one node, or `None` where the table has no equivalent."""
    if not is_installed():
        return None
    (node, *more) = point.model().graph.node
    if more or node.domain or node.op_type not in (table := equivalents()):
        return None
    torch: Any = import_module("torch")
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    arrays = point.arrays()
    if any(array.dtype.kind == "O" or str(array.dtype) in ("uint32", "uint64") for array in arrays.values()):
        return None
    tensors = [torch.from_numpy(np.asarray(arrays[name])) if name else None for name in node.input]
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    attributes = {key: value.decode() if isinstance(value, bytes) else value for key, value in attributes.items()}
    function = table[node.op_type]
    return lambda: function(tensors, attributes)


def results_of(found: Tensor) -> list[np.ndarray]:
    """What a call returned, as arrays."""
    tensors: Sequence[Tensor] = found if type(found) in (tuple, list) else [found]
    return [tensor.numpy() for tensor in tensors]


def equivalents() -> dict[str, Equivalent]:
    """The table: operator → function."""
    torch: Any = import_module("torch")
    functional: Any = import_module("torch.nn.functional")
    return {
        **_unary(torch, functional),
        **_binary(torch),
        **_along_axes(torch, functional),
        **_products(torch, functional),
        **_movement(torch),
        **_images(functional),
    }


def _unary(torch: Any, functional: Any) -> dict[str, Equivalent]:
    same = ("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor")
    more = ("Log", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh")
    plain = {name: getattr(torch, name.lower()) for name in (*same, *more)}
    plain |= {"IsInf": torch.isinf, "IsNaN": torch.isnan, "Not": torch.logical_not, "BitwiseNot": torch.bitwise_not}
    plain |= {"Softplus": functional.softplus, "Softsign": functional.softsign, "Selu": functional.selu}
    plain |= {"Mish": functional.mish, "HardSwish": functional.hardswish, "Identity": torch.clone}
    found: dict[str, Equivalent] = {name: (lambda x, a, f=f: f(x[0])) for name, f in plain.items()}
    with_alpha = {
        "Celu": (functional.celu, 1.0),
        "Elu": (functional.elu, 1.0),
        "LeakyRelu": (functional.leaky_relu, 0.01),
    }
    for name, (function, default) in with_alpha.items():
        found[name] = lambda x, a, f=function, default=default: f(x[0], a.get("alpha", default))
    found["Gelu"] = lambda x, a: functional.gelu(x[0], approximate=a.get("approximate", "none"))
    found["Clip"] = lambda x, a: torch.clamp(x[0], *[*x[1:], None][:2])
    types = {onnx.helper.np_dtype_to_tensor_dtype(np.dtype(name)): getattr(torch, name) for name in _TYPES}
    found["Cast"] = lambda x, a: x[0].to(types[a["to"]])
    return found


def _binary(torch: Any) -> dict[str, Equivalent]:
    plain = {
        **{"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Pow": torch.pow, "Equal": torch.eq},
        **{"Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt, "LessOrEqual": torch.le},
        **{"And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor},
        **{"BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor},
    }
    found: dict[str, Equivalent] = {name: (lambda x, a, f=f: f(x[0], x[1])) for name, f in plain.items()}
    found["Div"] = lambda x, a: torch.div(x[0], x[1], rounding_mode=None if x[0].is_floating_point() else "trunc")
    found["Mod"] = lambda x, a: (torch.fmod if a.get("fmod") else torch.remainder)(x[0], x[1])
    found["Where"] = lambda x, a: torch.where(x[0], x[1], x[2])

    def folded(function: Any) -> Equivalent:
        def run(x: Sequence[Tensor], a: Attributes) -> Tensor:
            total = x[0]
            for other in x[1:]:
                total = function(total, other)
            return total

        return run

    return found | {"Max": folded(torch.maximum), "Min": folded(torch.minimum), "Sum": folded(torch.add)}


def _along_axes(torch: Any, functional: Any) -> dict[str, Equivalent]:
    def axes(x: Sequence[Tensor]) -> list[int]:
        return x[1].tolist() if len(x) > 1 and x[1] is not None else list(range(x[0].dim()))

    def kept(a: Attributes) -> bool:
        return bool(a.get("keepdims", 1))

    found: dict[str, Equivalent] = {
        "ReduceSum": lambda x, a: torch.sum(x[0], axes(x), kept(a), dtype=x[0].dtype),
        "ReduceMean": lambda x, a: torch.mean(x[0], axes(x), kept(a)),
        "ReduceMax": lambda x, a: torch.amax(x[0], axes(x), kept(a)),
        "ReduceMin": lambda x, a: torch.amin(x[0], axes(x), kept(a)),
        "ReduceL1": lambda x, a: torch.linalg.vector_norm(x[0], 1, axes(x), kept(a)),
        "ReduceL2": lambda x, a: torch.linalg.vector_norm(x[0], 2, axes(x), kept(a)),
        "ReduceLogSumExp": lambda x, a: torch.logsumexp(x[0], axes(x), kept(a)),
        "ArgMax": lambda x, a: torch.argmax(x[0], a.get("axis", 0), kept(a)),
        "ArgMin": lambda x, a: torch.argmin(x[0], a.get("axis", 0), kept(a)),
        "Softmax": lambda x, a: torch.softmax(x[0], a.get("axis", -1)),
        "LogSoftmax": lambda x, a: torch.log_softmax(x[0], a.get("axis", -1)),
        "LpNormalization": lambda x, a: functional.normalize(x[0], a.get("p", 2), a.get("axis", -1)),
        "LayerNormalization": lambda x, a: functional.layer_norm(x[0], x[1].shape, x[1], *x[2:3]),
        "RMSNormalization": lambda x, a: functional.rms_norm(x[0], x[1].shape, x[1], 1e-5),
        "BatchNormalization": lambda x, a: functional.batch_norm(x[0], x[3], x[4], x[1], x[2]),
        "InstanceNormalization": lambda x, a: functional.instance_norm(x[0], weight=x[1], bias=x[2]),
        "GroupNormalization": lambda x, a: functional.group_norm(x[0], a["num_groups"], x[1], x[2]),
        "TopK": lambda x, a: torch.topk(
            x[0], int(x[1]), a.get("axis", -1), bool(a.get("largest", 1)), bool(a.get("sorted", 1))
        ),
        "Unique": lambda x, a: torch.unique(x[0]),
    }
    found["CumSum"] = lambda x, a: None if a.get("exclusive") or a.get("reverse") else torch.cumsum(x[0], int(x[1]))
    return found


def _products(torch: Any, functional: Any) -> dict[str, Equivalent]:
    def gemm(x: Sequence[Tensor], a: Attributes) -> Tensor:
        left, right = x[0].t() if a.get("transA") else x[0], x[1].t() if a.get("transB") else x[1]
        if len(x) < 3:
            return torch.mm(left, right) * a.get("alpha", 1.0)
        return torch.addmm(x[2], left, right, beta=a.get("beta", 1.0), alpha=a.get("alpha", 1.0))

    def attention(x: Sequence[Tensor], a: Attributes) -> Tensor:
        mask = x[3] if len(x) > 3 else None
        grouped = x[0].shape[1] != x[1].shape[1]
        more = {"is_causal": bool(a.get("is_causal")), "enable_gqa": grouped}
        return functional.scaled_dot_product_attention(x[0], x[1], x[2], mask, **more)

    return {
        "MatMul": lambda x, a: torch.matmul(x[0], x[1]),
        "Gemm": gemm,
        "Einsum": lambda x, a: torch.einsum(a["equation"], *x),
        "Det": lambda x, a: torch.linalg.det(x[0]),
        "Attention": attention,
    }


def _movement(torch: Any) -> dict[str, Equivalent]:
    def copied(view: Tensor) -> Tensor:
        return view.clone(memory_format=torch.contiguous_format)

    def sliced(x: Sequence[Tensor], a: Attributes) -> Tensor:
        given = [tensor.tolist() for tensor in x[1:]]
        place = [slice(None)] * x[0].dim()
        for start, end, axis, step in zip(*given, strict=True):
            place[axis] = slice(start, end, step)
        return copied(x[0][tuple(place)])

    def gathered(x: Sequence[Tensor], a: Attributes) -> Tensor:
        axis = a.get("axis", 0) % x[0].dim()
        index = torch.where(x[1] < 0, x[1] + x[0].shape[axis], x[1])
        return x[0][(*(slice(None),) * axis, index)]

    return {
        "Transpose": lambda x, a: copied(x[0].permute(a["perm"])),
        "Concat": lambda x, a: torch.cat(list(x), a["axis"]),
        "Split": lambda x, a: [copied(part) for part in torch.split(x[0], x[1].tolist(), a.get("axis", 0))],
        "Slice": sliced,
        "Tile": lambda x, a: x[0].repeat(x[1].tolist()),
        "Expand": lambda x, a: copied(x[0].expand(x[1].tolist())),
        "Reshape": lambda x, a: copied(x[0].reshape(x[1].tolist())),
        "Gather": gathered,
        "GatherElements": lambda x, a: torch.gather(x[0], a.get("axis", 0), x[1].long()),
        "NonZero": lambda x, a: torch.nonzero(x[0]).t().contiguous(),
        "Trilu": lambda x, a: (torch.triu if a.get("upper", 1) else torch.tril)(x[0], int(x[1])),
    }


def _images(functional: Any) -> dict[str, Equivalent]:
    def symmetric(pads: Sequence[int], rank: int) -> list[int] | None:
        first, last = list(pads[:rank]), list(pads[rank:])
        return first if first == last else None

    def convolution(x: Sequence[Tensor], a: Attributes) -> Tensor:
        rank = x[0].dim() - 2
        pads = symmetric(a.get("pads", [0] * 2 * rank), rank)
        function = getattr(functional, f"conv{rank}d")
        bias = x[2] if len(x) > 2 else None
        return function(x[0], x[1], bias, a["strides"], pads or 0, a["dilations"], a["group"])

    def transposed(x: Sequence[Tensor], a: Attributes) -> Tensor:
        function = getattr(functional, f"conv_transpose{x[0].dim() - 2}d")
        return function(x[0], x[1], None, a["strides"], groups=a["group"])

    def pool(x: Sequence[Tensor], a: Attributes, word: str) -> Tensor:
        rank = x[0].dim() - 2
        function = getattr(functional, f"{word}_pool{rank}d")
        more: dict[str, Any] = {"ceil_mode": bool(a.get("ceil_mode"))}
        if word == "avg":
            more["count_include_pad"] = bool(a.get("count_include_pad"))
        else:
            more["dilation"] = a.get("dilations", 1)
        return function(x[0], a["kernel_shape"], a["strides"], symmetric(a["pads"], rank), **more)

    modes = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}

    def resize(x: Sequence[Tensor], a: Attributes) -> Tensor:
        more: dict[str, Any] = {"mode": modes[a["mode"]]}
        if a["mode"] != "nearest":
            aligned = a["coordinate_transformation_mode"] == "align_corners"
            more |= {"align_corners": aligned, "antialias": bool(a.get("antialias"))}
        return functional.interpolate(x[0], x[3].tolist()[2:], **more)

    def grid(x: Sequence[Tensor], a: Attributes) -> Tensor:
        return functional.grid_sample(
            x[0], x[1], modes[a["mode"]], a["padding_mode"], align_corners=bool(a["align_corners"])
        )

    return {
        "Conv": convolution,
        "ConvTranspose": transposed,
        "MaxPool": lambda x, a: pool(x, a, "max"),
        "AveragePool": lambda x, a: pool(x, a, "avg"),
        "Resize": resize,
        "GridSample": grid,
        "GlobalAveragePool": lambda x, a: x[0].mean(list(range(2, x[0].dim())), True),
        "GlobalMaxPool": lambda x, a: x[0].amax(list(range(2, x[0].dim())), True),
        "DepthToSpace": lambda x, a: functional.pixel_shuffle(x[0], a["blocksize"]),
        "LRN": lambda x, a: functional.local_response_norm(x[0], a["size"]),
    }
