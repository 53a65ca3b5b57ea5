"""A member's assignors: what it offers when joining, what it runs as leader. They are anyone's code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..assignors import Assignor, MeasuringAssignor, TopicInfo
from ..protocol import Subscription, TopicPartition, encode_subscription
from ..client.errors import ConfigError
from .events import AssignmentRefused, AssignorFailed, Event
from .leader import Led, WrongAssignmentError, assign, rebalance_protocol, with_leaving


class Strategies:
    """``assignors`` in the order of preference. What they do wrong is reported, and gone around."""

    def __init__(self, assignors: Sequence[Assignor], report: Callable[[Event], None]) -> None:
        self._assignors = {assignor.name: assignor for assignor in assignors}
        if len(self._assignors) < len(assignors):
            raise ConfigError("two assignors have the same name: a group tells them apart by it")
        try:
            self.protocol = rebalance_protocol(assignors)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        self._broken: set[str] = set()
        #: Whether the broken ones are offered all the same, behind the others.
        self._needed = False
        self._report = report

    def __contains__(self, name: str) -> bool:
        return name in self._assignors

    def offer(
        self,
        topics: Sequence[str],
        owned: Iterable[TopicPartition],
        generation: int,
        rack: str | None,
        *,
        leaving: bool = False,
    ) -> list[tuple[str, bytes]]:
        """Name and subscription for JoinGroup; without the assignors that failed, if others are left."""
        names = sorted(self._assignors, key=lambda name: name in self._broken)
        whole = [name for name in names if name not in self._broken]
        claims = tuple(sorted(owned))
        offered = []
        for name in names if self._needed else whole or names:
            data = self._user_data(name, topics)
            data = with_leaving(data) if leaving else data
            offered.append(
                (name, encode_subscription(Subscription(tuple(topics), data, claims, generation, rack)))
            )
        return offered

    def take_back(self) -> bool:
        """Offer also what failed: the other members have nothing else in common with this one.

        False if that has been tried, or nothing was withdrawn: then there is no way to go on.
        """
        was_needed, self._needed = self._needed, bool(self._broken)
        return self._needed and not was_needed

    def worth_another_round(self, name: str) -> bool:
        """Whether the group's assignor failed here and there is another to agree on."""
        return name in self._broken and not self._needed and len(self._broken) < len(self._assignors)

    def measuring(self, name: str) -> MeasuringAssignor | None:
        """The assignor of this name, if it wants to be told weights."""
        assignor = self._assignors[name]
        return assignor if isinstance(assignor, MeasuringAssignor) else None

    def assign(self, name: str, led: Led, topics: Mapping[str, TopicInfo]) -> dict[str, bytes]:
        """As leader: everyone's share."""
        done = assign(self._assignors[name], self.protocol, led, topics)
        if done.failure is not None:
            self._failed(name, done.failure, done.used)
        for member, why in led.unreadable.items():
            self._report(AssignmentRefused(f"the subscription of {member} cannot be read: {why}"))
        return done.assignments

    def adopted(self, name: str, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Tell the group's assignor what this member got."""
        try:
            self._assignors[name].on_assignment(sorted(partitions), generation)
        except Exception as error:
            self._failed(name, error, name)

    def _user_data(self, name: str, topics: Sequence[str]) -> bytes | None:
        try:
            return self._assignors[name].user_data(topics)
        except Exception as error:
            self._failed(name, error, name)
            return None

    def _failed(self, name: str, error: Exception, used: str) -> None:
        self._broken.add(name)
        partitions = error.partitions if isinstance(error, WrongAssignmentError) else ()
        self._report(AssignorFailed(name, error, used, partitions))
