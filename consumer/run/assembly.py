"""Builds the parts of a consumer from its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...assignors import Assignor, load_assignor
from ...client.cluster import Cluster
from ...client.errors import ConfigError
from ...client.offsets import CommittedOffset, commit_once
from ...client.surroundings import SURROUNDINGS
from ...client.waiting import Backoff, Signal
from ...protocol import ErrorCode, KohortError, TopicPartition
from ..config import ConsumerConfig
from ..done.committer import Committer
from ..done.tracker import Tracker
from ..errors import FatalGroupError
from ..event_lines import tell_blocked_loop
from ..events import Event, LoopBlocked
from ..group.classic import Membership
from ..group.consumer_group import ConsumerMembership
from ..group.errors import fatal_text
from ..group.manual import ManualAssignment
from ..group.member import GroupMember
from ..group.registry import RegistryMembership
from ..group.zookeeper import ZooKeeperRegistry, new_member_id
from ..reading.delivery import Delivery
from ..reading.fetcher import Fetcher
from ..reading.positions import Positions
from ..reading.start_offsets import ReadingContext
from .driver import Driver
from .handover import Callbacks, Handover
from .watchdogs import LoopWatch, PollWatch

if TYPE_CHECKING:
    from ..share.config import ShareConsumerConfig

#: The version of ConsumerGroupHeartbeat with regular expressions.
_PATTERNS_VERSION = 1


class ConsumerAssembly:
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
        self.membership, self.registry = self._make_member(manual=manual)
        self.positions = Positions(config.auto_offset_reset)
        self.tracker = Tracker(commits=config.commits)
        if self.registry is not None:
            self.tracker.with_metadata = False  # entries hold an offset and nothing else
        self.delivery = self._make_delivery(wake, report)
        self.watch = PollWatch(config.max_poll_interval_ms, taken=lambda: self.delivery.taken_one_by_one)
        self.loop_watch = LoopWatch(
            config.heartbeat_interval_ms,
            blocked=lambda late_ms, what: report(LoopBlocked(late_ms, what)),
            blocking=lambda late_ms, what: tell_blocked_loop(config.group, late_ms, what),
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
            turn_classic=lambda: self._take_membership(self._classic_member()),
            ask_registry=None if self.registry is None else self.registry.carry_out,
        )
        self.committer = Committer(
            config,
            self.cluster,
            self.membership,
            self.tracker,
            backoff=backoff,
            settled=settled,
            carry_out=self.driver.carry_out,
            report=report,
            manual=manual or config.dual_commit,
            store=None if self.registry is None else self._store_offsets,
            read_in=self.positions.topic_id,
            keeps_starts=config.commits and not manual,
        )
        self.fetcher = Fetcher(self._make_reading(backoff, wake, report), config)
        self.handover = self.driver.handover = Handover(
            config,
            callbacks,
            self.positions,
            self.delivery,
            self.tracker,
            self.committer,
            announced=self.fetcher.fetch_now,
            came=self.fetcher.wake,
            revocation_done=self.driver.revocation_done,
            report=report,
        )

    def _make_member(self, *, manual: bool) -> tuple[GroupMember, ZooKeeperRegistry | None]:
        """The member until brokers have said what they support; in ZooKeeper also the group's registry."""
        config, rng = self._config, self._rng
        if config.zookeeper and not manual:
            registry = ZooKeeperRegistry(
                config.zookeeper, config.group, config.session_timeout_ms, config.default_api_timeout_ms
            )
            return RegistryMembership(config, rng, new_member_id(config.group, rng)), registry
        if manual:
            _load_assignors(config.assignor)  # a wrong name is refused here too
            return ManualAssignment(config, rng), None
        return ConsumerMembership(config, rng) if config.needs_consumer else self._classic_member(), None

    def _make_delivery(self, wake: Callable[[], None], report: Callable[[Event], None]) -> Delivery:
        return Delivery(
            self.positions,
            self.tracker,
            max_undone=self._config.max_undone_records,
            held_limit_bytes=self._config.prefetch_max_bytes,
            wake=wake,
            report=report,
            on_room=lambda: self.fetcher.made_room(),
            on_jump=lambda: self.fetcher.wake(),
        )

    def _make_reading(
        self, backoff: Backoff, wake: Callable[[], None], report: Callable[[Event], None]
    ) -> ReadingContext:
        reading = ReadingContext(
            self.cluster,
            self.positions,
            self.delivery,
            backoff,
            report,
            polled=wake,
            # a later one takes its place when the brokers support another protocol
            member=lambda: self.membership.identity,
            first_seen=self.driver.first_seen,
            keep=self.committer.keep_starts,
        )
        return reading if self.registry is None else replace(reading, stored=self.registry.owned_offsets)

    async def choose_protocol(self) -> None:
        """Create the membership that the settings want and the brokers support; call it once connected.

        Raises FatalGroupError if the brokers do not support the only one that the settings allow.
        """
        config = self._config
        if self.registry is not None and isinstance(self.membership, RegistryMembership):
            await self.registry.open(self.membership, self.driver.carry_out)
            return
        if not config.may_be_consumer or isinstance(self.membership, ManualAssignment):
            return
        version = await self.cluster.consumer_group_version()
        if version >= 0:
            patterns = version >= _PATTERNS_VERSION
            self._take_membership(ConsumerMembership(config, self._rng, takes_patterns=patterns))
        elif config.needs_consumer:
            raise FatalGroupError(fatal_text(ErrorCode.UNSUPPORTED_VERSION, config.group, None))

    async def close(self) -> None:
        """Close connections and sessions."""
        if self.registry is not None:
            self.registry.close()
        await self.cluster.close()

    async def _store_offsets(
        self, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Mapping[TopicPartition, int]:
        """Store offsets in ZooKeeper; with dual_commit also in the group, which has no members."""
        assert self.registry is not None, "only a registry stores them"
        codes: dict[TopicPartition, int] = {**await self.registry.commit(offsets)}
        stored = {partition: offsets[partition] for partition, code in codes.items() if not code}
        if self._config.dual_commit and stored:
            codes |= await commit_once(self.cluster, self._config.group, stored, -1, "", None)
        return codes

    def _classic_member(self) -> GroupMember:
        return Membership(self._config, _load_assignors(self._config.assignor), self._rng)

    def _take_membership(self, membership: GroupMember) -> None:
        self.membership = self.driver.membership = self.committer.membership = membership


def make_cluster(config: ConsumerConfig | ShareConsumerConfig) -> Cluster:
    """A cluster client with the settings of a consumer of any kind, not connected yet."""
    return config.cluster(config.default_api_timeout_ms, config.max_response_bytes)


def _load_assignors(given: Any) -> list[Assignor]:
    specs = list(given) if isinstance(given, list | tuple) else [given]
    if not specs:
        raise ConfigError("assignor is empty: give a name, a class or an instance, or several")
    try:
        return [load_assignor(spec) for spec in specs]
    except KohortError as error:
        raise ConfigError(f"assignor={given!r}: {error}") from error
