"""Writes the parts of docs/ that are generated from the code, so that they cannot contradict it.

In a page, the text between ``<!-- made by module:function -->`` and ``<!-- end -->`` is what the function
returns; most are in docs_tables.py. ``--check`` writes nothing and exits 1 if a page is not current.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# some functions are in tests/, where the tables are that tests check
sys.path.insert(0, str(ROOT / ".src"))
PART = re.compile(
    r"(?P<open><!-- made by (?P<module>[\w.]+):(?P<function>\w+) -->\n).*?(?P<end><!-- end -->)", re.S
)


def _made(match: re.Match[str]) -> str:
    make = getattr(importlib.import_module(match["module"]), match["function"])
    text = str(make()).rstrip("\n")
    if text.startswith("stateDiagram"):
        text = f"```mermaid\n{text}\n```"
    return f"{match['open']}\n{text}\n\n{match['end']}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the parts of docs/ that are made from the code.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where a page is not current"
    )
    check = parser.parse_args().check
    stale = []
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text()
        new = PART.sub(_made, old)
        if new != old:
            stale.append(page.name)
            if not check:
                page.write_text(new)
    if stale:
        print(("not current, run `make docs`: " if check else "written: ") + ", ".join(stale))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
