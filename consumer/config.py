"""A consumer's settings: Kafka's names in snake case, checked before anything connects.

This module imports pydantic, so it is loaded when a consumer is made and not with the package.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge
from pydantic import BeforeValidator, model_validator

from ..client.config import ClientSettings, positive, read_connected
from ..client.errors import ConfigError
from ..protocol import MAX_FRAME_BYTES
from ..settings import CONSUMER, MAX_INT, Row, Scope

_ZOOKEEPER = "zookeeper://"
_SERVER = re.compile(r"[^/,\s]+:([0-9]{1,5})")
_MAX_PORT = 65_535
#: Characters that no part of a path in ZooKeeper may have. It sees those beyond U+FFFF as two surrogates.
_NOT_IN_PATHS = re.compile(r"[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")
_NAMED_NOT_IN_PATHS = "control characters, or those beyond U+FFFF such as emoji"
#: Java's name of the policy to fail instead of resetting.
_RESET_ALIASES = {"none": "fail"}
#: Least notice of a leave where the coordinator assigns.
_NOTICE_MS = 6_000
#: Added to the rebalance timeout.
_REBALANCE_SLACK_MS = 5_000
#: Most bytes of a response around its records: of ten thousand partitions with nothing new, and of the
#: aborted transactions of others.
_AROUND_RECORDS_BYTES = 1_048_576
OffsetReset = Annotated[
    Literal["earliest", "latest", "fail"] | Annotated[int, Ge(0)],
    BeforeValidator(lambda value: _RESET_ALIASES.get(value, value) if isinstance(value, str) else value),
]

# Settings of whoever fetches: a member of a share group has them, too.
FetchMinBytes = Annotated[int, positive("bytes that a broker waits for before it answers a fetch")]
FetchMaxBytes = Annotated[int, positive("most bytes of one fetch")]
FetchMaxWaitMs = Annotated[
    int, Row("longest wait for fetch_min_bytes, less than request_timeout_ms", 0, MAX_INT)
]
CheckCrcs = Annotated[bool, Row("checksums of record batches are verified")]
DefaultApiTimeoutMs = Annotated[int, positive("longest duration of a call with its retries")]


def check_fetch_wait(fetch_max_wait_ms: int, request_timeout_ms: int) -> None:
    """Raise ValueError if a fetch may wait for longer than its answer is waited for."""
    if fetch_max_wait_ms >= request_timeout_ms:
        raise ValueError(
            f"fetch_max_wait_ms ({fetch_max_wait_ms}) must be less than request_timeout_ms "
            f"({request_timeout_ms}), or a fetch with nothing to give would be taken for lost"
        )


class ConsumerConfig(ClientSettings):
    """Settings of a consumer. Make it with :func:`consumer_config`, whose errors are written for people.

    Times are milliseconds. Defaults are Kafka's where Kafka has the setting.
    """

    SCOPE: ClassVar[Scope] = CONSUMER

    group: Annotated[
        str,
        Row(
            "consumer group; without one, partitions are assigned manually and nothing is committed",
            kafka="group.id",
            also=("group_id",),
            longest=32_767,
        ),
    ] = ""
    client_rack: Annotated[
        str, Row("rack of this client, for rack-aware assignors and the nearest replicas")
    ] = ""
    group_instance_id: Annotated[
        str | None, Row("makes the member static: no rebalance when it restarts", shortest=1, longest=32_767)
    ] = None
    protocol: Annotated[
        Literal["classic", "consumer", "auto"],
        Row(
            "who assigns: a member of the group, or the coordinator (KIP-848); auto: the coordinator, if it "
            "can and no other setting needs the classic protocol",
            kafka="group.protocol",
            also=("group_protocol",),
        ),
    ] = "classic"
    coordination: Annotated[
        str,
        Row(
            "who coordinates: the brokers; or nobody, members share partitions out by what they see of each "
            "other in a ZooKeeper, as Kafka 0.8's did (docs/registry.md)",
            allowed="'kafka' or 'zookeeper://HOST:PORT,.../CHROOT'",
        ),
    ] = "kafka"
    dual_commit: Annotated[
        bool,
        Row(
            "offsets that are stored in ZooKeeper are committed to the group too, to move it to the brokers",
            kafka="dual.commit.enabled",
        ),
    ] = False
    assignor: Annotated[
        Any,
        Row(
            "assignor, or several in the order of preference; with protocol 'consumer' the name of one of "
            "the broker's, by default its first",
            kafka="partition.assignment.strategy",
            allowed="a name, a class or an instance, or a list of these",
        ),
    ] = "cooperative-sticky"
    session_timeout_ms: Annotated[
        int,
        positive(
            "silence after which the group goes on without this member; with protocol 'consumer' the broker "
            "has its own, and this one only ends delivery"
        ),
    ] = 45_000
    heartbeat_interval_ms: Annotated[
        int,
        positive(
            "time between heartbeats, less than session_timeout_ms; unless it is set, the size of the group "
            "decides: 3 ms for each member, from 200 ms to the default (with protocol 'consumer': to the "
            "broker's interval)"
        ),
    ] = 3_000
    max_poll_interval_ms: Annotated[int, positive("longest time between two polls")] = 300_000
    rebalance_timeout_ms: Annotated[
        int | None,
        positive("how long a rebalance waits for this member; by default max_poll_interval_ms"),
    ] = None
    leave_notice_ms: Annotated[
        int | None,
        Row(
            "how long a closed consumer reads on at most, until others are ready to take over; 0: it leaves "
            "at once; by default twice heartbeat_interval_ms",
            0,
            MAX_INT,
        ),
    ] = None
    drain_timeout_ms: Annotated[
        int | None,
        Row(
            "how long a revocation waits for records that are delivered and not done; at most, and by "
            "default, nine tenths of the rebalance timeout",
            0,
            MAX_INT,
        ),
    ] = None
    auto_offset_reset: Annotated[
        OffsetReset,
        Row(
            "where to begin without a committed offset; a number: at the first record of that time or later",
            allowed="'earliest', 'latest', 'fail' or a time in milliseconds since 1970",
        ),
    ] = "latest"
    isolation_level: Annotated[
        Literal["read_uncommitted", "read_committed"],
        Row("whether records of open and aborted transactions are read"),
    ] = "read_uncommitted"
    enable_auto_commit: Annotated[
        bool, Row("records that are done are committed at intervals, before a revocation and at close")
    ] = True
    auto_commit_interval_ms: Annotated[int, positive("time between automatic commits")] = 5_000
    auto_done: Annotated[
        bool, Row("records count as done when the next ones are asked for; 'done' need not be called")
    ] = False
    max_poll_records: Annotated[int, Row("most records of one poll", 1)] = 500
    max_undone_records: Annotated[
        int, Row("records delivered and not done at which a partition's delivery pauses", 1)
    ] = 100_000
    fetch_min_bytes: FetchMinBytes = 1
    fetch_max_bytes: FetchMaxBytes = 52_428_800
    max_partition_fetch_bytes: Annotated[int, positive("most bytes of one partition in a fetch")] = 1_048_576
    fetch_max_wait_ms: FetchMaxWaitMs = 500
    receive_message_max_bytes: Annotated[
        int | None,
        positive(
            "largest response, at least fetch_max_bytes; a batch in a larger one fails its partition with "
            "BatchTooLargeError; by default 100 MiB, or more if fetches may be larger"
        ),
    ] = None
    prefetch_max_bytes: Annotated[
        int, positive("memory of fetched and undelivered records at which fetching pauses")
    ] = 67_108_864
    max_decompressed_batch_bytes: Annotated[
        int, positive("largest record batch after decompression; a larger one is a CorruptBatchError")
    ] = 67_108_864
    check_crcs: CheckCrcs = True
    default_api_timeout_ms: DefaultApiTimeoutMs = 60_000
    allow_auto_create_topics: Annotated[bool, Row("a broker may create topics that do not exist")] = False

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if "group" in self.model_fields_set and not self.group:
            raise ValueError("group='': give the group a name, or leave the setting out")
        if self.zookeeper is None and self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) must be less than session_timeout_ms "
                f"({self.session_timeout_ms}); a third of it is usual"
            )
        check_fetch_wait(self.fetch_max_wait_ms, self.request_timeout_ms)
        given, least = self.receive_message_max_bytes, self._fetched_bytes
        if given is not None and given < least:
            raise ValueError(
                f"receive_message_max_bytes ({given}) must be at least fetch_max_bytes "
                f"and max_partition_fetch_bytes ({least})"
            )
        self._check_coordination()
        if self.needs_consumer and not (self.assignor_is_default or isinstance(self.assignor, str)):
            raise ValueError(
                "protocol='consumer' lets the broker assign: give the name of one of its assignors, or none"
            )
        return self

    def _check_coordination(self) -> None:
        if self.coordination == "kafka":
            if self.dual_commit:
                raise ValueError(
                    "dual_commit is for coordination by ZooKeeper: brokers have the offsets anyway"
                )
            return
        if not self.coordination.startswith(_ZOOKEEPER):
            raise ValueError(
                f"coordination={self.coordination!r}: it is 'kafka', or "
                f"'{_ZOOKEEPER}HOST:PORT[,HOST:PORT...][/CHROOT]'"
            )
        check_registry(self.coordination.removeprefix(_ZOOKEEPER), self.group)
        for name in ("protocol", "assignor", "group_instance_id"):
            if name in self.model_fields_set:
                raise ValueError(
                    f"{name} is for groups that brokers coordinate: leave it out, or leave coordination out"
                )

    @property
    def zookeeper(self) -> str | None:
        """Address of the ZooKeeper through which the group shares its partitions; None for Kafka's
        protocols.
        """
        return None if self.coordination == "kafka" else self.coordination.removeprefix(_ZOOKEEPER)

    @property
    def assignor_is_default(self) -> bool:
        """Return whether no assignor is set."""
        return "assignor" not in self.model_fields_set

    @property
    def server_assignor(self) -> str | None:
        """The broker's assignor that is set; None without one."""
        return None if self.assignor_is_default else self.assignor

    @property
    def needs_consumer(self) -> bool:
        """Return whether the settings require the protocol of consumer groups."""
        return self.protocol == "consumer" or (self.protocol == "auto" and self.assignor == "uniform")

    @property
    def may_be_consumer(self) -> bool:
        """Return whether the protocol is used if the brokers support it: no setting needs the other one."""
        own = "session_timeout_ms" in self.model_fields_set
        free = not own and (self.assignor_is_default or self.assignor == "range")
        return self.needs_consumer or (self.protocol == "auto" and free)

    @property
    def may_turn_classic(self) -> bool:
        """Return whether a member of the consumer protocol may switch to the classic one."""
        return self.protocol == "auto" and not self.needs_consumer

    @property
    def rebalance_ms(self) -> int:
        """Rebalance timeout that is sent to the coordinator."""
        return self.rebalance_timeout_ms or self.max_poll_interval_ms

    @property
    def heartbeat_is_set(self) -> bool:
        """Return whether the user has set the time between heartbeats."""
        return "heartbeat_interval_ms" in self.model_fields_set

    @property
    def round_timeout_ms(self) -> int:
        """Request timeout of JoinGroup and SyncGroup, which may wait at the coordinator for the others."""
        return max(self.request_timeout_ms, self.rebalance_ms + _REBALANCE_SLACK_MS)

    @property
    def notice_ms(self) -> int:
        """Longest time that a member reads on after it has announced that it leaves."""
        if self.leave_notice_ms is not None:
            return self.leave_notice_ms
        # a coordinator that assigns waits for a second between assignments, and for members' heartbeats
        least = 0 if self.protocol == "classic" else _NOTICE_MS
        return max(least, 2 * self.heartbeat_interval_ms)

    @property
    def _fetched_bytes(self) -> int:
        """Most bytes of records that a response has, unless one batch is larger."""
        return max(self.fetch_max_bytes, self.max_partition_fetch_bytes)

    @property
    def max_response_bytes(self) -> int:
        """Size of the largest response that is received."""
        limit = self.receive_message_max_bytes or max(MAX_FRAME_BYTES, self._fetched_bytes)
        return limit + _AROUND_RECORDS_BYTES

    @property
    def reads_committed(self) -> bool:
        """Return whether records of open and aborted transactions are left out."""
        return self.isolation_level == "read_committed"

    @property
    def commits(self) -> bool:
        """Return whether records that are done are committed automatically."""
        return self.enable_auto_commit and bool(self.group)

    @property
    def drain_ms(self) -> float:
        """Time that a revocation waits for records that are not done, in ms."""
        if not self.group:
            return 0.0  # nothing is committed, so there is nothing to wait for
        longest = self.rebalance_ms * 0.9
        return longest if self.drain_timeout_ms is None else min(self.drain_timeout_ms, longest)


def consumer_config(**settings: object) -> ConsumerConfig:
    """Check settings. Raises ConfigError naming each wrong setting, its value and what is allowed."""
    return read_connected(ConsumerConfig, settings)


def check_registry(address: str, group: str | None) -> None:
    """Raise ConfigError for what is no address of a ZooKeeper, or cannot be the name of a group there."""
    servers, slash, chroot = address.partition("/")
    ports = [_SERVER.fullmatch(server) for server in servers.split(",")]
    if not (
        all(port is not None and 0 < int(port[1]) <= _MAX_PORT for port in ports)
        and (not slash or all(_is_part_of_a_path(part) for part in chroot.split("/")))
    ):
        raise ConfigError(
            f"{address!r} is no address of a ZooKeeper: give HOST:PORT[,HOST:PORT...][/CHROOT], "
            f"without '/' at its end, {_NAMED_NOT_IN_PATHS}"
        )
    if group is not None and not _is_part_of_a_path(group):
        raise ConfigError(
            f"group={group!r}: in ZooKeeper a group's name is one part of a path, without '/', "
            f"{_NAMED_NOT_IN_PATHS}"
        )


def _is_part_of_a_path(text: str) -> bool:
    return text not in ("", ".", "..") and not _NOT_IN_PATHS.search(text)
