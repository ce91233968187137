"""
Writes docs/operators.md, the tables of all operators, from the registry and from ONNX's schemas.

    python docs/generate_operators.py           # write the file
    python docs/generate_operators.py --check   # exit with 1 where the file is out of date
    python docs/generate_operators.py --print [FILE.mlir ...]

`--print` prints the tables with the operators of installed packages; the files have an example of each.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, defs, helper
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from glow_mlir.backends.cpu.backend import CpuBackend
from glow_mlir.backends.interface import Backend
from glow_mlir.codegen.kernel_backend import WITHOUT_KERNEL
from glow_mlir.codegen.selection.kernel import Kernel
from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.dialect import GLOW_HIGH
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.shapes import element_of, sizes_of, tensor
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.onnx.host_operators.registry import HOST_OPERATORS
from glow_mlir.frontends.onnx.models.functions import find_importer, standard_function
from glow_mlir.frontends.onnx.models.refusals import REASONS
from glow_mlir.ir.context import new_context
from glow_mlir.ir.registry import EXPORTERS, IMPORTERS, LOWERINGS
from glow_mlir.ir.text import parse_module

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "docs"))

from generated_page import write_or_check  # noqa: E402

TARGET = Path(__file__).with_name("operators.md")

NEWEST_OPSET = 28
"""The newest version of ONNX's own operators that the page covers; a newer onnx package changes nothing on it."""

OURS = "com.microsoft"

LIMITS: dict[tuple[str, str], str] = {
    ("", "MaxPool"): "no second output",
    (OURS, "Attention"): "no rotary positions, no past that is overwritten",
    (OURS, "CDist"): "euclidean and sqeuclidean",
    (OURS, "CausalConvWithState"): "one state",
    (OURS, "GatedAdd"): "no gate that is projected",
    (OURS, "GroupQueryAttention"): "no past of codes, no weights of keys as a result",
    (OURS, "LinearAttention"): "one state",
    (OURS, "MoE"): "no sparse mixer",
    (OURS, "MultiHeadAttention"): "no past that is overwritten, no beams, no weights of keys as a result",
    (OURS, "QMoE"): "integers of 2, 4 and 8 bits",
}
"""What an importer does not do, besides what holds for all."""

_F, _I = TensorProto.FLOAT, TensorProto.INT64
EXAMPLES: dict[str, tuple[list[tuple[int, tuple[int, ...]]], dict[str, Any]]] = {
    "Attention": ([(_F, (1, 2, 3, 8))] * 3, {}),
    "Bernoulli": ([(_F, (2, 3))], {}),
    "CausalConvWithState": ([(_F, (1, 4, 8)), (_F, (4, 1, 3))], {}),
    "LinearAttention": ([(_F, (1, 3, 8))] * 3, {"q_num_heads": 2, "kv_num_heads": 2}),
    "NegativeLogLikelihoodLoss": ([(_F, (2, 3)), (_I, (2,))], {}),
    "RotaryEmbedding": ([(_F, (1, 2, 3, 8)), (_F, (3, 4)), (_F, (3, 4))], {}),
    "SoftmaxCrossEntropyLoss": ([(_F, (2, 3)), (_I, (2,))], {}),
}
"""Operator whose body in the standard depends on its operands → element types and shapes to try, and attributes."""

Key = tuple[str, str]
"""Domain and name of an ONNX operator."""


def is_built_in(member: Callable[..., Any]) -> bool:
    """Whether something that was registered is part of glow-mlir itself."""
    return member.__module__.startswith("glow_mlir.")


# ---- ONNX operators


@cache
def schema_versions() -> dict[Key, dict[int, bool]]:
    """ONNX operator → opset version of each of its forms → whether that form is deprecated."""
    found: dict[Key, dict[int, bool]] = defaultdict(dict)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version > NEWEST_OPSET:
            continue
        found[schema.domain, schema.name][schema.since_version] = schema.deprecated
    return found


@cache
def has_body(domain: str, kind: str, version: int) -> bool:
    """Whether the standard defines an operator by others, all of which can be imported."""
    schema: Any = defs.get_schema(kind, version, domain)  # onnx's annotations lack what it tells of functions.
    if all("seq" in type_ for operand in schema.inputs[:1] for type_ in operand.types):
        return False
    if schema.has_context_dependent_function and kind not in EXAMPLES:
        raise SystemExit(f"{kind} {version} needs an example in {Path(__file__).name}")
    operands, attributes = EXAMPLES.get(kind, ([], {}))
    names = [f"x{position}" for position in range(len(operands))]
    node = helper.make_node(kind, names, ["y"], domain=domain, **attributes)
    types = [helper.make_tensor_type_proto(element, shape) for element, shape in operands]
    function = standard_function(node, domain, version, types)
    if function is None:
        return False
    opsets = {opset.domain: opset.version for opset in function.opset_import}
    return all(is_known(inner, opsets.get(inner.domain, 0)) for inner in function.node)


def is_known(node: onnx.NodeProto, version: int) -> bool:
    """Whether a node of a body can be imported."""
    importer = find_importer(node.domain, node.op_type, version)
    return importer is not None or has_body(node.domain, node.op_type, version)


def ways(domain: str, kind: str, accepts: Callable[[Callable[..., Any]], bool]) -> dict[str, list[int]]:
    """How an operator is imported → the opset versions of its forms that are imported so."""
    found: dict[str, list[int]] = {}
    forms = schema_versions().get((domain, kind), {})
    starts = {since for d, k, since in IMPORTERS.all() if (d, k) == (domain, kind)}
    for version in sorted(forms) or sorted(starts):
        if forms.get(version, False) and version not in starts:
            continue
        importer = find_importer(domain, kind, version)
        if importer is not None and accepts(importer):
            found.setdefault("importer", []).append(version)
        elif importer is None and forms and has_body(domain, kind, version):
            found.setdefault("function body", []).append(version)
    return found


def onnx_rows(domain: str, accepts: Callable[[Callable[..., Any]], bool]) -> tuple[list[list[str]], list[str]]:
    """The rows for the operators of a domain, and the names of those that are not supported."""
    registered = {k for d, k, _ in IMPORTERS.all() if d == domain}
    latest = {k: max(forms) for (d, k), forms in schema_versions().items() if d == domain}
    current = {k for k, version in latest.items() if not schema_versions()[domain, k][version]}
    rows: list[list[str]] = []
    missing: list[str] = []
    for kind in sorted(registered | current):
        found = ways(domain, kind, accepts)
        if not found and (domain, kind) in HOST_OPERATORS:
            found = {"Python": sorted(schema_versions().get((domain, kind), {1: False}))}
        if not found:
            missing += [kind] * (kind in current)
            continue
        versions = _joined(sorted(version for part in found.values() for version in part))
        how = next(iter(found)) if len(found) == 1 else "; ".join(f"{way}: {_joined(v)}" for way, v in found.items())
        rows.append([kind, versions, how, LIMITS.get((domain, kind), "")])
    return rows, missing


def _joined(versions: Sequence[int]) -> str:
    return ", ".join(map(str, versions))


# ---- glow_high operators


def instances(more: Sequence[Path]) -> dict[type[HighOp], list[HighOp]]:
    """Every operator as it occurs in the round-trip tests, which have each with its properties, and in more files."""
    found: dict[type[HighOp], list[HighOp]] = defaultdict(list)
    context = new_context()
    for path in (*sorted((ROOT / "tests" / "filecheck" / "dialects" / "glow_high").glob("*.mlir")), *more):
        if path.stem.endswith("_invalid"):
            continue
        for piece in path.read_text(encoding="utf-8").split("// -----"):
            for op in parse_module(piece, context, path.name).walk():
                if isinstance(op, HighOp):
                    found[type(op)].append(op)
    return found


def execution(operator: type[HighOp], examples: Sequence[HighOp], kernels: Sequence[Kernel]) -> str:
    """How the CPU executes an operator: stacked, as a view, as copies, by kernels, lowered."""
    if issubclass(operator, Elementwise):
        return "stacked"
    if operator is ReshapeOp:
        return "a view"
    if operator in WITHOUT_KERNEL:
        return "copies"
    chosen = [name for op in examples for name in [k.name for k in kernels if k.is_for(op) and k.accepts(op)] or [""]]
    names = [f"`{kernel.name}`" for kernel in kernels if kernel.name in chosen]
    if (not names or "" in chosen) and operator in LOWERINGS.all():
        names.append("lowered")
    return ", ".join(names) or "–"


ELEMENTS = {str(element): element for element in ELEMENT_TYPES.values()}
"""Element types by their names in text."""

GROUPS: dict[str, frozenset[str]] = {
    "floats": frozenset({"bf16", "f16", "f32", "f64"}),
    "integers": frozenset({"i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"}),
    "i1": frozenset({"i1"}),
}
"""What element types are called that an operator takes all of."""


def retyped(op: HighOp, element: Attribute) -> HighOp | None:
    """An operator on operands of another element type, where they had that of the first; `None` if it takes none."""
    if not op.operands:
        return None
    first = element_of(op.operands[0])
    values = [
        create_ssa_value(tensor(sizes_of(value), element if element_of(value) == first else element_of(value)))
        for value in op.operands
    ]

    def copied(types: Sequence[Attribute]) -> HighOp:
        regions = [region.clone() for region in op.regions]
        return type(op).create(operands=values, result_types=types, properties=op.properties, regions=regions)

    try:
        copy = copied(copied([result.type for result in op.results]).infer_types())
        copy.verify()
    except (VerifyException, UnsupportedError, KeyError):
        return None
    return copy


def element_types(examples: Sequence[HighOp], backend: Backend) -> tuple[str, str]:
    """The element types that the first operand of an operator may have, and those with which the CPU executes it."""
    taken: set[str] = set()
    executed: set[str] = set()
    for name, element in ELEMENTS.items():
        copies = [copy for op in examples if (copy := retyped(op, element)) is not None]
        taken |= {name} if copies else set()
        runs = (type(copy) in LOWERINGS.all() or backend.supports(copy) for copy in copies)
        executed |= {name} if any(runs) else set()
    return grouped(taken), "the same" if taken == executed else grouped(executed)


def grouped(names: set[str]) -> str:
    """Names of element types, those of which there are all by the name of their group."""
    if len(names) == len(ELEMENTS):
        return "all"
    found = [group for group, members in GROUPS.items() if members <= names]
    rest = [name for name in ELEMENTS if name in names and not any(name in GROUPS[group] for group in found)]
    return ", ".join([*found, *rest]) or "–"


def sentence(operator: type[HighOp]) -> str:
    """The first sentence of an operator's description."""
    paragraph = inspect.cleandoc(operator.__doc__ or "").split("\n\n")[0]
    return re.split(r"(?<=\.) ", " ".join(paragraph.split()))[0].replace("|", r"\|")


def glow_rows(accepts: Callable[[Callable[..., Any]], bool], more: Sequence[Path]) -> list[list[str]]:
    """The rows for the operators of `glow_high`."""
    examples = instances(more)
    all_kernels: Sequence[Kernel] = list(CpuBackend().kernels.values())
    kernels = [kernel for kernel in all_kernels if accepts(type(kernel))]
    operators = [op for op in GLOW_HIGH.operations if issubclass(op, HighOp) and accepts(op)]
    backend = CpuBackend()
    rows: list[list[str]] = []
    for op in operators:
        known = examples.get(op, [])
        types = element_types(known, backend)
        exported = "yes" if op in EXPORTERS.all() else "–"
        rows.append([f"`{op.name.split('.')[1]}`", execution(op, known, kernels), *types, exported, sentence(op)])
    return rows


# ---- the page

INTRODUCTION = """\
# Operators

<!-- Generated by docs/generate_operators.py -->

What is imported from ONNX, and what `glow_high` has. [add-an-operator.md](add-an-operator.md) shows how to add one.

## ONNX operators

Models of all opsets are imported. *Versions* are the opset versions in which an operator took the forms that are
imported. An operator has an importer of its own, or the function body by which the standard defines it is expanded.
Functions that a model brings with it are expanded as well, to 131072 nodes at most.

All take tensors of bf16, f16, f32, f64, integers of 8 to 64 bits and truth values. Operators that move, choose or
compare elements take tensors of strings as well: in machine code a string is its number. Sequences and optionals are
what they consist of; how long they are is known when a model is compiled for a call. *Python* stands for operators that
make new strings, take maps or decode images: Python computes them before machine code, behind it or between two parts
of it, and modules and bundles do not have them.
Narrow types, floats of 8 and 4 bits and integers of 4 and 2 bits, are stored and converted, and not computed with: they
are for Cast, CastLike, BitCast, QuantizeLinear, DequantizeLinear, what moves data (Identity, Transpose, Reshape, Pad)
and what passes values on (If, Loop, Scan).

Operands that fix shapes, as the shape of a Reshape or the axes of a ReduceSum, are constants or follow from shapes.

Files that onnxruntime saves when it has optimized a model are imported as the models that they were. What it has
fused becomes several operators again, and the blocks of its image layout, com.microsoft.nchwc, are taken out of
constants, with the channels that fill them up. A file does not say how large blocks are: where its shapes do not tell,
they are as onnxruntime has them on this processor.

What GroupQueryAttention and SparseAttention keep is a result as large as the past, or longer by the new keys. Lengths
of sequences are data, and rows behind the last key of one may hold anything.
"""

GLOW = """\
## glow_high operators

*CPU* says how machine code executes an operator: *stacked*, as part of a loop that applies a chain of elementwise
operators, as a view or as *copies* between views, most of which are eliminated, by one of the kernels named, or
*lowered* to other operators. With several entries, types and properties
decide. The interpreter runs all operators as they are. *Elements* are the types that the first operand may have, and
*on the CPU* those with which machine code executes or lowers the operator. *To ONNX* says what `glow-import --to-onnx`
can write.
"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |".replace("  |", " |")


def page(accepts: Callable[[Callable[..., Any]], bool] = is_built_in, more: Sequence[Path] = ()) -> str:
    """The text of the page, with the operators that `accepts` takes; `more` are files with examples."""
    lines = [INTRODUCTION]
    domains = {domain for domain, _, _ in IMPORTERS.all()} | {""}
    for domain in sorted(domains):
        rows, missing = onnx_rows(domain, accepts)
        if rows:
            lines += [f"### {domain or 'ai.onnx'}", "", *table(["operator", "versions", "how", "limits"], rows), ""]
        if rows and missing:
            lines += [f"Not supported: {', '.join(missing)}.", ""]
        if rows:
            lines += refused(domain)
    lines += [
        GLOW,
        *table(["operator", "CPU", "elements", "on the CPU", "to ONNX", "meaning"], glow_rows(accepts, more)),
    ]
    return "\n".join(lines) + "\n"


def refused(domain: str) -> Iterator[str]:
    """What is said of operators of a domain that are not supported for a reason."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for (own, kind), reason in REASONS.items():
        if own == domain:
            kinds[reason].append(kind)
    if kinds:
        yield from ("Not supported:", "")
        yield from (f"- {', '.join(sorted(names))}: {reason}." for reason, names in kinds.items())
        yield ""


def main(arguments: Sequence[str]) -> int:
    """Write, check or print the page; the exit code."""
    if arguments[:1] == ["--print"]:
        print(page(lambda _: True, [Path(name) for name in arguments[1:]]), end="")
        return 0
    return write_or_check(TARGET, page(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
