"""scripts/import_circles.py: which imports it sees, which circles it finds, what it complains of."""

from __future__ import annotations

from pathlib import Path

from tests.scripts import script

circles = script("import_circles")


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = (root / name.replace("__", "/")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_imports_count_wherever_they_stand(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        a__top="from .checked import X\nimport kohort.b.plain\n",
        a__checked="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import lazy\n",
        a__lazy="def f() -> None:\n    from .top import Y\n",
        b__plain="from ..a.top import Z\nimport os\n",
    )
    graph = circles.graph_of(root)
    assert graph["kohort.a.top"] == {"kohort.a.checked", "kohort.b.plain"}
    assert graph["kohort.a.checked"] == {"kohort.a.lazy"}
    assert graph["kohort.a.lazy"] == {"kohort.a.top"}
    group = ["kohort.a.checked", "kohort.a.lazy", "kohort.a.top", "kohort.b.plain"]
    assert circles.circles(graph) == [group]


def test_files_that_only_point_down_are_no_circle(tmp_path: Path) -> None:
    root = tree(
        tmp_path, a__one="from .two import X\nfrom .three import Y\n", a__two="from .three import Y\n"
    )
    tree(tmp_path, a__three="", tests__one="from kohort.a.one import X\n")
    graph = circles.graph_of(root)
    assert set(graph) == {"kohort.a.one", "kohort.a.two", "kohort.a.three"}
    assert circles.circles(graph) == []


def test_a_circle_is_reported_with_who_imports_whom() -> None:
    graph = {"kohort.a.x": {"kohort.a.y"}, "kohort.a.y": {"kohort.a.x"}, "kohort.b.z": set()}
    assert circles.report(graph) == [
        "import circles: 2 files import each other",
        "    kohort.a.x imports kohort.a.y",
        "    kohort.a.y imports kohort.a.x",
    ]
    assert circles.report({"kohort.b.z": set()}) == []
