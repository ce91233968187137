"""What a cache trusts: others' folders, files and links are neither read nor written, whenever they are put there."""

from __future__ import annotations

import contextvars
import errno
import io
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cache_users import CACHE_USERS, KEY, NEEDS_OWNERS, NEEDS_ROOT, SOMEBODY, CacheUser, artifact
from checkout import ROOT
from garbage import collect_garbage

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import GlowError
from glow_mlir.runtime import identity, own_folder
from glow_mlir.runtime.cache import ArtifactCache, cache_key
from glow_mlir.runtime.json_cache import JsonCache
from glow_mlir.support.activity import warning_to

pytestmark = NEEDS_OWNERS

EVERY_USER = pytest.mark.parametrize("user", CACHE_USERS, ids=lambda user: user.name)
DESCRIPTORS = Path("/proc/self/fd")


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled at once."""
    monkeypatch.setattr(identity, "SETTLED_NS", -1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a cache, not made yet."""
    return tmp_path / "above" / "cache"


@pytest.fixture
def warnings() -> Any:
    """The warnings of the test."""
    told: list[GlowError] = []
    with warning_to(told.append):
        yield told


def belongs_to_somebody(path: Path) -> None:
    os.chown(path, SOMEBODY, -1, follow_symlinks=False)


def others_write(path: Path) -> None:
    path.chmod(0o757)


def group_writes(path: Path) -> None:
    path.chmod(0o775)


def is_a_link(path: Path) -> None:
    """All that was there is behind a link."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def open_descriptors() -> int:
    """How many descriptors the process has; none where the system does not tell."""
    collect_garbage()
    return len(os.listdir(DESCRIPTORS)) if DESCRIPTORS.exists() else 0


UNTRUSTED = [
    pytest.param(belongs_to_somebody, rf"it belongs to the user {SOMEBODY} \(hint: name", marks=NEEDS_ROOT),
    (others_write, r"others may write to it \(mode 0757\) \(hint: chmod go-w '.*', or name"),
    (group_writes, r"others may write to it \(mode 0775\) \(hint: chmod go-w '.*', or name"),
]
LINK = (is_a_link, r"it is a symbolic link \(hint: name")


@EVERY_USER
@pytest.mark.parametrize(("change", "reason"), UNTRUSTED)
def test_root_that_is_not_ours_is_neither_read_nor_written(
    user: CacheUser, change: Callable[[Path], None], reason: str, root: Path, warnings: list[GlowError]
) -> None:
    check_unused(user, root, lambda: change(root), f"{root}: not used for the cache: {reason}", warnings)


@EVERY_USER
@pytest.mark.parametrize(("change", "reason"), [*UNTRUSTED, LINK])
def test_folder_in_the_root_that_is_not_ours_is_neither_read_nor_written(
    user: CacheUser, change: Callable[[Path], None], reason: str, root: Path, warnings: list[GlowError]
) -> None:
    folder = user.folder(root)
    check_unused(user, root, lambda: change(folder), f"{folder}: not used for the cache: {reason}", warnings)


def check_unused(
    user: CacheUser, root: Path, change: Callable[[], None], reason: str, warnings: list[GlowError]
) -> None:
    """After that change, what was written before is not read, nothing is written, and one warning gives the reason."""
    user.write(root)
    assert user.has(root)
    folder = user.folder(root)
    change()
    assert not user.has(root)
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    user.write(root)
    assert not list(folder.iterdir())
    assert len(warnings) == 1
    assert re.fullmatch(rf"{reason} another folder in GLOW_CACHE_DIR\)", str(warnings[0]))


@EVERY_USER
def test_folders_of_another_effective_user_are_not_ours(
    user: CacheUser, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.write(root)
    assert user.has(root)
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    assert not user.has(root)


@EVERY_USER
@pytest.mark.parametrize(
    ("mode", "is_trusted"), [(0o755, True), (0o775, True), (0o777, False), (0o757, False), (0o1777, True)]
)
def test_folder_above_that_all_may_write_has_to_be_sticky(
    user: CacheUser, mode: int, is_trusted: bool, root: Path, warnings: list[GlowError]
) -> None:
    root.parent.mkdir()
    root.parent.chmod(mode)
    user.write(root)
    assert user.has(root) == is_trusted
    assert root.exists() == is_trusted
    reason = rf"{root.parent}: the cache below it is not used: others may write to it \(mode {mode:04o}\) \(hint: .*\)"
    assert [bool(re.fullmatch(reason, str(warning))) for warning in warnings] == [True] * (not is_trusted)


@NEEDS_ROOT
@EVERY_USER
def test_folder_above_belongs_to_nobody_else(user: CacheUser, root: Path, warnings: list[GlowError]) -> None:
    user.write(root)
    belongs_to_somebody(root.parent)
    assert not user.has(root)
    reason = f"{root.parent}: the cache below it is not used: it belongs to the user {SOMEBODY} "
    assert [str(warning).startswith(reason) for warning in warnings] == [True]


@EVERY_USER
def test_link_of_the_user_leads_to_the_root(user: CacheUser, root: Path) -> None:
    """Be it relative, absolute, or one on the way."""
    user.write(root)
    is_a_link(root)
    assert user.has(root)
    (root.parent / "absolute").symlink_to(root)
    assert user.has(root.parent / "absolute")
    (root.parent.parent / "way").symlink_to("above")
    assert user.has(root.parent.parent / "way" / ".." / "above" / "cache")


@NEEDS_ROOT
@EVERY_USER
def test_link_of_somebody_is_not_followed(user: CacheUser, root: Path, warnings: list[GlowError]) -> None:
    """Though what it leads to is ours."""
    user.write(root)
    is_a_link(root)
    belongs_to_somebody(root)
    assert not user.has(root)
    assert [f"{root}: the cache below it is not used: it belongs" in str(warning) for warning in warnings] == [True]


@EVERY_USER
def test_link_that_changes_while_it_is_read_is_not_followed(
    user: CacheUser, root: Path, warnings: list[GlowError], monkeypatch: pytest.MonkeyPatch
) -> None:
    user.write(root)
    is_a_link(root)
    read = os.readlink

    def swapped(path: Any, **options: Any) -> str:
        root.unlink()
        root.symlink_to("elsewhere")
        return read(path, **options)

    monkeypatch.setattr(os, "readlink", swapped)
    assert not user.has(root)
    assert ["it is a symbolic link that changed" in str(warning) for warning in warnings] == [True]


@EVERY_USER
def test_links_in_a_circle_lead_nowhere(user: CacheUser, root: Path) -> None:
    root.parent.mkdir()
    root.symlink_to(root)
    user.write(root)
    assert not user.has(root)


@EVERY_USER
def test_what_is_made_is_the_users_alone(user: CacheUser, root: Path) -> None:
    """Whatever the umask; and what was made is used."""
    before = os.umask(0)
    try:
        user.write(root)
    finally:
        os.umask(before)
    assert user.has(root)
    for path in (root.parent, *root.parent.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@EVERY_USER
def test_relative_root_belongs_to_the_folder_of_the_process(
    user: CacheUser, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.mkdir(parents=True)
    monkeypatch.chdir(root)
    user.write(Path("../cache"))
    assert user.has(root)


@pytest.mark.parametrize(("change", "reason"), [*UNTRUSTED, LINK])
def test_artifact_that_is_not_ours_is_not_loaded(
    change: Callable[[Path], None], reason: str, root: Path, warnings: list[GlowError]
) -> None:
    cache = ArtifactCache(root)
    cache.store(KEY, artifact())
    change(cache.directory / KEY)
    assert cache.load(KEY) is None
    assert re.match(f"{cache.directory / KEY}: not used for the cache: {reason}", str(warnings[0]))


def is_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def is_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


FILES = [*UNTRUSTED, LINK, (is_a_pipe, "it is no regular file"), (is_a_folder, "it is no regular file")]


def within_seconds(action: Callable[[], object]) -> object:
    """The result of an action that must not wait for anything."""
    results: list[object] = []
    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(lambda: results.append(action()),), daemon=True
    )
    thread.start()
    thread.join(30)
    assert results, "it waits"
    return results[0]


@pytest.mark.parametrize("name", ["manifest.json", "code.0.o", "constants.bin"])
@pytest.mark.parametrize(("change", "reason"), FILES)
def test_file_of_an_artifact_that_is_not_ours_is_not_read(
    change: Callable[[Path], None], reason: str, name: str, root: Path, warnings: list[GlowError]
) -> None:
    """The artifact is removed: it could not be replaced. What its files lead to stays."""
    cache = ArtifactCache(root)
    cache.store(KEY, artifact())
    change(cache.directory / KEY / name)
    before = open_descriptors()
    assert within_seconds(lambda: [cache.load(KEY)]) == [None]
    assert re.match(f"{cache.directory / KEY / name}: not used for the cache: {reason}", str(warnings[0]))
    assert open_descriptors() == before
    assert not (cache.directory / KEY).exists()
    cache.store(KEY, artifact())
    assert cache.load(KEY) is not None


@pytest.mark.parametrize(("change", "reason"), FILES)
def test_answer_that_is_not_ours_is_not_read(
    change: Callable[[Path], None], reason: str, root: Path, warnings: list[GlowError]
) -> None:
    answers = JsonCache("subject", root)
    answers.store(KEY, {"chosen": 1})
    path = answers.directory / f"{KEY}.json"
    change(path)
    assert within_seconds(lambda: [answers.load(KEY)]) == [None]
    assert re.match(f"{path}: not used for the cache: {reason}", str(warnings[0]))
    answers.store(KEY, {"chosen": 2})
    assert answers.load(KEY) == (None if path.is_dir() else {"chosen": 2})


def before_opening(name: str, action: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something once, right before a file of that name is opened for the first time."""
    left = [action]

    def patched(module: Any) -> None:
        opened = module.open

        def disturbed(path: Any, *arguments: Any, **options: Any) -> Any:
            if not isinstance(path, int) and os.path.basename(path) == name and left:
                left.pop()()
            return opened(path, *arguments, **options)

        monkeypatch.setattr(module, "open", disturbed)

    patched(os)
    patched(io)


@pytest.mark.parametrize("depth", ["root", "format", "artifact"])
@pytest.mark.parametrize("as_link", [True, False])
@pytest.mark.parametrize("file", ["manifest.json", "code.0.o", "constants.bin"])
def test_code_that_is_planted_after_the_check_is_not_loaded(
    file: str, as_link: bool, depth: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders change places between the check and the reading: what was checked is what is read."""
    cache, planted = ArtifactCache(root), ArtifactCache(tmp_path / "planted")
    cache.store(KEY, artifact(b"code"))
    planted.store(KEY, artifact(b"evil"))
    parts = {"root": "", "format": cache.directory.name, "artifact": f"{cache.directory.name}/{KEY}"}
    mine, theirs = root / parts[depth], tmp_path / "planted" / parts[depth]

    def plant() -> None:
        mine.rename(tmp_path / "moved")
        mine.symlink_to(theirs) if as_link else shutil.copytree(theirs, mine)

    before_opening(file, plant, monkeypatch)
    found = cache.load(KEY)
    assert found is not None
    assert found.code == (b"code",)


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("name", ["manifest.json", "code.0.o", "constants.bin"])
def test_link_in_a_draft_redirects_nothing(
    name: str, link: Callable[[Path, Path], None], root: Path, tmp_path: Path
) -> None:
    cache = ArtifactCache(root)
    (tmp_path / "victim").write_text("mine")
    with cache.draft() as draft:
        assert draft.folder is not None
        link(tmp_path / "victim", draft.folder.path / name)
        cache.store(KEY, artifact(), draft)
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (cache.directory / KEY / name).is_symlink()


@pytest.mark.parametrize("depth", ["root", "format", "draft"])
def test_folder_that_is_moved_takes_its_artifact_along(depth: str, root: Path, tmp_path: Path) -> None:
    """What takes its place while an artifact is made gets nothing, and loses nothing."""
    cache = ArtifactCache(root)
    with cache.draft() as draft:
        assert draft.folder is not None
        path = {"root": root, "format": cache.directory, "draft": draft.folder.path}[depth]
        below = draft.folder.path.relative_to(path)
        reserve = draft.reserve(100)
        reserve[:] = range(100)
        path.rename(tmp_path / "moved")
        (tmp_path / "theirs" / below).mkdir(parents=True)
        path.symlink_to(tmp_path / "theirs")
        (tmp_path / "theirs" / below / "notes.txt").write_text("mine")
        cache.store(KEY, replace(artifact(), constants=reserve), draft)
    files = [found.relative_to(tmp_path / "theirs") for found in (tmp_path / "theirs").rglob("*") if found.is_file()]
    assert files == [below / "notes.txt"]


def test_removal_follows_no_links(root: Path, tmp_path: Path) -> None:
    """Neither in a damaged artifact, nor in one that is too many, nor in what a process left."""
    cache, precious = ArtifactCache(root), tmp_path / "precious"
    precious.mkdir()
    (precious / "notes.txt").write_text("mine")
    cache.store(KEY, artifact())
    (cache.directory / KEY / "link").symlink_to(precious)
    (cache.directory / KEY / "code.0.o").write_bytes(b"damaged")
    assert cache.load(KEY) is None
    assert not (cache.directory / KEY).exists()
    (cache.directory / ".partial-link").symlink_to(precious)
    os.utime(cache.directory / ".partial-link", (0, 0), follow_symlinks=False)
    os.utime(precious, (0, 0))
    cache.store(KEY, artifact())
    assert (precious / "notes.txt").exists()


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="the system does not tell what is open")
@EVERY_USER
@pytest.mark.parametrize("change", [None, others_write, is_a_link])
def test_no_descriptor_is_left(user: CacheUser, change: Callable[[Path], None] | None, root: Path) -> None:
    before = open_descriptors()
    assert not user.has(root / "missing")
    user.write(root)
    assert user.has(root)
    if change is not None:
        for path in (user.folder(root), root, root.parent):
            change(path)
            user.has(root)
            user.write(root)
    with ArtifactCache(root).draft() as draft:
        draft.reserve(100)
    del draft
    assert open_descriptors() == before


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="the system does not tell what is open")
def test_no_descriptor_is_left_where_there_are_too_many(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of the calls is the one that fails."""
    cache = ArtifactCache(root)
    cache.store(KEY, artifact())
    before, opened, count = open_descriptors(), os.open, 0

    def scarce(*arguments: Any, **options: Any) -> int:
        nonlocal count
        count -= 1
        if not count:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opened(*arguments, **options)

    monkeypatch.setattr(os, "open", scarce)
    for number in range(1, 40):
        count = number
        cache.load(KEY)
        count = number
        cache.store(cache_key(str(number)), artifact())
    count = 0
    assert open_descriptors() == before
    assert cache.load(KEY) is not None


def test_session_without_a_cache_opens_none(
    root: Path, warnings: list[GlowError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One with a cache that is not to be trusted works, and tells who listens, once."""
    root.mkdir(parents=True)
    root.chmod(0o777)
    monkeypatch.setenv("GLOW_CACHE_DIR", str(root))
    model = ROOT / "examples" / "digits.onnx"
    InferenceSession(model, dimensions={"N": 1}, cache=False)
    assert not warnings
    InferenceSession(model, dimensions={"N": 1})
    assert [str(warning).startswith(f"{root}: ") for warning in warnings] == [True]
    assert not list(root.iterdir())
    assert capsys.readouterr() == ("", "")


def test_no_home_is_no_cache(warnings: list[GlowError], monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GLOW_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    cache = ArtifactCache()
    cache.store(KEY, artifact())
    assert cache.load(KEY) is None
    assert [str(warning) for warning in warnings] == [
        "no home directory found for the cache (hint: name a folder in GLOW_CACHE_DIR)"
    ]


@EVERY_USER
@pytest.mark.parametrize(("change", "reason"), UNTRUSTED)
def test_system_without_descriptors_of_folders_compares_owners(
    user: CacheUser,
    change: Callable[[Path], None],
    reason: str,
    root: Path,
    warnings: list[GlowError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_folder, "HAS_DESCRIPTORS", False)
    check_unused(user, root, lambda: change(root), f"{root}: not used for the cache: {reason}", warnings)


@EVERY_USER
def test_system_without_owners_has_a_cache(user: CacheUser, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_folder, "HAS_DESCRIPTORS", False)
    monkeypatch.delattr(os, "geteuid")
    for _ in range(2):
        user.write(root)
        assert user.has(root)
        others_write(root)
