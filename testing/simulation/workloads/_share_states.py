"""What share coordinators were asked and have answered, and what follows from it for later answers.

An epoch that is known when a request begins fences it if its own is lower, and what was answered before a
leader began to read is in what it reads: at whichever broker the state is by then. A leader may give up a
request for another one; the answer to the first is none then, whatever it says.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from ....protocol import ApiKey, SharePartitionKey
from ..brokers._world import AnyWorld

_UNKNOWN: Final = -1
_REPLACES: Final = frozenset({ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE})

#: A share partition's row in a request or response of APIs 83 to 87.
StateRow: TypeAlias = Any
#: First and last offset, state and delivery count.
_Batch: TypeAlias = "tuple[int, int, int, int]"
#: Delivery count and state of an offset, as share coordinators compare them.
_Rank = tuple[int, int]


@dataclass(slots=True, eq=False)
class _KnownState:
    """What is known of the state of a share partition since it was replaced or deleted last."""

    leader_epoch: int = _UNKNOWN
    state_epoch: int = _UNKNOWN
    start: int = _UNKNOWN
    ranks: dict[int, _Rank] = field(default_factory=dict)


class AskedState(NamedTuple):
    """A row of a request that a share coordinator begins with, and what was known then."""

    api: ApiKey
    key: SharePartitionKey
    row: StateRow
    stored: _KnownState
    leader_epoch: int
    state_epoch: int


class BegunRead(NamedTuple):
    """A read that a leader begins with, and what was answered before: it has to find that."""

    key: SharePartitionKey
    stored: _KnownState
    start: int
    ranks: Mapping[int, _Rank]


class ShareStateLedger:
    """Looks at what share coordinators are asked, at their answers, and at what leaders read."""

    def __init__(self, world: AnyWorld) -> None:
        self._world = world
        self._stored: dict[SharePartitionKey, _KnownState] = {}
        #: Numbered requests that were answered as carried out.
        self._carried_out: set[tuple[SharePartitionKey, int]] = set()

    def __repr__(self) -> str:
        return f"ShareStateLedger({len(self._stored)} share partitions)"

    def on_request(self, api: ApiKey, rows: Iterable[tuple[SharePartitionKey, StateRow]]) -> list[AskedState]:
        """Note what a share coordinator is asked."""
        return [self._begin(api, key, row) for key, row in rows]

    def _begin(self, api: ApiKey, key: SharePartitionKey, row: StateRow) -> AskedState:
        known = self._stored.setdefault(key, _KnownState())
        stored = known
        if api in _REPLACES:
            # whether it was carried out or not: what was known before need not hold
            stored = self._stored[key] = _KnownState()
        return AskedState(api, key, row, stored, known.leader_epoch, known.state_epoch)

    def on_answer(
        self,
        asked: Sequence[AskedState],
        results: Sequence[StateRow],
        former: Container[SharePartitionKey] = (),
    ) -> None:
        """Look at the answers, in their order. Whoever answers had the states of ``former`` before, and may
        not know yet that others have them: a leader that is as late may read there, which changes nothing.
        """
        for each, result in zip(asked, results, strict=True):
            if not result.error_code and self._stored.get(each.key) is each.stored:
                if not self._is_repeated(each) and (
                    each.api is not ApiKey.READ_SHARE_GROUP_STATE or each.key not in former
                ):
                    self._check_fences(each)
                self._learn(each, result)

    def _is_repeated(self, asked: AskedState) -> bool:
        """Return whether a request was carried out before. Its repetition changes nothing, also at a broker
        that does not know yet that another one has the state.
        """
        if asked.api not in _REPLACES or asked.row.order < 0:
            return False
        number = asked.key, asked.row.order
        is_repeated = number in self._carried_out
        self._carried_out.add(number)
        return is_repeated

    def _check_fences(self, asked: AskedState) -> None:
        leader, state = (getattr(asked.row, f"{each}_epoch", _UNKNOWN) for each in ("leader", "state"))
        for what, told, known in (
            ("leader", leader, asked.leader_epoch),
            ("state", state, asked.state_epoch),
        ):
            if _UNKNOWN != told < known:
                text = f"{asked.api.name} of {asked.key} with {what} epoch {told} is carried out"
                self._world.found("Q16", f"{text}, though {known} was known")

    def _learn(self, asked: AskedState, result: StateRow) -> None:
        stored, row = asked.stored, asked.row
        if asked.api is ApiKey.READ_SHARE_GROUP_STATE:
            stored.leader_epoch = max(stored.leader_epoch, row.leader_epoch)
            stored.state_epoch = max(stored.state_epoch, result.state_epoch)
            stored.start = max(stored.start, result.start_offset)
        elif asked.api is ApiKey.WRITE_SHARE_GROUP_STATE:
            stored.start = max(stored.start, row.start_offset)
            for offset, rank in _ranks_in(row.state_batches).items():
                stored.ranks[offset] = max(rank, stored.ranks.get(offset, rank))
        elif asked.api is ApiKey.INITIALIZE_SHARE_GROUP_STATE:
            stored.state_epoch = max(stored.state_epoch, row.state_epoch)

    # --- leaders ------------------------------------------------------------------------------------------

    def on_read(self, key: SharePartitionKey) -> BegunRead:
        """Note what is known when a leader begins to read."""
        known = self._stored.setdefault(key, _KnownState())
        return BegunRead(key, known, known.start, dict(known.ranks))

    def on_found(self, begun: BegunRead, start: int, batches: Iterable[_Batch]) -> None:
        """Look at what a leader has read."""
        if self._stored.get(begun.key) is not begun.stored:
            return
        if start < begun.start:
            self._world.found("Q17", f"{begun.key} is read to begin at {start}, and was at {begun.start}")
        found = _ranks_in(batches)
        for offset, rank in begun.ranks.items():
            if offset >= start and found.get(offset, (0, 0)) < rank:
                text = f"{offset} of {begun.key} is read as {found.get(offset)}"
                self._world.found("Q17", f"{text} (delivery count and state), and was answered as {rank}")
                return


def _ranks_in(batches: Iterable[_Batch]) -> dict[int, _Rank]:
    return {
        offset: (count, state) for first, last, state, count in batches for offset in range(first, last + 1)
    }
