"""Broker settings of Apache Kafka 4.3.1 that have no meaning here: for replicas, controllers, threads, tiered
storage. They are accepted with a warning, so that a ``server.properties`` can be used as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..settings import SettingsError

# as Apache Kafka names them itself (AbstractKafkaConfig.CONFIG_DEF), internal ones too
_NAMES = """
add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
alter.log.dirs.replication.quota.window.size.seconds broker.heartbeat.interval.ms broker.session.timeout.ms
client.quota.callback.class controller.listener.names controller.performance.always.log.threshold.ms
controller.performance.sample.period.ms controller.quorum.append.linger.ms controller.quorum.auto.join.enable
controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
controller.socket.timeout.ms create.topic.policy.class.name delegation.token.expiry.check.interval.ms
delegation.token.expiry.time.ms delegation.token.max.lifetime.ms delegation.token.secret.key
delete.records.purgatory.purge.interval.requests early.start.listeners fetch.purgatory.purge.interval.requests
group.coordinator.background.threads group.coordinator.rebalance.protocols group.share.persister.class.name
group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
group.streams.max.session.timeout.ms group.streams.max.size group.streams.max.standby.replicas
group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
group.streams.min.session.timeout.ms group.streams.num.standby.replicas group.streams.session.timeout.ms
initial.broker.registration.timeout.ms internal.metadata.delete.delay.millis
internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes
kafka.metrics.polling.interval.secs kafka.metrics.reporters log.dir log.dir.failure.timeout.ms log.dirs
log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms log.initial.task.delay.ms
log.roll.jitter.hours max.request.partition.size.limit metadata.log.dir
metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms metadata.max.retention.bytes
metadata.max.retention.ms metrics.num.samples metrics.recording.level metrics.sample.window.ms
num.replica.alter.log.dirs.threads process.roles producer.id.expiration.check.interval.ms
producer.purgatory.purge.interval.requests queued.max.requests remote.log.index.file.cache.ttl.ms
remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
remote.log.reader.max.pending.tasks remote.log.storage.manager.class.name
remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix remote.log.storage.system.enable
replica.fetch.backoff.ms replica.fetch.min.bytes replica.high.watermark.checkpoint.interval.ms
replica.socket.receive.buffer.bytes replica.socket.timeout.ms request.timeout.ms
sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.retry.backoff.max.ms
sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol sasl.oauthbearer.assertion.algorithm
sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwt.retriever.class
sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name
sasl.oauthbearer.token.endpoint.url security.providers server.max.startup.time.ms
share.coordinator.append.linger.ms share.coordinator.state.topic.compression.codec share.coordinator.threads
share.fetch.purgatory.purge.interval.requests socket.connection.setup.timeout.max.ms
socket.connection.setup.timeout.ms socket.receive.buffer.bytes socket.send.buffer.bytes ssl.allow.dn.changes
ssl.allow.san.changes ssl.keystore.password ssl.truststore.password telemetry.max.bytes
transaction.state.log.load.buffer.size transaction.two.phase.commit.enable unclean.leader.election.interval.ms
unstable.api.versions.enable unstable.feature.versions.enable
"""

_CHANGING_NAMES = """
background.threads config.providers cordoned.log.dirs follower.fetch.last.tiered.offset.enable
group.coordinator.cached.buffer.max.bytes group.streams.assignment.interval.ms
log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second
log.local.retention.bytes log.local.retention.ms log.preallocate log.roll.jitter.ms metric.reporters
num.io.threads num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers
principal.builder.class producer.id.expiration.ms remote.fetch.max.wait.ms
remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
remote.log.manager.follower.thread.pool.size remote.log.reader.threads sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
share.coordinator.cached.buffer.max.bytes ssl.cipher.suites ssl.engine.factory.class ssl.keymanager.algorithm
ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
transaction.partition.verification.enable
"""

#: Those that Apache Kafka changes while it runs. Here a change is kept and shown.
CHANGING: Final = frozenset(_CHANGING_NAMES.split())
MEANINGLESS: Final = frozenset(_NAMES.split()) | CHANGING

#: Prefixes of names that Apache Kafka passes on to plug-ins.
_PREFIXES: Final = ("config.providers.", "metrics.jmx.", "rlmm.config.", "rsm.config.")

_OF_LISTENERS: Final = "listener.name."
_CONTROLLERS: Final = "controller.listener.names"
_ADDRESSES: Final = ("listeners", "advertised.listeners")
_NODE_ID: Final = "node.id"
#: The name of node.id in files for brokers on ZooKeeper, and whether one was to be made if it is not given.
_BROKER_ID: Final = "broker.id"
_OLDER: Final = (_BROKER_ID, "broker.id.generation.enable")


def find_meaningless(names: Iterable[str]) -> list[str]:
    """Return the names, with dots or underscores, that Apache Kafka knows and that have no meaning here."""
    return [name for name in names if _is_meaningless(name.replace("_", "."))]


def find_meaningful(given: Mapping[str, object]) -> dict[str, object]:
    """Return the settings that have a meaning here, without the listeners of a controller."""
    ignored = set(find_meaningless(given))
    found = {name: value for name, value in given.items() if name not in ignored}
    for controller in _split_items(str(_value_of(given, _CONTROLLERS))):
        own = f"{_OF_LISTENERS}{controller.lower()}."
        found = {
            name: _without_listener(controller, str(value)) if name.replace("_", ".") in _ADDRESSES else value
            for name, value in found.items()
            if not name.startswith(own)
        }
    return found


def with_node_id(given: Mapping[str, object]) -> dict[str, object]:
    """Return the settings with ``node.id`` in the place of ``broker.id``, its older name. Raises
    SettingsError if the two differ, and for an id that is to be made.
    """
    names = {name.replace("_", "."): name for name in given}
    found = {name: value for name, value in given.items() if name.replace("_", ".") not in _OLDER}
    if _BROKER_ID not in names:
        return found
    value = str(given[names[_BROKER_ID]]).strip()
    if value.startswith("-"):
        raise SettingsError(
            f"broker.id={value} is not allowed: no ids are made here, give each broker a node.id of its own"
        )
    if _NODE_ID not in names:
        return {**found, _NODE_ID: value}
    if (node_id := str(given[names[_NODE_ID]]).strip()) != value:
        raise SettingsError(f"broker.id={value} and node.id={node_id} differ: give node.id alone")
    return found


def _is_meaningless(name: str) -> bool:
    if name in MEANINGLESS or name.startswith(_PREFIXES):
        return True
    if not name.startswith(_OF_LISTENERS):
        return False
    words = name.removeprefix(_OF_LISTENERS).split(".")
    # after the listener there may be a SASL mechanism
    return any(".".join(words[at:]) in MEANINGLESS for at in range(1, len(words)))


def _value_of(given: Mapping[str, object], name: str) -> object:
    return given.get(name, given.get(name.replace(".", "_"), ""))


def _split_items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _without_listener(listener: str, addresses: str) -> str:
    return ",".join(
        item for item in _split_items(addresses) if item.partition("://")[0].upper() != listener.upper()
    )
