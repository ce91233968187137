"""Profiles: histograms of the values of a graph, in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.errors import GlowError, InputError, ModelError, OptionError
from glow_mlir.quantization.histogram import BINS, MIN_BINS, Histogram
from glow_mlir.support.activity import warn
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.files import replaced
from glow_mlir.support.json_text import parsed_json

FORMAT = "glow-profile"
VERSION = 2

_HINT = "glow-profile writes profiles"


@dataclass
class Profile:
    """
    Histograms of the values of a graph by name, the digests of the graph and its weights, and whether the channels
    between its products were equalized first, as the pass `quantize` then does too.
    """

    graph: str
    bins: int = BINS
    histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram])
    is_equalized: bool = False
    weights: str = ""

    def add(self, values: Mapping[str, np.ndarray]) -> None:
        """Count the numbers of some values; numbers that are not finite are ignored."""
        for name, array in values.items():
            histogram = self.histograms.get(name) or Histogram(self.bins)
            histogram.add(array)
            if histogram.total:
                self.histograms[name] = histogram

    def merge(self, other: Profile) -> None:
        """Add the counts of another profile; raises `OptionError` for another graph or other bins."""
        if other.graph != self.graph:
            raise OptionError("profiles of different graphs cannot be merged", hint=_HINT)
        if other.bins != self.bins:
            raise OptionError(f"profiles with {self.bins} and {other.bins} bins cannot be merged", hint=_HINT)
        if other.is_equalized != self.is_equalized:
            raise OptionError("profiles with and without equalized channels cannot be merged", hint=_HINT)
        if other.weights != self.weights:
            raise OptionError("profiles of models with different weights cannot be merged", hint=_HINT)
        for name, histogram in other.histograms.items():
            self.histograms.setdefault(name, Histogram(self.bins)).merge(histogram)

    def check_graph(self, graph: str, path: Path) -> None:
        """Raise `ModelError` if the profile, read from that file, belongs to another graph than that of the digest."""
        if graph != self.graph:
            reason = "is the profile of another graph"
            raise ModelError(reason, file=str(path), hint="profile this model, with the same sizes and options")

    def check_weights(self, weights: str, path: Path) -> None:
        """Warn if the profile, read from that file, belongs to a model with other weights."""
        if weights != self.weights:
            hint = "profile this model, where its numbers may be others"
            warn(InputError("is the profile of a model with other weights", file=str(path), hint=hint))

    def write(self, path: Path) -> None:
        """Write the profile atomically; raises `OptionError` if that is impossible."""
        head = {"format": FORMAT, "version": VERSION, "graph": self.graph, "weights": self.weights, "bins": self.bins}
        head |= {"equalized": True} if self.is_equalized else {}
        values = {name: histogram.to_json() for name, histogram in self.histograms.items()}
        # One value per line, so that people can search and compare.
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
        with replaced(path) as file:
            file.write(f'{json.dumps(head)[:-1]}, "values": {{\n{lines}\n}}}}\n'.encode())


def read_profile(path: Path) -> Profile:
    """Read the profile in a file; raises `InputError` if there is none."""
    try:
        data: Any = parsed_json(path.read_bytes())
        if data["format"] != FORMAT:
            raise ValueError("another format")
        if data["version"] != VERSION:
            raise InputError(f"is a profile of version {data['version']}, not {VERSION}", file=str(path), hint=_HINT)
        graph, bins, is_equalized = data["graph"], data["bins"], data.get("equalized", False)
        weights: object = data["weights"]
        if not isinstance(graph, str) or not isinstance(weights, str) or is_equalized not in (0, 1):
            raise ValueError("a profile has a graph and weights")
        if not isinstance(bins, int) or bins < MIN_BINS:
            raise ValueError("a profile has bins")
        found = {str(name): Histogram.from_json(value, bins) for name, value in data["values"].items()}
    except GlowError:
        raise
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InputError("is no profile, or is damaged", file=str(path), hint=_HINT) from error
    return Profile(graph, bins, found, bool(is_equalized), weights)
