"""Assignors by name, dotted name, class and instance; foreign distributions; what is refused and how."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kohort.assignors import (
    Assignor,
    AssignorError,
    BalancedByWeightAssignor,
    CooperativeStickyAssignor,
    GroupAssignment,
    Member,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    StickyAssignor,
    TopicInfo,
    available_assignors,
    load_assignor,
)

OWN = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
    "balanced-by-weight": BalancedByWeightAssignor,
}

MODULE = """
from kohort.assignors import RangeAssignor

class Mine(RangeAssignor):
    name = "mine"

class Needy(RangeAssignor):
    name = "needy"
    def __init__(self, argument):
        pass

class Choosy(RangeAssignor):
    name = "choosy"
    def __init__(self, tenants="", limit=0):
        if limit < 0:
            raise ValueError("limit is below 0")
        self.tenants, self.limit = tenants, limit

not_a_class = 42
"""


class Good(RangeAssignor):
    name = "good"


def distribution(folder: Path, name: str, entry_points: str) -> None:
    """An installed distribution, as far as importlib.metadata can tell."""
    info = folder / f"{name}-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (info / "top_level.txt").write_text("foreign_assignors\n")
    (info / "entry_points.txt").write_text(f"[kohort.assignors]\n{entry_points}\n")
    (folder / "foreign_assignors.py").write_text(MODULE)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "foreign_assignors", raising=False)
    importlib.invalidate_caches()
    return tmp_path


@pytest.mark.parametrize("name", OWN)
def test_each_name_makes_a_new_instance(name: str) -> None:
    one, other = load_assignor(name), load_assignor(name)
    assert type(one) is type(other) is OWN[name]
    assert one is not other
    assert one.name == name


def test_rebalance_protocols_are_those_of_the_java_client() -> None:
    eager, cooperative = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
    protocols = {name: load_assignor(name).rebalance_protocols for name in OWN}
    assert protocols.pop("cooperative-sticky") == {eager, cooperative}
    assert protocols.pop("balanced-by-weight") == {eager, cooperative}
    assert set(protocols.values()) == {frozenset({eager})}


def test_a_class_makes_an_instance_and_an_instance_is_used_as_it_is() -> None:
    assert type(load_assignor(Good)) is Good
    mine = Good()
    assert load_assignor(mine) is mine


def test_a_dotted_name_is_imported(site: Path) -> None:
    distribution(site, "acme", "")
    assert load_assignor("foreign_assignors:Mine").name == "mine"
    with pytest.raises(AssignorError, match="'foreign_assignors:Nobody' cannot be imported"):
        load_assignor("foreign_assignors:Nobody")
    assert load_assignor("foreign_assignors.Mine").name == "mine"
    for spec in ("nowhere:Mine", "nowhere.Mine"):
        with pytest.raises(AssignorError, match=f"'{spec}' cannot be imported: No module named 'nowhere'"):
            load_assignor(spec)


def test_a_module_that_raises_is_named(site: Path) -> None:
    (site / "raising_assignors.py").write_text("raise RuntimeError('no licence')")
    with pytest.raises(AssignorError, match=r"'raising_assignors\.Mine' cannot be imported: RuntimeError"):
        load_assignor("raising_assignors.Mine")


def test_what_is_wrong_names_the_distribution_however_it_was_given(site: Path) -> None:
    distribution(site, "acme", "")
    needy = importlib.import_module("foreign_assignors").Needy
    for spec, origin in (
        (needy, "from acme 1.5"),
        ("foreign_assignors.Needy", "foreign_assignors.Needy, from"),
    ):
        with pytest.raises(AssignorError, match=rf"Needy \({origin}.*\) cannot be made without arguments"):
            load_assignor(spec)


@pytest.mark.parametrize("name", ["choosy", "foreign_assignors.Choosy", "foreign_assignors:Choosy"])
def test_options_behind_a_name_go_to_the_constructor(site: Path, name: str) -> None:
    distribution(site, "acme", "choosy = foreign_assignors:Choosy")
    assert vars(load_assignor(name)) == {"tenants": "", "limit": 0}
    assert vars(load_assignor(f"{name}?tenants=acme, limit=3")) == {"tenants": "acme", "limit": 3}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("choosy?limit=-1", r"from acme 1.5\) cannot be made with limit=-1: limit is below 0"),
        (
            "choosy?size=1",
            r"from acme 1.5\) cannot be made with size=1: .*unexpected keyword argument 'size'",
        ),
        ("range?slack=1", r"RangeAssignor cannot be made with slack=1"),
        ("choosy?limit", "write its options as NAME[?]option=value,option=value"),
        ("choosy?limit=1,limit=2", "write its options as NAME[?]option=value,option=value"),
        ("choosy?=1", "write its options as NAME[?]option=value,option=value"),
    ],
)
def test_options_that_cannot_be_are_refused(site: Path, spec: str, reason: str) -> None:
    distribution(site, "acme", "choosy = foreign_assignors:Choosy")
    with pytest.raises(AssignorError, match=reason):
        load_assignor(spec)


def test_entry_points_of_installed_distributions_are_found(site: Path) -> None:
    distribution(site, "acme", "mine = foreign_assignors:Mine")
    assert load_assignor("mine").name == "mine"
    assert available_assignors() == {**dict.fromkeys(sorted(OWN), "kohort"), "mine": "acme 1.5"}


def test_nobody_can_take_over_a_name_of_kohort(site: Path) -> None:
    distribution(site, "acme", "range = foreign_assignors:Mine")
    assert type(load_assignor("range")) is RangeAssignor
    assert available_assignors()["range"] == "kohort"


def test_an_unknown_name_is_answered_with_the_known_ones(site: Path) -> None:
    distribution(site, "acme", "mine = foreign_assignors:Mine")
    known = ", ".join(sorted([*OWN, "mine"]))
    with pytest.raises(AssignorError, match=rf"'stiky'\. Available: {known}"):
        load_assignor("stiky")


@pytest.mark.parametrize(
    ("entry_point", "reason"),
    [
        ("x = foreign_assignors:Mine", r"from acme 1.5\) calls itself 'mine'"),
        ("x = foreign_assignors:Needy", r"from acme 1.5\) cannot be made without arguments"),
        (
            "x = foreign_assignors:not_a_class",
            r"42 \(foreign_assignors:not_a_class, from acme 1.5\) is no assignor",
        ),
        ("x = foreign_assignors:gone", r"from acme 1.5\) cannot be imported: AttributeError"),
        ("x = no_such_module:Mine", r"from acme 1.5\) cannot be imported: ModuleNotFoundError"),
    ],
)
def test_a_broken_entry_point_is_named_with_its_distribution(
    site: Path, entry_point: str, reason: str
) -> None:
    distribution(site, "acme", entry_point)
    with pytest.raises(AssignorError, match=reason):
        load_assignor("x")


def test_two_distributions_with_one_name_are_both_named(site: Path) -> None:
    distribution(site, "acme", "mine = foreign_assignors:Mine")
    distribution(site, "zeta", "mine = foreign_assignors:Mine")
    with pytest.raises(AssignorError, match=r"'mine' comes from acme 1.5 and zeta 1.5: uninstall one"):
        load_assignor("mine")


class NoName(RangeAssignor):
    name = ""


class NoVersion(RangeAssignor):
    version = "1.0"  # type: ignore[assignment]


class HalfAName(RangeAssignor):
    name = "half-\ud800"


class NoProtocol(RangeAssignor):
    rebalance_protocols = frozenset()


class WrongSignature(RangeAssignor):
    def assign(self) -> GroupAssignment:  # type: ignore[override]
        return {}


class Asynchronous(RangeAssignor):
    async def assign(  # type: ignore[override]
        self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]
    ) -> GroupAssignment:
        return super().assign(topics, members)


class Unfinished(Assignor):
    name = "unfinished"


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (NoName, "NoName has name = ''"),
        (HalfAName, "HalfAName has name = 'half-"),
        (NoVersion, "NoVersion has version = '1.0': set it to a whole number"),
        (NoProtocol, "NoProtocol has rebalance_protocols = frozenset"),
        (WrongSignature, r"WrongSignature: assign\(\) is called with 2 arguments"),
        (Asynchronous, r"Asynchronous: assign\(\) is asynchronous"),
        (Unfinished, r"Unfinished cannot be made without arguments.*Implement assign"),
        (object(), "is no assignor: derive a class from kohort.assignors.Assignor"),
    ],
)
def test_what_cannot_work_is_refused_when_loaded(candidate: type[Assignor], reason: str) -> None:
    with pytest.raises(AssignorError, match=reason):
        load_assignor(candidate)


def test_loading_by_a_name_of_kohort_imports_neither_metadata_nor_numpy() -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        "from kohort.assignors import load_assignor; load_assignor('sticky')\n"
        "print(*sorted({'numpy', 'pydantic', 'kafka', 'importlib.metadata'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
