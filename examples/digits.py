"""
The ladder, from an ONNX file to machine code: a small convolutional network that reads handwritten digits.

Prints the model at each stage, compiles it, classifies the test images of scikit-learn's digits, and reports accuracy,
agreement with the interpreter, compile time and latency. `make run` runs it.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from train_digits import load
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.driver.compile_times import CompileTimes
from glow_mlir.driver.pipelines import Stage

MODEL = Path(__file__).with_name("digits.onnx")
EXCERPT = 18
WIDTH = 150
TITLES = {
    "imported": "imported — one operator a node, as in the file",
    "optimized": "optimized — transposes sunk, constants folded",
    "lowered": "lowered — only what the CPU backend executes",
    "scheduled": "scheduled — ordered for little memory",
    "instructions": "instructions — addresses instead of tensors",
    "stacked": "stacked — elementwise neighbours in one loop",
    "selected": "selected — each instruction names its kernel",
    "allocated": "allocated — every buffer has its place",
    "llvm": "LLVM dialect — the entry and its kernels, and machine code of them",
}


def show(stage: Stage, module: ModuleOp, seconds: float) -> None:
    """Print the functions of a module at one stage, cut to a screenful; of those that change one for inference."""
    if stage.name not in TITLES:
        return
    print(f"\n── {TITLES[stage.name]}  ({seconds * 1e3:.0f} ms)")
    lines = str(module).splitlines()
    start = next((i for i, line in enumerate(lines) if ".func @main" in line), 0)
    for line in lines[start : start + EXCERPT]:
        print(line if len(line) <= WIDTH else line[: WIDTH - 1] + "…")
    if (rest := len(lines) - start - EXCERPT) > 0:
        print(f"    … {rest} more lines")


def main() -> None:
    """Walk the ladder, then measure the result."""
    _, _, images, labels = load()

    print(f"{MODEL.name}: two convolutions, max-pooling and a classifier, trained on 1,347 images of 8×8 pixels")
    times = CompileTimes([show])
    with times.measuring():
        session = InferenceSession(MODEL, dimensions={"N": 1}, cache=False, observers=[times])
    seconds: list[float] = []
    outputs: list[np.ndarray] = []
    for image in images:
        start = time.perf_counter()
        outputs += session.run(None, {"image": image[None]})
        seconds.append(time.perf_counter() - start)
    probabilities = np.concatenate(outputs)

    interpreter = InferenceSession(MODEL, dimensions={"N": len(images)}, backend="interpreter")
    (expected,) = interpreter.run(None, {"image": images})

    accuracy = float((probabilities.argmax(1) == labels).mean())
    print(f"\naccuracy      {accuracy:.2%} on {len(images)} test images")
    print(f"agreement     {np.abs(probabilities - expected).max():.1e} largest difference from the interpreter")
    low, median, high = np.percentile(seconds, (0, 50, 99)) * 1e6
    print(f"latency       {median:.0f} µs median, {low:.0f} best, {high:.0f} at the 99th percentile, on one thread")
    print("\n".join(times.lines()))


if __name__ == "__main__":
    main()
