"""Tables in docs/ that are generated from the code; generated_docs.py writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from enum import Enum
from importlib import import_module
from inspect import getdoc
from typing import Any, get_type_hints

import api_pages  # beside this file

from kohort.broker import BrokerSettings
from kohort.broker.apis import served_apis
from kohort.broker.apis.api_versions import ranges
from kohort.broker.authorizer import Access, ResourceType
from kohort.broker.metrics._families import FAMILIES, Family
from kohort.broker.partitions.topic_config import TopicConfig
from kohort.broker.share import share_events
from kohort.broker.share.share_events import ShareEvent
from kohort.consumer.config import ConsumerConfig
from kohort.consumer.share.config import ShareConsumerConfig
from kohort.coordinator.engine import events as engine_events
from kohort.coordinator.engine.events import CoordinatorEvent
from kohort.coordinator.engine.readiness import APPEND_ERRORS, Unready
from kohort.coordinator.groups import events
from kohort.coordinator.groups.events import GroupEvent
from kohort.coordinator.groups.shards import OFFSETS_TOPIC
from kohort.producer.config import ProducerConfig
from kohort.protocol import APIS, ApiKey, ErrorCode, KohortError
from kohort.service._options import ServiceOptions
from kohort.service.handlers.retry import Retry
from kohort.settings import CONSUMER, Scope, Setting, as_text, settings_of
from kohort.settings.connection import ClientRows


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; ``head`` has the names of the columns, separated by bars."""
    columns = head.split(" | ")
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *rows))


def _summary(kind: type) -> str:
    """Return the first paragraph of a class's docstring as one line of Markdown."""
    return " ".join((getdoc(kind) or "").split("\n\n")[0].split()).replace("``", "`")


def api_objects() -> str:
    """Return a table for each subject of the API: its objects, and what each is."""
    return "\n\n".join(
        f"## {section}\n\n{_table('name | what it is', map(_api_row, api_pages.objects(section)))}"
        for section in api_pages.SECTIONS
    )


def _api_row(name: str) -> tuple[str, str]:
    package, _, short = name.rpartition(".")
    kind = getattr(import_module(package), short)
    said = re.sub(r":\w+:`", "`", _summary(kind)).replace("|", "\\|")
    return f"`{name}`", said or "A type, for annotations."


# --- settings -----------------------------------------------------------------------------------------------


def settings_table(settings: Iterable[Setting], names: Scope) -> str:
    """Return a table with a line for each setting, with the names that users in the scope ``names`` write."""
    rows = ((_name(s, names), _default(s, names), s.allowed_values, s.row.doc) for s in settings)
    return _table("name | default | allowed | what it does", rows)


def _name(setting: Setting, names: Scope) -> str:
    kafka = f" (`{setting.row.kafka}`)" if setting.row.kafka and names.names == "python" else ""
    return f"`{setting.shown_name(names)}`{kafka}"


def _default(setting: Setting, names: Scope) -> str:
    if setting.required:
        return "required"
    if setting.default is None or setting.default == "":
        return ""
    default = setting.default
    if isinstance(default, Enum):
        text = default.name.lower()
    elif default == (Exception,):
        text = "(Exception,)"
    else:
        text = repr(default) if names.names == "python" else as_text(default) or ""
    return f"`{text}` {setting.unit}".rstrip()


def _own_settings(cls: type[Any]) -> list[Setting]:
    """Return the settings of a class, without those of connections, which have a page of their own."""
    shared = {row.name for row in fields(ClientRows)}
    return [setting for setting in settings_of(cls).values() if setting.name not in shared]


def _of(cls: type[Any]) -> str:
    return settings_table(_own_settings(cls), cls.SCOPE)


def connection_settings() -> str:
    known = settings_of(ConsumerConfig)
    rows = []
    for name in ("bootstrap", *(row.name for row in fields(ClientRows))):
        setting = known[name]
        java = f"`{setting.kafka_name}`" if setting.row.client else ""
        rows.append((f"`{name}`", java, _default(setting, CONSUMER), setting.allowed_values, setting.row.doc))
    return _table("name | Java's name | default | allowed | what it does", rows)


def broker_settings() -> str:
    known = settings_of(BrokerSettings)
    return settings_table((known[name] for name in sorted(known)), BrokerSettings.SCOPE)


def live_settings() -> str:
    """The names of the settings that change while the broker runs; they are in its table."""
    known = settings_of(BrokerSettings)
    return ", ".join(
        _name(known[each], BrokerSettings.SCOPE) for each in sorted(known) if known[each].row.dynamic
    )


#: Limits that keep one client from starving the others.
_LIMITS = (
    "socket_request_max_bytes",
    "queued_max_request_bytes",
    "kohort_request_complete_timeout_ms",
    "kohort_response_unread_timeout_ms",
    "kohort_response_unread_max_bytes",
    "connections_max_idle_ms",
    "max_connections",
    "max_connections_per_ip",
    "max_connection_creation_rate",
    "message_max_bytes",
    "fetch_max_bytes",
    "group_max_size",
    "kohort_group_max_pending_ids",
    "kohort_group_max_metadata_bytes",
    "kohort_member_max_metadata_bytes",
    "kohort_member_max_protocols",
    "group_min_session_timeout_ms",
    "group_max_session_timeout_ms",
    "offset_metadata_max_bytes",
    "kohort_commit_max_partitions",
    "kohort_group_history_size",
)


def limits() -> str:
    """The limits with their defaults; what they mean is in the broker's table."""
    known, names = settings_of(BrokerSettings), BrokerSettings.SCOPE
    return _table(
        "limit | default", ((_name(known[each], names), _default(known[each], names)) for each in _LIMITS)
    )


def topic_configs() -> str:
    """The configs that have their default from a setting of the broker, and the others."""
    broker, known = settings_of(BrokerSettings), settings_of(TopicConfig).values()
    rows = (
        (_name(each, TopicConfig.SCOPE), _name(broker[each.row.default_from], BrokerSettings.SCOPE))
        for each in known
        if each.row.default_from
    )
    own = settings_table((each for each in known if not each.row.default_from), TopicConfig.SCOPE)
    return f"{_table('config | its default, and what it does', rows)}\n\n{own}"


def consumer_settings() -> str:
    return _of(ConsumerConfig)


def share_consumer_settings() -> str:
    return _of(ShareConsumerConfig)


def producer_settings() -> str:
    return _of(ProducerConfig)


def service_settings() -> str:
    return _of(ServiceOptions)


def retry_settings() -> str:
    return _of(Retry)


def spark_loop_options() -> str:
    # pyspark is an extra of the package
    from kohort.spark._options import GroupBatchesOptions

    return _of(GroupBatchesOptions)


def _of_spark(cls: type[Any]) -> str:
    """The options that the loop has too, by name, and the table of the others."""
    from kohort.spark._options import GroupBatchesOptions

    shared = {(each.name, each.row) for each in settings_of(GroupBatchesOptions).values()}
    alike = [each for each in _own_settings(cls) if (each.name, each.row) in shared]
    names = ", ".join(_name(each, cls.SCOPE) for each in alike)
    table = settings_table((each for each in _own_settings(cls) if each not in alike), cls.SCOPE)
    return f"As [in a loop](#options): {names}.\n\n{table}"


def spark_source_options() -> str:
    from kohort.spark._source_options import SourceOptions

    return _of_spark(SourceOptions)


def spark_sink_options() -> str:
    from kohort.spark._sink_options import SinkOptions

    return _of_spark(SinkOptions)


# --- the broker ---------------------------------------------------------------------------------------------

_RESOURCES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}


def access() -> str:
    """Access rights that APIs require."""
    rows = (_right(api.name, access) for api in served_apis().values() for access in api.access)
    return _table("API | operation | resource | which | error without it", rows)


def _right(api: str, access: Access) -> tuple[str, ...]:
    error = "none: left out" if access.error is None else f"{access.error.name} ({int(access.error)})"
    operation = access.operation.name.title().replace("_", "")
    return api, operation, _RESOURCES[access.resource], access.words, error


def apis() -> str:
    served = served_apis()
    rows = (
        (str(row.api_key), served[row.api_key].name, f"{row.min_version}-{row.max_version}")
        for row in ranges(served.values())
    )
    return _table("number | API | versions", rows)


def metrics() -> str:
    """Every metric with its labels and its name in Apache Kafka."""
    rows = (
        (f"`{_exported(one)}`", ", ".join(one.labels), one.help, one.kafka and f"`{one.kafka}`")
        for one in FAMILIES
    )
    return _table("name | labels | what it is | in Apache Kafka", rows)


def _exported(family: Family) -> str:
    return f"{family.name}_total" if family.kind == "counter" else family.name


# --- errors -------------------------------------------------------------------------------------------------


def errors() -> str:
    """Every public exception, with the first package that exports it."""
    found: dict[type[KohortError], str] = {}
    for room in ("protocol", "settings", "consumer", "service", "producer", "assignors", "spark"):
        module = import_module(f"kohort.{room}")
        for name in module.__all__:
            kind = getattr(module, name) if name.endswith(("Error", "Refused")) else None
            if isinstance(kind, type) and issubclass(kind, KohortError):
                found.setdefault(kind, room)
    rows = (
        (f"`{kind.__name__}`", f"`kohort.{room}`", f"`{kind.__bases__[0].__name__}`", _summary(kind))
        for kind, room in found.items()
    )
    return _table("error | from | is a | what happened", rows)


# --- the coordinator ----------------------------------------------------------------------------------------


def event_kinds() -> list[type[CoordinatorEvent]]:
    found = {**vars(events), **vars(engine_events)}.values()
    return [
        kind
        for kind in found
        if isinstance(kind, type) and issubclass(kind, CoordinatorEvent) and not kind.__subclasses__()
    ]


def events_of_groups() -> str:
    """Every kind of event: when it appears, and the fields that its base class does not have."""
    return _table("event | appears when | its own fields | level | share", map(_event, event_kinds()))


def events_of_share_partitions() -> str:
    """Every kind of event of share partitions, as ``events_of_groups`` has those of groups."""
    kinds = [kind for kind in vars(share_events).values() if isinstance(kind, type)]
    told = [kind for kind in kinds if issubclass(kind, ShareEvent) and not kind.__subclasses__()]
    return _table("event | appears when | its own fields | level | share", map(_event, told))


def _event(kind: type[CoordinatorEvent]) -> tuple[str, ...]:
    own = ", ".join(f"`{name}` {type_}" for name, type_ in _own(kind, GroupEvent))
    share = kind.share if issubclass(kind, GroupEvent) else ""
    return f"`{kind.__name__}`", _summary(kind), own, kind.level, share


def event_fields() -> str:
    shared = [*_own(CoordinatorEvent, None), *_own(GroupEvent, CoordinatorEvent)]
    return _table("field | type", ((f"`{name}`", kind) for name, kind in shared))


def _own(kind: type[CoordinatorEvent], base: type[CoordinatorEvent] | None) -> list[tuple[str, str]]:
    known = set() if base is None else {field.name for field in fields(base)}
    types = get_type_hints(kind)
    names = [field.name for field in fields(kind) if field.name not in known]
    return [(name, _type(types[name])) for name in names if not name.startswith("_")]


def _type(hint: object) -> str:
    name = hint.__name__ if isinstance(hint, type) else str(hint)
    return name.replace("collections.abc.", "").replace(" | ", " or ")


def unready() -> str:
    """The errors that requests get while a shard is not ready."""
    head = " | ".join(("request", *(unready.value for unready in Unready)))
    return _table(
        head, ((APIS[key].name, *(_told(key, each) for each in Unready)) for key in OFFSETS_TOPIC.apis)
    )


def _told(api_key: int, unready: Unready) -> str:
    if api_key == ApiKey.LIST_GROUPS and unready is Unready.NOT_HERE:
        return "0, without its groups"
    error = OFFSETS_TOPIC.unready_error(api_key, unready)
    return f"{int(error)} {error.name}"


def append_errors() -> str:
    rows = ((ErrorCode(log).name, f"{int(told)} {told.name}") for log, told in APPEND_ERRORS.items())
    return _table("the log says | the client is told", rows)
