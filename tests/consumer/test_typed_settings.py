"""Settings as editors and type checkers see them.

Covers: consumer/typed_settings.py, service/typed_settings.py. What is wrong here is so for mypy too: an
"ignore" that nothing needs is an error of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kohort.client.errors import ConfigError
from kohort.consumer import AsyncGroupConsumer, ConsumerSettings, GroupConsumer
from kohort.consumer.config import ConsumerConfig
from kohort.service import ConsumerService, ServiceSettings, _options
from kohort.settings import settings_of
from tests.scripts import script

if TYPE_CHECKING:
    from typing import Unpack


def test_the_files_are_made_of_the_tables() -> None:
    for path, text in script("typed_settings").FILES.items():
        assert path.read_text() == text(), "run 'make docs'"


def test_every_setting_is_there() -> None:
    assert settings_of(ConsumerConfig).keys() <= ConsumerSettings.__annotations__.keys()
    assert settings_of(_options.ServiceOptions).keys() <= ServiceSettings.__annotations__.keys()


def test_a_type_checker_knows_names_and_types() -> None:
    right: ConsumerSettings = {"bootstrap_servers": "localhost:1", "group_id": "g", "auto_offset_reset": 0}
    AsyncGroupConsumer("orders", **right)
    GroupConsumer("orders", bootstrap="localhost:1", group="g", protocol="auto", session_timeout_ms=6_000)
    ConsumerService(bootstrap="localhost:1", group="g", health_port=0, tracing=False)
    with pytest.raises(ConfigError, match="sesion_timeout_ms"):
        GroupConsumer("orders", group="g", sesion_timeout_ms=6_000)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="protocol"):
        AsyncGroupConsumer("orders", group="g", protocol="modern")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="health_port"):
        ConsumerService(group="g", health_port="http")  # type: ignore[arg-type]


def test_a_function_may_pass_them_on() -> None:
    def ours(**settings: Unpack[ConsumerSettings]) -> GroupConsumer:
        return GroupConsumer("orders", **settings)

    assert "'g'" in repr(ours(bootstrap="localhost:1", group="g"))
    with pytest.raises(ConfigError, match="grup"):
        ours(grup="g")  # type: ignore[call-arg]
