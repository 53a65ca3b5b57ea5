"""Drawn fetches, acknowledgements, timeouts, failed writes and reloads, beside a model of each offset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import AcknowledgeType, KafkaError
from kohort.share_partitions import (
    AcknowledgedRange,
    BatchOffsets,
    ShareLimits,
    SharePartition,
    StateBatch,
    StateWrite,
    StoredState,
)

LIMITS = ShareLimits(lock_ms=10, delivery_count=4, record_locks=30)
MEMBERS = ("a", "b", "c")
LOG = [BatchOffsets(first, first + size - 1) for first, size in ((0, 7), (7, 1), (8, 12), (20, 4), (24, 16))]
END = LOG[-1].last + 1


@dataclass(frozen=True)
class Row:
    """What a reader of the protocol expects of one offset. ``owner`` is set while a member has it."""

    stored: StoredState = StoredState.AVAILABLE
    owner: str = ""
    count: int = 0


class World:
    """A share partition, the model, and the state as the share coordinator keeps it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.partition = SharePartition(0)
        self.rows = {offset: Row() for offset in range(END)}
        self.stored = dict(self.rows)
        self.start = 0
        self.waiting: list[StateWrite] = []

    def fetch(self) -> None:
        member, most, strict = (
            self.random.choice(MEMBERS),
            self.random.randint(1, 20),
            self.random.random() < 0.5,
        )
        read = [each for each in LOG if each.last >= self.partition.next_offset]
        had_room = self.partition.can_acquire(LIMITS)
        taken = self.partition.acquire(member, read, LIMITS, self.now_ms, most=most, strict=strict)
        assert taken.write is None
        assert had_room or not taken.ranges
        for first, last, count in taken.ranges:
            for offset in range(first, last + 1):
                row = self.rows[offset]
                assert (row.stored, row.owner) == (StoredState.AVAILABLE, ""), "it was free"
                assert row.count + 1 == count <= LIMITS.delivery_count
                self.rows[offset] = replace(row, owner=member, count=count)
        if strict:
            assert sum(last - first + 1 for first, last, _ in taken.ranges) <= most

    def answer_is_lost(self) -> None:
        """A fetch whose answer does not reach its member leaves everything as it was."""
        member = self.random.choice(MEMBERS)
        before = (self.partition.next_offset, self.partition.done_count, dict(self.rows))
        read = [each for each in LOG if each.last >= self.partition.next_offset]
        taken = self.partition.acquire(member, read, LIMITS, self.now_ms, most=self.random.randint(1, 20))
        self.partition.take_back(member, taken.ranges)
        assert (self.partition.next_offset, self.partition.done_count, self.rows) == before

    def acknowledge(self) -> None:
        member, first = (
            self.random.choice(MEMBERS),
            self.random.choice((self.start, self.random.randrange(END))),
        )
        last = min(first + self.random.randrange(6), END - 1)
        types = [self.random.choice(list(AcknowledgeType)) for _ in range(first, last + 1)]
        said = dict(zip(range(first, last + 1), types, strict=True))
        asked = {offset: kind for offset, kind in said.items() if offset >= self.partition.start_offset}
        has = all(self.rows[offset].owner == member and offset not in self.unsettled() for offset in asked)
        try:
            write = self.partition.acknowledge(
                member, [AcknowledgedRange(first, last, types)], LIMITS, self.now_ms
            )
        except KafkaError:
            assert not has, "it is its own"
            return
        assert has
        changed = {offset for offset, kind in asked.items() if kind is not AcknowledgeType.RENEW}
        self.expect(write, changed)
        for offset in changed:
            kind, row = asked[offset], self.rows[offset]
            state = {
                AcknowledgeType.ACCEPT: StoredState.ACKNOWLEDGED,
                AcknowledgeType.RELEASE: self.freed(row),
            }
            self.rows[offset] = Row(state.get(kind, StoredState.ARCHIVED), "", row.count)

    def close_session(self) -> None:
        member = self.random.choice(MEMBERS)
        held = {offset for offset, row in self.rows.items() if row.owner == member} - self.unsettled()
        self.expect(self.partition.release_member(member, LIMITS), held)
        self.free(held)

    def time_goes_on(self) -> None:
        self.now_ms += self.random.randint(1, 8)
        write = self.partition.expire(LIMITS, self.now_ms)
        late = set() if write is None else offsets(write)
        assert all(self.rows[offset].owner for offset in late)
        self.expect(write, late)
        self.free(late)
        next_ms = self.partition.next_deadline_ms
        assert next_ms is None or next_ms > self.now_ms

    def write_ends(self) -> None:
        if self.waiting:
            write = self.waiting.pop(self.random.randrange(len(self.waiting)))
            if self.random.random() < 0.7:
                self.keep(write)
                self.partition.complete(write)
            else:
                self.partition.undo(write)
                for offset in offsets(write):
                    before = self.rows[offset]
                    self.rows[offset] = replace(
                        before, stored=StoredState.AVAILABLE, owner=self.owners(offset)
                    )

    def leader_moves(self) -> None:
        """Writes on the way may be stored or not; what members have is free again."""
        for write in self.waiting:
            if self.random.random() < 0.5:
                self.keep(write)
        self.waiting = []
        batches = [StateBatch(offset, offset, row.stored, row.count) for offset, row in self.stored.items()]
        used = max((each.first for each in batches if each.delivery_count), default=-1)
        self.partition = SharePartition(
            self.start, [each for each in batches if self.start <= each.first <= used]
        )
        self.rows = dict(self.stored)

    def keep(self, write: StateWrite) -> None:
        self.start = max(self.start, write.start_offset)
        for first, last, state, count in write.batches:
            for offset in range(first, last + 1):
                self.stored[offset] = Row(state, "", count)

    def expect(self, write: StateWrite | None, changed: set[int]) -> None:
        assert (set() if write is None else offsets(write)) == changed
        if write is not None:
            self._owners = getattr(self, "_owners", {}) | {
                offset: self.rows[offset].owner for offset in changed
            }
            self.waiting.append(write)

    def owners(self, offset: int) -> str:
        owner: str = self._owners[offset]
        return owner

    def unsettled(self) -> set[int]:
        return set().union(*map(offsets, self.waiting)) if self.waiting else set()

    def freed(self, row: Row) -> StoredState:
        return StoredState.ARCHIVED if row.count >= LIMITS.delivery_count else StoredState.AVAILABLE

    def free(self, changed: set[int]) -> None:
        for offset in changed:
            self.rows[offset] = Row(self.freed(self.rows[offset]), "", self.rows[offset].count)

    def check(self) -> None:
        partition, unsettled = self.partition, self.unsettled()
        done = {offset for offset, row in self.rows.items() if row.stored is not StoredState.AVAILABLE}
        start = next((offset for offset in range(END) if offset not in done - unsettled), END)
        assert partition.start_offset == start >= self.start
        assert partition.done_count == sum(offset >= start for offset in done)
        for member in MEMBERS:
            assert partition.acquired_by(member) == sum(row.owner == member for row in self.rows.values())
        free = [
            offset
            for offset, row in self.rows.items()
            if offset not in unsettled and not row.owner and offset not in done
        ]
        assert partition.next_offset == min((each for each in free), default=partition.end_offset)
        first, last = sorted(self.random.choices(range(END), k=2))
        assert partition.count_wanted(first, last) == sum(first <= offset <= last for offset in free)
        within = [offset for offset in free if offset >= first]
        has_room = partition.end_offset - start < LIMITS.record_locks
        if has_room or (within and within[0] < partition.end_offset):
            assert partition.next_wanted(first, LIMITS) == min(within, default=max(END, first))
        else:
            assert partition.next_wanted(first, LIMITS) is None


def offsets(write: StateWrite) -> set[int]:
    return {offset for first, last, *_ in write.batches for offset in range(first, last + 1)}


STEPS = (
    World.fetch,
    World.fetch,
    World.answer_is_lost,
    World.acknowledge,
    World.acknowledge,
    World.close_session,
    World.time_goes_on,
    World.write_ends,
    World.write_ends,
    World.leader_moves,
)


@given(
    seed=st.integers(0, 1 << 32), steps=st.lists(st.integers(0, len(STEPS) - 1), min_size=20, max_size=120)
)
def test_every_record_has_one_owner_and_a_true_count_and_ends_done(seed: int, steps: list[int]) -> None:
    world = World(seed)
    for step in steps:
        STEPS[step](world)
        world.check()
    while world.waiting:
        world.write_ends()
    for _ in range(3 * END):
        if world.partition.start_offset == END:
            break
        world.now_ms += LIMITS.lock_ms
        world.time_goes_on()
        world.fetch()
        while world.waiting:
            world.write_ends()
        world.check()
        for offset, row in list(world.rows.items()):
            if row.owner and world.random.random() < 0.5:
                write = world.partition.acknowledge(
                    row.owner, [AcknowledgedRange(offset, offset, [1])], LIMITS, world.now_ms
                )
                world.expect(write, {offset})
                world.rows[offset] = Row(StoredState.ACKNOWLEDGED, "", row.count)
        while world.waiting:
            world.write_ends()
    assert world.partition.start_offset == END, "each record is accepted or archived in the end"
