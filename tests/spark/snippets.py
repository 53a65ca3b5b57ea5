"""Programs of the pages for Spark, as they stand there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def snippet(page: str, name: str, names: Mapping[str, str]) -> str:
    """Return the program that begins with ``# name``, with other names in it."""
    (code,) = re.findall(rf"```python\n# {name}\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)
    for old, new in names.items():
        code = code.replace(old, new)
    return str(code)
