"""Reading settings a user gave: what is taken, and what an error says.

Covers: settings/_table.py, settings/model.py.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from kohort.broker import BrokerSettings
from kohort.broker.partitions.topic_config import TopicConfig
from kohort.protocol import KohortError
from kohort.settings import (
    Row,
    Scope,
    SettingsError,
    as_text,
    is_plain,
    read_settings,
    settings_of,
)
from kohort.settings.model import SettingsModel

SHOP = Scope("shop", "shop setting", "docs/shop.md", "kafka")
BAKER = Scope("baker", "setting of a baker", "docs/baker.md")
STALL = Scope("stall", "option of a stall", "docs/stall.md", "spark")


@dataclass(slots=True)
class Shop:
    SCOPE: ClassVar[Scope] = SHOP

    max_size: Annotated[int, Row("how much fits", 1, 10)] = 5
    open_at_ms: Annotated[int | None, Row("when it opens", 0)] = None
    load_factor: Annotated[float, Row("how full", 0, 1)] = 0.5
    on_sunday: Annotated[bool, Row("open on Sundays")] = False
    kind: Annotated[Literal["bakery", "butcher"], Row("what it sells")] = "bakery"
    motto: Annotated[str, Row("what is written above", check=str.isupper, allowed="loud")] = "BREAD"


class Baker(SettingsModel):
    SCOPE: ClassVar[Scope] = BAKER

    name: Annotated[str, Row("who it is", shortest=1, longest=9, also=("baker_name",))]
    oven: Annotated[int, Row("degrees", 1, unit="C", kafka="ovenHeat")] = 200
    safe: Annotated[str | None, Row("code of the safe", longest=3, sensitive=True)] = None
    hours: Annotated[tuple[int, ...], Row("when it bakes")] = ()


class Stall(Baker):
    SCOPE: ClassVar[Scope] = STALL


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
    with pytest.raises(SettingsError, match=r"^max\.sice is no shop setting: did you mean max\.size\?$"):
        read_settings(Shop, {"max.sice": "1"})
    with pytest.raises(SettingsError, match=r"zzz is no shop setting: docs/shop\.md lists them all"):
        read_settings(Shop, {"zzz": "1"})


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(Shop, {"max.size": "0", "load.factor": "2", "zzz": "1"})
    assert "max.size=0" in str(caught.value)
    assert "load.factor=2" in str(caught.value)
    assert "zzz is no shop setting" in str(caught.value)


def test_settings_are_described_by_their_annotations() -> None:
    size = settings_of(Shop)["max_size"]
    assert (size.kafka_name, size.type, size.default) == ("max.size", int, 5)
    assert (size.row.least, size.row.most, size.row.doc, size.scope) == (1, 10, "how much fits", SHOP)
    assert settings_of(Shop)["open_at_ms"].optional
    assert settings_of(Shop)["open_at_ms"].unit == "ms"
    assert settings_of(Stall)["name"].scope == BAKER
    assert settings_of(Baker)["name"].required


def test_a_field_without_a_row_is_an_error_of_its_author() -> None:
    class Bare(SettingsModel):
        SCOPE: ClassVar[Scope] = BAKER
        size: int = 5

    with pytest.raises(TypeError, match="size has no Row"):
        settings_of(Bare)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"nam": "Ada"},
            "nam is no setting of a baker: did you mean name?; name is missing: it has no default",
        ),
        ({"name": ""}, "name='' is not allowed: it must be text, not empty, at most 9 characters"),
        ({"name": "Ada", "oven": 0}, "oven=0 is not allowed: it must be a whole number, at least 1"),
        (
            {"name": "Ada", "safe": "1234"},
            "safe=(hidden) is not allowed: it must be text, at most 3 characters",
        ),
        ({"name": "Ada", "baker_name": "Bea"}, "name and baker_name are the same setting: give one of them"),
    ],
)
def test_python_s_arguments_are_checked_in_the_same_words(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(KohortError) as caught:
        read_settings(Baker, given)
    assert str(caught.value) == problem


def test_a_wrong_item_of_a_value_is_named_by_its_place() -> None:
    with pytest.raises(SettingsError, match=r"^hours\.1='noon': Input should be a valid integer"):
        read_settings(Baker, {"name": "Ada", "hours": (1, "noon")})


def test_options_of_spark_count_in_any_case_and_by_their_own_names() -> None:
    assert read_settings(Stall, {"NAME": "Ada", "ovenheat": "90"}).oven == 90
    with pytest.raises(SettingsError, match=r"^ovenHaet is no option of a stall: did you mean ovenHeat\?"):
        read_settings(Stall, {"name": "Ada", "ovenHaet": "90"})


def test_the_error_is_that_of_the_room() -> None:
    class OvenError(KohortError):
        pass

    with pytest.raises(OvenError):
        read_settings(Baker, {}, OvenError)


def test_a_representation_hides_what_is_sensitive() -> None:
    assert repr(Baker(name="Ada", safe="123")) == "Baker(name='Ada', oven=200, hours=())"


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
    numbers = st.integers(-(2**65), 2**65).map(str) | st.sampled_from(
        [str(setting.row.least), str(setting.row.most)]
    )
    odd = ["true", "false", "True", "1", "", " 7", "07", "-0", "1.0", "\u0661"]
    words = st.sampled_from([*odd, *setting.choices])
    value = data.draw(numbers | words | st.text(max_size=3))
    if not is_plain(setting, value):
        return
    expected = TypeAdapter(cls).validate_python({setting.name: value})
    read = getattr(read_settings(cls, {setting.name: value}), setting.name)
    assert read == getattr(expected, setting.name)
    assert type(read) is type(getattr(expected, setting.name))
