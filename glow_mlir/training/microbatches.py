"""Batches split into equal parts; each part has a share of the total loss."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from glow_mlir.errors import InputError, OptionError
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dataclass import dataclass
from glow_mlir.training.batches import Arrays, targets_name
from glow_mlir.training.losses import Loss
from glow_mlir.training.step import share_name


@dataclass(frozen=True)
class Parts:
    """
    The split of batches into `count` parts, along the first axis of each input that has one.

    `losses` has the loss of each output with one; a mean or a sum over samples.
    """

    count: int
    losses: Mapping[str, Loss]

    def __post_init__(self) -> None:
        if self.count < 1:
            raise OptionError(f"a batch cannot have {self.count} parts", hint="1 or more")

    def whole(self, argument: Argument) -> Argument:
        """The argument for a whole batch that corresponds to one for a part."""
        if self.count == 1 or not argument.shape or isinstance(argument.shape[0], str):
            return argument
        return replace(argument, shape=(argument.shape[0] * self.count, *argument.shape[1:]))

    def cut(self, inputs: Sequence[Argument], batch: Mapping[str, Any]) -> list[Arrays]:
        """The parts of a batch; raises `InputError` for an input that does not have the size of a whole batch."""
        found: list[Arrays] = [{} for _ in range(self.count)]
        known = {argument.name: argument for argument in inputs}
        for name, value in batch.items():
            array = np.asarray(value)
            whole = self.whole(known[name]) if name in known else None
            if whole is not None and not whole.accepts(array.shape):
                raise InputError(f"input '{name}' must be {whole}, not {array.dtype.name}{list(array.shape)}")
            pieces = np.split(array, self.count) if whole is not None and array.ndim else [array] * self.count
            for part, piece in zip(found, pieces, strict=True):
                part[name] = piece
        return found

    def shares(self, parts: Sequence[Arrays], outputs: Sequence[Argument]) -> list[dict[str, float]]:
        """
        The share of each loss of each part in that of the batch, by the names of the inputs for shares.

        `outputs` are the model's outputs for a part.
        """
        size = next((len(array) for array in parts[0].values() if array.ndim), 1)
        found: list[dict[str, float]] = [{} for _ in parts]
        for output, loss in self.losses.items():
            shape = next(argument.numbers for argument in outputs if output in ("", argument.name))
            targets = targets_name(output, self.losses)
            weights = [loss.weight(part.get(targets), size, shape) for part in parts]
            total = float(sum(weights)) or 1.0
            for shares, weight in zip(found, weights, strict=True):
                shares[share_name(output, self.losses)] = 1.0 if loss.reduction == "sum" else weight / total
        return found

    def joined(self, outputs: Sequence[Arrays], summed: Collection[str] = ()) -> Arrays:
        """The outputs of a batch: the parts' outputs concatenated; for scalars the mean, or the sum if `summed`."""
        if self.count == 1:
            return outputs[0]
        found: Arrays = {}
        for name, first in outputs[0].items():
            pieces = [part[name] for part in outputs]
            if first.ndim:
                found[name] = np.concatenate(pieces)
            else:
                total = np.sum(pieces, dtype=np.float64)
                found[name] = np.asarray(total if name in summed else total / self.count, first.dtype)
        return found
