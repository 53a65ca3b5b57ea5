"""Reading settings a user gave: what is taken, and what an error says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Le, Predicate
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from kohort.broker import BrokerSettings, SettingsError
from kohort.broker._topic_config import TopicConfig
from kohort.broker._validation import Allowed, Doc, as_text, is_plain, read_settings, settings_of


@dataclass(slots=True)
class Shop:
    max_size: Annotated[int, Ge(1), Le(10), Doc("how much fits")] = 5
    open_at_ms: Annotated[int | None, Ge(0)] = None
    load_factor: Annotated[float, Ge(0), Le(1)] = 0.5
    on_sunday: bool = False
    kind: Literal["bakery", "butcher"] = "bakery"
    motto: Annotated[str, Predicate(str.isupper), Allowed("loud")] = "BREAD"


def test_nothing_given_is_all_defaults() -> None:
    assert read_settings(Shop, {}) == Shop()


@pytest.mark.parametrize(
    ("name", "value", "field", "read"),
    [
        ("max.size", "7", "max_size", 7),
        ("max_size", 7, "max_size", 7),
        ("max.size", " +7 ", "max_size", 7),
        ("open.at.ms", "0", "open_at_ms", 0),
        ("load.factor", "0.25", "load_factor", 0.25),
        ("on.sunday", "TRUE", "on_sunday", True),
        ("kind", "butcher", "kind", "butcher"),
        ("motto", "MEAT", "motto", "MEAT"),
    ],
)
def test_names_have_dots_or_underscores_and_values_are_text_or_typed(
    name: str, value: Any, field: str, read: object
) -> None:
    assert getattr(read_settings(Shop, {name: value}), field) == read


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("max.size", "0", "a whole number from 1 to 10"),
        ("max.size", "11", "a whole number from 1 to 10"),
        ("max.size", "many", "a whole number from 1 to 10"),
        ("max.size", "3.0", "a whole number from 1 to 10"),
        ("open.at.ms", "-1", "a whole number, at least 0"),
        ("load.factor", "1.5", "a number from 0 to 1"),
        ("on.sunday", "perhaps", "true or false"),
        ("kind", "Bakery", "one of bakery, butcher"),
        ("motto", "meat", "loud"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(name: str, value: str, allowed: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(Shop, {name: value})
    assert str(caught.value) == f"{name}={value} is not allowed: it must be {allowed}"


def test_an_unknown_name_is_answered_with_the_nearest_known() -> None:
    with pytest.raises(SettingsError, match=r"^max\.sice is no setting: did you mean max\.size\?$"):
        read_settings(Shop, {"max.sice": "1"})
    with pytest.raises(SettingsError, match=r"zzz is no shop setting: docs/broker\.md lists them all"):
        read_settings(Shop, {"zzz": "1"}, "shop setting")


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(Shop, {"max.size": "0", "load.factor": "2"})
    assert "max.size=0" in str(caught.value)
    assert "load.factor=2" in str(caught.value)


def test_settings_are_described_by_their_annotations() -> None:
    size = settings_of(Shop)["max_size"]
    assert (size.kafka_name, size.type, size.default, size.least, size.most) == ("max.size", int, 5, 1, 10)
    assert size.doc == "how much fits"
    assert settings_of(Shop)["open_at_ms"].optional


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), (True, "true"), (False, "false"), (0.5, "0.5"), (7, "7"), ("a,b", "a,b")],
)
def test_values_are_written_as_kafka_writes_them(value: object, text: str | None) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize("settings", [{}, {"num.partitions": "3", "delete.topic.enable": "false"}])
def test_a_broker_with_plain_settings_imports_no_pydantic(settings: dict[str, str]) -> None:
    code = (
        f"import sys; from kohort.broker import Broker; Broker(settings={settings});"
        "sys.exit('pydantic' in sys.modules or 'kafka' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("cls", [Shop, BrokerSettings, TopicConfig])
@given(data=st.data())
def test_what_is_plain_is_read_as_pydantic_reads_it(cls: type[Any], data: st.DataObject) -> None:
    setting = data.draw(st.sampled_from(list(settings_of(cls).values())))
    numbers = st.integers(-(2**65), 2**65).map(str) | st.sampled_from([str(setting.least), str(setting.most)])
    odd = ["true", "false", "True", "1", "", " 7", "07", "-0", "1.0", "\u0661"]
    words = st.sampled_from([*odd, *setting.choices])
    value = data.draw(numbers | words | st.text(max_size=3))
    if not is_plain(setting, value):
        return
    expected = TypeAdapter(cls).validate_python({setting.name: value})
    read = getattr(read_settings(cls, {setting.name: value}), setting.name)
    assert read == getattr(expected, setting.name)
    assert type(read) is type(getattr(expected, setting.name))
