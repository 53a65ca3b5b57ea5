"""Strangers who try everything at once: none gets in, and who is in is served meanwhile."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any

import pytest

from kohort.protocol import ApiKey
from tests.broker.security.attacker import ATTACKS
from tests.broker.security.logins import asks, authenticate, handshake
from tests.broker.security.scram_client import ScramClient
from tests.broker.wire import Wire
from tests.conftest import ROOT
from tests.secured import Secured

#: How long all attacks together last in the ordinary run, in seconds.
SECONDS = 3.0

#: Connections from one address in the crowd; with --soak as many as one machine has ports for.
CROWD, LARGE_CROWD = 1_500, 10_000


def logged_in(secured: Secured, recorded: list[str]) -> Wire:
    """A client of the broker, whose login is kept for others to replay."""
    wire, client = Wire(secured.sasl, timeout_s=60), ScramClient("SCRAM-SHA-256", "me", "secret")
    handshake(wire, "SCRAM-SHA-256")
    first = client.first()
    last = client.last(bytes(authenticate(wire, first).auth_bytes))
    assert authenticate(wire, last).error_code == 0
    recorded += [first.decode(), last.decode()]
    return wire


def about(secured: Secured, attacks: list[str], crowd: int, recorded: list[str]) -> str:
    issuer = secured.issuer
    return json.dumps(
        {
            "attacks": attacks,
            "crowd": crowd,
            "plain": secured.plain,
            "sasl": secured.sasl,
            "tls": secured.tls,
            "recorded": recorded,
            "tokens": [issuer.token(lifetime_s=-100), issuer.token(aud="somebody-else"), "x.y.z"],
        }
    )


def attacked(secured: Secured, attacks: list[str], crowd: int, seconds: float) -> tuple[list[float], Any]:
    """Seconds that each of a good client's requests took, and what the attackers said."""
    recorded: list[str] = []
    logged_in(secured, recorded).close()
    command = [sys.executable, "-m", "tests.broker.security.attacker", str(seconds)]
    process = subprocess.Popen(
        [*command, about(secured, attacks, crowd, recorded)],
        cwd=ROOT / ".src",
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "begun\n"
        took = times(secured, process)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    return took, json.loads(said)


def times(
    secured: Secured, while_it_runs: subprocess.Popen[str] | None = None, seconds: float = 0
) -> list[float]:
    """Seconds that requests of good clients take, new logins among them."""
    took: list[float] = []
    end = time.monotonic() + seconds
    with Wire(secured.plain, timeout_s=60) as open_to_all:
        while while_it_runs.poll() is None if while_it_runs else time.monotonic() < end:
            with logged_in(secured, []) as wire:
                for _ in range(20):
                    for each in (wire, open_to_all):
                        began = time.monotonic()
                        assert asks(each)
                        took.append(time.monotonic() - began)
    return took


@pytest.mark.slow(4)
def test_strangers_get_in_by_no_attack_and_others_are_served(secured: Secured) -> None:
    took, said = attacked(secured, list(ATTACKS), CROWD, SECONDS)
    assert set(said["done"]) == {*ATTACKS, "crowd"}
    assert said["got_in"] == {}
    assert len(took) >= 40
    with Wire(secured.plain) as wire:
        assert wire.call(ApiKey.METADATA, 1, topics=[]).brokers


@pytest.mark.parametrize("attack", [*ATTACKS, "crowd"])
def test_others_are_served_nearly_as_ever(
    secured: Secured, attack: str, request: pytest.FixtureRequest
) -> None:
    """The 99th percentile under each attack is under ten times the usual; a matter of a quiet machine."""
    seconds = request.config.getoption("--soak")
    if seconds is None:
        pytest.skip("measures: run with --soak SECONDS on a quiet machine")
    usual = percentile(times(secured, seconds=5))
    attacks, crowd = ([], LARGE_CROWD) if attack == "crowd" else ([attack], 0)
    took, said = attacked(secured, attacks, crowd, max(5.0, min(seconds, 30.0)))
    under = percentile(took)
    print(f"{attack}: p99 {usual * 1000:.2f} ms, under attack {under * 1000:.2f} ms, {said['done']}")
    assert said["got_in"] == {}
    assert under < 10 * usual


def percentile(took: list[float]) -> float:
    """The 99th, in seconds."""
    return statistics.quantiles(took, n=100)[98]
