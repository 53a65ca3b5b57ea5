"""MkDocs' hook for ``make site``: takes out of pages and docstrings what a site has no use for."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):(?=<code>)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that leave docs/ lead nowhere on the site: only their words are kept."""
    up = re.escape("../" * (page.file.src_uri.count("/") + 1))
    return re.sub(rf"\[([^\]]+)\]\({up}[^)]*\)", r"\1", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Sphinx's roles in docstrings are left out."""
    return _ROLE.sub("", html)
