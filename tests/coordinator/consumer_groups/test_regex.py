"""Regular expressions of members: refused in Kafka's words, resolved beside the request, looked up anew.

Covers: coordinator/re2_expressions.py.
"""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kohort.coordinator import re2_expressions
from kohort.coordinator.consumer_groups import regex
from kohort.coordinator.consumer_groups.regex import RESOLUTION_PAUSE_MS
from kohort.coordinator.groups.events import JoinRefused
from kohort.protocol import ErrorCode, RequestContext
from tests.coordinator.consumer_groups.group_world import World

INTERVAL_MS = 1_000


@dataclass
class Plain:
    """An expression of Python's own, where there is no RE2. ``matched``: names that it was asked about."""

    text: str
    programsize: int = 20
    matched: list[str] = field(default_factory=list)

    def fullmatch(self, name: str) -> bool:
        self.matched.append(name)
        return re.fullmatch(self.text, name) is not None


def plainly(text: str) -> tuple[Plain, str]:
    return Plain(text), ""


@pytest.fixture
def world() -> World:
    pytest.importorskip("re2")
    return World({"orders-1": 2, "orders-2": 1, "other": 3})


def test_the_join_has_nothing_and_the_next_heartbeat_everything(world: World) -> None:
    answer = world.join("m", subscribed_topic_regex="orders-.*")
    assert (answer.member_epoch, world.told(answer)) == (1, {})
    world.advance(INTERVAL_MS)
    answer = world.beat("m", 1)
    assert (answer.member_epoch, world.told(answer)) == (2, {"orders-1": (0, 1), "orders-2": (0,)})
    assert [kind for kind, *_ in world.written()] == [5, 3, 6, 8, 16, 3, 7, 6, 8]


def test_the_whole_name_has_to_match(world: World) -> None:
    world.join("m", subscribed_topic_regex="orders")
    world.advance(INTERVAL_MS)
    world.beat("m", 1)
    assert world.has("m") == {}


def test_one_that_the_group_has_resolved_counts_in_the_join(world: World) -> None:
    world.join("m", subscribed_topic_regex="orders-.*")
    world.advance(INTERVAL_MS)
    world.beat("m", 1)
    world.advance(INTERVAL_MS)
    assert world.join("n", subscribed_topic_regex="orders-.*").member_epoch == 3


def test_new_topics_are_found_but_not_within_ten_seconds(world: World) -> None:
    world.join("m", subscribed_topic_regex="orders-.*")
    world.advance(INTERVAL_MS)
    world.live("m")
    world.change_topics(**{"orders-3": 1})
    world.advance(INTERVAL_MS)
    world.live("m")
    assert "orders-3" not in world.has("m")
    world.advance(RESOLUTION_PAUSE_MS)
    world.live("m")
    world.advance(INTERVAL_MS)
    world.live("m")
    assert world.has("m")["orders-3"] == (0,)


def test_what_it_stands_for_goes_with_its_last_member(world: World) -> None:
    world.join("m", subscribed_topic_regex="orders-.*")
    world.advance(INTERVAL_MS)
    before = len(world.log)
    world.beat("m", -1)
    assert world.written(before)[3] == (16, "orders-.*", True)


def test_another_one_takes_everything_away_first(world: World) -> None:
    world.join("m", subscribed_topic_regex="orders-.*")
    world.advance(INTERVAL_MS)
    world.live("m")
    assert world.told(world.beat("m", 2, subscribed_topic_regex="other")) == {}


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("[", "missing closing ]"),
        ("(", "missing closing )"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a(?=b)", "invalid or unsupported Perl syntax"),
        ("\\y", "invalid escape sequence"),
        ("\\", "trailing backslash at end of expression"),
        ("a{1001}", "invalid repeat count"),
        ("a\\C", "invalid escape sequence"),
        ("(?P<n>a)[b](?<n>c)", "duplicate capture group name"),
        ("(?P<é>a)", "invalid named capture"),
        ("(?<=a)b", "invalid named capture"),
        ("(?<!a)b", "invalid named capture"),
    ],
)
def test_one_that_cannot_be_read_is_refused_in_kafkas_words(world: World, expression: str, why: str) -> None:
    answer = world.join("m", subscribed_topic_regex=expression)
    told = f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {why}."
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REGULAR_EXPRESSION, told)
    assert not world.shard.state.knows("g")


@pytest.mark.parametrize(
    "expression", ["\\\\C", "\\Q\\C\\E", "(?P<n>a)[(?P<n>]", "[[:alpha:](?<n>]", "\\(?<n>"]
)
def test_what_only_looks_like_something_that_java_refuses_is_taken(world: World, expression: str) -> None:
    assert world.join("m", subscribed_topic_regex=expression).error_code == 0


def test_without_re2_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    really_import = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "re2":
            raise ImportError(name)
        return really_import(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    re2_expressions.compile_regex.cache_clear()
    answer = World().join("m", subscribed_topic_regex="t.*")
    re2_expressions.compile_regex.cache_clear()
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "install google-re2 (kohort[regex])" in answer.error_message


def test_one_whose_topics_stay_is_looked_up_again_after_its_interval_and_not_with_every_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regex, "compile_regex", plainly)
    world = World({"orders": 1}, group_consumer_regex_refresh_interval_ms=60_000)
    lookups: list[int] = []

    def names() -> list[str]:
        lookups.append(world.now_ms)
        return list(world.topics)

    world.shard.state.topics = replace(world.shard.state.topics, names=names)
    world.join("m", subscribed_topic_regex="orders")
    for _ in range(100):
        world.advance(3_000)
        world.live("m")
    assert len(lookups) == 5


def test_a_resolution_that_changes_nothing_is_kept_with_its_time_and_raises_no_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regex, "compile_regex", plainly)
    world = World({"orders": 1}, group_consumer_regex_refresh_interval_ms=60_000)
    world.join("m", subscribed_topic_regex="orders")
    world.advance(INTERVAL_MS)
    world.live("m")
    before, epoch = len(world.log), world.group().epoch
    first = world.group().regexes["orders"]
    for _ in range(21):
        world.advance(3_000)
        world.live("m")
    assert world.written(before) == [(16, "orders", False)]
    again = world.group().regexes["orders"]
    assert (again.topics, world.group().epoch) == (first.topics, epoch)
    assert again.timestamp_ms > first.timestamp_ms + 60_000


def test_it_stands_for_topics_that_the_sender_may_describe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "compile_regex", plainly)
    world = World({"seen": 1, "secret": 1})
    asked: list[str] = []

    def shows(context: RequestContext, name: str) -> bool:
        asked.append(context.client_id)
        return name == "seen"

    world.shard.state.topics = replace(world.shard.state.topics, shows=shows)
    world.join("m", subscribed_topic_regex="se.*")
    world.advance(INTERVAL_MS)
    world.live("m")
    assert world.has("m") == {"seen": (0,)}
    assert asked == ["client"] * 2


def test_many_topics_are_looked_up_step_by_step(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_STEP_WORK", 1)
    world.join("m", subscribed_topic_regex="orders-.*")
    for step_ms in (0, 1):
        world.advance(step_ms)
        assert not world.group().regexes
        assert not world.beat("m", 1).error_code
    world.advance(1)
    assert world.group().regexes["orders-.*"].topics == ("orders-1", "orders-2")
    world.advance(INTERVAL_MS)
    world.live("m")
    assert world.group().state_name == "Stable"


def test_a_step_is_the_shorter_the_larger_an_expression_is_and_the_pause_the_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    large = Plain(".*", programsize=10_000)
    monkeypatch.setattr(regex, "compile_regex", lambda text: (large if text == "large" else Plain(text), ""))
    world = World({f"{number:0>100}": 1 for number in range(3)} | {f"t{number}": 1 for number in range(500)})
    world.join("m", subscribed_topic_regex="large")
    world.join("n", subscribed_topic_regex="t.*")
    matched: list[int] = []
    while not world.group().regexes:
        world.advance(1)
        matched.append(len(large.matched) - sum(matched))
    # a long name is a step of its own, and leaves others as much time as it may have taken
    assert [count for count in matched if count][:3] == [1, 1, 1]
    assert max(matched) <= 1 + regex._STEP_WORK // (10_000 * len("t1"))
    assert len(matched) > 3 * 100 * 10_000 // regex._PAUSE_WORK
    assert set(world.group().regexes["t.*"].topics) == {f"t{number}" for number in range(500)}


@pytest.mark.parametrize(
    "expression",
    [
        "\\pL" * 3_300,
        "[\\P{Greek}]" * 900,
        "x{0,1000}" * 1_100,
        "a{1000}" * 1_400,
        "a{10000000000}",
        "x" * 10_001,
    ],
    ids=lambda expression: expression[:12],
)
def test_one_that_grows_as_it_is_read_is_refused_unread(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    re2 = pytest.importorskip("re2")
    monkeypatch.setattr(re2, "compile", None)
    assert re2_expressions.compile_regex(expression) == (None, "pattern too large - compile failed")


def test_a_match_finds_no_groups_and_a_program_has_so_many_instructions_and_no_more() -> None:
    pytest.importorskip("re2")
    expression, why = re2_expressions.compile_regex("(a|aa)?" * 100)
    assert (expression.groups, why) == (0, "")
    assert re2_expressions.compile_regex(".{200}" * 10)[1] == "pattern too large - compile failed"


def test_a_member_that_leaves_meanwhile_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "_STEP_WORK", 1)
    world.join("m", subscribed_topic_regex="orders-.*")
    world.advance(1)
    world.beat("m", -1)
    world.advance(INTERVAL_MS)
    assert (world.group().resolving, world.group().regexes) == (None, {})
    epoch = world.group().epoch
    world.join("n", subscribed_topic_regex="other")
    world.advance(RESOLUTION_PAUSE_MS + 1)
    world.live("n")
    world.advance(INTERVAL_MS)
    world.live("n")
    assert world.has("n") == {"other": (0, 1, 2)}
    assert world.group().epoch > epoch


def test_a_group_has_so_many_expressions_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "MOST_REGEXES", 2)
    for name in "ab":
        assert world.join(name, subscribed_topic_regex=f"orders-{name}").error_code == 0
    refused = world.join("c", subscribed_topic_regex="orders-c")
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.error_message == "The group has 2 regular expressions: let members subscribe to the same."
    assert list(world.group().members) == ["a", "b"]
    # one that is there may be used by more, and replaced
    assert world.join("c", subscribed_topic_regex="orders-a").error_code == 0
    assert world.beat("b", 1, subscribed_topic_regex="orders-c").error_code == 0


def test_one_that_is_too_long_is_refused_and_one_that_is_not_is_written(world: World) -> None:
    refused = world.join("m", subscribed_topic_regex="x" * (re2_expressions.MOST_REGEX_BYTES + 1))
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.error_message.endswith("is too long: name the topics.")
    assert not world.shard.state.knows("g")
    assert world.join("m", subscribed_topic_regex="x" * re2_expressions.MOST_REGEX_BYTES).error_code == 0
    world.restart()


def test_one_that_stands_for_more_than_a_record_holds_gives_nothing_and_is_refused_from_then_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "MOST_RECORD_BYTES", 20)
    assert world.join("m", "other", subscribed_topic_regex="orders-.*").error_code == 0
    world.advance(INTERVAL_MS)
    words = "SubscribedTopicRegex `orders-.*` stands for 2 topics, for which a record has no room."
    assert [event.cause for event in world.events if isinstance(event, JoinRefused)] == [words]
    refused = world.join("n", subscribed_topic_regex="orders-.*")
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REGULAR_EXPRESSION, words)
    assert world.beat("m", 1).error_code == 0
    # where the topics are fewer it is good again
    world.change_topics(**{"orders-2": None})
    world.advance(RESOLUTION_PAUSE_MS + 1)
    world.live("m")
    world.advance(INTERVAL_MS)
    assert world.join("n", subscribed_topic_regex="orders-.*").error_code == 0
    world.live("m")
    assert "orders-1" in {**world.has("m"), **world.has("n")}


def test_what_many_expressions_stand_for_is_written_in_parts_that_fit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex, "MOST_RECORD_BYTES", 30)
    for name, pattern in {"a": "orders-.*", "b": "orders-[12]", "c": "o.*-.*"}.items():
        world.join(name, subscribed_topic_regex=pattern)
    world.held = []
    world.advance(RESOLUTION_PAUSE_MS + 1)
    world.beat("a", world.group().members["a"].current.epoch)
    world.advance(2)
    sizes = [sum(record.type == 16 for record in append.records) for append in world.held]
    assert max(sizes) == 1
    assert sum(sizes) >= 2


def test_nothing_expires_while_it_is_unknown_what_it_stands_for(world: World) -> None:
    world.commit_long_ago("orders-1")
    world.join("m", subscribed_topic_regex="orders-.*")
    assert world.after_retention() == ["orders-1"]
    world.advance(INTERVAL_MS)
    world.beat("m", 1)
    assert world.after_retention() == ["orders-1"]
    world.beat("m", -1)
    assert world.after_retention() == []
