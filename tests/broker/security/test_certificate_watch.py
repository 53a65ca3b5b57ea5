"""Certificates that have expired or soon will are told: at the start, once a day, and as a metric."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kohort.broker import Broker
from kohort.broker.metrics._families import FAMILIES
from kohort.broker.security._certificate_watch import CertificateWatch
from kohort.broker.security._listener_security import ListenerSecurity
from kohort.broker.security._listeners import listeners_of
from kohort.broker.security._scram_users import ScramUsers
from kohort.broker.settings import broker_settings
from kohort.client.certificates import DAY_S
from tests.broker.security.certificates import ending_keystore


def securities(keystore: str) -> list[ListenerSecurity]:
    settings = broker_settings(
        {"listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", "ssl.keystore.location": keystore}
    )
    return [ListenerSecurity(settings, each, ScramUsers()) for each in listeners_of(settings, "", 0)]


@pytest.mark.parametrize(
    ("days", "level", "words"),
    [
        ((100, 31), None, ""),
        ((100, 29), "WARNING", "listener SSL: a certificate expires on {day}: exchange it"),
        ((-2, 100), "ERROR", "listener SSL: a certificate expired on {day}: exchange it, it is refused"),
    ],
)
def test_the_first_that_ends_is_told_once_a_day(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    days: tuple[float, ...],
    level: str | None,
    words: str,
) -> None:
    now = [0.0]
    watch = CertificateWatch(securities(ending_keystore(tmp_path, *days)), now=lambda: now[0])
    end = watch.ends()["SSL"]
    assert list(watch.ends()) == ["SSL"]
    assert round((end - time.time()) / DAY_S) == min(days)
    told = []
    with caplog.at_level(logging.INFO, "kohort.broker"):
        for now[0] in (0.0, 5.0, DAY_S - 1, DAY_S, DAY_S + 1, 2 * DAY_S):
            watch.log_expiring()
            told.append(len(caplog.records))
    assert told == ([1, 1, 1, 2, 2, 3] if level else [0] * 6)
    day = datetime.fromtimestamp(end, UTC).date()
    assert {(each.levelname, each.getMessage()) for each in caplog.records} == (
        {(level, words.format(day=day))} if level else set()
    )


def test_a_file_that_was_exchanged_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.broker.security._tls.LOOK_S", 0.0)
    watch = CertificateWatch(securities(ending_keystore(tmp_path, 5)))
    before = watch.ends()["SSL"]
    ending_keystore(tmp_path, 105)
    assert round((watch.ends()["SSL"] - before) / DAY_S) == 100


def test_the_one_that_zookeeper_is_shown_is_looked_at_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watch = CertificateWatch([], ending_keystore(tmp_path, 5))
    assert round((watch.ends()["zookeeper"] - time.time()) / DAY_S) == 5
    watch.log_expiring()
    assert "zookeeper.ssl.keystore.location: a certificate expires on " in caplog.text
    assert CertificateWatch([], str(tmp_path / "missing.pem")).ends() == {}


def test_one_that_stands_in_the_settings_is_known(tmp_path: Path) -> None:
    key, _, chain = Path(ending_keystore(tmp_path, 5)).read_text().partition("-----BEGIN CERTIFICATE")
    settings = broker_settings(
        {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.key": key,
            "ssl.keystore.certificate.chain": f"-----BEGIN CERTIFICATE{chain}",
        }
    )
    (listener,) = listeners_of(settings, "", 0)
    watch = CertificateWatch([ListenerSecurity(settings, listener, ScramUsers())])
    assert round((watch.ends()["SSL"] - time.time()) / DAY_S) == 5


async def test_a_broker_tells_at_its_start_and_shows_it_as_a_metric(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keystore = ending_keystore(tmp_path, -1)
    given = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": keystore}
    with caplog.at_level(logging.ERROR, "kohort.broker"):
        async with Broker(settings=given) as broker:
            now = broker.metrics()
    (family,) = (one for one in FAMILIES if one.name == "kohort_certificate_expiry_timestamp_seconds")
    ((labels, value),) = family.samples(now)
    assert labels == ("SSL",)
    assert isinstance(value, float)
    assert round((value - time.time()) / DAY_S) == -1
    assert "listener SSL: a certificate expired on " in caplog.text
