"""The repository itself, for tests about it: its scripts as modules, and what its files define."""

from __future__ import annotations

import ast
import importlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def script(name: str) -> Any:
    """The module ``scripts/NAME.py``."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@cache
def functions_in(file: Path) -> set[str]:
    """The names of all functions in a file, methods and inner ones too."""
    nodes = ast.walk(ast.parse(file.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
