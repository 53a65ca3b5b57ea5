"""The house itself: what ships, what imports what."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import kohort
from kohort.assignors.registry import _OWN, ENTRY_POINT_GROUP

ROOT = Path(__file__).resolve().parent.parent
NOT_SHIPPED = {"tests", "docs", "examples", "benchmarks", "scripts", "build", "dist"}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def rooms() -> list[str]:
    return sorted(
        path.parent.relative_to(ROOT).as_posix()
        for path in ROOT.glob("[!.]*/**/__init__.py")
        if not set(path.relative_to(ROOT).parts) & NOT_SHIPPED
    )


def test_every_package_on_disk_is_shipped_and_no_other() -> None:
    listed = project()["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(["kohort", *(f"kohort.{room.replace('/', '.')}" for room in rooms())])


def test_the_entry_points_of_assignors_are_the_assignors_of_kohort() -> None:
    listed = project()["project"]["entry-points"][ENTRY_POINT_GROUP]
    assert listed == {name: f"kohort.assignors:{found.__name__}" for name, found in _OWN.items()}


def test_only_three_modules_stand_at_the_root() -> None:
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py", "cli.py"}


def test_the_type_checkers_view_links_every_room() -> None:
    view = (path for path in (ROOT / ".src" / "kohort").iterdir() if path.name != "__pycache__")
    linked = {path.name: path.resolve() for path in view}
    expected = {room for room in rooms() if "/" not in room} | {
        "__init__.py",
        "__main__.py",
        "cli.py",
        "py.typed",
    }
    assert set(linked) == expected
    assert all(target == ROOT / name for name, target in linked.items())


#: Modules that are tested as one: generated codecs, and the simulation, which is itself a test.
TESTED_TOGETHER = ("protocol/messages", "testing/simulation")


def test_each_room_has_its_tests_beside_it() -> None:
    inside = tuple(f"{room}/" for room in TESTED_TOGETHER)
    for room in rooms():
        if not room.startswith(inside):
            assert list((ROOT / "tests" / room).rglob("test_*.py")), f"{room} has no tests"


def test_each_modules_tests_are_found_by_its_name_or_by_a_line_that_says_where() -> None:
    files = list((ROOT / "tests").rglob("test_*.py"))
    covered = {
        module
        for text in (file.read_text() for file in files)
        if "Covers: " in text  # to parse all of them takes seconds
        for line in re.findall(r"Covers: (.*)\.", ast.get_docstring(ast.parse(text)) or "")
        for module in line.split(", ")
    }
    assert [module for module in covered if not (ROOT / module).is_file()] == []
    found = {f"{file.parent.relative_to(ROOT / 'tests')}/{file.stem[5:]}" for file in files}
    lost = [
        path.relative_to(ROOT).as_posix()
        for room in rooms()
        if not room.startswith(TESTED_TOGETHER)
        for path in (ROOT / room).glob("*.py")
        if path.name != "__init__.py"
        and f"{room}/{path.stem.lstrip('_')}" not in found
        and path.relative_to(ROOT).as_posix() not in covered
    ]
    assert lost == [], "name the test after its module, or add a line 'Covers: ...' (docs/testing.md)"


@pytest.mark.parametrize("room", [room for room in rooms() if "/" not in room])
def test_a_room_is_imported_once_and_under_one_name(room: str) -> None:
    module = importlib.import_module(f"kohort.{room}")
    twins = [
        name
        for name, other in sys.modules.items()
        if getattr(other, "__file__", None) == module.__file__ and name != module.__name__
    ]
    assert twins == []


def test_the_version_is_that_of_the_installed_distribution() -> None:
    assert kohort.__version__ == version("kohort")


def test_sources_that_are_not_installed_have_no_version() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / '.src')!r}); import kohort; print(kohort.__version__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0+unknown\n"


def test_every_rooms_bare_name_is_banned() -> None:
    banned = project()["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(banned) == {room for room in rooms() if "/" not in room}


HEAVY = (
    "pyspark",
    "pyarrow",
    "pandas",
    "numpy",
    "kazoo",
    "kohort.cluster._view",
    "kohort.cluster.controller._controller",
)


@pytest.mark.parametrize(
    "room", ["consumer", "broker", "coordinator", "assignors", "testing", "testing.plugin"]
)
def test_importing_a_room_loads_nothing_heavy(room: str) -> None:
    script = f"import sys, kohort.{room}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# in make check, too: there it is a part of make lint
@pytest.mark.slow(5)
def test_no_files_import_each_other_in_a_circle() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/import_circles.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
