"""
Accuracy of the digits example in codes of 8 bits, by schema and calibration, beside that of floats.

Profiles the network on some of the images that it was trained with, and classifies those that were held back.

    python examples/quantize_digits.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from train_digits import load

from glow_mlir import InferenceSession, Quantization
from glow_mlir.api.profiling import profiled
from glow_mlir.quantization.options import CALIBRATIONS, PRECISIONS, SCHEMAS

MODEL = Path(__file__).with_name("digits.onnx")
SAMPLES = 256
"""Images that the network is profiled on."""


def accuracy(images: np.ndarray, labels: np.ndarray, quantize: Quantization | None = None) -> float:
    """The share of images that the network tells right."""
    session = InferenceSession(MODEL, dimensions={"N": len(images)}, quantize=quantize)
    (probabilities,) = session.run(None, {"image": images})
    return float((probabilities.argmax(1) == labels).mean())


def main() -> None:
    """Print the table."""
    train, _, images, labels = load()
    print(f"{MODEL.name}: accuracy on {len(images)} images, profiled on {SAMPLES} others")
    print(f"{'':36}{''.join(f'{name:>12}' for name in CALIBRATIONS)}")
    print(f"{'floats':36}{accuracy(images, labels):>12.2%}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.profile.json"
        profiled(MODEL, [{"image": train[:SAMPLES]}], dimensions={"N": SAMPLES}).write(path)
        for precision in PRECISIONS:
            for schema in SCHEMAS:
                found = [
                    accuracy(images, labels, Quantization(path, schema, precision, calibration=calibration))
                    for calibration in CALIBRATIONS
                ]
                print(f"{precision + ' ' + schema:36}{''.join(f'{share:>12.2%}' for share in found)}")


if __name__ == "__main__":
    main()
