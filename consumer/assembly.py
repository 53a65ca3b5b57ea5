"""Builds the parts of a consumer from its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..assignors import Assignor, load_assignor
from ..client.cluster import Cluster
from ..client.errors import ConfigError
from ..client.pool import SURROUNDINGS
from ..client.waiting import Backoff, Signal
from ..protocol import ErrorCode, KohortError
from .committer import Committer
from .config import ConsumerConfig
from .consumer_membership import ConsumerMembership
from .delivery import Delivery
from .driver import Driver
from .errors import FatalGroupError
from .events import Event, LoopBlocked
from .fetcher import Fetcher
from .group_errors import fatal_text
from .handover import Callbacks, Handover
from .member import GroupMember
from .membership import Membership
from .positions import Positions
from .selection import ManualAssignment
from .start_offsets import Reading
from .tracker import Tracker
from .watchdogs import LoopWatch, PollWatch

#: The version of ConsumerGroupHeartbeat with regular expressions.
_PATTERNS_VERSION = 1


class Parts:
    """The parts of one consumer, not connected. Raises ConfigError for assignors that cannot be used."""

    def __init__(
        self,
        config: ConsumerConfig,
        callbacks: Callbacks,
        *,
        manual: bool = False,
        wake: Callable[[], None],
        report: Callable[[Event], None],
        failed: Callable[[Exception], None],
    ) -> None:
        rng = SURROUNDINGS.get().make_random()
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, rng=rng)
        settled = Signal()
        self.cluster = make_cluster(config)
        self._config, self._rng = config, rng
        self.membership: GroupMember
        if manual:
            self.membership = ManualAssignment(config, _assignors(config.assignor), rng)
        else:
            self.membership = ConsumerMembership(config, rng) if config.needs_consumer else self._classic()
        self.positions = Positions(config.auto_offset_reset)
        self.tracker = Tracker(commits=config.commits)
        self.delivery = Delivery(
            self.positions,
            self.tracker,
            max_undone=config.max_undone_records,
            held_limit_bytes=config.prefetch_max_bytes,
            wake=wake,
            report=report,
            hungry=lambda: self.fetcher.wake(),
        )
        self.watch = PollWatch(config.max_poll_interval_ms, taken=lambda: self.delivery.taken_one_by_one)
        self.loop_watch = LoopWatch(
            config.heartbeat_interval_ms, lambda late_ms, what: report(LoopBlocked(late_ms, what))
        )
        self.driver = Driver(
            config,
            self.cluster,
            self.membership,
            self.delivery,
            self.watch,
            backoff=backoff,
            settled=settled,
            report=report,
            failed=failed,
            polled=wake,
            turn_classic=lambda: self._take(self._classic()),
        )
        reading = Reading(
            self.cluster,
            self.positions,
            self.delivery,
            backoff,
            report,
            polled=wake,
            member=lambda: self.membership.identity,
        )
        self.fetcher = Fetcher(reading, config)
        self.committer = Committer(
            config,
            self.cluster,
            self.membership,
            self.tracker,
            backoff=backoff,
            settled=settled,
            carry_out=self.driver.carry_out,
            report=report,
            manual=manual,
            read_in=self.positions.topic_id,
        )
        self.handover = self.driver.handover = Handover(
            config,
            callbacks,
            self.positions,
            self.delivery,
            self.tracker,
            self.committer,
            announced=self.fetcher.wake,
            revocation_done=self.driver.revocation_done,
            report=report,
        )

    async def choose_protocol(self) -> None:
        """Once connected: the membership that the settings ask for and the brokers offer.

        Raises FatalGroupError if they do not offer the only one that is asked for.
        """
        config = self._config
        if not config.may_be_consumer or isinstance(self.membership, ManualAssignment):
            return
        version = await self.cluster.consumer_group_version()
        if version >= 0:
            patterns = version >= _PATTERNS_VERSION
            self._take(ConsumerMembership(config, self._rng, takes_patterns=patterns))
        elif config.needs_consumer:
            raise FatalGroupError(fatal_text(ErrorCode.UNSUPPORTED_VERSION, config.group, None))

    def _classic(self) -> GroupMember:
        return Membership(self._config, _assignors(self._config.assignor), self._rng)

    def _take(self, membership: GroupMember) -> None:
        self.membership = self.driver.membership = self.committer.membership = membership


def make_cluster(config: ConsumerConfig) -> Cluster:
    """A cluster client with a consumer's settings, which has not connected."""
    return config.cluster(config.default_api_timeout_ms)


def _assignors(given: Any) -> list[Assignor]:
    specs = list(given) if isinstance(given, list | tuple) else [given]
    if not specs:
        raise ConfigError("assignor is empty: give a name, a class or an instance, or several")
    try:
        return [load_assignor(spec) for spec in specs]
    except KohortError as error:
        raise ConfigError(f"assignor={given!r}: {error}") from error
