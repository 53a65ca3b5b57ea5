"""Fewest moves among all assignments of best balance: a min-cost flow that starts from "everyone keeps all".

Flow runs topic -> member -> block. Taking a unit from its owner costs 1 and giving it back earns that again,
so the start costs nothing and cannot be improved upon; it only breaks the bounds on loads. What is too much
(at members above their block's high, at unowned partitions) is pushed to what is too little along cheapest
paths (successive shortest paths with potentials; on each distance, blocking flows over the tight arcs).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from ._group import Group
from ._levels import Block

_UNBOUNDED = 1 << 60


def fewest_moves(group: Group, own: list[list[int]], blocks: list[Block]) -> list[list[int]]:
    """given[topic][member] of best balance that takes as few units as possible from their owners.

    ``own`` has counts of the same shape, zero where a member does not subscribe.
    """
    return _Flow(group, own, blocks).run()


@dataclass(slots=True)
class _Flow:
    """Nodes are numbered: members, then topics, then blocks."""

    group: Group
    own: list[list[int]]
    blocks: list[Block]
    given: list[list[int]] = field(init=False)
    first_topic: int = field(init=False)
    first_block: int = field(init=False)
    nodes: int = field(init=False)
    block_of: list[int] = field(init=False)
    counted: list[int] = field(init=False)  # flow member -> block; within the block's bounds
    excess: list[int] = field(init=False)  # by node; below 0: wants more
    potential: list[int] = field(init=False)

    def __post_init__(self) -> None:
        group = self.group
        self.given = [row[:] for row in self.own]
        self.first_topic = len(group.member_ids)
        self.first_block = self.first_topic + len(group.topics)
        self.nodes = self.first_block + len(self.blocks)
        self.block_of = [-1] * self.first_topic
        self.counted = [0] * self.first_topic
        self.excess = [0] * self.nodes
        self.potential = [0] * self.nodes
        for t, count in enumerate(group.partition_counts):
            self.excess[self.first_topic + t] = count - sum(self.own[t])
        for b, block in enumerate(self.blocks):
            self._settle(b, block)

    def _settle(self, b: int, block: Block) -> None:
        sink = self.first_block + b
        self.excess[sink] = -block.total
        for m in block.members:
            self.block_of[m] = b
            load = sum(self.own[t][m] for t in self.group.wanted[m])
            self.counted[m] = min(max(load, block.low), block.high)
            self.excess[m] = load - self.counted[m]
            self.excess[sink] += self.counted[m]

    def run(self) -> list[list[int]]:
        while any(units > 0 for units in self.excess):
            self._raise_potentials()
            while self._push_along_tight_arcs():
                pass
        return self.given

    def _heads(self, node: int) -> Iterator[int]:
        """Where flow from ``node`` may go."""
        if node < self.first_topic:
            for t in self.group.wanted[node]:
                if self.given[t][node]:
                    yield self.first_topic + t
            yield self.first_block + self.block_of[node]
        elif node < self.first_block:
            yield from self.group.subscribers[node - self.first_topic]
        else:
            yield from self.blocks[node - self.first_block].members

    def _arc(self, tail: int, head: int) -> tuple[int, int]:
        """Cost of the next unit, and how many units go at that cost."""
        if tail >= self.first_block:
            return 0, self.counted[head] - self.blocks[tail - self.first_block].low
        if head >= self.first_block:
            return 0, self.blocks[head - self.first_block].high - self.counted[tail]
        if tail >= self.first_topic:
            t = tail - self.first_topic
            missing = self.own[t][head] - self.given[t][head]
            return (-1, missing) if missing > 0 else (0, _UNBOUNDED)
        t = head - self.first_topic
        units = self.given[t][tail]
        gained = units - self.own[t][tail]
        return (0, gained) if gained > 0 else (1, units)

    def _reduced(self, tail: int, head: int) -> int | None:
        """Cost of an arc by potentials, never below 0; None when it has no room."""
        cost, room = self._arc(tail, head)
        return cost + self.potential[tail] - self.potential[head] if room > 0 else None

    def _raise_potentials(self) -> None:
        """Make the cheapest paths from excess to want tight (Dijkstra with buckets: costs are tiny)."""
        distance = [_UNBOUNDED] * self.nodes
        buckets: dict[int, list[int]] = {0: []}
        for node, units in enumerate(self.excess):
            if units > 0:
                distance[node] = 0
                buckets[0].append(node)
        while True:
            assert buckets, "best balance is within reach of every group"
            reach = min(buckets)
            bucket = buckets.pop(reach)
            self._scan(bucket, reach, distance, buckets)
            if any(self.excess[node] < 0 and distance[node] == reach for node in bucket):
                break
        for node in range(self.nodes):
            self.potential[node] += min(distance[node], reach)

    def _scan(
        self, bucket: list[int], reach: int, distance: list[int], buckets: dict[int, list[int]]
    ) -> None:
        for tail in bucket:
            if distance[tail] != reach:
                continue
            for head in self._heads(tail):
                if distance[head] <= reach:
                    continue
                cost = self._reduced(tail, head)
                if cost is not None and reach + cost < distance[head]:
                    distance[head] = reach + cost
                    # at cost 0 it joins the bucket that is being read
                    (bucket if cost == 0 else buckets.setdefault(reach + cost, [])).append(head)

    def _push_along_tight_arcs(self) -> bool:
        """One blocking flow from excess to want over arcs of reduced cost 0; whether any unit moved."""
        depth, onward = self._layers()
        moved = False
        for start in range(self.nodes):
            while self.excess[start] > 0 and depth[start] == 0:
                path = self._path(start, depth, onward)
                if not path:
                    break
                self._push(path)
                moved = True
        return moved

    def _layers(self) -> tuple[list[int], dict[int, list[int]]]:
        """Breadth-first depths over tight arcs, and for each node where its tight arcs lead one deeper."""
        depth = [0 if units > 0 else -1 for units in self.excess]
        onward: dict[int, list[int]] = {}
        queue = deque(node for node in range(self.nodes) if depth[node] == 0)
        while queue:
            tail = queue.popleft()
            tight = []
            for head in self._heads(tail):
                if depth[head] >= 0 and depth[head] != depth[tail] + 1:
                    continue
                if self._reduced(tail, head) == 0:
                    tight.append(head)
                    if depth[head] < 0:
                        depth[head] = depth[tail] + 1
                        queue.append(head)
            onward[tail] = tight[::-1]  # used up from its end
        return depth, onward

    def _path(self, start: int, depth: list[int], onward: dict[int, list[int]]) -> list[int]:
        """A path from ``start`` to a node that wants more, layer by layer; dead ends are tried once."""
        path = [start]
        while path:
            tail = path[-1]
            if self.excess[tail] < 0:
                return path
            heads = onward[tail]
            if not heads:
                depth[tail] = -1
                path.pop()
            elif depth[heads[-1]] == depth[tail] + 1 and self._reduced(tail, heads[-1]) == 0:
                path.append(heads[-1])
            else:
                heads.pop()
        return []

    def _push(self, path: list[int]) -> None:
        steps = list(pairwise(path))
        units = min(self._arc(tail, head)[1] for tail, head in steps)
        units = min(units, self.excess[path[0]], -self.excess[path[-1]])
        for tail, head in steps:
            if tail >= self.first_block:
                self.counted[head] -= units
            elif head >= self.first_block:
                self.counted[tail] += units
            elif tail >= self.first_topic:
                self.given[tail - self.first_topic][head] += units
            else:
                self.given[head - self.first_topic][tail] -= units
        self.excess[path[0]] -= units
        self.excess[path[-1]] += units
