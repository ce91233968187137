"""
Accuracy of the two trained networks in each narrow form, beside that of floats.

Profiles each network on some of the pictures that it was trained with, and classifies those that were held back: in
codes by schema and calibration, and in narrower floats.

    python examples/quantize_digits.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from cluttered_digits import held_out_set, training_set
from train_digits import load

from glow_mlir import InferenceSession, Quantization
from glow_mlir.api.profiling import profiled
from glow_mlir.options.quantization import CALIBRATIONS, PRECISIONS, SCHEMAS

FOLDER = Path(__file__).parent

SAMPLES = 256
"""Pictures that a network is profiled on."""

Pictures = tuple[np.ndarray, np.ndarray]
"""Pictures [N, 1, H, W], and the digits in them."""


def digits() -> tuple[np.ndarray, Pictures]:
    """Pictures to profile `digits.onnx` on, and those to test it with."""
    train, _, images, labels = load()
    return train[:SAMPLES], (images, labels)


def residual_digits() -> tuple[np.ndarray, Pictures]:
    """Pictures to profile `residual_digits.onnx` on, and those to test it with."""
    train, _ = training_set(SAMPLES, np.random.default_rng(2))
    return train, held_out_set()


NETWORKS: Mapping[str, Callable[[], tuple[np.ndarray, Pictures]]] = {
    "digits": digits,
    "residual_digits": residual_digits,
}
"""Network, the name of a file without its suffix → pictures to profile it on, and pictures that were held back."""


@dataclass(frozen=True)
class Trial:
    """A network, which has been profiled; its profile is in a folder."""

    name: str
    folder: Path
    backend: str = "cpu"
    limit: int | None = None
    """How many pictures it is tested with; all if it is not said."""

    @cached_property
    def held_out(self) -> Pictures:
        """Pictures that the network has never seen, and the digits in them."""
        _, (images, labels) = NETWORKS[self.name]()
        return images[: self.limit], labels[: self.limit]

    @property
    def model(self) -> Path:
        """The ONNX file."""
        return FOLDER / f"{self.name}.onnx"

    @cached_property
    def profile(self) -> Path:
        """The profile of the network, taken when it is first asked for."""
        samples, _ = NETWORKS[self.name]()
        path = self.folder / f"{self.name}.profile.json"
        found = profiled(self.model, [{"image": samples}], dimensions={"N": SAMPLES}, backend=self.backend)
        found.write(path)
        return path

    def probabilities(self, quantize: Quantization | None = None, precision: str = "f32") -> np.ndarray:
        """What the network says of the pictures held back, [N, 10]."""
        images, _ = self.held_out
        session = InferenceSession(
            self.model,
            dimensions={"N": len(images)},
            quantize=quantize,
            precision=precision,
            backend=self.backend,
            cache=False,
        )
        return session.run(None, {"image": images})[0]

    def accuracy(self, quantize: Quantization | None = None, precision: str = "f32") -> float:
        """The share of the pictures held back that the network tells right."""
        _, labels = self.held_out
        return float((self.probabilities(quantize, precision).argmax(1) == labels).mean())


def show(trial: Trial) -> None:
    """Print the table of one network: accuracy, and by how much it is better than that of floats, in percent."""
    floats = trial.accuracy()

    def cell(quantize: Quantization | None = None, precision: str = "f32") -> str:
        share = trial.accuracy(quantize, precision)
        return f"{100 * share:8.2f} {100 * (share - floats):+6.2f}"

    print(f"{trial.model.name}: accuracy in % on {len(trial.held_out[1])} pictures, profiled on {SAMPLES} others")
    print(f"{'f32':36}{100 * floats:8.2f}")
    for precision in ("bf16", "f16"):
        print(f"{precision:36}{cell(precision=precision)}")
    print(f"{'':36}{''.join(f'{name:>15}' for name in CALIBRATIONS)}")
    for precision in PRECISIONS:
        for schema in SCHEMAS:
            found = [cell(Quantization(trial.profile, schema, precision, calibration=name)) for name in CALIBRATIONS]
            print(f"{f'{precision} {schema}':36}{''.join(found)}")
    print()


def main() -> None:
    """Print the tables of all networks."""
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            show(Trial(name, Path(folder)))


if __name__ == "__main__":
    main()
