"""Find files of the package that import each other in a circle. ``make lint`` runs it.

    python scripts/import_circles.py

All imports count: at the top, in functions, under ``TYPE_CHECKING``. A file in a circle cannot be understood,
tested or moved without the others. To remove a circle, let the lower file take a smaller value or a Protocol
that it defines itself, or merge two files about one subject.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "kohort"

#: Folders at the root that are not part of the package.
_ELSEWHERE = {"benchmarks", "build", "dist", "docs", "examples", "scripts", "tests"}

Graph = dict[str, set[str]]


def modules(root: Path) -> dict[str, Path]:
    """Return the package's modules by dotted name; a package's ``__init__`` has the package's name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] in _ELSEWHERE or parts[0].startswith("."):
            continue
        names = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join((PACKAGE, *names))] = path
    return found


def imports(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of the package that a module imports, anywhere in it."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{source}.{alias.name}"
                if submodule in known:
                    yield submodule
                elif source in known:
                    yield source


def graph_of(root: Path) -> Graph:
    """Return the modules that each module imports."""
    known = modules(root)
    return {name: set(imports(name, path, known)) - {name} for name, path in known.items()}


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of modules that reach each other, largest first (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for imported in sorted(graph[name]):
            if imported not in index:
                visit(imported)
                low[name] = min(low[name], low[imported])
            elif imported in stack:
                low[name] = min(low[name], index[imported])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return sorted(found, key=lambda group: (-len(group), group))


def report(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return lines that describe every circle with the imports in it."""
    lines = []
    for group in circles(graph):
        lines.append(f"import circles: {len(group)} files import each other")
        members = set(group)
        lines += [
            f"    {name} imports {', '.join(sorted(members.intersection(graph[name])))}" for name in group
        ]
    return lines


def main() -> int:
    lines = report(graph_of(ROOT))
    print("\n".join(lines), file=sys.stderr, end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
