"""Runs the benchmarks: ``python -m benchmarks [NAME ...]``, all by default; ``--list`` names them.

Each is a module of its own with options of its own: ``python -m benchmarks.NAME --help``.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def available() -> dict[str, str]:
    """Names of the benchmarks and the first line of what each says of itself."""
    modules = sorted(path for path in HERE.glob("*.py") if not path.name.startswith("_"))
    return {path.stem: _first_line(path) for path in modules}


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


def main() -> int:
    found = available()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(found)}")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and end")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - found.keys())
    if unknown:
        parser.error(f"no benchmark is named {', '.join(unknown)}; there are {', '.join(found)}")
    if arguments.list:
        for name, says in found.items():
            print(f"{name:12} {says}")
        return 0
    worst = 0
    for name in arguments.names or found:
        print(f"== {name}: {found[name]}", flush=True)
        # a process each: none starts with what another has imported
        worst = max(
            worst, subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode
        )
    return worst


if __name__ == "__main__":
    sys.exit(main())
