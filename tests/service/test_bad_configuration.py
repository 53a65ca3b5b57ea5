"""Every wrong name, type, range or combination is one clear error, before any connection.

Covers: service/_options.py.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer, ConfigError, ConsumerConfig, Record
from kohort.service import ConsumerService, Retry, Services
from kohort.settings import settings_of

#: What may be anything: its own tests tell what of that is right.
ANYTHING = {"assignor", "sasl_oauth_token_provider", "ssl_context", "config"}
#: A value of each type that a setting may have.
SAMPLES: tuple[Any, ...] = ("text", -1, 2**40, 1.5, True, None, ["x"], {"a": 1}, object(), b"bytes", "", [5])


@pytest.fixture
def bootstrap_that_must_stay_alone() -> Iterator[str]:
    """An address whose listener sees to it that nobody has connected."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BlockingIOError):
            server.accept()


def _accepts(name: str, value: Any) -> bool:
    """Return whether a setting may have a value, by its row."""
    setting = settings_of(ConsumerConfig)[name]
    if value is None:
        return setting.optional
    if isinstance(value, bool):
        return setting.type is bool
    if isinstance(value, str):
        return setting.type is str and not setting.choices and len(value) >= (setting.row.shortest or 0)
    if isinstance(value, int):
        unbounded = setting.type is int and setting.row.most is None
        return value >= 0 and (unbounded or name == "auto_offset_reset")
    return False


CASES = [
    (name, value)
    for name in ConsumerConfig.model_fields
    if name not in ANYTHING | {"bootstrap", "group"}
    for value in SAMPLES
    if not _accepts(name, value)
]


def test_every_setting_is_tried() -> None:
    assert {name for name, _ in CASES} == set(ConsumerConfig.model_fields) - ANYTHING - {"bootstrap", "group"}
    assert len(CASES) > 300


@pytest.mark.parametrize("make", [AsyncGroupConsumer, ConsumerService])
def test_a_setting_of_a_wrong_type_or_range_is_named_with_its_value(
    make: Callable[..., object], bootstrap_that_must_stay_alone: str
) -> None:
    topics = ("orders",) if make is AsyncGroupConsumer else ()
    for name, value in CASES:
        if make is ConsumerService and name == "drain_timeout_ms" and value is None:
            continue
        with pytest.raises(ConfigError) as refused:
            make(*topics, bootstrap=bootstrap_that_must_stay_alone, group="billing", **{name: value})
        assert name in str(refused.value), f"{name}={value!r}: {refused.value}"
        assert "\n" not in str(refused.value), "one line"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"sesion_timeout_ms": 5}, "did you mean session_timeout_ms"),
        ({"bootstrap": 5}, "bootstrap"),
        ({"bootstrap": []}, "bootstrap"),
        ({"bootstrap": "host:port"}, "port"),
        ({"group": ""}, "group=''"),
        ({"group": None}, "group"),
        ({"heartbeat_interval_ms": 50_000}, "must be less than session_timeout_ms"),
        (
            {"retry_backoff_ms": 2_000},
            r"retry_backoff_ms \(2000\) must not be more than retry_backoff_max_ms",
        ),
        ({"reconnect_backoff_ms": 2_000}, "must not be more than reconnect_backoff_max_ms"),
        ({"fetch_max_wait_ms": 30_000}, "must be less than request_timeout_ms"),
        ({"enable_auto_commit": False}, "leave it on"),
        ({"drain_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}, "nine tenths of that or less"),
        ({"drain_timeout_ms": "1"}, "drain_timeout_ms='1'"),
        ({"stalled_after_ms": 0}, "stalled_after_ms=0"),
        ({"health_port": 70_000}, r"health_port=70000.* from 0 to 65535"),
        ({"health_port": True}, "health_port=True"),
        ({"health_host": 5}, "health_host=5"),
        ({"tracing": "yes"}, "tracing='yes'"),
        ({"security_protocol": "SSL", "ssl_cafile": "/nowhere/ca.pem"}, "ssl_cafile: .*No such file"),
    ],
)
def test_a_service_refuses(settings: dict[str, Any], text: str, bootstrap_that_must_stay_alone: str) -> None:
    with pytest.raises(ConfigError, match=text):
        ConsumerService(**{"bootstrap": bootstrap_that_must_stay_alone, "group": "billing", **settings})


def _handle(record: Record) -> None: ...


@pytest.mark.parametrize(
    ("topics", "options", "text"),
    [
        ((), {}, "name at least one"),
        (("",), {}, "name at least one"),
        ((5,), {}, "name at least one"),
        (("orders", "orders"), {}, "topic is named twice"),
        (("orders",), {"lanes": "keys"}, "one of partition, key, none"),
        (("orders",), {"concurrency": 0}, r"concurrency=0, but it must be in 1\.\."),
        (("orders",), {"concurrency": "4"}, "concurrency='4'"),
        (("orders",), {"concurrency": True}, "concurrency=True"),
        (("orders",), {"retry": 5}, "retry=5, but it must be a Retry"),
        (("orders",), {"dead_letter": 5}, "dead_letter=5"),
        (("orders",), {"dead_letter": ""}, "dead_letter=''"),
        (("orders",), {"dead_letter": "orders"}, "a loop"),
        (("orders",), {"dead_letter": {KeyError: "orders"}}, "a loop"),
        (("orders",), {"dead_letter": {"KeyError": "dlt"}}, "by classes of exceptions"),
        (("orders",), {"dead_letter": {KeyError: None}}, "by classes of exceptions"),
        (("orders",), {"timeout_ms": 0}, "timeout_ms=0"),
        (("orders",), {"timeout_ms": 5.5}, r"timeout_ms=5\.5"),
        (("orders",), {"timeout_ms": 5}, "is for async functions"),
        (("orders",), {"model": 5}, "model=5 is nothing that pydantic can read"),
    ],
)
def test_a_handler_refuses(topics: tuple[Any, ...], options: dict[str, Any], text: str) -> None:
    service = ConsumerService(bootstrap="localhost:1", group="billing")
    with pytest.raises(ConfigError, match=text):
        service.handler(*topics, **options)(_handle)


@pytest.mark.parametrize("max_records", [0, "5", 1.5, True, 2**40])
def test_a_batch_handler_refuses(max_records: Any) -> None:
    service = ConsumerService(bootstrap="localhost:1", group="billing")
    with pytest.raises(ConfigError, match="max_records="):
        service.batch_handler("orders", max_records=max_records)(_handle)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("attempts", 0),
        ("attempts", "3"),
        ("attempts", True),
        ("backoff_ms", -1),
        ("backoff_ms", 1.5),
        ("max_backoff_ms", 1),
        ("multiplier", 0.5),
        ("multiplier", "2"),
        ("jitter", 1),
        ("retry_on", OSError),
        ("retry_on", (5,)),
    ],
)
def test_a_retry_refuses(option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"Retry: {option}="):
        Retry(**{option: value})


async def test_a_service_without_a_handler_says_how_to_have_one() -> None:
    with pytest.raises(ConfigError, match="register one with"):
        await ConsumerService(bootstrap="localhost:1", group="billing").serve()


@pytest.mark.parametrize("kind", ["handler", "batch_handler"])
def test_a_decorator_without_parentheses_is_told_at_once(kind: str) -> None:
    service = ConsumerService(bootstrap="localhost:1", group="billing")

    def bill(_: Record) -> None: ...

    with pytest.raises(ConfigError, match=r"handler .*bill names no topic: .*@service\.handler\('orders'\)"):
        getattr(service, kind)(bill)


@pytest.mark.parametrize("several", [False, True])
async def test_run_in_a_running_loop_says_what_to_await(several: bool) -> None:
    service = ConsumerService(bootstrap="localhost:1", group="billing")
    service.handler("orders")(lambda _: None)
    with pytest.raises(RuntimeError, match=r"await service\.serve\(\)"):
        (Services(service) if several else service).run()
