"""PyTorch's resampling of images (`torch.nn.functional.interpolate`), and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.torch.backward import gradient_through
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, wide_type
from glow_mlir.interpreter.resize import nearest_elements
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes

Scales = Sequence[float | None]
"""The scale of each spatial axis, from input to result, or `None`."""


@dataclass(frozen=True)
class Resampling:
    """Resample to sizes of the spatial axes, by a rule of `glow_high.resize`; nearest elements are PyTorch's."""

    mode: str
    sizes: Sizes
    scales: Scales
    align_corners: bool = False
    exact: bool = False
    antialias: bool = False

    @property
    def is_nearest(self) -> bool:
        """Whether elements are only moved."""
        return self.mode == "nearest"

    def run(self, node: TorchNode, x: SSAValue) -> SSAValue:
        """The resampled image, computed in f32 or wider."""
        if self.is_nearest:
            return self._nearest(node, x)
        words = "align_corners" if self.align_corners else "half_pixel"
        properties: dict[str, Any] = {"antialias": True, "exclude_outside": True} if self.antialias else {}
        if self.mode == "cubic":
            properties["cubic_coefficient"] = -0.5 if self.antialias else -0.75
        ratios = [scale for scale in self.scales if scale is not None]
        if (
            element_of(x) == f64
            and not self.align_corners
            and any(scale != float(np.float32(scale)) for scale in ratios)
        ):
            raise node.unsupported("f64 images with scales that f32 cannot represent exactly")
        wide = node.cast(x, wide_type(element_of(x)))
        return node.cast(self._resized(node, wide, coordinates=words, **properties), element_of(x))

    def _resized(self, node: TorchNode, x: SSAValue, **properties: Any) -> SSAValue:
        scales = None if self.align_corners else self._ratios(x)
        shape = (*sizes_of(x)[: -len(self.sizes)], *self.sizes)
        return node.emit(ResizeOp, x, shape=shape, scales=scales, mode=self.mode, **properties)

    def _ratios(self, x: SSAValue) -> list[float] | None:
        """The scale of each axis, 0 for the ratio of its sizes; `None` if no scale is given, or one is unknown."""
        pairs = zip(sizes_of(x)[-len(self.sizes) :], self.sizes, self.scales, strict=True)
        found = [_scale(size, wanted, scale) for size, wanted, scale in pairs]
        if None in found or not any(self.scales):
            return None
        return [*(1.0 for _ in range(rank_of(x) - len(found))), *(ratio for ratio in found if ratio is not None)]

    def _nearest(self, node: TorchNode, x: SSAValue) -> SSAValue:
        """Resize by the rule of `glow_high.resize`, or gather the elements if PyTorch's rounding chooses others."""
        first = rank_of(x) - len(self.sizes)
        wanted: dict[int, np.ndarray] = {}
        alike = True
        for number, (after, scale) in enumerate(zip(self.sizes, self.scales, strict=True)):
            before = sizes_of(x)[first + number]
            if not isinstance(before, int) or not isinstance(after, int):
                continue
            wanted[first + number] = _positions(before, after, scale, 0.5 if self.exact else 0.0)
            alike &= np.array_equal(wanted[first + number], self._own_positions(before, after, scale))
        if alike:
            coordinates, rounding = self._rule()
            return self._resized(node, x, coordinates=coordinates, rounding=rounding)
        if len(wanted) != len(self.sizes):
            raise node.unsupported(
                "nearest elements of sizes known at run time only, with scales that are not integers"
            )
        for axis, positions in wanted.items():
            x = node.emit(GatherOp, x, node.constant(positions, "places"), axis=axis)
        return x

    def _own_positions(self, before: int, after: int, scale: float | None) -> np.ndarray:
        """The elements that `glow_high.resize` chooses along an axis."""
        coordinates, rounding = self._rule()
        chosen_scale = _scale(before, after, scale) if any(self.scales) else 0.0
        return nearest_elements(coordinates, rounding, before, after, chosen_scale or None)

    def _rule(self) -> tuple[str, str]:
        """The coordinates and rounding of nearest elements for `glow_high.resize`."""
        return ("half_pixel", "round_prefer_ceil") if self.exact else ("asymmetric", "floor")


def _scale(before: Any, after: Any, scale: float | None) -> float | None:
    """The scale of an axis: the given one, 0 for the ratio of known sizes, or `None` if neither is known."""
    if scale is not None and scale > 0:
        return float(scale)
    return 0.0 if isinstance(before, int) and isinstance(after, int) and before else None


def _positions(before: int, after: int, scale: float | None, shift: float) -> np.ndarray:
    """The elements that PyTorch chooses along an axis, with positions computed in f32."""
    positions = np.arange(after)
    if before == after:
        return positions
    if after == 2 * before:
        return positions // 2
    step = np.float32(1 / scale) if scale is not None and scale > 0 else np.float32(before) / np.float32(after)
    found = np.floor((positions.astype(np.float32) + np.float32(shift)) * step)
    return np.minimum(found.astype(np.int64), before - 1)


# ---- operators -------------------------------------------------------------------------------------------------

Of = Callable[[TorchNode, Sizes, Sequence[Any]], Resampling]
"""Node, result sizes, and further arguments → the resampling of an operator."""


def _nearest(exact: bool) -> Of:
    def of(node: TorchNode, sizes: Sizes, scales: Sequence[Any]) -> Resampling:
        return Resampling("nearest", sizes, _scales(scales, len(sizes)), exact=exact)

    return of


def _between(mode: str, antialias: bool = False) -> Of:
    def of(node: TorchNode, sizes: Sizes, rest: Sequence[Any]) -> Resampling:
        align_corners, *scales = rest
        if antialias and align_corners:
            raise node.unsupported("antialiasing with aligned corners")
        return Resampling(mode, sizes, _scales(scales, len(sizes)), bool(align_corners), antialias=antialias)

    return of


def _scales(scales: Sequence[Any], count: int) -> Scales:
    """The scale of each spatial axis, from optional arguments or one list."""
    if len(scales) == 1 and isinstance(scales[0], tuple):
        (scales,) = scales
    return [*scales, *(None for _ in range(count - len(scales)))]


RESAMPLINGS: dict[str, Of] = {
    **{f"upsample_nearest{count}d": _nearest(exact=False) for count in (1, 2, 3)},
    **{f"_upsample_nearest_exact{count}d": _nearest(exact=True) for count in (1, 2, 3)},
    "upsample_linear1d": _between("linear"),
    "upsample_bilinear2d": _between("linear"),
    "upsample_trilinear3d": _between("linear"),
    "upsample_bicubic2d": _between("cubic"),
    "_upsample_bilinear2d_aa": _between("linear", antialias=True),
    "_upsample_bicubic2d_aa": _between("cubic", antialias=True),
}
"""Name of an operator → its resampling."""


def _forward(of: Of) -> Callable[..., SSAValue]:
    def resample(node: TorchNode, x: SSAValue, output_sizes: Any = None, *rest: Any, **keywords: Any) -> SSAValue:
        """Resample an image."""
        if 0 in node.sizes:
            return node.splat(0, node.element, node.sizes)
        arguments = [*rest, *keywords.values()]
        return of(node, node.sizes[2:], arguments).run(node, x)

    return resample


def _backward(of: Of) -> Callable[..., SSAValue]:
    def resample_backward(node: TorchNode, gradient: SSAValue, output_sizes: Any, sizes: Any, *rest: Any) -> SSAValue:
        """The gradient with respect to the image; it does not depend on the image's values."""
        if 0 in node.sizes or 0 in sizes_of(gradient):
            return node.splat(0, node.element, node.sizes)
        resampling = of(node, sizes_of(gradient)[2:], rest)
        image = node.splat(0, node.element, node.sizes)
        return gradient_through(node, lambda x: resampling.run(node, x), gradient, image)

    return resample_backward


for _name, _of in RESAMPLINGS.items():
    torch_operator(f"{_name}.default", f"{_name}.vec")(_forward(_of))
    torch_operator(f"{_name}_backward.default")(_backward(_of))
