"""The tables of docs/broker.md."""

from __future__ import annotations

from dataclasses import fields

from kohort.broker import BrokerSettings
from kohort.broker._docs import settings_table, topic_configs_table
from kohort.broker._topic_config import TopicConfig


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_every_setting_is_described() -> None:
    described = rows(settings_table())
    assert {row[0].strip("`").replace(".", "_") for row in described} == {
        field.name for field in fields(BrokerSettings)
    }
    assert all(row[2] and row[3] for row in described)


def test_every_topic_config_is_described() -> None:
    described = rows(topic_configs_table())
    assert len(described) == len(fields(TopicConfig))
    assert all(row[2] and row[3] for row in described)
