"""Where the logs of a leader and a follower part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.log._checkpoints import LeaderEpochs
from kohort.log._files import OS_FILES
from kohort.replication import Truncation, diverging_epoch, truncation_for
from kohort.replication._truncation import EndOfEpoch

Log = list[tuple[int, int]]


def ends(log: Log) -> EndOfEpoch:
    """Where epochs end in a log of (epoch, record), as the partition's log tells it."""
    begins: dict[int, int] = {}
    for offset, (epoch, _) in enumerate(log):
        begins.setdefault(epoch, offset)
    epochs = LeaderEpochs(OS_FILES, "", sorted(begins.items()))
    return lambda epoch: epochs.end_offset_for(epoch, len(log))


@st.composite
def histories(draw: st.DrawFn) -> tuple[Log, Log]:
    """Logs of two brokers that led and followed each other: one leader an epoch, and a leader's records are
    those of the log that it had.
    """
    logs: list[Log] = [[], []]
    for epoch in range(draw(st.integers(1, 6))):
        leader = draw(st.integers(0, 1))
        logs[leader] = [*logs[leader], *((epoch, n) for n in range(draw(st.integers(1, 3))))]
        if draw(st.booleans()):
            # the other one follows, for a while
            logs[1 - leader] = logs[leader][: draw(st.integers(0, len(logs[leader])))]
    first = draw(st.integers(0, 1))
    return logs[first], logs[1 - first]


@given(histories())
def test_a_follower_ends_with_what_it_has_in_common_with_its_leader(logs: tuple[Log, Log]) -> None:
    leader, follower = logs
    # the leader has noted the epoch that it leads under
    newest = max(epoch for epoch, _ in leader + follower) + 1 if leader + follower else 0
    leader = [*leader, (newest, 0)]
    common = 0
    while common < len(follower) and follower[common] == leader[common : common + 1][0]:
        common += 1
    for _ in range(20):
        if not follower:
            break
        diverging = diverging_epoch(len(follower), follower[-1][0], ends(leader))
        if diverging is None:
            break
        cut = truncation_for(*diverging, ends(follower), log_end=len(follower), high_watermark=0)
        assert common <= cut.offset < len(follower), "it takes something, and nothing that both have"
        follower = follower[: cut.offset]
    assert follower == leader[: len(follower)]
    assert len(follower) == common


def known(*entries: tuple[int, int], log_end: int) -> EndOfEpoch:
    epochs = LeaderEpochs(OS_FILES, "", list(entries))
    return lambda epoch: epochs.end_offset_for(epoch, log_end)


@pytest.mark.parametrize(
    ("leader_epoch", "leader_end", "cut"),
    [
        (3, 25, Truncation(25, False)),
        (3, 40, Truncation(30, False)),
        (1, 7, Truncation(7, False)),
        # the leader wrote under an epoch of which this log has nothing
        (2, 18, Truncation(20, False)),
        # what was committed goes
        (1, 3, Truncation(3, True)),
        # nothing is known in common
        (-1, -1, Truncation(5, False)),
    ],
    ids=str,
)
def test_a_follower_cuts_where_its_leaders_epoch_ends(
    leader_epoch: int, leader_end: int, cut: Truncation
) -> None:
    own = known((0, 0), (1, 6), (3, 20), log_end=30)
    assert truncation_for(leader_epoch, leader_end, own, log_end=30, high_watermark=5) == cut


def test_a_log_without_epochs_is_cut_where_the_leader_says() -> None:
    nothing = known(log_end=30)
    assert truncation_for(4, 12, nothing, log_end=30, high_watermark=0) == Truncation(12, False)


def test_a_leader_names_the_epoch_at_which_it_parts_with_a_follower() -> None:
    leader = known((0, 0), (2, 10), (4, 20), log_end=30)
    assert diverging_epoch(15, 2, leader) is None
    assert diverging_epoch(25, 2, leader) == (2, 20)
    assert diverging_epoch(15, 3, leader) == (2, 20)
    assert diverging_epoch(15, 7, leader) == (-1, -1)
