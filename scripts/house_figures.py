"""Count what keeps the source easy to read: lines, long functions, names, repeated names, documentation.

    python scripts/house_figures.py            print each figure with its limit
    python scripts/house_figures.py NAME       list what a figure counts, for those that count things

``tests/test_house_figures.py`` holds the limits, so that no figure gets worse unseen.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import sys
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
#: Folders whose code does not ship, and generated code, which nobody reads.
_LEFT_OUT = ("tests", "docs", "examples", "benchmarks", "scripts", "build", "dist")
_GENERATED = "protocol/messages/"
#: A participle: what ends in "ed", but for nouns and verbs that do, and those that end otherwise.
_PARTICIPLE: Final = re.compile(
    r"(?!need|feed|seed|speed|embed|exceed|proceed|succeed)[a-z]{3,}ed"
    r"|begun|bought|broken|brought|built|caught|chosen|done|drawn|driven|fallen|felt|given|gone|grown|heard|held"
    r"|hidden|kept|known|laid|lent|lost|made|meant|met|paid|said|seen|sent|shown|sought|spent|spoken|taken|taught"
    r"|thought|thrown|told|understood|withdrawn|won|written"
)

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """A function or method of the source.

    ``lines`` counts from ``def`` to the last line of the body.
    """

    path: str
    line: int
    name: str
    lines: int
    is_public: bool
    is_documented: bool


@dataclass(frozen=True)
class Figure:
    """One count: its value, and the things behind it where it counts things."""

    name: str
    value: float
    things: Sequence[str] = ()


class House:
    """The source under ``root`` that ships and is written by hand."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root

    @cached_property
    def sources(self) -> dict[str, str]:
        """Each module's text by its path from the root."""
        found = {}
        for path in sorted(self.root.rglob("*.py")):
            name = path.relative_to(self.root).as_posix()
            first = name.split("/", 1)[0]
            if first not in _LEFT_OUT and not first.startswith(".") and not name.startswith(_GENERATED):
                found[name] = path.read_text(encoding="utf-8")
        return found

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """Each module's syntax tree by its path."""
        return {name: ast.parse(text) for name, text in self.sources.items()}

    @cached_property
    def functions(self) -> list[Function]:
        """All functions and methods but those whose names Python gives."""
        return [
            one for one in self.all_functions if not (one.name.startswith("__") and one.name.endswith("__"))
        ]

    @cached_property
    def all_functions(self) -> list[Function]:
        """All functions and methods."""
        return [
            found for path, tree in self.trees.items() for found in _functions_of(path, tree, public=True)
        ]

    @cached_property
    def classes(self) -> dict[str, list[str]]:
        """Where each class name is defined."""
        found = defaultdict(list)
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(f"{path}:{node.lineno}")
        return found

    def count_all(self) -> list[Figure]:
        """Every figure, in the order in which they are printed."""
        return [count(self) for count in _COUNTS]


def _functions_of(path: str, node: ast.AST, *, public: bool) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            name = child.name
            is_public = public and not name.startswith("_")
            lines = (child.end_lineno or child.lineno) - child.lineno + 1
            documented = ast.get_docstring(child) is not None
            yield Function(path, child.lineno, name, lines, is_public, documented)
            yield from _functions_of(path, child, public=False)
        elif isinstance(child, ast.ClassDef):
            yield from _functions_of(path, child, public=public and not child.name.startswith("_"))
        else:
            yield from _functions_of(path, child, public=public)


def is_lone_participle(name: str) -> bool:
    """Whether a function's whole name is one participle, as ``refused`` or ``_told``."""
    return _PARTICIPLE.fullmatch(name.strip("_")) is not None


def _share(part: int, whole: int) -> float:
    return round(100 * part / max(1, whole), 1)


def _count_lines(house: House) -> Figure:
    return Figure("source lines", sum(text.count("\n") for text in house.sources.values()))


def _count_longest_function(house: House) -> Figure:
    long = sorted(house.all_functions, key=lambda one: -one.lines)[:20]
    return Figure(
        "longest function", long[0].lines, [f"{one.path}:{one.line} {one.name} {one.lines}" for one in long]
    )


def _count_name_length(house: House) -> Figure:
    return Figure(
        "median length of a function's name", statistics.median(len(one.name) for one in house.functions)
    )


def _count_one_word(house: House) -> Figure:
    single = [one for one in house.functions if "_" not in one.name.strip("_")]
    return Figure("functions named by one word, %", _share(len(single), len(house.functions)))


def _count_participles(house: House) -> Figure:
    lone = [one for one in house.functions if is_lone_participle(one.name)]
    return Figure(
        "functions named by a lone participle, %",
        _share(len(lone), len(house.functions)),
        [f"{one.path}:{one.line} {one.name}" for one in lone],
    )


def _count_one_home_names(house: House) -> Figure:
    homes = defaultdict(set)
    for one in house.functions:
        homes[one.name].add(one.path)
    lone = sum(len(paths) == 1 for paths in homes.values())
    many = sorted(((len(paths), name) for name, paths in homes.items()), reverse=True)[:60]
    return Figure(
        "function names defined in one file only, %",
        _share(lone, len(homes)),
        [f"{name} {n}" for n, name in many],
    )


def _count_repeated_classes(house: House) -> Figure:
    repeated = {name: where for name, where in house.classes.items() if len(where) > 1}
    return Figure(
        "class names used twice or more",
        len(repeated),
        [f"{name}: {', '.join(where)}" for name, where in sorted(repeated.items())],
    )


def _count_any(house: House) -> Figure:
    lines = [
        f"{path}:{number}"
        for path, text in house.sources.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if re.search(r"\bAny\b", line)
    ]
    return Figure("lines with Any", len(lines), lines)


def _count_explanation(house: House) -> Figure:
    explained = sum(len(_explained_lines(text, house.trees[path])) for path, text in house.sources.items())
    return Figure(
        "lines of comments and docstrings, %",
        _share(explained, sum(text.count("\n") for text in house.sources.values())),
    )


def _explained_lines(text: str, tree: ast.Module) -> set[int]:
    lines = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            first = node.body[0]
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def _count_documented(house: House) -> Figure:
    public = [one for one in house.functions if one.is_public]
    bare = [f"{one.path}:{one.line} {one.name}" for one in public if not one.is_documented]
    return Figure("public functions with a docstring, %", _share(len(public) - len(bare), len(public)), bare)


def _count_private_imports(house: House) -> Figure:
    """A room is a folder at the root; modules at the root belong to none."""
    found = []
    for path, tree in house.trees.items():
        room = path.split("/", 1)[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                target = Path(path).parents[node.level - 1].joinpath(*(node.module or "").split("."))
                if target.parts and target.parts[0] != room and any(map(_is_private, target.parts)):
                    found.append(f"{path}:{node.lineno} {target.as_posix()}")
    return Figure("private modules imported from another room", len(found), found)


def _is_private(part: str) -> bool:
    return part.startswith("_")


_COUNTS: Sequence[Callable[[House], Figure]] = (
    _count_lines,
    _count_longest_function,
    _count_name_length,
    _count_one_word,
    _count_participles,
    _count_one_home_names,
    _count_repeated_classes,
    _count_any,
    _count_explanation,
    _count_documented,
    _count_private_imports,
)


def main(words: Sequence[str]) -> int:
    """Print the figures, or the things behind the one whose name contains the given words."""
    asked = " ".join(words)
    for figure in House().count_all():
        if not asked:
            print(f"{figure.name:45} {figure.value:>10}")
        elif asked in figure.name:
            print(*figure.things or [figure.value], sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
