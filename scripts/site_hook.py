"""MkDocs hook of ``make site``: a page for each object of the API, an edition in plain Markdown with its
``llms.txt``, and pages without the links and the markup that do not work on the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import api_pages
import plain_edition

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):(?=<code>)")
_API_ROW = re.compile(r"^\| `(kohort[\w.]+)`", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the API; the navigation leads to their list."""
    from mkdocs.structure.files import File, InclusionLevel

    for name in api_pages.all_objects():
        page = File.generated(config, api_pages.page_of(name), content=api_pages.source_of(name))
        page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to files outside of docs/ by their text: the site does not have these files."""
    if page.file.src_uri == "api.md":
        return link_objects(markdown)
    if page.file.src_uri.startswith("api/"):
        return markdown
    up = re.escape("../" * (page.file.src_uri.count("/") + 1))
    return re.sub(rf"\[([^\]]+)\]\({up}[^)]*\)", r"\1", markdown)


def link_objects(markdown: str) -> str:
    """Make each name in the API's list a link to its page."""
    return _API_ROW.sub(lambda row: f"| [`{row[1]}`]({api_pages.page_of(row[1])})", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Remove Sphinx's roles from docstrings."""
    return _ROLE.sub("", html)


def on_post_build(config: Any) -> None:
    """Write the edition in plain Markdown beside the pages."""
    plain_edition.write(Path(config["docs_dir"]), config["nav"], Path(config["site_dir"]))
