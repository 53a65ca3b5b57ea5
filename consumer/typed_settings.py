"""Settings of consumers as keyword arguments, for type checkers and editors.

Written by scripts/typed_settings.py from the table of settings, which says more of what a value may be.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class ConnectionSettings(TypedDict, total=False):
    """Settings of whoever connects to a cluster."""

    config: str | None
    """File with settings that are set neither here nor by a KOHORT_* variable."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    """Encryption and authentication of connections."""
    ssl_cafile: str | None
    """Authorities to trust, a file or PEM text; by default the system's."""
    ssl_certfile: str | None
    """The client's certificate, and its key unless ssl_keyfile has it: a file or PEM text."""
    ssl_keyfile: str | None
    """Key of ssl_certfile, a file or PEM text."""
    ssl_password: str | None
    """Password of the key."""
    ssl_check_hostname: bool
    """The broker's certificate must be for its host name."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"] | None
    """SASL mechanism, for SASL_PLAINTEXT and SASL_SSL."""
    sasl_plain_username: str | None
    """User of PLAIN and SCRAM."""
    sasl_plain_password: str | None
    """Password of PLAIN and SCRAM."""
    sasl_tokenauth: bool
    """Log in by SCRAM with a delegation token: user is its id, password its HMAC."""
    sasl_kerberos_service_name: str | None
    """Name of the brokers' service in Kerberos (GSSAPI), often kafka."""
    sasl_oauth_token_url: str | None
    """URL where OAUTHBEARER gets tokens for client credentials (RFC 6749, 4.4)."""
    sasl_oauth_client_id: str | None
    """Client id for sasl_oauth_token_url."""
    sasl_oauth_client_secret: str | None
    """Client secret for sasl_oauth_token_url."""
    sasl_oauth_scope: str | None
    """Scope of the token to request."""
    sasl_oauth_token_provider: Any
    """What gives tokens: MODULE:NAME of a function, or in Python the function itself or an object with a
    method token."""
    ssl_context: Any
    """TLS context of your own, in place of the other ssl settings."""
    bootstrap: str | list[str]
    """Brokers to ask for the cluster."""
    bootstrap_servers: str | list[str]
    """As ``bootstrap``."""
    client_id: str
    """Name of this client in the broker's logs, metrics and quotas."""
    request_timeout_ms: int
    """Longest wait for the answer to one request."""
    retry_backoff_ms: int
    """First pause before a request is sent again."""
    retry_backoff_max_ms: int
    """Longest pause before a request is sent again."""
    reconnect_backoff_ms: int
    """First pause before a new connection."""
    reconnect_backoff_max_ms: int
    """Longest pause before a new connection."""
    metadata_max_age_ms: int
    """Age at which topics and partitions are looked up again."""


class ConsumerSettings(ConnectionSettings, total=False):
    """Settings of a consumer."""

    group: str
    """Consumer group; without one, partitions are assigned manually and nothing is committed."""
    group_id: str
    """As ``group``."""
    client_rack: str
    """Rack of this client, for rack-aware assignors and the nearest replicas."""
    group_instance_id: str | None
    """Makes the member static: no rebalance when it restarts."""
    protocol: Literal["classic", "consumer", "auto"]
    """Who assigns: a member of the group, or the coordinator (KIP-848); auto: the coordinator, if it can
    and no other setting needs the classic protocol."""
    group_protocol: Literal["classic", "consumer", "auto"]
    """As ``protocol``."""
    coordination: str
    """Who coordinates: the brokers; or nobody, members share partitions out by what they see of each
    other in a ZooKeeper, as Kafka 0.8's did (docs/registry.md)."""
    dual_commit: bool
    """Offsets that are stored in ZooKeeper are committed to the group too, to move it to the brokers."""
    assignor: Any
    """Assignor, or several in the order of preference; with protocol 'consumer' the name of one of the
    broker's, by default its first."""
    session_timeout_ms: int
    """Silence after which the group goes on without this member; with protocol 'consumer' the broker has
    its own, and this one only ends delivery."""
    heartbeat_interval_ms: int
    """Time between heartbeats, less than session_timeout_ms; unless it is set, the size of the group
    decides: 3 ms for each member, from 200 ms to the default (with protocol 'consumer': to the broker's
    interval)."""
    max_poll_interval_ms: int
    """Longest time between two polls."""
    rebalance_timeout_ms: int | None
    """How long a rebalance waits for this member; by default max_poll_interval_ms."""
    leave_notice_ms: int | None
    """How long a closed consumer reads on at most, until others are ready to take over; 0: it leaves at
    once; by default twice heartbeat_interval_ms."""
    drain_timeout_ms: int | None
    """How long a revocation waits for records that are delivered and not done; at most, and by default,
    nine tenths of the rebalance timeout."""
    auto_offset_reset: Literal["earliest", "latest", "fail"] | int
    """Where to begin without a committed offset; a number: at the first record of that time or later."""
    isolation_level: Literal["read_uncommitted", "read_committed"]
    """Whether records of open and aborted transactions are read."""
    enable_auto_commit: bool
    """Records that are done are committed at intervals, before a revocation and at close."""
    auto_commit_interval_ms: int
    """Time between automatic commits."""
    auto_done: bool
    """Records count as done when the next ones are asked for; 'done' need not be called."""
    max_poll_records: int
    """Most records of one poll."""
    max_undone_records: int
    """Records delivered and not done at which a partition's delivery pauses."""
    fetch_min_bytes: int
    """Bytes that a broker waits for before it answers a fetch."""
    fetch_max_bytes: int
    """Most bytes of one fetch."""
    max_partition_fetch_bytes: int
    """Most bytes of one partition in a fetch."""
    fetch_max_wait_ms: int
    """Longest wait for fetch_min_bytes, less than request_timeout_ms."""
    receive_message_max_bytes: int | None
    """Largest response, at least fetch_max_bytes; a batch in a larger one fails its partition with
    BatchTooLargeError; by default 100 MiB, or more if fetches may be larger."""
    prefetch_max_bytes: int
    """Memory of fetched and undelivered records at which fetching pauses."""
    max_decompressed_batch_bytes: int
    """Largest record batch after decompression; a larger one is a CorruptBatchError."""
    check_crcs: bool
    """Checksums of record batches are verified."""
    default_api_timeout_ms: int
    """Longest duration of a call with its retries."""
    allow_auto_create_topics: bool
    """A broker may create topics that do not exist."""


class ShareConsumerSettings(ConnectionSettings, total=False):
    """Settings of a share consumer."""

    group: str
    """Share group."""
    group_id: str
    """As ``group``."""
    client_rack: str
    """Rack of this client."""
    max_locked_records: int
    """Most records that are locked for this member: those it works on, and those that wait to be
    delivered. Unless it is set, more than 500 only while it is done with so many in 50 ms. Brokers
    before Apache Kafka 4.2 may give more, whole record batches."""
    renew_locks: bool
    """Locks are renewed while records are worked on, up to max_processing_ms."""
    max_processing_ms: int
    """Locks of records are renewed until they are held for so long."""
    fetch_min_bytes: int
    """Bytes that a broker waits for before it answers a fetch."""
    fetch_max_bytes: int
    """Most bytes of one fetch."""
    fetch_max_wait_ms: int
    """Longest wait for fetch_min_bytes, less than request_timeout_ms."""
    max_decompressed_batch_bytes: int
    """Largest record batch after decompression; a larger one cannot be read."""
    check_crcs: bool
    """Checksums of record batches are verified."""
    default_api_timeout_ms: int
    """Longest duration of a call with its retries."""
