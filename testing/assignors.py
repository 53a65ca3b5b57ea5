"""Conformance tests for assignors. One line in a test file runs all of them:

    from kohort.testing.assignors import conformance_tests

    TestTenants = conformance_tests(TenantAssignor)

The result is a class of pytest tests: the contract, each check on each of :func:`standard_cases`, and each
check on groups that hypothesis generates. :func:`check_assignor` runs the first two parts without pytest. A
failure message shows the group, the assignment, and what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..assignors import Member, TopicInfo
from ..assignors.conformance import (
    CHECKS,
    Case,
    check_assignor,
    check_complete,
    check_contract,
    check_order_independent,
    check_stable,
    check_valid,
    standard_cases,
)
from ..assignors.simulation import MakeAssignor
from ..protocol import Subscription, TopicPartition

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "Case",
    "check_assignor",
    "check_complete",
    "check_contract",
    "check_order_independent",
    "check_stable",
    "check_valid",
    "conformance_tests",
    "groups",
    "standard_cases",
]

#: Topics of generated groups; "gone" is subscribed to and claimed, but does not exist.
_TOPICS = ("clicks", "orders", "views")
_GONE = "gone"


def conformance_tests(
    make: MakeAssignor, cases: Iterable[Case] = (), *, examples: int = 100, name: str | None = None
) -> type:
    """Return a class of pytest tests for an assignor. Assign it to a name that begins with "Test".

    ``make``: the assignor's class, or a function that returns a new instance. ``cases``: groups to test
    besides :func:`standard_cases`. ``examples``: number of generated groups. ``name``: name of the returned
    class. Raises ImportError without pytest or hypothesis (``pip install 'kohort[testing]'``).
    """
    try:
        import hypothesis
        import pytest
    except ImportError as error:
        raise ImportError(
            f"conformance_tests needs {error.name}: pip install 'kohort[testing]', or use check_assignor"
        ) from error

    everything = [*standard_cases(), *cases]

    class Conformance:
        """Made by :func:`kohort.testing.assignors.conformance_tests`."""

        def test_the_contract(self) -> None:
            check_contract(make)

        @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
        @pytest.mark.parametrize("case", everything, ids=lambda case: case.name)
        def test_a_case(self, case: Case, check: Any) -> None:
            check(make, case)

        @hypothesis.settings(max_examples=examples, deadline=None)
        @hypothesis.given(case=groups())
        def test_made_up_groups(self, case: Case) -> None:
            for check in CHECKS:
                check(make, case)

    Conformance.__name__ = Conformance.__qualname__ = name or f"Test{getattr(make, '__name__', 'Assignor')}"
    return Conformance


def groups(
    *, max_topics: int = 3, max_partitions: int = 7, max_members: int = 5, user_data: bool = True
) -> SearchStrategy[Case]:
    """Return a hypothesis strategy for groups with racks, static members, and wrong claims of all kinds.

    Claimed partitions may be nonexistent, negative, repeated, not subscribed to, or claimed by several
    members in one generation or in several. With ``user_data`` some members send random bytes. Raises
    ImportError without hypothesis.
    """
    from hypothesis import strategies as st

    racks = st.sampled_from(["r0", "r1", "r2"])
    generation = st.integers(-1, 4)
    claim = st.builds(TopicPartition, st.sampled_from([*_TOPICS, _GONE]), st.integers(-1, max_partitions))
    junk = st.binary(max_size=12) if user_data else st.none()

    @st.composite
    def topic(draw: st.DrawFn) -> TopicInfo:
        count = draw(st.integers(0, max_partitions))
        if not draw(st.booleans()):
            return TopicInfo(count)
        replicas = st.lists(racks, max_size=2).map(frozenset)
        return TopicInfo(count, tuple(draw(st.lists(replicas, min_size=count, max_size=count))))

    @st.composite
    def member(draw: st.DrawFn, name: str) -> Member:
        subscription = Subscription(
            tuple(draw(st.lists(st.sampled_from([*_TOPICS, _GONE]), max_size=4))),
            draw(st.none() | junk),
            tuple(draw(st.lists(claim, max_size=6))),
            draw(generation),
            draw(st.none() | racks),
        )
        return Member(name, subscription, draw(st.none() | st.just(f"i-{name}")))

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        names = draw(st.permutations([f"m{number}" for number in range(draw(st.integers(0, max_members)))]))
        topics = draw(st.permutations(_TOPICS[: draw(st.integers(0, max_topics))]))
        return Case(
            "a made-up group",
            {name: draw(topic()) for name in topics},
            {name: draw(member(name)) for name in names},
        )

    return case()
