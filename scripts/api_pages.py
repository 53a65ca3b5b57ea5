"""The pages of the API on the site: one for each public object, made when the site is built.

``docs/api.md`` lists the objects (docs_tables.py:api_objects); site_hook.py makes the pages and links them.
"""

from __future__ import annotations

#: What is public, by subject: the package that it is imported from, and its names.
SECTIONS = {
    "Consumers": (
        "kohort.consumer",
        "AsyncGroupConsumer GroupConsumer ConsumerStatus Record SchemaRegistry",
    ),
    "Share groups": (
        "kohort.consumer",
        "ShareConsumer BlockingShareConsumer ShareConsumerStatus ShareRecord",
    ),
    "Services": (
        "kohort.service",
        (
            "ConsumerService Services Retry Middleware KafkaOutput DbApiSink SqlAlchemySink Sink "
            "LockedRecord DeadLetter read_dead_letter"
        ),
    ),
    "Producers": (
        "kohort.producer",
        "Producer BlockingProducer ProducerRecord RecordMetadata GroupMetadata",
    ),
    "Assignors": (
        "kohort.assignors",
        (
            "Assignor Member TopicInfo MeasuringAssignor available_assignors load_assignor "
            "validate_assignment explain_balance"
        ),
    ),
    "Spark": (
        "kohort.spark",
        "GroupBatches Batch stream spark_session register from_json Listener OffsetRange",
    ),
    "Administration": (
        "kohort.admin",
        (
            "GroupAdmin GroupDescription GroupHistory Generation TimeStretch ResetTo ResetPlan "
            "ClusterAdmin AclRule AclQuery ScramUser ClientQuota ConfiguredResource ConfigValue FeatureLevel "
            "RecordDeletion"
        ),
    ),
    "Testing": (
        "kohort.testing",
        (
            "running_broker RunningBroker RequestFaults running_cluster RunningCluster run_service "
            "ServiceRun simulate simulate_service simulate_transactions simulate_cluster "
            "simulate_share_groups simulate_share_consumers simulate_share_services"
        ),
    ),
    "The broker": (
        "kohort.broker",
        "Broker LogHandler",
    ),
    "Protocol": (
        "kohort.protocol",
        "TopicPartition KafkaError ErrorCode",
    ),
}

#: Members without an underscore that are for other packages of kohort, not for users: they may change.
NOT_FOR_USERS = {
    "kohort.consumer.AsyncGroupConsumer": {
        "close_by",
        "decoder",
        "done_marked",
        "drain",
        "next_run",
        "parts",
        "next_records",
    },
    "kohort.consumer.ShareConsumer": {
        "acknowledge",
        "decoder",
        "next_records",
        "queue_verdicts",
        "stop_fetching",
        "take_verdicts",
    },
    "kohort.consumer.BlockingShareConsumer": {"acknowledge"},
    "kohort.consumer.ShareRecord": {"judge", "lock", "place"},
    "kohort.service.ConsumerService": {"as_worker", "checked_handlers", "probed"},
    "kohort.service.Services": {"as_worker"},
    "kohort.service.Retry": {"SCOPE"},
    "kohort.consumer.SchemaRegistry": {"content_decoder", "content_encoder"},
    "kohort.producer.Producer": {
        "detach_transaction",
        "fail_transaction",
        "look_up",
        "may_have_to_ask",
        "on_cluster",
        "unknown_error",
    },
    "kohort.admin.GroupAdmin": {"on_cluster"},
    "kohort.admin.ClusterAdmin": {"on_cluster"},
}


def objects(section: str) -> list[str]:
    """The full names of a section's objects, such as "kohort.consumer.Record"."""
    package, names = SECTIONS[section]
    return [f"{package}.{name}" for name in names.split()]


def all_objects() -> list[str]:
    """The full names of all public objects, in the order of the page."""
    return [name for section in SECTIONS for name in objects(section)]


def page_of(name: str) -> str:
    """The path of an object's page on the site, below docs/."""
    return f"api/{name.removeprefix('kohort.')}.md"


def source_of(name: str) -> str:
    """The Markdown of an object's page, for mkdocstrings."""
    package, _, short = name.rpartition(".")
    hidden = "".join(f', "!^{member}$"' for member in sorted(NOT_FOR_USERS.get(name, ())))
    return (
        f"# {short}\n\n`from {package} import {short}` · [all objects](../api.md)\n\n"
        f"::: {name}\n    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
        f'      filters: ["!^_"{hidden}]\n'
    )
