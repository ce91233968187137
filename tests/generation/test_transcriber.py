"""Speech models write down what transformers' Whisper writes, from logits to searches, times and long sounds."""

from __future__ import annotations

import json
import tracemalloc
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glow_mlir
from glow_mlir.errors import GlowError, InputError, ModelError, UnsupportedError
from glow_mlir.frontends.decoders.models import open_model
from glow_mlir.frontends.onnx.named_weights import named_weights
from glow_mlir.generation.log_mel import LogMel
from glow_mlir.generation.sound_files import read_wave
from glow_mlir.generation.speech_form import SpeechForm

pytestmark = pytest.mark.extra

FORM = {"language": "de", "task": "translate"}


class Models:
    """Our model, and that of transformers."""

    def __init__(self, folder: Path) -> None:
        import torch
        from small_whisper import write_whisper

        torch.set_num_threads(1)
        self.folder = folder
        self.reference = write_whisper(folder)
        self.own = glow_mlir.Transcriber(folder, cache="float32", threads=1)

    def features(self, sound: np.ndarray) -> Any:
        import torch

        own = self.own
        is_long = len(sound) > own.frames * own.mel.hop
        return torch.tensor(own.mel.features(sound, len(sound) // own.mel.hop if is_long else own.frames).T[None])

    def generated(self, sound: np.ndarray, **options: Any) -> list[tuple[float, float, list[int]]]:
        """Start, end and tokens of transformers' segments, without the time behind a segment that is left out."""
        import torch
        from small_whisper import IDS

        features = self.features(sound)
        given = {**FORM, "return_segments": True, **options}
        if features.shape[2] > self.own.frames:
            given["attention_mask"] = torch.ones(features.shape[::2], dtype=torch.int64)
        with torch.no_grad():
            segments = self.reference.generate(features, **given)["segments"][0]
        found = [(float(each["start"]), float(each["end"]), each["tokens"].tolist()) for each in segments]
        first = IDS["<|0.00|>"]
        return [
            (start, end, tokens[:-1] if min([first - 1, *tokens[1:]][-2:]) >= first and len(tokens) > 2 else tokens)
            for start, end, tokens in found
        ]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    for package in ("transformers", "safetensors", "tokenizers", "onnx"):
        pytest.importorskip(package)
    return Models(tmp_path_factory.mktemp("whisper"))


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * abs(wanted).max())


def test_rows_of_the_encoder_and_logits_are_those_of_transformers(models: Models) -> None:
    import torch
    from small_whisper import sound

    network, features = models.own.network, models.features(sound(0, 1.5))
    tokens = [258, 260, 5, 9, 300, 17, 33, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91]
    with torch.no_grad():
        rows = models.reference.model.encoder(features).last_hidden_state[0].numpy()
        wanted = models.reference(features, decoder_input_ids=torch.tensor([tokens])).logits[0].numpy()
    memory = network.encode(features[0].T.numpy())
    close(memory.rows, rows)
    sequence = network.sequence(memory)
    close(sequence.append(tokens[:4], wanted=2), wanted[2:4])
    close(sequence.append(tokens[4:5]), wanted[4:5])
    forks = [sequence.fork() for _ in range(3)]
    close(sequence.append(tokens[5:18]), wanted[17:18])
    # Copies of a page that is partly filled are as good as the page, to the bit, and the fork of a fork as well.
    forks.append(forks[0].fork())
    again = network.sequence(memory)
    again.append(tokens[:5])
    logits = again.append(tokens[5:18])
    for fork in forks:
        np.testing.assert_array_equal(fork.append(tokens[5:18]), logits)
    sequence.truncate(5)
    close(sequence.append(tokens[5:6]), wanted[5:6])
    memory.close()
    for refused in (lambda: sequence.append([1]), sequence.fork):
        with pytest.raises(InputError, match="what the sequence attends to is closed"):
            refused()


def test_a_call_copies_no_cache(models: Models) -> None:
    from glow_mlir.dialects.glow_low.memory import AllocOp, CopyOp
    from glow_mlir.driver.compiler import Compilation

    program: Any = models.own.network.decoder.program(pages=400, rows=8, outputs=8, sequences=8, page=16, memories=2)
    module = Compilation(program.module(program.dimensions)).run(until="allocated")
    caches = {400 * 16 * 32 * 2, 4 * 64 * 32 * 2}
    shapes = [op.results[0].type for op in module.walk() if isinstance(op, AllocOp)]
    sizes = [int(np.prod([each.data for each in shape.shape.data])) for shape in shapes]  # pyright: ignore
    assert max(sizes) < min(caches)
    assert not [op for op in module.walk() if isinstance(op, CopyOp) and op.target.type.get_shape()[0] == 400]  # pyright: ignore


SEARCHES = (
    {},
    {"num_beams": 4},
    {"num_beams": 8, "length_penalty": 0.5, "early_stopping": True},
    {"num_beams": 5, "length_penalty": 2.0, "early_stopping": "never"},
    {"num_beams": 2, "length_penalty": -1.0},
)


@pytest.mark.parametrize("form", SEARCHES)
def test_searches_find_the_tokens_of_transformers(models: Models, form: dict[str, Any]) -> None:
    from small_whisper import END, sound

    lengths: set[int] = set()
    for number in range(5):
        own = sound(number, 1 + number / 5)
        found = models.own.transcribe(own, max_tokens=30, **FORM, **form)
        given = {"max_new_tokens": 30, "force_unique_generate_call": True, "return_dict_in_generate": True}
        tokens = models.reference.generate(models.features(own), **FORM, **given, **form)["sequences"][0].tolist()
        assert found.tokens == [token for token in tokens[4:] if token != END]
        lengths.add(len(found.tokens))
    # Some texts end, where longer ones are not favoured.
    assert len(lengths) > 1 or form.get("length_penalty", 0) > 1


@pytest.mark.parametrize("form", SEARCHES[:2])
def test_times_cut_long_sounds_as_in_transformers(models: Models, form: dict[str, Any]) -> None:
    from small_whisper import sound

    for number in range(2):
        for seconds in (1.5, 5.1):
            own = sound(number, seconds)
            found = models.own.transcribe(own, timestamps=True, max_tokens=24, **FORM, **form)
            wanted = models.generated(own, return_timestamps=True, max_new_tokens=24, **form)
            assert [list(each.tokens) for each in found.segments] == [tokens for _, _, tokens in wanted]
            np.testing.assert_allclose(
                [(each.start, each.end) for each in found.segments], [each[:2] for each in wanted], atol=1e-6
            )


def test_the_likeliest_language_is_that_of_transformers(models: Models) -> None:
    from small_whisper import LANGUAGES, settings, sound

    codes: set[str | None] = set()
    for number in range(6):
        own = sound(number, 1.9)
        (token,) = models.reference.detect_language(models.features(own)).tolist()
        found = models.own.transcribe(own, max_tokens=2)
        assert settings()["lang_to_id"][f"<|{found.language}|>"] == token
        codes.add(found.language)
    assert codes <= set(LANGUAGES)


def test_texts_leave_control_tokens_and_times_out(models: Models) -> None:
    from small_whisper import TIMES, sound

    own = sound(0, 1.5)
    found = models.own.transcribe(own, timestamps=True, max_tokens=24, **FORM)
    words = models.own.tokenizer.decode([token for token in found.tokens if token < 256])
    assert str(found) == words
    assert not any(time in str(found) for time in TIMES)
    assert found.language == "de"


def test_features_are_those_of_transformers(models: Models) -> None:
    from small_whisper import SECONDS, sound
    from transformers import WhisperFeatureExtractor

    for bins in (80, 128):
        extractor = WhisperFeatureExtractor(bins, chunk_length=SECONDS)
        for seconds in (0.5, SECONDS, 3.0):
            own = sound(bins, seconds)
            wanted = extractor(own, sampling_rate=16000, return_tensors="np").input_features[0].T
            np.testing.assert_allclose(LogMel(bins).features(own, len(wanted)), wanted, rtol=0, atol=2e-5)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "language": ({"language": "xx"}, "the language cannot be 'xx'"),
    "task": ({"task": "sing"}, "the task cannot be 'sing'"),
    "beams": ({"num_beams": 9}, "num_beams cannot be 9"),
    "early": ({"num_beams": 2, "early_stopping": "soon"}, "early_stopping cannot be 'soon'"),
    "half a beam": ({"num_beams": 2.5}, "num_beams cannot be 2.5"),
    "large power": ({"num_beams": 2, "length_penalty": 1e6}, "length_penalty cannot be 1000000.0"),
    "small power": ({"length_penalty": -1e6}, "length_penalty cannot be -1000000.0"),
    "no power": ({"length_penalty": "long"}, "length_penalty cannot be 'long'"),
    "tokens": ({"max_tokens": 99}, "max_tokens cannot be 99"),
    "half a token": ({"max_tokens": 2.5}, "max_tokens cannot be 2.5"),
    "number": ({"language": 3}, "the language cannot be '3'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_are_refused(models: Models, name: str) -> None:
    from small_whisper import sound

    options, words = REFUSED[name]
    with pytest.raises(GlowError, match=words):
        models.own.transcribe(sound(0, 1), **options)


def test_sounds_are_refused(models: Models, tmp_path: Path) -> None:
    sounds: dict[str, Any] = {
        "vector of floats": np.zeros((2, 100), np.float32),
        "a sound is": np.zeros(100, np.int16),
        "no numbers": np.full(100, np.nan),
        "of 32 bits": np.full(100, 1e300),
        "cannot be read": tmp_path / "missing.wav",
    }
    for words, given in sounds.items():
        with pytest.raises(InputError, match=words):
            models.own.transcribe(given)
    with pytest.raises(InputError, match="longer than 2 seconds"):
        models.own.transcribe(np.zeros(40000, np.float32), timestamps=False)
    with pytest.raises(
        InputError, match=r"context of 4 tokens has no more than the 4 of the prompt \(hint: give a larger"
    ):
        glow_mlir.Transcriber(models.folder, context=4, threads=1).transcribe(np.zeros(100, np.float32), language="de")
    with pytest.raises(UnsupportedError, match="'whisper' is an encoder with a decoder"):
        glow_mlir.Generator(models.folder)
    with pytest.raises(UnsupportedError, match="no folder of an encoder with its decoder"):
        glow_mlir.Transcriber(models.folder / "config.json")


SETTINGS: dict[str, tuple[Any, str]] = {
    "decoder_start_token_id": (None, "the entry is missing"),
    "eos_token_id": ([], "the entry is missing"),
    "suppress_tokens": ([1, 99999], "99999 is not one of"),
    "lang_to_id": ([3], "must be an object"),
    "forced_decoder_ids": ([[2, 5]], "positions must count up from 1"),
    "max_length": ("long", "must be a number"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_entries_that_are_no_tokens_are_refused(name: str, tmp_path: Path) -> None:
    from small_whisper import TOKENS, settings

    value, words = SETTINGS[name]
    (tmp_path / "generation_config.json").write_text(json.dumps({**settings(), name: value}))
    with pytest.raises(ModelError, match=words):
        SpeechForm.of_folder(tmp_path, len(TOKENS), 64)


def test_prompts_of_old_files_and_of_english_models(tmp_path: Path) -> None:
    from small_whisper import IDS, TOKENS, settings

    given = {name: value for name, value in settings().items() if name not in ("lang_to_id", "task_to_id")}
    path = tmp_path / "generation_config.json"
    start, times = (IDS[name] for name in ("<|startoftranscript|>", "<|notimestamps|>"))
    path.write_text(json.dumps(given))
    english = SpeechForm.of_folder(tmp_path, len(TOKENS), 64)
    assert english.prompt(None, None, has_times=False) == [start, times]
    assert english.prompt(None, None, has_times=True) == [start]
    with pytest.raises(InputError, match="it has one language"):
        english.language("en")
    path.write_text(json.dumps({**given, "forced_decoder_ids": [[1, 259], [2, 262], [3, times]]}))
    old = SpeechForm.of_folder(tmp_path, len(TOKENS), 64)
    assert old.prompt(None, None, has_times=False) == [start, 259, 262, times]


def test_graphs_of_encoder_and_decoder_are_what_the_checkpoint_is(models: Models, tmp_path: Path) -> None:
    import onnx
    from small_whisper import export_whisper, sound

    export_whisper(models.reference, models.folder, tmp_path / "onnx")
    other = glow_mlir.Transcriber(tmp_path / "onnx", cache="float32", threads=1)
    features = models.features(sound(3, 1.5))[0].T.numpy()
    logits = [
        each.network.sequence(each.network.encode(features)).append([257, 259, 3, 4]) for each in (models.own, other)
    ]
    np.testing.assert_array_equal(*logits)
    path = tmp_path / "onnx" / "decoder_model.onnx"
    graph, merged = onnx.load(path), onnx.load(path)
    # Where optimum merges two graphs, it changes names.
    for each in merged.graph.initializer:
        for node in merged.graph.node:
            node.input[:] = [f"{name}_merged_0" if name == each.name else name for name in node.input]
        each.name += "_merged_0"
    onnx.save(merged, path.with_name("decoder_model_merged.onnx"))
    one, two = (named_weights(path.with_name(name), "decoder")[0] for name in (path.name, "decoder_model_merged.onnx"))
    assert one.keys() == two.keys()
    assert all((one[name] == two[name]).all() for name in one)
    apart = onnx.load(path)
    onnx.save(apart, path, save_as_external_data=True, location="weights.bin", size_threshold=64)
    # What is compiled is known by the content of all its files, whatever their names are.
    files = {file.name for file in open_model(tmp_path / "onnx", part="decoder").files}
    assert files == {"config.json", path.name, "weights.bin"}
    nodes = [node for node in graph.graph.node if node.name.endswith("fc1/MatMul")]
    for change, words in (
        ({"op_type": "MatMulInteger"}, "quantized graphs are not supported: MatMulInteger"),
        ({"op_type": "MatMul", "domain": "com.example"}, "com.example.MatMul is not supported here"),
        ({"name": "MatMul_7", "domain": ""}, "no name tells which matrix this is"),
    ):
        for name, value in change.items():
            setattr(nodes[0], name, value)
        onnx.save(graph, path)
        with pytest.raises(UnsupportedError, match=words):
            glow_mlir.Transcriber(tmp_path / "onnx", threads=1)


def written(path: Path, samples: np.ndarray, width: int, rate: int = 16000, channels: int = 1) -> Path:
    """A WAV file of these samples from -1 to 1."""
    numbers = np.round(samples * (2 ** (8 * width - 1) - 1)).astype("<i4") + (128 if width == 1 else 0)
    data = numbers.view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(data)
    return path


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_files_have_the_samples_of_a_sound(width: int, tmp_path: Path) -> None:
    samples = np.sin(np.arange(400) / 7)
    found = read_wave(written(tmp_path / "mono.wav", samples, width), 16000)
    np.testing.assert_allclose(found, samples, atol=2.0 ** (2 - 8 * width) + 1e-6)
    both = np.stack([samples, -samples], 1).reshape(-1)
    np.testing.assert_allclose(read_wave(written(tmp_path / "two.wav", both, width, channels=2), 16000), 0, atol=0.01)
    with pytest.raises(InputError, match="has 8000 samples a second, not 16000"):
        read_wave(written(tmp_path / "slow.wav", samples, width, 8000), 16000)
    (tmp_path / "cut.wav").write_bytes((tmp_path / "mono.wav").read_bytes()[:30])
    with pytest.raises(InputError, match="cannot be read"):
        read_wave(tmp_path / "cut.wav", 16000)


def test_files_without_samples_and_with_wide_ones_are_refused(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole.wav", np.zeros(400), 2).read_bytes()
    files = {
        "has no samples": written(tmp_path / "none.wav", np.zeros(0), 2).read_bytes(),
        "have 8 bytes each": whole[:32] + bytes([8, 0, 64, 0]) + whole[36:],
        "unknown format: 3": whole[:20] + bytes([3]) + whole[21:],
        "does not start with RIFF": b"some text of a file",
    }
    for words, content in files.items():
        (tmp_path / "other.wav").write_bytes(content)
        with pytest.raises(InputError, match=words):
            read_wave(tmp_path / "other.wav", 16000)
    with pytest.raises(InputError, match="cannot be read"):
        read_wave("sound\0.wav", 16000)


def test_a_long_sound_takes_little_memory_beside_it() -> None:
    tracemalloc.start()
    found = LogMel(80).features(np.zeros(200 * 16000, np.float32), 20000)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (20000, 80)
    # Spectra of all frames would take 40 times the sound.
    assert most < 40 * 200 * 16000


def test_times_are_refused_where_no_tokens_are_behind_the_one_for_none(models: Models, tmp_path: Path) -> None:
    from small_whisper import TOKENS, settings, sound

    (tmp_path / "generation_config.json").write_text(
        json.dumps(settings() | {"no_timestamps_token_id": len(TOKENS) - 1})
    )
    form = SpeechForm.of_folder(tmp_path, len(TOKENS), 64)
    own = models.own
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own, "form", form)
        with pytest.raises(InputError, match="no tokens for times"):
            own.transcribe(sound(0, 1), timestamps=True)


def test_the_tool_prints_what_is_said(models: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from small_whisper import sound

    from glow_mlir.tools.glow_generate import main

    path = written(tmp_path / "speech.wav", sound(1, 1.5) / 2, 2)
    arguments = [str(models.folder), "--audio", str(path), "--language", "de", "--num-beams", "2", "--threads", "1"]
    assert main([*arguments, "--cache", "float32", "--max-tokens", "12"]) == 0
    found = models.own.transcribe(path, language="de", num_beams=2, max_tokens=12)
    assert capsys.readouterr().out == f"{found.text.strip()}\n"
    assert main([*arguments[:-4], "--timestamps", "--cache", "float32", "--max-tokens", "12"]) == 0
    assert capsys.readouterr().out.startswith("[0.")
    assert main([str(models.folder), "--prompt", "hello", "--language", "de"]) == 1
    assert "--language is for --audio" in capsys.readouterr().err
