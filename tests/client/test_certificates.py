"""The end of certificates: read, and told once a day when it is near, by clients and by services."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from kohort.client import Cluster
from kohort.client.certificates import DAY_S, CertificateError, EndReminder, ends_of, first_end
from kohort.client.security import Security
from tests.broker.security.certificates import ending_keystore


def test_the_first_of_several_certificates_counts(tmp_path: Path) -> None:
    pem = Path(ending_keystore(tmp_path, 40, 20, 30)).read_text()
    assert sorted(round((end - time.time()) / DAY_S) for end in ends_of(pem)) == [20, 30, 40]
    assert first_end(pem) == min(ends_of(pem))
    assert first_end("") is None
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert first_end(broken) is None
    with pytest.raises(CertificateError):
        ends_of(broken)


@pytest.mark.parametrize(
    ("days", "level", "words"),
    [(31, None, ""), (29, logging.WARNING, "expires on 2001-"), (-1, logging.ERROR, "expired on 2001-")],
)
def test_it_is_told_once_a_day_when_it_is_near(
    caplog: pytest.LogCaptureFixture, days: float, level: int | None, words: str
) -> None:
    now, wall = [0.0], 1_000_000_000.0
    reminder = EndReminder("ssl_certfile", wall + days * DAY_S, lambda: now[0], lambda: wall)
    told = []
    for now[0] in (0.0, 1.0, DAY_S - 1, DAY_S, 2 * DAY_S):
        reminder.remind()
        told.append(len(caplog.records))
    assert told == ([1, 1, 1, 2, 3] if level else [0] * 5)
    assert {each.levelno for each in caplog.records} == ({level} if level else set())
    assert all(f"ssl_certfile: the certificate {words}" in each.getMessage() for each in caplog.records)


def test_one_that_was_told_already_or_is_not_known_is_told_later_or_never(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    later = EndReminder("ssl_certfile", 0.0, lambda: now[0], first_after_s=DAY_S)
    later.remind()
    EndReminder("ssl_certfile", None).remind()
    assert caplog.text == ""
    now[0] = DAY_S
    later.remind()
    assert caplog.text.count("expired on 1970-01-01") == 1


async def test_a_client_tells_of_its_own_certificate_when_it_is_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    security = Security("SSL", certificate=Path(ending_keystore(tmp_path, 3)).read_text())
    cluster = Cluster("localhost:1", ssl_context=security.ssl_context())
    assert "ssl_certfile: the certificate expires on " in caplog.text
    await cluster.close()
