"""Records of share groups, read as those of consumer groups."""

from __future__ import annotations

from uuid import UUID

from kohort.admin.groups.history.epochs import EpochLog
from kohort.admin.groups.history.share_records import as_consumer_record
from kohort.admin.groups.results import Generation, PartitionMove
from kohort.offsets_topic import (
    ShareAssignment,
    ShareEpoch,
    ShareGroupRecord,
    ShareMemberMetadata,
    ShareRecordType,
    ShareRecordValue,
    ShareTopics,
    TargetAssignment,
    TargetEpoch,
)

_T = ShareRecordType
TOPIC = UUID(int=7)


class Told:
    """Takes records of the group ``g``, one each 100 ms."""

    def __init__(self) -> None:
        self.log = EpochLog({TOPIC: "jobs"}, shared=True)
        self.now_ms = 0

    def add(self, kind: ShareRecordType, member: str, value: ShareRecordValue | None) -> None:
        record = as_consumer_record(ShareGroupRecord(kind, "g", member, value))
        assert record is not None
        self.now_ms += 100
        self.log.add(self.now_ms, record)

    def join(self, member: str, epoch: int, **targets: tuple[int, ...]) -> None:
        self.add(_T.MEMBER, member, ShareMemberMetadata(None, f"client-{member}", "/10.0.0.7", ("jobs",)))
        self.add(_T.EPOCH, "", ShareEpoch(epoch, 1))
        for name, numbers in targets.items():
            self.add(_T.TARGET, name, TargetAssignment({TOPIC: numbers}))
        self.add(_T.TARGET_EPOCH, "", TargetEpoch(epoch, self.now_ms))
        self.beat(member, epoch, 0, targets[member])

    def beat(self, member: str, epoch: int, before: int, numbers: tuple[int, ...]) -> None:
        self.add(_T.CURRENT, member, ShareAssignment(epoch, before, {TOPIC: numbers}))

    def epochs(self) -> list[Generation]:
        return self.log.generations()


def test_an_epoch_names_who_got_partitions_that_others_keep() -> None:
    told = Told()
    told.join("a", 2, a=(0, 1))
    told.join("b", 3, a=(0,), b=(0, 1))
    told.beat("a", 3, 2, (0,))
    first, second = told.epochs()
    assert (first.cause, first.client_id, first.joined) == ("member a joined", "client-a", ("a",))
    assert first.moves == (PartitionMove("jobs", 0, None, "a"), PartitionMove("jobs", 1, None, "a"))
    assert second.moves is not None
    assert {*second.moves} == {
        PartitionMove("jobs", 1, "a", None),
        PartitionMove("jobs", 0, None, "b"),
        PartitionMove("jobs", 1, None, "b"),
    }
    assert (second.partitions_moved, second.members, second.state) == (2, 2, "Stable")
    assert first.shared
    assert second.shared


def test_an_epoch_is_over_when_every_member_has_heartbeaten() -> None:
    told = Told()
    told.join("a", 2, a=(0,))
    told.join("b", 3, b=(0,))
    assert [row.generation for row in told.epochs()] == [2]
    told.beat("a", 3, 2, (0,))
    assert [row.generation for row in told.epochs()] == [2, 3]


def test_a_member_that_leaves_loses_what_it_had() -> None:
    told = Told()
    told.join("a", 2, a=(0,))
    for kind in (_T.CURRENT, _T.TARGET, _T.MEMBER):
        told.add(kind, "a", None)
    told.add(_T.EPOCH, "", ShareEpoch(3, 1))
    *_, last = told.epochs()
    assert (last.left, last.state, last.moves) == (("a",), "Empty", (PartitionMove("jobs", 0, "a", None),))


def test_what_only_share_groups_have_is_left_out() -> None:
    assert as_consumer_record(ShareGroupRecord(_T.TOPICS, "g", "", ShareTopics({}, {}, {}))) is None
