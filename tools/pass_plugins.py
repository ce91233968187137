"""`--load-pass-plugin`: load passes from Python files outside any package, during development."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from xdsl.passes import ModulePass

from glow_mlir.driver import pipelines
from glow_mlir.errors import ExtensionError, OptionError
from glow_mlir.ir.text import one_line
from glow_mlir.support.blame import foreign_location

OPTION = "--load-pass-plugin"


def load_plugins(arguments: Sequence[str]) -> None:
    """
    Register the passes in all files given to the option.

    Raises `OptionError` for a file without passes or with a pass name already in use, and `ExtensionError` for a file
    that fails.
    """
    pipelines.PLUGINS.clear()
    for number, argument in enumerate(arguments):
        option, sign, text = argument.partition("=")
        if option in (OPTION, OPTION[1:]) and (sign or number + 1 < len(arguments)):
            path = Path(text if sign else arguments[number + 1])
            found = _passes_in(path)
            if taken := sorted(found.keys() & pipelines.available_passes().keys()):
                reason = f"there is a pass '{taken[0]}' already"
                raise OptionError(reason, file=str(path), hint="give the pass in this file another name")
            pipelines.PLUGINS.update(found)


def _passes_in(path: Path) -> dict[str, Callable[[], type[ModulePass]]]:
    """The passes that a file defines, by name."""
    module = _loaded(path)
    kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
    found = {kind.name: kind for kind in kinds if issubclass(kind, ModulePass) and not inspect.isabstract(kind)}
    if not found:
        hint = "a pass is a class derived from xdsl.passes.ModulePass, with a name (docs/add-a-pass.md)"
        raise OptionError("has no pass", file=str(path), hint=hint)
    return {name: lambda kind=kind: kind for name, kind in found.items()}


def _loaded(path: Path) -> ModuleType:
    """Import a Python file as a module."""
    # Use a name that no import finds: a file json.py must not replace the module json.
    spec = spec_from_file_location(f"{OPTION}={path.resolve()}", path)
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise OptionError("is no file of Python", file=str(path), hint="passes are written in Python, as FILE.py")
    module = sys.modules[spec.name] = module_from_spec(spec)  # Dataclasses look up their modules.
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        raise OptionError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except (Exception, SystemExit) as error:
        reason = f"cannot be loaded: {type(error).__name__}: {one_line(error)}"
        raise ExtensionError(reason, file=foreign_location(error) or str(path)) from error
    return module
