from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import TopicPartition
from kohort.spark import OptionsError
from kohort.spark._options import GroupBatchesOptions, read_options
from kohort.spark._plan import Limits, StartRules

GIVEN: dict[str, Any] = {"bootstrap": "localhost:9092", "group": "etl", "topics": ["orders"]}


def test_starts_at_the_commits_and_else_at_the_beginning_and_never_loses_silently() -> None:
    options = read_options(GroupBatchesOptions, **GIVEN)
    assert options.start_rules == StartRules("committed", "earliest", fail_on_data_loss=True)
    assert options.limits == Limits(None, None)


def test_takes_topics_as_one_text_with_commas() -> None:
    assert read_options(GroupBatchesOptions, **{**GIVEN, "topics": "orders, clicks"}).topics == (
        "orders",
        "clicks",
    )


def test_takes_offsets_to_start_from() -> None:
    options = read_options(GroupBatchesOptions, **GIVEN, starting_offsets='{"orders": {"0": 5}}')
    assert options.start_rules.start == {TopicPartition("orders", 0): 5}


@pytest.mark.parametrize("name", ["committed", "earliest", "latest"])
def test_takes_named_starts(name: str) -> None:
    assert read_options(GroupBatchesOptions, **GIVEN, starting_offsets=name).start_rules.start == name


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"max_ofsets": 5}, "max_ofsets is no option of a driver loop: did you mean max_offsets"),
        ({"max_offsets": 0}, "max_offsets=0 is not allowed: it must be a whole number, at least 1"),
        ({"max_offsets": "many"}, "max_offsets='many'"),
        ({"group": ""}, "group=''"),
        (
            {"starting_offsets": "yesterday"},
            "starting_offsets='yesterday': neither one of committed, earliest",
        ),
        ({"starting_offsets": '{"a": 1}'}, "topic 'a' must be an object"),
        ({"starting_offsets_fallback": "none"}, "starting_offsets_fallback='none'"),
        ({"isolation_level": "committed"}, "isolation_level='committed'"),
        ({"topics": []}, "exactly one of topics, topic_pattern and assign"),
        ({"topics": None}, "exactly one of"),
        ({"topic_pattern": "o.*"}, "exactly one of"),
        ({"topics": None, "topic_pattern": "o(*"}, "topic_pattern='o\\(\\*': no regular expression"),
        ({"topics": None, "assign": {"orders": [-1]}}, "assign.orders.0=-1"),
    ],
)
def test_names_the_option_its_value_and_what_is_allowed(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionsError, match=problem):
        read_options(GroupBatchesOptions, **{**GIVEN, **change})


def test_names_every_problem_at_once() -> None:
    with pytest.raises(OptionsError, match=r"bootstrap.*; group"):
        read_options(GroupBatchesOptions, topics=["orders"])
