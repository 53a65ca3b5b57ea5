"""Assignors in the coordinator (KIP-848): the same classes that run in a group's leader.

The coordinator knows its members and the partitions that the last target gave them. ``owned`` of a member is
its part of that target; there is no user data, and ``on_assignment`` is not called. Each computation uses a
new instance. kohort's own assignors may run in the coordinator's process. All others run in a separate
process (:func:`main`), since they may hang or crash. The two processes exchange frames, a uint32 length
(big-endian) and JSON, small enough that neither side is busy with one for long.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, groupby, repeat
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias

from ..protocol import KohortError, Subscription
from ._group import topic_partitions
from ._range_and_roundrobin import RangeAssignor
from ._sticky import UniformAssignor
from .base import Assignor, Member, TopicInfo, member_key
from .registry import AssignorError, load_assignor
from .validation import validate_assignment

#: kohort's own assignors for the coordinator, by the names that members give.
OWN: Final[Mapping[str, type[Assignor]]] = {"uniform": UniformAssignor, "range": RangeAssignor}

#: Partition numbers by topic, ascending.
Numbers: TypeAlias = Mapping[str, tuple[int, ...]]

#: Most bytes of a record in __consumer_offsets, which holds the target of one member, and the bytes that each
#: partition and each topic may take in it.
MOST_RECORD_BYTES: Final = 1_000_000
_PARTITION_BYTES: Final = 8
_TOPIC_BYTES: Final = 32

#: A frame is sent when it has this many partitions and members.
_FRAME: Final = 5_000
_LENGTH: Final = struct.Struct(">I")
_SHOWN_PROBLEMS: Final = 3
_NUMBER: Final = itemgetter(1)


class ServedMember(NamedTuple):
    """A member as the coordinator knows it.

    ``owned``: its part of the last target, without deleted topics. ``had_more``: whether there were such
    topics.
    """

    instance_id: str | None
    client_id: str
    rack: str | None
    topics: tuple[str, ...]
    owned: Numbers
    had_more: bool = False


def load_server_assignor(spec: str) -> Assignor:
    """Return an assignor for the coordinator: one of :data:`OWN`, or what :func:`load_assignor` finds.

    Raises AssignorError.
    """
    own = OWN.get(spec)
    return load_assignor(spec) if own is None else own()


def changed_targets(
    assignor: Assignor, topics: Mapping[str, int], members: Mapping[str, ServedMember]
) -> dict[str, Numbers]:
    """Return the new target of each member whose target changes, by member id.

    ``topics``: number of partitions by topic. Raises AssignorError if the assignor's result is invalid or a
    member would get more partitions than a record can hold, and passes on what the assignor raises.
    """
    if type(assignor) is UniformAssignor and (quick := _few_moves(topics, members)) is not None:
        return quick
    known = {name: _read_member(name, member) for name, member in members.items()}
    infos = {name: TopicInfo(count) for name, count in topics.items()}
    answer = assignor.assign(infos, known)
    if type(assignor) not in OWN.values() and (problems := validate_assignment(infos, known, answer)):
        more = f"; and {len(problems) - _SHOWN_PROBLEMS} more" if len(problems) > _SHOWN_PROBLEMS else ""
        raise AssignorError("; ".join(map(str, problems[:_SHOWN_PROBLEMS])) + more)
    changed: dict[str, Numbers] = {}
    for name, member in members.items():
        given = answer.get(name, ())
        numbers = _by_topic(given)
        _check_room(name, len(given), len(numbers))
        if numbers != member.owned or member.had_more:
            changed[name] = numbers
    return changed


def _few_moves(topics: Mapping[str, int], members: Mapping[str, ServedMember]) -> dict[str, Numbers] | None:
    """Compute the result of ``uniform`` faster, by looking only at the members that get or lose partitions.

    Returns None if that is not possible: if members subscribe to different topics, or own partitions twice.
    """
    wanted = next((member.topics for member in members.values()), ())
    left = {topic: set(range(topics[topic])) for topic in wanted if topics.get(topic)}
    loads: dict[str, int] = {}
    for name, member in members.items():
        load = 0
        for topic, row in member.owned.items():
            unowned = left.get(topic)
            before = 0 if unowned is None else len(unowned)
            if unowned is None or before < len(row):
                return None
            unowned.difference_update(row)
            if before - len(unowned) != len(row):
                return None
            load += len(row)
        if member.topics != wanted:
            return None
        loads[name] = load
    if not left:
        return None
    quota, extras = divmod(sum(topics[topic] for topic in left), len(members))

    def in_order(names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: member_key(name, members[name].instance_id))

    # members that get one more: first those that have it already
    more = [name for name, load in loads.items() if load > quota]
    if len(more) > extras:
        more = in_order(more)[:extras]
    elif len(more) < extras:
        more += in_order(loads.keys() - set(more))[: extras - len(more)]
    due = dict.fromkeys(members, quota) | dict.fromkeys(more, quota + 1)
    rest = [(topic, number) for topic, numbers in left.items() for number in numbers]
    changed: dict[str, set[tuple[str, int]]] = {}
    short: list[str] = []
    for name, member in members.items():
        if loads[name] < due[name]:
            short.append(name)
        if loads[name] != due[name] or member.had_more:
            mine = [(number, topic) for topic, row in member.owned.items() for number in row]
            if loads[name] > due[name]:
                # it keeps the lowest numbers, so that it gives up some of each topic
                mine.sort()
                rest += ((topic, number) for number, topic in mine[due[name] :])
                del mine[due[name] :]
            changed[name] = {(topic, number) for number, topic in mine}
    waiting = deque(in_order(short))
    for partition in sorted(rest):
        name = waiting.popleft()
        changed[name].add(partition)
        if len(changed[name]) < due[name]:
            waiting.append(name)
    answer: dict[str, Numbers] = {name: _by_topic(mine) for name, mine in changed.items()}
    for name, numbers in answer.items():
        _check_room(name, due[name], len(numbers))
    return answer


def _check_room(name: str, partitions: int, topics: int) -> None:
    if _PARTITION_BYTES * partitions + _TOPIC_BYTES * topics > MOST_RECORD_BYTES:
        raise AssignorError(
            f"{name} would have {partitions} partitions of {topics} topics, too many for one record of "
            "__consumer_offsets: start more members"
        )


def _read_member(name: str, member: ServedMember) -> Member:
    instance_id, client_id, rack, topics, owned, _ = member
    partitions = chain.from_iterable(topic_partitions(repeat(topic), row) for topic, row in owned.items())
    return Member(name, Subscription(topics, None, tuple(partitions), 0, rack), instance_id, client_id)


def _by_topic(partitions: Collection[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(map(_NUMBER, row)) for topic, row in groupby(sorted(partitions), key=itemgetter(0))}


# --- in a separate process ----------------------------------------------------------------------------------


def to_frames(rows: Iterable[tuple[str, ServedMember | Numbers]]) -> Iterator[bytes]:
    """Encode members, or their targets, by member id, as frames."""
    part: dict[str, object] = {}
    size = 0
    for name, row in rows:
        part[name] = tuple(row) if isinstance(row, tuple) else row
        numbers = row.owned if isinstance(row, ServedMember) else row
        size += 1 + sum(map(len, numbers.values()))
        if size >= _FRAME:
            yield to_frame(part)
            part, size = {}, 0
    if part:
        yield to_frame(part)


def to_frame(value: object) -> bytes:
    """Encode one frame: its length as uint32, then the value as JSON."""
    data = json.dumps(value).encode()
    return _LENGTH.pack(len(data)) + data


def numbers_of(row: Mapping[str, Iterable[int]]) -> Numbers:
    """Convert partition numbers by topic from a frame."""
    return {topic: tuple(numbers) for topic, numbers in row.items()}


def length_of(head: bytes) -> int:
    """Length in bytes of the frame that follows ``head``."""
    return int(_LENGTH.unpack(head)[0])


def from_frame(data: bytes) -> Any:
    """Decode the value of a frame, without its length. Raises KohortError."""
    try:
        return json.loads(data)
    except ValueError as error:
        raise KohortError(f"a frame that cannot be read: {error}") from error


def main() -> None:
    """Compute targets for a coordinator, until standard input ends. The argument is the assignor's name.

    For each target, standard input has frames with the topics, the members (in several frames) and None.
    Standard output then gets frames with the changed targets and a last one with the error, or "". What the
    assignor prints goes to standard error. The process ends at once when standard input ends, even while the
    assignor hangs.
    """
    import queue
    import threading

    # an assignor may take all memory: the system is to end this process, and not the broker
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    asked = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(asked, waiting), daemon=True).start()
    spec = sys.argv[1]
    while True:
        topics = waiting.get()
        members: dict[str, ServedMember] = {}
        while (part := waiting.get()) is not None:
            members.update((name, _to_served(*row)) for name, row in part.items())
        answers.writelines(_answer_request(spec, topics, members))
        answers.flush()


def _to_served(
    instance: str | None,
    client: str,
    rack: str | None,
    topics: list[str],
    owned: Mapping[str, list[int]],
    more: bool,
) -> ServedMember:
    return ServedMember(instance, client, rack, tuple(topics), numbers_of(owned), more)


def _answer_request(
    spec: str, topics: Mapping[str, int], members: Mapping[str, ServedMember]
) -> Iterable[bytes]:
    try:
        changed = changed_targets(load_server_assignor(spec), topics, members)
    except AssignorError as error:
        return [to_frame(str(error))]
    except BaseException as error:  # an assignor may raise anything
        return [to_frame(f"{type(error).__name__}: {error}")]
    return [*to_frames(changed.items()), to_frame("")]


def _read_requests(asked: IO[bytes], waiting: Any) -> None:
    try:
        while head := asked.read(_LENGTH.size):
            waiting.put(from_frame(asked.read(length_of(head))))
    finally:
        # even in the middle of a frame, as when the broker was killed: nothing else would end this process
        os._exit(0)
