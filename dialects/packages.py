"""
Packages of operators: the modules with the parts of operators, for built-in operators and for other distributions.

A distribution offers operators by an entry point of the group `glow_mlir.operators` that names an `OperatorPackage`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from glow_mlir.errors import GlowError, PackageError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.distributions import entry_points

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "glow_mlir.operators"
"""The group of entry points by which other distributions offer operators and backends."""

CHOICE = "GLOW_PACKAGES"
"""
The environment variable that names the entry points to load, separated by commas. If it is unset, all installed ones
are loaded; if it is empty, none.
"""

DEFAULT_BACKEND = "cpu"
"""The backend used by default."""

SEVERAL_BACKENDS = "heterogeneous"
"""The backend that runs a model on several devices, each with its own backend."""

REFERENCE_BACKEND = "interpreter"
"""The backend that defines the meaning of operators and instructions."""


@dataclass(frozen=True)
class OperatorPackage:
    """Names of the modules that define the parts of some operators; each is imported only when its part is needed."""

    operators: tuple[str, ...] = ()
    """Modules with the operator classes, subclasses of `HighOp`."""
    semantics: tuple[str, ...] = ()
    """Modules with functions registered by `@semantics`."""
    importers: tuple[str, ...] = ()
    """Modules with functions registered by `@onnx_operator`."""
    tflite_importers: tuple[str, ...] = ()
    """Modules with functions registered by `@tflite_operator` and `@tflite_custom_operator`."""
    exporters: tuple[str, ...] = ()
    """Modules with functions registered by `@onnx_export`."""
    lowerings: tuple[str, ...] = ()
    """Modules with functions registered by `@lowering`."""
    gradients: tuple[str, ...] = ()
    """Modules with functions registered by `@gradient`."""
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Name of a backend → modules with kernels for it, registered by `@kernel`."""
    packed_forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Name of a backend → modules with the forms that its kernels pack constants in, registered by `@packed_form`."""
    backends: tuple[str, ...] = ()
    """Modules with classes registered by `@backend`."""
    loaders: Mapping[str, str] = field(default_factory=dict[str, str])
    """
    Name of a backend → module whose function `load(artifact, threads)` makes its artifacts executable without importing
    the compiler; `load_on(artifact, number, threads)` does so on one of several devices. Artifacts of such a backend
    are cached on disk. The backend has to be in its own `OperatorPackage`, whose version decides whether they are
    valid.
    """


def _modules(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names.split())


BUILTIN = OperatorPackage(
    operators=_modules(
        "glow_mlir.dialects.glow_high",
        "storage returns call control_flow loop elementwise_math activations elementwise_binary convolution linear "
        "attention linear_attention cache pages einsum pooling normalization data_movement dynamic_slices indexing "
        "resize sampling fourier ngrams embedding selection reductions recurrence recurrent quantization blockwise "
        "sizes generic gradient predicate random_numbers saved trees",
    ),
    semantics=_modules(
        "glow_mlir.interpreter",
        "storage convolution linear attention linear_attention cache pages pooling data_movement dynamic_slices "
        "indexing resize sampling fourier ngrams embedding selection reductions recurrent blockwise sizes generic "
        "gradient predicate saved trees",
    ),
    importers=(
        *_modules(
            "glow_mlir.frontends.onnx.operators",
            "plain_operators elementwise convolution linear attention pooling normalization "
            "data_movement constants control_flow loops indexing selection resize sampling fourier "
            "ngrams embedding reductions recurrent quantization integer_operators blockwise "
            "random_numbers training sequences optionals early_operators flex_attention",
        ),
        *_modules(
            "glow_mlir.frontends.onnx.machine_learning",
            "trees features encoders linear_models support_vectors",
        ),
        *_modules(
            "glow_mlir.frontends.onnx.microsoft",
            "quantized_attention quantized_lstm quantized_embedding activations normalization "
            "products convolution blocked_images rotary attention group_query_attention experts "
            "quantized_experts sparse_attention gates states decoder_attention standard_forms",
        ),
    ),
    tflite_importers=_modules(
        "glow_mlir.frontends.tflite.operators",
        "activations arrangement control_flow creation data_movement elementwise indexing lookups lstm normalization "
        "pools products quantization reductions resizing slices softmax state svdf",
    ),
    exporters=_modules(
        "glow_mlir.frontends.onnx.export",
        "plain_operators elementwise data_movement quantized_products control_flow spatial products sampling selection",
    ),
    lowerings=_modules(
        "glow_mlir.transforms.lowerings",
        "linear attention einsum normalization resize sampling fourier transposed_convolution recurrent "
        "padding blockwise predicate",
    ),
    gradients=_modules(
        "glow_mlir.differentiation",
        "elementwise expressed linear data_movement dynamic_slices indexing reductions convolution pooling "
        "attention cache resize sampling regions embedding einsum fourier recurrent predicate "
        "control_flow quantization saved variables",
    ),
    kernels={
        "cpu": (
            *_modules(
                "glow_mlir.codegen.kernels.elements",
                "elementwise determinant data_movement dynamic_slices indexing top_k ngrams embedding selection sizes "
                "reshape",
            ),
            *_modules(
                "glow_mlir.codegen.kernels.products",
                "pack conv streamed_matmul matmul predicated_matmul grouped_matmul blockwise_matmul "
                "blockwise_matmul_integer",
            ),
            *_modules(
                "glow_mlir.codegen.kernels.attention",
                "attention linear_attention extend_cache paged_attention write_pages",
            ),
            *_modules(
                "glow_mlir.codegen.kernels.recurrences",
                "recurrent",
            ),
            *_modules(
                "glow_mlir.codegen.kernels.images",
                "resize sampling roi_align roi_pool col2im non_max_suppression",
            ),
            *_modules(
                "glow_mlir.codegen.kernels.trees",
                "trees binned_trees",
            ),
            *_modules(
                "glow_mlir.codegen.kernels.expressions",
                "max_pool_with_indices generic windows windows_of_integers",
            ),
        ),
        "blocks": _modules("glow_mlir.codegen.block_kernels", "product rows depthwise"),
    },
    packed_forms={"cpu": _modules("glow_mlir.codegen", "packed_forms")},
    backends=_modules(
        "glow_mlir.backends",
        "cpu.backend cuda.backend interpreter.backend heterogeneous.backend opencl.backend",
    ),
    loaders={
        "cpu": "glow_mlir.runtime.machine_code",
        "cuda": "glow_mlir.backends.cuda.loader",
        "heterogeneous": "glow_mlir.backends.heterogeneous.loader",
        "opencl": "glow_mlir.backends.opencl.loader",
    },
)
"""
The parts of the compiler itself.

Modules are listed one by one, since their folders also have modules that are imported only where needed. Kernels are
preferred in the order of their modules.
"""


def _installed() -> list[EntryPoint]:
    """
    The entry points of other distributions that `GLOW_PACKAGES` enables, in the order of their names.

    Raises `PackageError` for a name there that no distribution has.
    """
    points = sorted(entry_points(GROUP), key=lambda point: (point.name, _origin(point)))
    choice = os.environ.get(CHOICE)
    if choice is None:
        return points
    chosen = {name for part in choice.split(",") if (name := part.strip())}
    known = {point.name for point in points}
    if missing := sorted(chosen - known):
        hint = f"installed are {', '.join(sorted(known))}" if known else "none is installed"
        raise PackageError(f"{CHOICE}: there is no operator package '{missing[0]}' (hint: {hint})")
    return [point for point in points if point.name in chosen]


def _origin(point: EntryPoint) -> str:
    """Name and version of the distribution that has an entry point."""
    return "" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def installed_packages() -> list[str]:
    """Name and version of each distribution that offers operators; nothing of them is imported."""
    return list(dict.fromkeys(map(_origin, _installed())))


@cache
def packages() -> tuple[tuple[str, OperatorPackage], ...]:
    """
    Display name and package: the built-in one, then those of other distributions.

    Raises `PackageError` where one cannot be loaded.
    """
    return (("the built-in package", BUILTIN), *(_loaded(point) for point in _installed()))


def _loaded(point: EntryPoint) -> tuple[str, OperatorPackage]:
    name = f"operator package '{point.name}' ({_origin(point)})"
    try:
        package = point.load()
    except Exception as error:
        raise _failure(name, error) from error
    if not isinstance(package, OperatorPackage):
        raise PackageError(f"{name}: {point.value} is no OperatorPackage")
    return name, package


def _failure(name: str, error: Exception) -> GlowError:
    """The error for a package whose import raised another error."""
    if isinstance(error, GlowError):
        return error
    return PackageError(f"{name} cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())}")


def loader_of(backend: str) -> ModuleType | None:
    """
    The module that loads stored artifacts of a backend; `None` for a backend without stored artifacts.

    Raises `PackageError` where it cannot be imported.
    """
    for name, package in packages():
        if (module := package.loaders.get(backend)) is not None:
            return _imported(name, package, module)
    return None


def part_modules(part: str, backend: str = "") -> Iterator[Callable[[], ModuleType]]:
    """
    Functions that import the modules of one part (a field of `OperatorPackage`) of every package, or those of it for
    one backend.

    They raise `PackageError` where a module of another distribution cannot be imported.
    """
    for name, package in packages():
        for module in getattr(package, part).get(backend, ()) if backend else getattr(package, part):
            yield partial(_imported, name, package, module)


def load_part(part: str) -> Iterator[ModuleType]:
    """Import the modules of one part of every package, as `part_modules`."""
    for load in part_modules(part):
        yield load()


def _imported(name: str, package: OperatorPackage, module: str) -> ModuleType:
    """A module of a package; raises `PackageError` where one of another distribution cannot be imported."""
    if package is BUILTIN:
        return import_module(module)
    try:
        return import_module(module)
    except Exception as error:
        raise _failure(name, error) from error
