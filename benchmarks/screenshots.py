"""
Takes the pictures of the page that the documentation shows, with a real browser: `make browser pictures`.

    python benchmarks/screenshots.py

The page is that of a small transformer, compiled and measured on this machine.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import onnx
from browser import MISSING, browser_program, browsing
from models import bert_encoder

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

FOLDER = Path(__file__).parent.parent / "docs"
WIDTH, HEIGHT = 1120, 690
RUN = ("--profile", "--iterations", "200", "--no-cache")
CHOSEN = "attention"

TAKEN = {"memory": "page-memory.png", "allocated": "page-instructions.png"}
"""Picture of the page → file."""


def main() -> int:
    """Take the pictures; 1 without a browser."""
    if browser_program() is None:
        print(f"docs/{', docs/'.join(TAKEN.values())} stay as they are: {MISSING}", file=sys.stderr)
        return 1
    with TemporaryDirectory() as name:
        page = page_of(bert_encoder(layers=2, length=64), Path(name))
        take(page.as_uri(), FOLDER)
    return 0


def page_of(model: onnx.ModelProto, folder: Path) -> Path:
    """The page of a run of a model."""
    onnx.save(model, folder / "encoder.onnx")
    command = [sys.executable, "-m", "glow_mlir.tools.glow_run", "encoder.onnx", *RUN, "--dump-html", "page.html"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "page.html"


def take(address: str, folder: Path) -> None:
    """Take all pictures of a page into a folder."""
    with browsing() as browser, browser.new_context(color_scheme="light") as context:
        tab = context.new_page()
        tab.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        for stage, name in TAKEN.items():
            tab.goto("about:blank")
            tab.goto(f"{address}#{stage}")
            if stage != "memory":
                choose(tab)
            tab.screenshot(path=folder / name)


def choose(tab: Tab) -> None:
    """Choose a box, so that the picture shows what is said of it, and bring it to the middle."""
    tab.fill("#search", CHOSEN)
    tab.keyboard.press("Enter")
    tab.fill("#search", "")
    tab.locator("#search").blur()


if __name__ == "__main__":
    sys.exit(main())
