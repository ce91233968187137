"""
Bundles of random models: the results of the session, to the bit, from files; on another processor; and damaged files.

`host` writes and loads bundles of random models, `emulated` runs their code on an emulated processor, `damaged` changes
files of a bundle: it is refused in one clean line, or gives the results that it gave.
"""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import onnx.printer
from drawn_models import Arrays, Case
from emulators import machine_for
from fuzzing import Fuzzer
from model_cases import KINDS
from onnx import numpy_helper
from onnx_mutants import check_line
from onnxruntime_cases import results_of
from random_codes import quantized_case

from glow_mlir.api.bundles import bundle_of
from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.onnxruntime.bundle_session import load_bundle
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.bundle.compile import Bundle
from glow_mlir.bundle.files import write_bundle
from glow_mlir.errors import CompilerBugError, GlowError, GlowWarning

MODELS = ("codes", "loops", "counts", "bounds")
TARGET = "neon"
"""The processor that is emulated."""

ROUNDING = 1e-5
"""How far floats of another processor may be off, by the largest of their output."""

# Any: JSON.
NUMBERS: Sequence[Any] = (0, 1, -1, 3, 1 << 31, -(1 << 63), 0.5, None, "", "x", [], {}, True)


def settled(seed: int) -> Case:
    """
    A random model for one call: dimensions have sizes, and numbers that say how often loops run are constants.

    It is that of another seed where calls may fail.
    """
    kind = KINDS[MODELS[seed % len(MODELS)]]
    case = next(case for case in map(kind, itertools.count(seed, step=1_000_003)) if not case.may_fail)
    call, inputs = dict(case.calls[0]), case.model.graph.input
    for place, value in reversed(list(enumerate(inputs))):
        if call[value.name].dtype == np.int64 and not call[value.name].shape:
            case.model.graph.initializer.append(numpy_helper.from_array(call.pop(value.name), value.name))
            del inputs[place]
    sizes: dict[str, tuple[int, int]] = {}
    for value in case.model.graph.input:
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.dim_param:
                extent = call[value.name].shape[axis]
                sizes[dimension.dim_param] = (extent, extent)
    return Case(case.model, [call], sizes, case.codes)


def bundle_of_case(case: Case, target: str | None = None) -> Bundle:
    """A bundle `m` of a model whose dimensions have sizes."""
    sizes = {name: most for name, (_, most) in case.dimensions.items()}
    return bundle_of({"": case.model}, "m", CompileOptions("cpu", dimensions=sizes, target=target))


def session_of(case: Case) -> InferenceSession:
    """A session of the same model, on one thread."""
    sizes = {name: most for name, (_, most) in case.dimensions.items()}
    return InferenceSession(case.model, cache=False, dimensions=sizes, threads=1)


def check_host(seed: int) -> None:
    """Compare a bundle, by way of its files, with the session of the same model."""
    case = settled(seed)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", GlowWarning)
        write_bundle(bundle_of_case(case), Path(folder))
        bundle, session = load_bundle(folder), session_of(case)
        assert bundle.get_inputs() == session.get_inputs()
        assert bundle.get_outputs() == session.get_outputs()
        for found, wanted in zip(*(results_of(one, case.calls[0]) for one in (bundle, session)), strict=True):
            np.testing.assert_array_equal(found, wanted, strict=True)


def check_emulated(seed: int) -> None:
    """Compare the code of a bundle on another processor with the session here."""
    case = settled(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GlowWarning)
        session = session_of(case)
        if any(not isinstance(size, int) for value in session.get_outputs() for size in value.shape):
            return  # The machines give all of a binding's memory, whose shape only the call says.
        artifact = bundle_of_case(case, TARGET).artifact
    ran = machine_for(TARGET).run(artifact, case.calls[0])
    assert ran.status == 0, f"the status is {ran.status}"
    names = [value.name for value in session.get_outputs()]
    for name, wanted in zip(names, results_of(session, case.calls[0]), strict=True):
        found = ran.outputs[name]
        if case.codes or wanted.dtype.kind != "f":
            steps = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
            assert (steps > 0).mean() < 0.05, f"{name}: {int((steps > 0).sum())} of {steps.size} differ"
        else:
            scale = float(np.abs(wanted).max(initial=1e-3))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=ROUNDING * scale, err_msg=name)


# ---- damage ----------------------------------------------------------------------------------------------------


@cache
def whole() -> tuple[Path, Arrays, Sequence[np.ndarray]]:
    """The folder of a bundle that is as it should be, a call, and what it gives."""
    case = next(case for case in map(quantized_case, range(100)) if not case.dimensions)
    folder = Path(tempfile.mkdtemp())
    write_bundle(bundle_of_case(case), folder)
    return folder, case.calls[0], results_of(load_bundle(folder), case.calls[0])


def check_damaged(seed: int) -> bool:
    """Whether a bundle whose files are damaged is loaded; raises where it is, and gives other results."""
    folder, call, wanted = whole()
    random = Random(seed)
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "bundle"
        shutil.copytree(folder, copy)
        for _ in range(random.choice([1, 1, 2])):
            random.choice(DAMAGES)(copy, random)
        try:
            found = results_of(load_bundle(copy, random.choice([None, "m"])), call)
        except CompilerBugError:
            raise
        except GlowError as error:
            check_line(error)
            return False
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
        return True


def _damaged_manifest(folder: Path, random: Random) -> None:
    """Another value, a missing one or one more, anywhere in the manifest."""
    path = folder / "m.json"
    if not path.is_file():
        return
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return
    # Any: JSON.
    places: list[tuple[Any, Any]] = _places(data) or [({0: data}, 0)]
    holder, key = random.choice(places)
    form = random.randrange(4)
    if form == 0:
        holder.pop(key)
    elif form == 1 and isinstance(holder, dict):
        holder[f"{key} more"] = cast("dict[Any, Any]", holder).pop(key)
    elif form == 2 and isinstance(holder[key], int):
        holder[key] += random.choice([-1, 1, 1 << 40])
    else:
        holder[key] = random.choice(NUMBERS)
    path.write_text(json.dumps(data), encoding="utf-8")


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Each value of a manifest, as what holds it and its key."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(data, dict | list):
        keys = cast("Iterable[Any]", data if isinstance(data, dict) else range(len(cast("list[Any]", data))))
        inner = [found for key in keys for found in [(cast("Any", data), key), *_places(data[key])]]
    return inner


def _damaged_bytes(folder: Path, random: Random) -> None:
    """Some bits of a file, fewer bytes, or more."""
    path = random.choice(sorted(path for path in folder.iterdir() if path.is_file()))
    data = bytearray(path.read_bytes())
    form = random.randrange(3)
    if form == 0:
        del data[random.randrange(len(data) + 1) :]
    elif form == 1:
        data += bytes(random.choice([1, 16, 4096]))
    for _ in range(random.choice([1, 8]) if form == 2 and data else 0):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(bytes(data))


def _missing_file(folder: Path, random: Random) -> None:
    """A file that is not there, or a folder in its place, or a link to nowhere."""
    path = random.choice(sorted(path for path in folder.iterdir() if path.is_file()) or [folder / "m.json"])
    path.unlink(missing_ok=True)
    if random.random() < 0.3:
        path.mkdir()
    elif random.random() < 0.3:
        path.symlink_to("nowhere")


def _mixed_files(folder: Path, random: Random) -> None:
    """A file in the place of another one, or of two bundles in one folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    if len(files) < 2:
        return
    one, other = random.sample(files, 2)
    if one.resolve() == other.resolve():
        return
    if random.random() < 0.5:
        shutil.copyfile(one, other)
    else:
        shutil.copyfile(one, folder / f"n{one.name[1:]}")


DAMAGES: Sequence[Callable[[Path, Random], None]] = (
    *(_damaged_manifest, _damaged_manifest, _damaged_manifest, _damaged_bytes, _damaged_bytes, _missing_file),
    _mixed_files,
)


def shown(seed: int) -> str:
    """The model of a seed as text."""
    return onnx.printer.to_text(settled(seed).model)


STAGES: Mapping[str, Fuzzer] = {
    "host": Fuzzer(check_host, prepare=lambda: check_host(0), show=shown),
    "emulated": Fuzzer(check_emulated, prepare=lambda: check_emulated(0), show=shown),
    "damaged": Fuzzer(check_damaged, prepare=whole),
}
"""The fuzzers of bundles."""
