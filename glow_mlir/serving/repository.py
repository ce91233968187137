"""
The model repository of a server: models in folders, their versions and configurations, and the loaded ones.

    repository/
        NAME/
            config.json      the configuration of the model, optional
            1/model.onnx     its first version
            2/model.onnx

A single file is a model with one version; so is a folder with one file, if a name is given. Everything in a repository
stays inside its folder: no name, link or path of a configuration leads out of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from glow_mlir.api.session_keywords import KEYWORDS
from glow_mlir.errors import GlowError, InputError, ModelError, OptionError, UnknownNetworkError
from glow_mlir.host.host import Host, Key, known_keys
from glow_mlir.host.network import Network
from glow_mlir.options.declaration import Declared, declared
from glow_mlir.options.hosting import HostingOptions
from glow_mlir.runtime.signature import check_tensors
from glow_mlir.serving.errors import NotReadyError, UnknownModelError
from glow_mlir.serving.json_text import read_json
from glow_mlir.serving.models import READY, ModelState
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.option_types import PATH

CONFIG = "config.json"

MAX_CONFIG_BYTES = 1 << 20

SUFFIXES = (".onnx", ".mlir", ".onnxtxt", ".textproto")
"""The suffixes of model files."""

UNLOADING = 30.0
"""Seconds granted to the running requests of an unloaded model."""

LOADING, UNAVAILABLE = "LOADING", "UNAVAILABLE"
"""States of models that do not accept requests."""

POLICIES = ("latest", "all")

CLIENTS_WORDS = ("batch", "delay", "queue", "versions")
"""The configuration options available to clients; none starts processes, or names files or code."""

CLIENTS_BATCH = 1024
"""The maximum batch size available to clients, because it determines the memory of calls."""


class Named(NamedTuple):
    """A model with its served name."""

    name: str
    path: Path


@dataclass(frozen=True)
class Source:
    """The location of a model: the folder of its versions, or its file, and the folder that contains it."""

    name: str
    path: Path
    root: Path

    @property
    def is_file(self) -> bool:
        """Whether it is a single file."""
        return self.path.is_file()

    def config(self) -> Mapping[str, Any]:
        """The configuration of a model; raises `OptionError` if it is not a JSON object, or too large."""
        config_file = self.path / CONFIG
        if self.is_file or not config_file.exists():
            return {}
        config_file = inside(self.root, config_file)
        try:
            if config_file.stat().st_size > MAX_CONFIG_BYTES:
                raise OptionError("is too large for a configuration", file=str(config_file))
            found = read_json(config_file.read_bytes())
        except (OSError, InputError) as error:
            reason = error.reason if isinstance(error, InputError) else str(error)
            raise OptionError(f"cannot be read: {reason}", file=str(config_file)) from error
        if not isinstance(found, dict):
            raise OptionError("is not a JSON object", file=str(config_file))
        return cast("dict[str, Any]", found)

    def versions(self, policy: object) -> dict[str, Path]:
        """Version → the model file, for the versions of a policy: `latest`, `all`, or a list of numbers."""
        if self.is_file:
            return {"1": self.path}
        if self.path == self.root and models_in(self.path):
            return {"1": self._file("")}
        known = sorted(
            int(folder.name) for folder in self.path.iterdir() if folder.is_dir() and _is_number(folder.name)
        )
        if policy == "latest":
            wanted = known[-1:]
        elif policy == "all":
            wanted = known
        elif isinstance(policy, list) and all(type(n) is int and n in known for n in cast("list[object]", policy)):
            wanted = [number for number in known if number in policy]
        else:
            there = ", ".join(map(str, known)) or "none"
            reason = f"versions={policy!r} selects no existing version"
            raise OptionError(reason, file=str(self.path), hint=f"'latest', 'all', or a list of {there}")
        if not wanted:
            raise ModelError("has no version", file=str(self.path), hint="expected a folder 1 with model.onnx")
        return {str(number): self._file(str(number)) for number in wanted}

    def _file(self, version: str) -> Path:
        """The file of a version: the only one, or `model.onnx` among several."""
        folder = self.path / version
        found = models_in(folder)
        named = [path for path in found if path.stem == "model"] or found
        if len(named) != 1:
            reason = f"has {len(named)} models" if named else "has no model"
            raise ModelError(reason, file=str(folder), hint="expected one file, model.onnx")
        return inside(self.root, named[0])


def models_in(folder: Path) -> list[Path]:
    """The files of models in a folder."""
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and name == str(int(name)) and int(name) > 0


def inside(root: Path, path: Path) -> Path:
    """An existing path inside a folder, with links resolved; raises `ModelError` for one outside."""
    try:
        found = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelError("is not there", file=str(path)) from error
    if not found.is_relative_to(root.resolve()):
        raise ModelError("links out of the repository", file=str(path), hint="copy its target instead")
    return found


class ModelRepository:
    """The models of folders and files, hosted together; any thread may load and unload them."""

    def __init__(
        self, host: Host, given_models: Sequence[Path | Named], chosen: Mapping[str, Any] | None = None
    ) -> None:
        """
        `given_models` are model files, repository folders, and models with names; `chosen` are the default options of
        all models.

        Raises `OptionError` for an invalid path, and for duplicate names.
        """
        self._host = host
        self._named = [Named("", model) if isinstance(model, Path) else model for model in given_models]
        self._sources = [path.absolute() for _, path in self._named]
        self._given = dict(chosen or {})
        self._lock = threading.Lock()
        self._loading: dict[str, threading.RLock] = {}
        """A lock for loading and unloading."""
        self._states: dict[tuple[str, str], ModelState] = {}
        self._reloading: set[tuple[str, str]] = set()
        self.sources()

    def sources(self) -> dict[str, Source]:
        """The existing models by name."""
        found: dict[str, Source] = {}
        for (name, _), path in zip(self._named, self._sources, strict=True):
            if path.is_file():
                own = [Source(name or path.stem, path, path.parent)]
            elif path.is_dir() and name:
                own = [Source(name, path, path)]
            elif path.is_dir():
                folders = sorted(part for part in path.iterdir() if part.is_dir() and not part.name.startswith("."))
                own = [Source(part.name, part, path) for part in folders]
            else:
                raise OptionError("there is no such file or folder", file=str(path), hint="a model, or a repository")
            for source in own:
                if source.name in found:
                    both = f"{found[source.name].path} and {source.path}"
                    raise OptionError(f"two models have the name '{source.name}': {both}", hint="rename one")
                found[source.name] = source
        return found

    # ---- what servers ask ----

    def find(self, name: str, version: str = "") -> Network:
        """A network; raises `UnknownModelError`, and `NotReadyError` while it is loading or if loading failed."""
        key = self._host.key_of(name, version or None)
        if key is not None:
            if (network := self._host.loaded(key)) is not None:
                return network
            self._load_again(key)
            raise NotReadyError(f"the model '{name}' is loading", hint="later")
        for state in list(self._states.values()):
            if state.name == name and version in ("", state.version):
                raise NotReadyError(f"the model '{name}' is {state.state}: {state.reason or 'unloaded'}")
        chosen = f" of version {version}" if version else ""
        raise UnknownModelError(f"there is no model '{name}'{chosen}", hint=known_keys(name, self._keys()))

    def _keys(self) -> list[Key]:
        """Names and versions of all models; for unloaded ones, without a version."""
        return [(state.name, state.version) for state in self.names()]

    def _load_again(self, key: tuple[str, str]) -> None:
        """Reload an evicted model in the background."""
        with self._lock:
            if key in self._reloading:
                return
            self._reloading.add(key)

        def load() -> None:
            try:
                self._host.network(*key)
            except GlowError as error:
                with suppress(UnknownNetworkError):  # The next request tries again.
                    self._host.remove(*key)
                self._states[key] = self._unavailable(*key, error)
            finally:
                self._reloading.discard(key)

        threading.Thread(target=load, name="glow-serve-load", daemon=True).start()

    def names(self) -> Iterable[ModelState]:
        """All models of the folders, loaded or not."""
        found = list(self._states.values())
        known = {state.name for state in found}
        return [*found, *(ModelState(name, "", UNAVAILABLE) for name in self.sources() if name not in known)]

    def load(self, name: str, config: Mapping[str, Any] | None = None) -> None:
        """
        Load the present versions of a model, as selected by its configuration.

        `config` comes from a client: its `CLIENTS_WORDS` override those of the folder. Raises `UnknownModelError`, and
        `GlowError` for other errors, in which case versions that were loaded before stay.
        """
        source = self.sources().get(name)
        if source is None:
            raise UnknownModelError(f"there is no model '{name}' in the repository")
        with self._turn(name):
            try:
                self._load_source(source, config)
            except OptionError as error:
                if config is None:
                    raise
                raise InputError(self._reason_of(error), hint=error.hint) from error

    def _load_source(self, source: Source, config: Mapping[str, Any] | None) -> None:
        name, chosen = source.name, {**source.config(), **_of_client(config or {})}
        policy = chosen.pop("versions", "latest")
        keywords = {**self._given, **_keywords(source, chosen)}
        versions = source.versions(policy)
        for version, path in versions.items():
            self._load(name, version, path, keywords)
        self._states.pop((name, ""), None)
        for key in [key for key in list(self._states) if key[0] == name and key[1] not in versions]:
            self._unload(key)

    def _turn(self, name: str) -> threading.RLock:
        with self._lock:
            return self._loading.setdefault(name, threading.RLock())

    def _reason_of(self, error: BaseException) -> str:
        """The text of an error for clients, without the location of the repository."""
        reason = error.reason if isinstance(error, GlowError) else str(error)
        for path in self._sources:
            reason = reason.replace(f"{path if path.is_dir() else path.parent}{os.sep}", "")
        return reason

    def _load(self, name: str, version: str, path: Path, keywords: Mapping[str, Any]) -> None:
        key, before = (name, version), self._states.get((name, version))
        if before is None or before.state != READY:
            self._states[key] = ModelState(name, version, LOADING)
        try:
            network = self._host.add(name, path, version=version, **keywords)
            self._check(network)
        except BaseException as error:
            if before is None or before.state != READY:
                self._states[key] = self._unavailable(name, version, error)
            raise
        self._states[key] = ModelState(name, version, READY)

    def _check(self, network: Network) -> None:
        """Raise `OptionError` for a model with element types that the protocol lacks; it is not served then."""
        hint = "skl2onnx writes tensors with options={'zipmap': False}"
        try:
            check_tensors(network, "the inference protocol", hint, strings=True)
        except OptionError:
            self._host.remove(network.name, network.version, wait=UNLOADING)
            raise

    def _unavailable(self, name: str, version: str, error: BaseException) -> ModelState:
        """The state of a model that could not be loaded, without the location of the repository."""
        file = Path(error.file).name if isinstance(error, GlowError) and error.file else ""
        reason = self._reason_of(error)
        return ModelState(name, version, UNAVAILABLE, f"{file}: {reason}" if file else reason)

    def unload(self, name: str) -> None:
        """Unload a model in all its versions; raises `UnknownModelError`."""
        with self._turn(name):
            keys = [key for key in list(self._states) if key[0] == name]
            if not keys:
                raise UnknownModelError(f"there is no model '{name}' that is loaded")
            for key in keys:
                self._unload(key)

    def _unload(self, key: tuple[str, str]) -> None:
        if self._states[key].state == READY:
            self._host.remove(*key, wait=UNLOADING)
        self._states[key] = ModelState(*key, UNAVAILABLE, "unloaded")

    def load_all(self) -> list[GlowError]:
        """Load all models; returns the errors of those that could not be loaded."""
        errors: list[GlowError] = []
        for name in self.sources():
            try:
                self.load(name)
            except GlowError as error:
                if not any(key[0] == name for key in self._states):
                    self._states[name, ""] = self._unavailable(name, "", error)
                errors.append(error)
        return errors


def _known_options() -> Mapping[str, Declared]:
    return {**KEYWORDS, **declared(HostingOptions)}


def _of_client(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check a configuration from a client; raises `InputError` for options that clients may not set."""
    for word in config:
        if word not in CLIENTS_WORDS:
            hint = f"{', '.join(CLIENTS_WORDS)}; set the rest in config.json"
            raise InputError(f"a client's configuration cannot set '{word}'", hint=hint)
    if type(batch := config.get("batch", 1)) is int and batch > CLIENTS_BATCH:
        raise InputError(f"batch={batch} of a client exceeds {CLIENTS_BATCH}", hint="set it in config.json")
    return config


def _keywords(source: Source, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Hosting keywords, with paths inside the folder of the model; raises `OptionError`."""
    known, found = _known_options(), dict[str, Any]()
    for word, value in chosen.items():
        config_file = str(source.path / CONFIG)
        if word not in known:
            listed = ", ".join(("versions", *known))
            raise OptionError(f"unknown option '{word}'", file=config_file, hint=f"there are {listed}")
        is_path = _is_path(known[word])
        if is_path and not isinstance(value, str):
            raise OptionError(f"{word} must be a path, got {value!r}", file=config_file)
        found[word] = str(inside(source.root, source.path / value)) if is_path else value
    if isinstance(sizes := found.get("dimensions"), dict):  # JSON has lists instead of tuples.
        given = cast("dict[str, Any]", sizes)
        found["dimensions"] = {
            name: tuple(cast("list[Any]", size)) if isinstance(size, list) else size for name, size in given.items()
        }
    return found


def _is_path(option: Declared) -> bool:
    """Whether an option names a file."""
    flag = option.option.flag
    return option.kind == PATH or (flag is not None and flag.what == "FILE")
