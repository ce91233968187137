"""Sliding windows of PyTorch's convolutions and pooling operators."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.frontends.torch.node import TorchNode
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, numbers_in


def for_each(numbers: Sequence[int], count: int) -> tuple[int, ...]:
    """A number for each of `count` axes, from one for all or one for each."""
    return tuple(numbers) * count if len(numbers) == 1 else tuple(numbers)


@dataclass(frozen=True)
class Windows:
    """Sliding windows with one number for each spatial axis; `padding` is the same on both sides."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilations: tuple[int, ...]
    ceil_mode: bool = False

    @staticmethod
    def of(
        count: int,
        kernel: Sequence[int],
        strides: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilations: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Windows:
        """Windows from an operator's arguments; strides are the kernel's sizes by default."""
        kernel, strides, padding, dilations = (
            for_each(numbers, count) for numbers in (kernel, strides or kernel, padding, dilations)
        )
        return Windows(kernel, strides, padding, dilations, ceil_mode)

    @property
    def pads(self) -> tuple[int, ...]:
        """All leading paddings, then all trailing ones."""
        return (*self.padding, *self.padding)


def batched(node: TorchNode, value: SSAValue, spatial: int) -> SSAValue:
    """Reshape [C, spatial…] to a batch of one; a batch is unchanged."""
    return node.reshaped(value, (1, *sizes_of(value))) if rank_of(value) == spatial + 1 else value


def spatial_axes(node: TorchNode) -> int:
    """The number of spatial axes in an operator's name: 2 for `avg_pool2d`."""
    name = node.kind.split(".")[1]
    return int(name[name.rindex("d_") - 1 if "d_" in name else -2])


def fixed(node: TorchNode, sizes: Sequence[Size]) -> list[int]:
    """Sizes that windows depend on, as numbers; raises `UnsupportedError` for a symbolic one."""
    found = numbers_in(sizes)
    if len(found) != len(sizes):
        raise node.unsupported("windows that depend on sizes known at run time only")
    return found
