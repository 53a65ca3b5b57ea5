"""The conformance suite as others use it: one line, by pytest, with made-up groups."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, find, settings

from kohort.assignors import (
    BalancedByWeightAssignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kohort.protocol import TopicPartition
from kohort.testing.assignors import Case, conformance_tests, groups

TestRange = conformance_tests(RangeAssignor, examples=40)
TestRoundRobin = conformance_tests(RoundRobinAssignor, examples=40)
TestSticky = conformance_tests(StickyAssignor, examples=40)
TestCooperativeSticky = conformance_tests(CooperativeStickyAssignor, examples=40)
TestBalancedByWeight = conformance_tests(BalancedByWeightAssignor, examples=40)

THEIRS = """
from kohort.assignors import CooperativeStickyAssignor, RangeAssignor
from kohort.testing.assignors import conformance_tests


class Fine(RangeAssignor):
    name = "fine"


class DropsTheLast(RangeAssignor):
    name = "drops-the-last"

    def assign(self, topics, members):
        return {m: given[:5] for m, given in super().assign(topics, members).items()}


class TakesAtOnce(RangeAssignor):
    '''Hands partitions over while their owners still read them.'''

    name = "takes-at-once"
    rebalance_protocols = CooperativeStickyAssignor.rebalance_protocols


class TrustsClaims(RangeAssignor):
    '''Lets everyone keep what it says it owns.'''

    name = "trusts-claims"

    def assign(self, topics, members):
        answer = super().assign(topics, members)
        claimed = {p for m in members.values() for p in m.subscription.owned}
        return {
            m: [*members[m].subscription.owned, *(p for p in given if p not in claimed)]
            for m, given in answer.items()
        }


TestFine = conformance_tests(Fine)
TestDropsTheLast = conformance_tests(DropsTheLast)
TestTakesAtOnce = conformance_tests(TakesAtOnce)
TestTrustsClaims = conformance_tests(TrustsClaims)
"""

#: It takes seconds to make a failing group small, and here nobody reads it.
NOT_SHRINKING = """
from hypothesis import Phase, settings

settings.register_profile("quick", phases=[Phase.generate])
settings.load_profile("quick")
"""

#: What is said of each: a standard case, and a group that hypothesis made up.
STORIES = {
    "DropsTheLast": "assignor 'drops-the-last', one member: orders-2 is given to nobody",
    "TakesAtOnce": "assignor 'takes-at-once', claims that are wrong: .* while still claimed by",
    "TrustsClaims": "assignor 'trusts-claims', claims that are wrong: orders-0 is given to a and to a",
}


@pytest.mark.slow(4)
def test_a_good_assignor_passes_and_three_broken_ones_are_caught(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(THEIRS)
    (tmp_path / "conftest.py").write_text(NOT_SHRINKING)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=250,
    )
    failed = re.findall(r"^FAILED test_theirs.py::Test(\w+)::(test_\w+)", done.stdout, re.MULTILINE)
    for name, story in STORIES.items():
        assert (name, "test_a_case") in failed
        assert (name, "test_made_up_groups") in failed
        assert re.search(story, done.stdout), story
    assert {name for name, _ in failed} == set(STORIES), "the good one passes"


@pytest.mark.parametrize("library", ["pytest", "hypothesis"])
def test_what_is_missing_is_said(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"needs {library}: pip install 'kohort\[testing\]', or use check"):
        conformance_tests(RangeAssignor)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda p, case: p.topic not in case.topics,
        lambda p, _: p.partition < 0,
        lambda p, case: p.topic in case.topics and p.partition >= case.topics[p.topic].partition_count,
        lambda p, case: sum(p in m.subscription.owned for m in case.members.values()) > 1,
        lambda p, case: any(m.subscription.owned.count(p) > 1 for m in case.members.values()),
    ],
)
def test_made_up_groups_have_every_kind_of_wrong_claim(wrong: object) -> None:
    def has(case: Case) -> bool:
        claims: set[TopicPartition] = {p for m in case.members.values() for p in m.subscription.owned}
        return any(wrong(p, case) for p in claims)  # type: ignore[operator]

    quick = settings(phases=[Phase.generate], max_examples=2_000)
    assert has(find(groups(), has, settings=quick))
