"""What the site needs beyond docs/: a few files of the repository as pages, and links that follow them.

Links are written for the repository, where every file can be read. On the site a link to a file that is no page
becomes its name.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

PAGES = {"RESULTS.md": "results.md", "CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md"}
"""In the repository → on the site."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(root / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return rewrite(markdown, page.file.src_uri)


def rewrite(markdown: str, page: str) -> str:
    """The text of a page with the links of the site."""
    here = posixpath.dirname(page)
    folder = "" if page in PAGES.values() else posixpath.join("docs", here)

    def follow(link: re.Match[str]) -> str:
        mark, text, target = link.groups()
        path, hash_sign, anchor = target.partition("#")
        if "://" in path or not path:
            return link[0]
        found = posixpath.normpath(posixpath.join(folder, path))
        if found in PAGES:
            path = posixpath.relpath(PAGES[found], here)
        elif found.startswith("docs/"):
            path = posixpath.relpath(found.removeprefix("docs/"), here)
        else:
            return f"{text} (`{found}`)"
        return f"{mark}[{text}]({path}{hash_sign}{anchor})"

    return LINK.sub(follow, markdown)
