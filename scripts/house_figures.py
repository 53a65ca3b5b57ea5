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


@dataclass(frozen=True)
class Module:
    """What one file has that is counted: its syntax tree is let go of, since all of them take a gigabyte.

    ``explained`` counts lines of comments and docstrings; classes and private imports are (name, line).
    """

    path: str
    text: str
    functions: Sequence[Function]
    classes: Sequence[tuple[str, int]]
    private_imports: Sequence[tuple[str, int]]
    explained: int


class House:
    """The source under ``root`` that ships and is written by hand."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root

    @cached_property
    def modules(self) -> list[Module]:
        """All of them, sorted by their paths from the root."""
        # room by room: the environment beside them has ten times as many files
        places = [
            place
            for place in self.root.iterdir()
            if place.name not in _LEFT_OUT and not place.name.startswith(".")
        ]
        paths = [path for place in places for path in (place.rglob("*.py") if place.is_dir() else [place])]
        names = sorted(path.relative_to(self.root).as_posix() for path in paths if path.suffix == ".py")
        return [
            _read_module(name, (self.root / name).read_text(encoding="utf-8"))
            for name in names
            if not name.startswith(_GENERATED)
        ]

    @cached_property
    def functions(self) -> list[Function]:
        """All functions and methods but those whose names Python gives."""
        return [
            one for one in self.all_functions if not (one.name.startswith("__") and one.name.endswith("__"))
        ]

    @cached_property
    def all_functions(self) -> list[Function]:
        """All functions and methods."""
        return [one for module in self.modules for one in module.functions]

    @cached_property
    def classes(self) -> dict[str, list[str]]:
        """Where each class name is defined."""
        found = defaultdict(list)
        for module in self.modules:
            for name, line in module.classes:
                found[name].append(f"{module.path}:{line}")
        return found

    @property
    def lines(self) -> int:
        """How many all modules have together."""
        return sum(module.text.count("\n") for module in self.modules)

    def count_all(self) -> list[Figure]:
        """Every figure, in the order in which they are printed."""
        return [count(self) for count in _COUNTS]


def _read_module(path: str, text: str) -> Module:
    tree = ast.parse(text)
    classes, private_imports, documented = [], [], set[int]()
    hash_in_string = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            value = node.value
            hash_in_string |= (
                "#" in value if isinstance(value, str) else isinstance(value, bytes) and b"#" in value
            )
        elif isinstance(node, ast.ImportFrom):
            if (target := _private_import(path, node)) is not None:
                private_imports.append((target, node.lineno))
        elif isinstance(node, _FUNCTIONS | ast.ClassDef | ast.Module):
            if isinstance(node, ast.ClassDef):
                classes.append((node.name, node.lineno))
            if ast.get_docstring(node, clean=False) is not None:
                first = node.body[0]
                documented.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    explained = len(documented | _comment_lines(text, hash_in_string=hash_in_string))
    return Module(
        path, text, list(_functions_of(path, tree, public=True)), classes, private_imports, explained
    )


def _comment_lines(text: str, *, hash_in_string: bool) -> set[int]:
    """Numbers of lines. Tokens take longer than all else: only where a # may begin no comment."""
    if not hash_in_string:
        return {number for number, line in enumerate(text.split("\n"), start=1) if "#" in line}
    return {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }


def _private_import(path: str, node: ast.ImportFrom) -> str | None:
    """The private module of another room that it names; a room is a folder at the root."""
    if not node.level:
        return None
    target = Path(path).parents[node.level - 1].joinpath(*(node.module or "").split("."))
    elsewhere = target.parts and target.parts[0] != path.split("/", 1)[0]
    return target.as_posix() if elsewhere and any(part.startswith("_") for part in target.parts) else None


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
        elif not isinstance(child, ast.expr):  # which has no functions
            yield from _functions_of(path, child, public=public)


def is_lone_participle(name: str) -> bool:
    """Whether a function's whole name is one participle, as ``refused`` or ``_told``."""
    return _PARTICIPLE.fullmatch(name.strip("_")) is not None


def _share(part: int, whole: int) -> float:
    return round(100 * part / max(1, whole), 1)


def _count_lines(house: House) -> Figure:
    return Figure("source lines", house.lines)


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
        f"{module.path}:{number}"
        for module in house.modules
        if "Any" in module.text
        for number, line in enumerate(module.text.splitlines(), start=1)
        if re.search(r"\bAny\b", line)
    ]
    return Figure("lines with Any", len(lines), lines)


def _count_explanation(house: House) -> Figure:
    explained = sum(module.explained for module in house.modules)
    return Figure("lines of comments and docstrings, %", _share(explained, house.lines))


def _count_documented(house: House) -> Figure:
    public = [one for one in house.functions if one.is_public]
    bare = [f"{one.path}:{one.line} {one.name}" for one in public if not one.is_documented]
    return Figure("public functions with a docstring, %", _share(len(public) - len(bare), len(public)), bare)


def _count_private_imports(house: House) -> Figure:
    found = [
        f"{module.path}:{line} {target}"
        for module in house.modules
        for target, line in module.private_imports
    ]
    return Figure("private modules imported from another room", len(found), found)


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
