"""Passes whose options name what they are for: a backend, a target, an accuracy."""

from __future__ import annotations

from dataclasses import dataclass, fields

from xdsl.passes import ModulePass

from glow_mlir.backends.interface import check_accuracy, get_backend


@dataclass(frozen=True)
class BackendPass(ModulePass):
    """
    A pass that has some of the options `backend`, `target` and `accuracy`.

    Making one raises `OptionError` where a name is unknown, whether its module has work for the pass or not.
    """

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if "backend" in given:
            backend = get_backend(given["backend"])
            if "target" in given:
                backend.check_target(given["target"])
        if "accuracy" in given:
            check_accuracy(given["accuracy"])
