"""Members of share groups made of one connection each; none of them joins: leaders do not ask for it."""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from typing import Any
from uuid import UUID

from kohort.protocol import ApiKey, SharePartitionKey, iter_batches
from tests.broker.wire import Wire, batch, create_topic, produce

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

#: First and last offset, and the type or types of an acknowledgement.
Said = tuple[int, int, list[int]]


def initialize(wire: Wire, group: str, topic_id: UUID, *partitions: int, start: int = -1) -> None:
    """Begin the state of share partitions, as the group's coordinator does when a member joins."""
    rows = [(number, 1, start) for number in partitions or (0,)]
    # whoever asks first has the topic of the share coordinators made
    keys = [str(SharePartitionKey(group, topic_id, 0))]
    wire.call(ApiKey.FIND_COORDINATOR, 6, key_type=2, coordinator_keys=keys)
    for _ in range(100):
        answer = wire.call(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, group_id=group, topics=[(topic_id, rows)])
        codes = {row.error_code for result in answer.results for row in result.partitions}
        if codes == {0}:
            return
        time.sleep(0.05)
    raise AssertionError(codes)


class ShareMember:
    """A member with a session on a connection of its own, which counts its requests."""

    def __init__(self, bootstrap: str, group: str, member: str, version: int = 2) -> None:
        self.wire = Wire(bootstrap, timeout_s=20)
        self.group, self.member, self.version = group, member, version
        self.epoch = 0

    def __enter__(self) -> ShareMember:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def send_fetch(
        self,
        topic_id: UUID | None = None,
        *partitions: int,
        said: dict[int, list[Said]] | None = None,
        epoch: int | None = None,
        topics: Any = None,
        **fields: Any,
    ) -> int:
        """Send a ShareFetch only; gives the correlation id."""
        asked = [(number, (said or {}).get(number, [])) for number in [*partitions, *(said or {})]]
        body = {
            "group_id": self.group,
            "member_id": self.member,
            "share_session_epoch": self._next(epoch),
            "max_wait_ms": 2_000,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": topics if topics is not None else [(topic_id, asked)] if asked else [],
        }
        return self.wire.send(ApiKey.SHARE_FETCH, self.version, **body | fields)

    def receive(self, number: int) -> Any:
        return self.wire.receive(ApiKey.SHARE_FETCH, self.version, number)

    def fetch_all(self, *args: Any, **fields: Any) -> Any:
        """Send a ShareFetch; gives the whole answer."""
        return self.receive(self.send_fetch(*args, **fields))

    def fetch(self, *args: Any, **fields: Any) -> Any:
        """Send a ShareFetch; gives the row of its one partition, None without a row."""
        return row_of(self.fetch_all(*args, **fields))

    def receive_row(self, number: int) -> Any:
        """The row of the one partition of an answer, None without a row."""
        return row_of(self.receive(number))

    def acknowledge_all(self, topic_id: UUID | None, *said: Said, **fields: Any) -> Any:
        """Send a ShareAcknowledge about partition 0; gives the whole answer."""
        epoch, partition = fields.pop("epoch", None), fields.pop("partition", 0)
        body = {
            "group_id": self.group,
            "member_id": self.member,
            "share_session_epoch": self._next(epoch),
            "topics": [(topic_id, [(partition, list(said))])] if said else [],
        }
        return self.wire.call(ApiKey.SHARE_ACKNOWLEDGE, self.version, **body | fields)

    def acknowledge(self, topic_id: UUID, *said: Said, **fields: Any) -> tuple[int, str | None]:
        """Send a ShareAcknowledge about partition 0; gives error and message of it."""
        answer = self.acknowledge_all(topic_id, *said, **fields)
        assert answer.error_code == 0, answer
        ((row,),) = [topic.partitions for topic in answer.responses]
        return row.error_code, row.error_message

    def _next(self, epoch: int | None) -> int:
        if epoch is None:
            epoch, self.epoch = self.epoch, self.epoch + 1
        elif epoch == 0:
            self.epoch = 1
        return epoch


def row_of(answer: Any) -> Any:
    """The row of the one partition of an answer to a ShareFetch, None without a row."""
    assert answer.error_code == 0, answer
    rows = [row for topic in answer.responses for row in topic.partitions]
    assert len(rows) <= 1
    return rows[0] if rows else None


def acquired(row: Any) -> list[tuple[int, int, int]]:
    """First and last offset and delivery count of the ranges in a row; empty without one."""
    return [] if row is None else [tuple(each) for each in row.acquired_records]


def offsets_in(row: Any) -> list[tuple[int, int]]:
    """First and last offset of each record batch in a row."""
    return [(header.base_offset, header.last_offset) for _, header in iter_batches(row.records)]


class Place:
    """A topic with one partition that a group of its own reads from the start on."""

    def __init__(self, bootstrap: str, stack: ExitStack) -> None:
        self.bootstrap = bootstrap
        self.stack = stack
        self.wire = stack.enter_context(Wire(bootstrap))
        self.group = f"g-{uuid.uuid4().hex[:8]}"
        self.topic = f"t-{uuid.uuid4().hex[:8]}"
        self.topic_id: UUID = create_topic(self.wire, self.topic).topic_id
        initialize(self.wire, self.group, self.topic_id, 0, start=0)

    def member(self, name: str = "m", version: int = 2) -> ShareMember:
        """A member of the group, with a connection of its own."""
        return self.stack.enter_context(ShareMember(self.bootstrap, self.group, name, version))

    def produce(self, *sizes: int) -> None:
        """Write record batches of these sizes."""
        for size in sizes:
            produce(self.wire, self.topic, batch(size))
