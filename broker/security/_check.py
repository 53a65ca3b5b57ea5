"""Report of ``kohort serve-check``: what is open to whom, the limits, and warnings."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator
from pathlib import Path

from ...client.certificates import DAY_S, SOON_DAYS, ends_of
from ...log import left_by_connections
from ...protocol.named_tuples import NamedTuple
from ...settings import MAX_INT
from ..metrics._exposer import MAX_CONNECTIONS
from ..quotas import CLIENT_ID, DEFAULT_NAME, USER, QuotaEntity, QuotaKey, QuotaTable
from ..settings import BrokerSettings
from ._between_brokers import BetweenBrokers
from ._listener_security import ListenerSecurity
from ._listeners import Listener, is_own, listeners_of, parse_list, settings_for
from ._quotas import ConnectionQuotas
from ._sasl import plain_users
from ._scram_users import HASHES, ScramUsers

_ANYWHERE = ("", "0.0.0.0", "::")


class ReportPart(NamedTuple):
    """A heading and the lines under it."""

    title: str
    lines: list[str]


def check(
    settings: BrokerSettings,
    users: ScramUsers,
    quotas: QuotaTable,
    host: str,
    port: int,
    metrics_port: int | None = None,
) -> tuple[list[ReportPart], list[str]]:
    """The report and its warnings. ``metrics_port`` is where Prometheus finds /metrics (None: nowhere).

    Raises SettingsError for settings that no broker can be started with.
    """
    listeners = listeners_of(settings, host, port)
    # created for the errors that it raises
    ConnectionQuotas(settings, listeners, time.monotonic)
    parts, warnings = [], []
    for listener in listeners:
        ListenerSecurity(settings, listener, users)
        parts.append(ReportPart(f"listener {listener}", list(_listener_lines(settings, listener, users))))
        warnings += [f"{listener.name}: {text}" for text in _listener_warnings(settings, listener, users)]
    if settings.zookeeper_connect:
        between = BetweenBrokers(settings)
        parts.append(ReportPart("brokers of the cluster", list(_between_lines(settings, between))))
        warnings += [f"cluster: {text}" for text in _cluster_warnings(settings, listeners)]
    if metrics_port is not None:
        # on the first listener's address, as in Broker
        local = _is_local(listeners[0].host or host)
        let_in = f"everyone; {MAX_CONNECTIONS} connections, which count towards no other limit"
        parts.append(ReportPart(f"metrics at port {metrics_port}", list(_door_lines(let_in, local=local))))
        if not local:
            warnings.append(
                "metrics: names of topics, users and clients are shown to anyone who reaches the port: keep "
                "it behind a firewall"
            )
    parts.append(ReportPart("rights", [_rights_text(settings)]))
    parts.append(ReportPart("limits", list(_limit_lines(settings))))
    parts.append(ReportPart("client quotas", list(_client_quotas(quotas))))
    return parts, warnings + list(_warning_lines(settings))


def _listener_lines(settings: BrokerSettings, listener: Listener, users: ScramUsers) -> Iterator[str]:
    own = settings_for(settings, listener.name)
    encrypted = own.ssl_enabled_protocols if listener.tls else "no"
    yield from _door_lines(
        _let_in(settings, listener, users), local=_is_local(listener.host), encrypted=encrypted
    )
    if listener.control:
        yield "control       its connections and requests wait for nobody else's"
    if is_own(settings, listener.name, "max_connections"):
        yield f"connections   {own.max_connections}"


def _between_lines(settings: BrokerSettings, between: BetweenBrokers) -> Iterator[str]:
    yield f"reached by    {between.listener.name}"
    own = settings_for(settings, between.listener.name)
    if between.sasl is not None:
        yield f"known as      {between.sasl.username}, by {between.sasl.mechanism}"
    elif between.listener.tls and own.ssl_client_auth != "none":
        yield "known as      the names in their certificates"
    else:
        yield "known as      User:ANONYMOUS"
    if settings.kohort_zookeeper_digest:
        owner = f"the user {settings.kohort_zookeeper_digest.partition(':')[0]}"
    else:
        owner = "who made them" if settings.zookeeper_set_acl else "everyone who reaches ZooKeeper"
    yield f"metadata      changed by {owner}"


def _cluster_warnings(settings: BrokerSettings, listeners: list[Listener]) -> Iterator[str]:
    if not (settings.kohort_zookeeper_digest or settings.zookeeper_set_acl):
        yield (
            "anyone who reaches ZooKeeper can change everything: set kohort.zookeeper.digest, or "
            "zookeeper.set.acl"
        )
    if settings.authorizer_class_name and len(listeners) > 1 and not settings.inter_broker_listener_name:
        yield (
            "requests in the name of others are taken on every listener, from who has the right "
            "ClusterAction: set inter.broker.listener.name"
        )


def _door_lines(let_in: str, *, local: bool, encrypted: str = "no") -> Iterator[str]:
    yield f"reached from  {'this machine' if local else 'wherever its address is reached'}"
    yield f"encrypted     {encrypted}"
    yield f"let in        {let_in}"


def _let_in(settings: BrokerSettings, listener: Listener, users: ScramUsers) -> str:
    own = settings_for(settings, listener.name)
    if listener.sasl:
        return "users, by " + ", ".join(_mechanism_lines(settings, listener, users))
    if listener.tls and own.ssl_client_auth == "required":
        return "who has a certificate of an authority that is trusted"
    if listener.tls and own.ssl_client_auth == "requested":
        return "everyone; who has a certificate, under its name"
    return "everyone, as User:ANONYMOUS"


def _mechanism_lines(settings: BrokerSettings, listener: Listener, users: ScramUsers) -> Iterator[str]:
    for mechanism in parse_list(settings_for(settings, listener.name).sasl_enabled_mechanisms):
        special = settings_for(settings, listener.name, mechanism)
        if mechanism in HASHES:
            yield f"{mechanism} ({sum(name == mechanism for _, name, _ in users.all())} users)"
        elif mechanism == "PLAIN":
            yield f"PLAIN ({len(plain_users(special.sasl_jaas_config))} users)"
        else:
            yield f"{mechanism} (keys from {special.sasl_oauthbearer_jwks_endpoint_url})"


def _listener_warnings(settings: BrokerSettings, listener: Listener, users: ScramUsers) -> Iterator[str]:
    own = settings_for(settings, listener.name)
    local = _is_local(listener.host)
    proves = listener.sasl or (listener.tls and own.ssl_client_auth == "required")
    if not listener.tls and not local:
        yield "records and commands cross the network in the clear: use SSL or SASL_SSL"
    if not proves and not local:
        yield "nobody has to prove who they are: use SASL_SSL, or SSL with ssl.client.auth=required"
    if not listener.sasl and listener.tls and own.ssl_client_auth == "requested":
        yield "ssl.client.auth=requested: a client that forgot its certificate is User:ANONYMOUS"
    if listener.host in _ANYWHERE and listener.advertised is None:
        yield "it listens on every address: advertised.listeners should say the name that clients know"
    if listener.tls:
        yield from _key_warnings(own.ssl_keystore_location)
    if listener.sasl:
        yield from _sasl_warnings(settings, listener, users)


def _key_warnings(path: str) -> Iterator[str]:
    if not path:
        return
    if Path(path).stat().st_mode & 0o077:
        yield f"{path} holds a private key and others may read it: chmod 600"
    for end in ends_of(Path(path).read_text()):
        days = (end - time.time()) / DAY_S
        if days < 0:
            yield f"{path}: a certificate has expired: exchange it, clients refuse it"
        elif days < SOON_DAYS:
            yield f"{path}: a certificate expires in {days:.0f} days: exchange the file, no restart is needed"


def _sasl_warnings(settings: BrokerSettings, listener: Listener, users: ScramUsers) -> Iterator[str]:
    for mechanism in parse_list(settings_for(settings, listener.name).sasl_enabled_mechanisms):
        special = settings_for(settings, listener.name, mechanism)
        # a cluster's users are in ZooKeeper
        if (
            mechanism in HASHES
            and not settings.zookeeper_connect
            and not any(name == mechanism for _, name, _ in users.all())
        ):
            yield f"{mechanism} has no users: make one with 'kohort users add NAME --data DIR'"
        if mechanism == "PLAIN":
            if not listener.tls:
                yield "PLAIN sends passwords in the clear here, as kohort.sasl.plain.without.tls allows"
            if not plain_users(special.sasl_jaas_config):
                yield "PLAIN has no users: set sasl.jaas.config for it"
        if mechanism == "OAUTHBEARER":
            if not special.sasl_oauthbearer_expected_audience:
                yield "tokens for any audience are taken: set sasl.oauthbearer.expected.audience"
            if not special.sasl_oauthbearer_expected_issuer:
                yield "tokens of any issuer are taken: set sasl.oauthbearer.expected.issuer"
            if special.sasl_oauthbearer_jwks_endpoint_url.startswith("http:"):
                yield "keys are fetched without TLS: anyone in between can forge tokens; use https:"


def _rights_text(settings: BrokerSettings) -> str:
    if not settings.authorizer_class_name:
        return "every connected client may do everything: there are no access rules (authorizer.class.name)"
    besides = "everyone" if settings.allow_everyone_if_no_acl_found else "nobody"
    supers = settings.super_users or "none"
    return f"access rules decide; what none names is open to {besides}; super users: {supers}"


def _limit_lines(settings: BrokerSettings) -> Iterator[str]:
    rate = settings.max_connection_creation_rate
    over = "waits" if settings.kohort_connections_over_limit == "wait" else "is closed"
    yield f"connections          {settings.max_connections}; one more {over}"
    yield f"  of one address     {settings.max_connections_per_ip}"
    yield f"  new ones           {'not limited' if rate == MAX_INT else f'{rate} a second'}"
    idle_ms = settings.connections_max_idle_ms
    yield f"  silent             {'not limited' if idle_ms < 0 else f'{idle_ms} ms'}"
    yield f"a request            {settings.socket_request_max_bytes} bytes"
    yield f"requests that wait   {settings.queued_max_request_bytes} bytes"
    yield f"members of a group   {settings.group_max_size}"
    yield f"a record batch       {settings.message_max_bytes} bytes"


def _client_quotas(quotas: QuotaTable) -> Iterator[str]:
    for entity, values in quotas.values.items():
        limits = ", ".join(f"{key}={value:,.15g}" for key, value in values.items())
        yield f"{entity}: {limits}"
    # a default for users covers everybody: unauthenticated clients are users, too
    everybody = [quotas.values.get(QuotaEntity(((kind, DEFAULT_NAME),)), {}) for kind in (USER, CLIENT_ID)]
    free = [key.value for key in QuotaKey if not any(key in values for values in everybody)]
    if free:
        yield f"not limited for clients that are not named here: {', '.join(free)}"


def _warning_lines(settings: BrokerSettings) -> Iterator[str]:
    if settings.authorizer_class_name:
        if "User:ANONYMOUS" in settings.super_users.split(";"):
            yield "User:ANONYMOUS is a super user: clients that do not authenticate may do everything"
        if settings.allow_everyone_if_no_acl_found:
            yield "allow.everyone.if.no.acl.found=true: a topic is open to everyone until a rule names it"
    if settings.connections_max_idle_ms < 0:
        yield "connections.max.idle.ms=-1: connections of clients that hang are kept for ever"
    if settings.max_connections_per_ip >= settings.max_connections:
        yield "one address can take every connection: set max.connections.per.ip below max.connections"
    if settings.queued_max_request_bytes < settings.socket_request_max_bytes:
        yield "queued.max.request.bytes is below socket.request.max.bytes: one request can hold up all others"
    files = _open_files()
    if files is not None and settings.max_connections + (left := left_by_connections(files)) > files:
        yield (
            f"max.connections={settings.max_connections}, but {left} of {files} descriptors are for files: "
            "raise ulimit -n"
        )


def _open_files() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if most == resource.RLIM_INFINITY else most


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
