"""What MkDocs does besides its own: pages that are made of the code, pages of the top, links to source files."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from reference_pages import PAGES

ROOT = Path(__file__).parent.parent
FROM_THE_TOP = {"changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md", "contributing.md": "CONTRIBUTING.md"}
"""Page → the file at the top of the repository that it shows."""

_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FRAGMENT = re.compile(r"^( *```\w+) fragment$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files below docs/."""
    for path, page in PAGES.items():
        files.append(File.generated(config, path, content=page()))
    for path, source in FROM_THE_TOP.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave out the words for tests alone, and say of links to source files where these are."""
    markdown = _FRAGMENT.sub(r"\1", markdown)
    source = page.file.src_uri
    folder = (ROOT / FROM_THE_TOP[source]).parent if source in FROM_THE_TOP else (ROOT / "docs" / source).parent
    return _LINK.sub(lambda link: _resolved(link, folder, source, files), markdown)


def _resolved(link: re.Match[str], folder: Path, page: str, files: Files) -> str:
    """A link to a page as it is, one to another file of the repository as its path; raises for one to nothing."""
    text, target, anchor = link[1], link[2], link[3] or ""
    path = Path(folder, target).resolve()
    if page in FROM_THE_TOP and target.startswith("docs/") and target.endswith(".md"):
        return f"[{text}]({target.removeprefix('docs/')}{anchor})"
    if path.is_relative_to(ROOT / "docs") or page.startswith("reference/"):
        return link[0]
    if not path.exists():
        raise PluginError(f"{page}: there is no {target}")
    shown = {source: shown for shown, source in FROM_THE_TOP.items()}
    if (own := shown.get(path.relative_to(ROOT).as_posix())) is not None:
        depth = page.count("/")
        return f"[{text}]({'../' * depth}{own}{anchor})"
    name = path.relative_to(ROOT).as_posix()
    return f"{text} (`{name}`)" if text.strip("`") != name else f"`{name}`"
