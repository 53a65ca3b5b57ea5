"""Fewest moves among all assignments of best balance: a min-cost flow that starts from "everyone keeps all".

Flow runs from equivalence class to member to sink; a unit is one partition. Taking a unit from its owner
costs a move, and giving it back refunds it, so the start costs nothing and is optimal, but breaks the bounds
on loads. Excess (at members above their block's high, at unowned partitions) is pushed along cheapest paths
to nodes that lack units (successive shortest paths with potentials; for each distance, blocking flows over
the tight arcs). Each block of the best balance has a sink of its own, so that its total does not change.

A unit given to a member in another rack costs a mismatch. The more important cost outweighs all others of a
path: a path passes each node once, so it has fewer of the others than there are nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ..protocol import has_native
from ._balanced_loads import Block
from ._group import IndexedGroup

NATIVE = has_native("assignors")
if NATIVE:
    from ._native import least_moves

_UNBOUNDED = 1 << 60
#: Costs are up to loads times nodes squared; C's numbers have so many bits for the latter.
_COST_BITS = 30


@dataclass(frozen=True, slots=True)
class Preferences:
    """Goals besides balance.

    ``elsewhere``: for each class, the members in other racks than its partitions. ``racks_first``: avoiding a
    mismatch is worth any number of moves; otherwise avoiding a move is worth any number of mismatches.
    ``slack``: how many partitions loads may be outside the bounds of best balance if that saves moves.
    """

    elsewhere: Sequence[frozenset[int]] = ()
    racks_first: bool = True
    slack: int = 0


def fewest_moves(
    group: IndexedGroup, own: list[list[int]], blocks: list[Block], preferences: Preferences | None = None
) -> list[list[int]]:
    """Return given[class][member] of best balance that takes as few units as possible from their owners.

    ``group`` has classes (or topics) and members. ``own``: what members own, by class and member; 0 for a
    member that does not subscribe. ``blocks``: the bounds of best balance.
    """
    wanted = preferences or Preferences()
    if NATIVE and wanted.slack < _UNBOUNDED >> _COST_BITS:
        bounds = [(block.members, block.low, block.high, block.total) for block in blocks]
        return least_moves(group, own, bounds, wanted.elsewhere, wanted.racks_first, wanted.slack)
    return _Flow(group, own, blocks, wanted).run()


@dataclass(slots=True)
class _Flow:
    """Nodes are numbered: members, then classes, then sinks."""

    group: IndexedGroup
    own: list[list[int]]
    blocks: list[Block]
    preferences: Preferences
    given: list[list[int]] = field(init=False)
    keep: list[list[int]] = field(init=False)  # by class and member: cost of a unit that the member owns
    gain: list[list[int]] = field(init=False)  # by class and member: cost of a unit that it does not own
    first_class: int = field(init=False)
    first_sink: int = field(init=False)
    sinks: list[list[int]] = field(init=False)  # members of each sink
    nodes: int = field(init=False)
    slope: int = field(init=False)  # how much more each unit of a load costs than the previous one
    sink_of: list[int] = field(init=False)
    low: list[int] = field(init=False)
    high: list[int] = field(init=False)
    counted: list[int] = field(init=False)  # flow from member to sink, within the member's bounds
    excess: list[int] = field(init=False)  # by node; negative: units are missing
    potential: list[int] = field(init=False)

    def __post_init__(self) -> None:
        group, slack = self.group, self.preferences.slack
        self.first_class = len(group.member_ids)
        self.first_sink = self.first_class + len(group.topics)
        # with slack, blocks may exchange units, so they share one sink
        self.sinks = [group.active] if slack else [block.members for block in self.blocks]
        self.nodes = self.first_sink + len(self.sinks)
        self.slope = 1 if slack else 0
        self.sink_of, self.low, self.high = ([0] * self.first_class for _ in range(3))
        for b, block in enumerate(self.blocks):
            for m in block.members:
                self.sink_of[m] = self.first_sink + (0 if slack else b)
                self.low[m], self.high[m] = max(0, block.low - slack), block.high + slack
        self._update_prices()
        self._start()

    def _update_prices(self) -> None:
        later = max(self.high, default=0) * self.slope + 1
        first = later * (self.nodes + 1)
        elsewhere = self.preferences.elsewhere
        if not any(elsewhere):
            rack, move = 0, later
        else:
            rack, move = (first, later) if self.preferences.racks_first else (later, first)
        self.gain = [[0] * self.first_class] * len(self.group.topics)
        self.keep = [[-move] * self.first_class] * len(self.group.topics)
        for p, members in enumerate(elsewhere):
            if members:
                self.gain[p] = [rack if m in members else 0 for m in range(self.first_class)]
                self.keep[p] = [cost - move for cost in self.gain[p]]

    def _start(self) -> None:
        """Start with all units that are worth keeping at their owners; flow to sinks is within the bounds."""
        group = self.group
        self.given = [row[:] for row in self.own]
        for p, away in enumerate(self.preferences.elsewhere):
            for m in away:
                if self.keep[p][m] > 0:
                    self.given[p][m] = 0
        self.excess = [0] * self.nodes
        self.potential = [0] * self.nodes
        self.counted = [0] * self.first_class
        for p, (count, row) in enumerate(zip(group.partition_counts, self.given, strict=True)):
            self.excess[self.first_class + p] = count - sum(row)
        level = sum(group.partition_counts) // max(1, len(group.active)) if self.slope else 0
        for s, members in enumerate(self.sinks):
            self.potential[self.first_sink + s] = level
            for m in members:
                load = sum(self.given[p][m] for p in group.wanted[m])
                self.counted[m] = min(max(level if self.slope else load, self.low[m]), self.high[m])
                self.excess[m] = load - self.counted[m]
        totals = [sum(group.partition_counts)] if self.slope else [block.total for block in self.blocks]
        for s, (members, total) in enumerate(zip(self.sinks, totals, strict=True)):
            self.excess[self.first_sink + s] = sum(self.counted[m] for m in members) - total

    def run(self) -> list[list[int]]:
        while any(units > 0 for units in self.excess):
            self._raise_potentials()
            while self._push_along_tight_arcs():
                pass
        return self.given

    def _heads_of(self, node: int) -> Iterator[int]:
        """Nodes to which flow may go from ``node``."""
        if node < self.first_class:
            for p in self.group.wanted[node]:
                if self.given[p][node]:
                    yield self.first_class + p
            yield self.sink_of[node]
        elif node < self.first_sink:
            yield from self.group.subscribers[node - self.first_class]
        else:
            yield from self.sinks[node - self.first_sink]

    def _arc_between(self, tail: int, head: int) -> tuple[int, int]:
        """Cost of the next unit, and number of units at that cost."""
        if tail >= self.first_sink:
            return self._bound_arc(-self.slope * self.counted[head], self.counted[head] - self.low[head])
        if head >= self.first_sink:
            return self._bound_arc(
                self.slope * (self.counted[tail] + 1), self.high[tail] - self.counted[tail]
            )
        if tail >= self.first_class:
            p = tail - self.first_class
            missing = self.own[p][head] - self.given[p][head]
            return (self.keep[p][head], missing) if missing > 0 else (self.gain[p][head], _UNBOUNDED)
        p = head - self.first_class
        units = self.given[p][tail]
        gained = units - self.own[p][tail]
        return (-self.gain[p][tail], gained) if gained > 0 else (-self.keep[p][tail], units)

    def _bound_arc(self, cost: int, room: int) -> tuple[int, int]:
        """With ``slope`` the cost changes with each unit, so it applies to one unit only."""
        return cost, min(room, 1) if self.slope else room

    def _reduced_cost(self, tail: int, head: int) -> int | None:
        """Reduced cost of an arc, never below 0; None if the arc has no room."""
        cost, room = self._arc_between(tail, head)
        return cost + self.potential[tail] - self.potential[head] if room > 0 else None

    def _raise_potentials(self) -> None:
        """Make the cheapest paths from excess to missing units tight (Dijkstra with buckets by cost)."""
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
            self._scan_bucket(bucket, reach, distance, buckets)
            if any(self.excess[node] < 0 and distance[node] == reach for node in bucket):
                break
        for node in range(self.nodes):
            self.potential[node] += min(distance[node], reach)

    def _scan_bucket(
        self, bucket: list[int], reach: int, distance: list[int], buckets: dict[int, list[int]]
    ) -> None:
        for tail in bucket:
            if distance[tail] != reach:
                continue
            for head in self._heads_of(tail):
                if distance[head] <= reach:
                    continue
                cost = self._reduced_cost(tail, head)
                if cost is not None and reach + cost < distance[head]:
                    distance[head] = reach + cost
                    # at cost 0 it joins the bucket of this loop
                    (bucket if cost == 0 else buckets.setdefault(reach + cost, [])).append(head)

    def _push_along_tight_arcs(self) -> bool:
        """Push one blocking flow over arcs of reduced cost 0; return whether any unit moved."""
        depth, onward = self._build_layers()
        moved = False
        for start in range(self.nodes):
            while self.excess[start] > 0 and depth[start] == 0:
                path = self._find_path(start, depth, onward)
                if not path:
                    break
                self._push_along(path)
                moved = True
        return moved

    def _build_layers(self) -> tuple[list[int], dict[int, list[int]]]:
        """Breadth-first depth of each node over tight arcs, and the tight arcs that lead one deeper."""
        depth = [0 if units > 0 else -1 for units in self.excess]
        onward: dict[int, list[int]] = {}
        queue = deque(node for node in range(self.nodes) if depth[node] == 0)
        while queue:
            tail = queue.popleft()
            tight = []
            for head in self._heads_of(tail):
                if depth[head] >= 0 and depth[head] != depth[tail] + 1:
                    continue
                if self._reduced_cost(tail, head) == 0:
                    tight.append(head)
                    if depth[head] < 0:
                        depth[head] = depth[tail] + 1
                        queue.append(head)
            onward[tail] = tight[::-1]  # _path takes from the end
        return depth, onward

    def _find_path(self, start: int, depth: list[int], onward: dict[int, list[int]]) -> list[int]:
        """A path from ``start`` to a node that lacks units, layer by layer; each dead end is tried once."""
        path = [start]
        while path:
            tail = path[-1]
            if self.excess[tail] < 0:
                return path
            heads = onward[tail]
            if not heads:
                depth[tail] = -1
                path.pop()
            elif depth[heads[-1]] == depth[tail] + 1 and self._reduced_cost(tail, heads[-1]) == 0:
                path.append(heads[-1])
            else:
                heads.pop()
        return []

    def _push_along(self, path: list[int]) -> None:
        steps = list(pairwise(path))
        units = min(self._arc_between(tail, head)[1] for tail, head in steps)
        units = min(units, self.excess[path[0]], -self.excess[path[-1]])
        for tail, head in steps:
            if tail >= self.first_sink:
                self.counted[head] -= units
            elif head >= self.first_sink:
                self.counted[tail] += units
            elif tail >= self.first_class:
                self.given[tail - self.first_class][head] += units
            else:
                self.given[head - self.first_class][tail] -= units
        self.excess[path[0]] -= units
        self.excess[path[-1]] += units
