"""scripts/docs_tables.py: the tables of docs/ have all that the code has."""

from __future__ import annotations

from dataclasses import fields

import kohort.coordinator
from kohort.broker import BrokerSettings
from kohort.broker.apis import served_apis
from kohort.broker.partitions.topic_config import TopicConfig
from kohort.coordinator import CauseKind
from kohort.coordinator.groups.shards import OFFSETS_TOPIC
from kohort.settings import settings_of
from tests.scripts import ROOT, script
from tests.settings.test_reading import BAKER, Baker

tables = script("docs_tables")
PAGES = ROOT / "docs"


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def by_name(table: str) -> dict[str, list[str]]:
    return {cells[0].strip("`"): cells[1:] for cells in rows(table)}


# --- settings -----------------------------------------------------------------------------------------------


def test_a_table_has_a_line_for_each_setting() -> None:
    lines = tables.settings_table(settings_of(Baker).values(), BAKER).splitlines()
    assert lines[2] == "| `name` | required | text, not empty, at most 9 characters | who it is |"
    assert lines[3] == "| `oven` (`ovenHeat`) | `200` C | a whole number, at least 1 | degrees |"
    assert lines[4] == "| `safe` |  | text, at most 3 characters | code of the safe |"


def test_every_setting_of_the_broker_is_described() -> None:
    described = rows(tables.broker_settings())
    assert {row[0].strip("`").replace(".", "_") for row in described} == {
        field.name for field in fields(BrokerSettings)
    }
    assert all(row[2] and row[3] for row in described)


def test_every_topic_config_is_described() -> None:
    of_broker, own = map(rows, tables.topic_configs().split("\n\n"))
    assert len(of_broker) + len(own) == len(fields(TopicConfig))
    assert {row[1] for row in of_broker} < {row[0] for row in rows(tables.broker_settings())}
    assert all(row[2] and row[3] for row in own)


def test_options_that_the_loop_has_too_are_named_and_described_there() -> None:
    alike, own = tables.spark_sink_options().split("\n\n")
    assert alike == (
        "As [in a loop](#options): `kafka.bootstrap.servers`, `kafka.client.id`, `kafka.request.timeout.ms`."
    )
    assert [row[0] for row in rows(own)][:2] == ["`topic`", "`kafka.compression.type`"]


# --- the broker ---------------------------------------------------------------------------------------------


def test_every_right_of_every_api_has_a_line() -> None:
    head, rule, *lines = tables.access().splitlines()
    assert head == "| API | operation | resource | which | error without it |"
    assert rule == "| --- | --- | --- | --- | --- |"
    assert [line.split(" | ")[0] for line in lines] == [
        f"| {api.name}" for _, api in sorted(served_apis().items()) for _ in api.access
    ]
    assert (
        "| Fetch | ClusterAction | cluster | every topic, if the request names a replica | "
        "TOPIC_AUTHORIZATION_FAILED (29) |"
    ) in lines
    assert "| ListGroups | Describe | cluster | all groups | none: left out |" in lines


def test_the_offer_is_what_clients_are_told() -> None:
    offered = dict(line.strip("| ").split(" | ")[1:] for line in tables.apis().splitlines()[2:])
    assert offered["Produce"] == "0-13"
    assert offered["ApiVersions"] == "0-4"
    assert "DescribeQuorum" not in offered


# --- the coordinator ----------------------------------------------------------------------------------------


def test_every_event_says_when_it_appears_and_at_which_level() -> None:
    table = by_name(tables.events_of_groups())
    assert all(when and level in ("debug", "info", "warning") for when, _, level, _ in table.values())
    assert table["MemberReplaced"][1:] == ["`old_member` str", "info", "members"]
    assert "GroupEvent" not in table, "only what is told"
    assert "Refusal" not in table


def test_every_event_is_public_and_has_a_name_of_its_own() -> None:
    kinds = tables.event_kinds()
    assert len({kind.name for kind in kinds}) == len(kinds)
    assert [kind.__name__ for kind in kinds if not hasattr(kohort.coordinator, kind.__name__)] == []


def test_the_fields_in_common_have_types() -> None:
    table = by_name(tables.event_fields())
    assert table["instance_id"] == ["str or None"]
    assert list(table)[:3] == ["group", "sequence", "timestamp_ms"]


def test_every_kind_of_cause_is_on_the_page() -> None:
    page = (PAGES / "events.md").read_text()
    table = page.split("| cause of a rebalance |")[1].split("\n\n")[0]
    assert {line.split("|")[2].strip(" `") for line in table.splitlines()[2:]} | {"other"} == set(CauseKind)


def test_what_a_shard_that_does_not_serve_answers_has_a_row_for_each_api() -> None:
    told = {name: [cell.partition(" ")[0].strip(",") for cell in r] for name, *r in rows(tables.unready())}
    assert len(told) == len(OFFSETS_TOPIC.apis)
    assert told["SyncGroup"] == ["15", "16", "27"]
    assert told["ListGroups"] == ["15", "0", "14"]
    assert "| NOT_ENOUGH_REPLICAS | 15 COORDINATOR_NOT_AVAILABLE |" in tables.append_errors().splitlines()
