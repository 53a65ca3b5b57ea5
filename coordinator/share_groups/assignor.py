"""The assignor of share groups, ``simple`` (KIP-932): every partition has a member, members have about as
much as others, and keep what they have.

What it promises are counts, as Apache Kafka's do; who has which partition differs. With the same topics for
all members, a partition has ceil(members / partitions) of them, and any two members have equally many
partitions, but for one. With different topics that holds for each topic and the members that subscribe to it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from ...offsets_topic import Partitions

#: A partition: its topic's place among the topics, as hashing ids takes Python long, and its number.
Place: TypeAlias = tuple[int, int]


def assign_partitions(
    topics: Mapping[UUID, Sequence[int]], members: Mapping[str, set[UUID]], before: Mapping[str, Partitions]
) -> dict[str, Partitions]:
    """Assign the partitions of ``topics`` to the ``members`` that subscribe to them. ``before`` is what they
    had. Takes time in proportion to members and partitions.
    """
    nth = {topic_id: at for at, topic_id in enumerate(topics)}
    of_topic: dict[UUID, list[str]] = {topic_id: [] for topic_id in topics}
    for member_id, wanted in members.items():
        for topic_id in wanted:
            if topic_id in of_topic:
                of_topic[topic_id].append(member_id)
    # members are in the same order everywhere
    readers: dict[tuple[str, ...], list[UUID]] = defaultdict(list)
    for topic_id, some in of_topic.items():
        readers[tuple(some)].append(topic_id)
    given: dict[str, set[Place]] = {member_id: set() for member_id in members}
    is_alike = len([each for each in readers if each]) == 1
    for subscribers, own in readers.items():
        # topics that all read are one pool: with one partition each they would else all go to the same
        # members
        pools = [own] if is_alike else [[topic_id] for topic_id in own]
        for pool in pools if subscribers else ():
            places = [(nth[topic_id], number) for topic_id in pool for number in topics[topic_id]]
            had = {
                member: [
                    (nth[topic_id], number)
                    for topic_id in pool
                    for number in sorted(set(before.get(member, {}).get(topic_id, ())))
                ]
                for member in subscribers
            }
            _spread_places(places, had, given)
    ids = list(topics)
    return {member_id: _by_topic(places, ids) for member_id, places in given.items()}


def _spread_places(
    places: Sequence[Place], had: Mapping[str, Sequence[Place]], given: Mapping[str, set[Place]]
) -> None:
    """Give each place to ceil(members / places) members, and each member as many as others, but for one.
    ``had`` is what the members had, and may have places that are no more.
    """
    if not places:
        return
    members = list(had)
    holders: dict[Place, set[str]] = {place: set() for place in places}
    sharing = -(-len(members) // len(places))
    least, more = divmod(len(places) * sharing, len(members))
    kept = {member: [place for place in some if place in holders] for member, some in had.items()}
    # one more goes to those that have least so far of other topics, and then to those that had it
    order = sorted(members, key=lambda member: (len(given[member]), -len(kept[member])))
    room = {member: least + (rank < more) for rank, member in enumerate(order)}
    mine: dict[str, set[Place]] = {member: set() for member in members}
    for member in members:
        for place in kept[member]:
            if room[member] and len(holders[place]) < sharing:
                _give_place(member, place, holders, mine, room)
    _fill_places(sharing, holders, mine, room)
    for member, some in mine.items():
        given[member].update(some)


def _fill_places(
    sharing: int, holders: Mapping[Place, set[str]], mine: dict[str, set[Place]], room: dict[str, int]
) -> None:
    """Give the members that have room the places that lack members: first to those with the most room."""
    heap = [(-left, rank, member) for rank, (member, left) in enumerate(room.items()) if left]
    heapq.heapify(heap)
    for place, present in holders.items():
        held = []
        while len(present) < sharing:
            while heap and heap[0][2] in present:
                held.append(heapq.heappop(heap))
            if heap:
                _, rank, member = heapq.heappop(heap)
            else:
                # all that have room have this place. One without it is full, with as many others at least:
                # one of these the first lacks, and they swap
                _, rank, member = held.pop()
                other = next(each for each in mine if each not in present)
                passed = next(each for each in mine[other] if each not in mine[member])
                holders[passed].remove(other)
                mine[other].remove(passed)
                room[other] += 1
                _give_place(member, passed, holders, mine, room)
                _give_place(other, place, holders, mine, room)
                if room[member]:
                    held.append((-room[member], rank, member))
                continue
            _give_place(member, place, holders, mine, room)
            if room[member]:
                held.append((-room[member], rank, member))
        for entry in held:
            heapq.heappush(heap, entry)


def _give_place(
    member: str,
    place: Place,
    holders: Mapping[Place, set[str]],
    mine: Mapping[str, set[Place]],
    room: dict[str, int],
) -> None:
    holders[place].add(member)
    mine[member].add(place)
    room[member] -= 1


def _by_topic(places: set[Place], topics: Sequence[UUID]) -> Partitions:
    """Order what a member has: topics as they are given, partitions by number."""
    rows: dict[int, list[int]] = {}
    for nth, number in sorted(places):
        rows.setdefault(nth, []).append(number)
    return {topics[nth]: tuple(row) for nth, row in rows.items()}
