"""A real browser for the tests of pages: Chromium of the system or of `make browser`, without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FETCHED = Path(__file__).parents[2] / ".browser" / "bin" / "chromium"
VARIABLE = "GLOW_BROWSER"
NAMES = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
QUIET = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--hide-scrollbars"),
    *("--disable-component-update", "--disable-sync", "--font-render-hinting=none"),
)
MISSING = f"there is no Chromium: make browser fetches one, {VARIABLE} names one"


def browser_program() -> str | None:
    """The browser that `GLOW_BROWSER` names, that of `make browser`, or the system's; `None` where there is none."""
    if named := os.environ.get(VARIABLE):
        return named
    if FETCHED.exists():
        return str(FETCHED)
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browsing() -> Generator[Browser]:
    """The browser, with no window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_program(), chromium_sandbox=False, args=list(QUIET), headless=True
        )
        try:
            yield browser
        finally:
            browser.close()
