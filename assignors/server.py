"""Assignors on the coordinator's side (KIP-848): the class that plugs into a leader plugs in here, too.

The coordinator knows its members and what the last target gave to them, by topic and number. ``owned`` of a
member is its part of that target; there is no user data, and nobody calls ``on_assignment``. Each computation
has an instance of its own. kohort's own assignors may run where they are asked for; all others run in a
process of their own (:func:`main`), which may hang or crash: it is read and written in frames of
JSON, small enough that neither side is busy with one for long.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import IO, Any, Final, NamedTuple, TypeAlias

from ..protocol import KohortError, Subscription
from ._group import topic_partitions
from ._range_and_roundrobin import RangeAssignor
from ._sticky import UniformAssignor
from .base import Assignor, Member, TopicInfo, member_key
from .registry import AssignorError, load_assignor
from .validation import validate_assignment

#: kohort's own assignors of coordinators, by the names that members know them by.
OWN: Final[Mapping[str, type[Assignor]]] = {"uniform": UniformAssignor, "range": RangeAssignor}

#: Partitions of a member, by topic; numbers ascending.
Numbers: TypeAlias = Mapping[str, tuple[int, ...]]

#: Most bytes of a record of the log, which is what one member has, and of each partition and topic in it.
MOST_RECORD_BYTES: Final = 1_000_000
_PARTITION_BYTES: Final = 8
_TOPIC_BYTES: Final = 32

#: Partitions and members in one frame.
_FRAME: Final = 5_000
_LENGTH: Final = struct.Struct(">I")
_SHOWN_PROBLEMS: Final = 3
_NUMBER: Final = itemgetter(1)


class ServedMember(NamedTuple):
    """A member as the coordinator knows it; ``owned`` is its part of the last target, without topics that
    are gone (``had_more``).
    """

    instance_id: str | None
    client_id: str
    rack: str | None
    topics: tuple[str, ...]
    owned: Numbers
    had_more: bool = False


def load_server_assignor(spec: str) -> Assignor:
    """An assignor of the coordinator: one of :data:`OWN`, or a consumer's by name. Raises AssignorError."""
    own = OWN.get(spec)
    return load_assignor(spec) if own is None else own()


def changed_targets(
    assignor: Assignor, topics: Mapping[str, int], members: Mapping[str, ServedMember]
) -> dict[str, Numbers]:
    """The new target of each member whose target changes. Raises AssignorError for an answer that cannot be
    used, and what the assignor raises.
    """
    if type(assignor) is UniformAssignor and (quick := _few_moves(topics, members)) is not None:
        return quick
    known = {name: _member(name, member) for name, member in members.items()}
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
    """Compute the result of ``uniform`` faster for members that subscribe to the same topics: only members
    that get or lose partitions are examined. None if that is not possible.
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

    # who has one more, beginning with those that have it already
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
                # the lowest stay, so that it gives up some of each topic
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
            f"{name} would have {partitions} partitions of {topics} topics, for which a record has no room: "
            "start more members"
        )


def _member(name: str, member: ServedMember) -> Member:
    instance_id, client_id, rack, topics, owned, _ = member
    partitions = chain.from_iterable(topic_partitions(repeat(topic), row) for topic, row in owned.items())
    return Member(name, Subscription(topics, None, tuple(partitions), 0, rack), instance_id, client_id)


def _by_topic(partitions: Collection[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(map(_NUMBER, row)) for topic, row in groupby(sorted(partitions), key=itemgetter(0))}


# --- in a process of its own --------------------------------------------------------------------------------


def to_frames(rows: Iterable[tuple[str, ServedMember | Numbers]]) -> Iterator[bytes]:
    """Members, or their targets, as frames."""
    part: dict[str, Any] = {}
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


def to_frame(value: Any) -> bytes:
    """One frame: its length, then the value."""
    data = json.dumps(value).encode()
    return _LENGTH.pack(len(data)) + data


def numbers_of(row: Mapping[str, Iterable[int]]) -> Numbers:
    """Partitions by topic, as a frame has them."""
    return {topic: tuple(numbers) for topic, numbers in row.items()}


def length_of(head: bytes) -> int:
    """Bytes of the frame that begins so."""
    return int(_LENGTH.unpack(head)[0])


def from_frame(data: bytes) -> Any:
    """The value of a frame, without its length. Raises KohortError."""
    try:
        return json.loads(data)
    except ValueError as error:
        raise KohortError(f"a frame that cannot be read: {error}") from error


def main() -> None:
    """Serve a coordinator: topics, members, None come in; changed targets, then the error or "", go out.

    What the assignor prints goes to standard error. The process ends when nobody writes to it any more, also
    while an assignor hangs.
    """
    import queue
    import threading

    asked = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(asked, waiting), daemon=True).start()
    spec = sys.argv[1]
    while True:
        topics = waiting.get()
        members: dict[str, ServedMember] = {}
        while (part := waiting.get()) is not None:
            members.update((name, _served(*row)) for name, row in part.items())
        answers.writelines(_answer(spec, topics, members))
        answers.flush()


def _served(
    instance: str | None,
    client: str,
    rack: str | None,
    topics: list[str],
    owned: Mapping[str, list[int]],
    more: bool,
) -> ServedMember:
    return ServedMember(instance, client, rack, tuple(topics), numbers_of(owned), more)


def _answer(spec: str, topics: Mapping[str, int], members: Mapping[str, ServedMember]) -> Iterable[bytes]:
    try:
        changed = changed_targets(load_server_assignor(spec), topics, members)
    except AssignorError as error:
        return [to_frame(str(error))]
    except BaseException as error:  # it is anyone's code
        return [to_frame(f"{type(error).__name__}: {error}")]
    return [*to_frames(changed.items()), to_frame("")]


def _read(asked: IO[bytes], waiting: Any) -> None:
    try:
        while head := asked.read(_LENGTH.size):
            waiting.put(from_frame(asked.read(length_of(head))))
    finally:
        # also in the middle of a frame, where the broker was killed: nobody else would end this process
        os._exit(0)
