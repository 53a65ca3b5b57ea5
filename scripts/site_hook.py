"""MkDocs hook of ``make site``: removes links and markup from pages and docstrings that do not work on the
site.
"""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):(?=<code>)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to files outside of docs/ by their text: the site does not have these files."""
    up = re.escape("../" * (page.file.src_uri.count("/") + 1))
    return re.sub(rf"\[([^\]]+)\]\({up}[^)]*\)", r"\1", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Remove Sphinx's roles from docstrings."""
    return _ROLE.sub("", html)
