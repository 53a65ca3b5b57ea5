"""Share consumers as they ship, in processes of their own, on real brokers: the processes are killed, stand
still, lose their connections, have their clocks put forward and back, and close; three brokers and their
ZooKeeper have to stand what they have in ``test_share_groups_killed``. Nothing is lost, nothing that was
answered as done comes back, and no record is given again whose lock had not ended, as far as its consumer was
told.

Covers: consumer/share/exchange.py, consumer/share/locks.py.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.broker.test_cluster_killed import brokers
from tests.broker_process import QUICK_SETTINGS, BrokerProcess
from tests.cluster import servers
from tests.reliability_report import table, write_section
from tests.torture.share_consumer import BREAK, JUMP
from tests.torture.share_traffic import PACE_S, SHARE_SETTINGS, SOAKED_PACE_S, ShareTraffic
from tests.torture.test_share_groups_killed import faults

#: What happens to processes of share consumers.
KINDS = ("kill", "stand still", "lose connections", "clock jumps", "close")
#: Less than a lock lasts, and more.
_STILL_S = (1.0, 4.0, 8.0)


async def afflict(traffic: ShareTraffic, kind: str, rng: random.Random) -> None:
    """Have something happen to one of the processes; the group goes on."""
    member = rng.choice(traffic.consumers())
    match kind:
        case "kill":
            await traffic.replace_member(member)
        case "close":
            await traffic.replace_closed(member)
        case "stand still":
            await member.stand_still(rng.choice(_STILL_S))
        case "lose connections":
            member.tell(BREAK)
        case _:
            member.tell(JUMP)
    took_s = await traffic.goes_on()
    print(f"{kind}: goes on after {took_s:.1f} s")


@pytest.mark.slow(60)
@pytest.mark.timeout(14_400)
def test_whatever_happens_to_share_consumers_nothing_is_lost_or_handled_twice_with_its_lock(
    tmp_path: Path, soaks: bool, pytestconfig: pytest.Config
) -> None:
    """On a broker of ours; with ``--bootstrap`` on Apache Kafka, whose locks should be short."""
    given = pytestconfig.getoption("--bootstrap")
    until = time.monotonic() + (pytestconfig.getoption("--soak") or 0.0)
    rng, pace_s = random.Random(39), SOAKED_PACE_S if soaks else PACE_S

    async def run(bootstrap: str) -> None:
        async with ShareTraffic(bootstrap, wire=0, consumers=4, replicas=1, pace_s=pace_s) as traffic:
            await traffic.goes_on()
            rounds = 0
            while not rounds or time.monotonic() < until:
                for kind in rng.sample(KINDS, len(KINDS)):
                    await afflict(traffic, kind, rng)
                rounds += 1
            await traffic.check()
            print(traffic.summary())

    if given is not None:
        asyncio.run(run(given))
        return
    broker = BrokerProcess(tmp_path, data=tmp_path / "data", settings={**QUICK_SETTINGS, **SHARE_SETTINGS})
    broker.start()
    try:
        asyncio.run(run(broker.bootstrap))
    finally:
        broker.kill()


@pytest.mark.slow(120)
@pytest.mark.timeout(14_400)
def test_share_consumers_and_their_brokers_end_and_stand_still(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """For as long as ``--soak`` says; without it a fault of each kind of the leader's."""
    soak = pytestconfig.getoption("--soak")
    until = time.monotonic() + (soak or 0.0)
    rng, pace_s = random.Random(40), PACE_S if soak is None else SOAKED_PACE_S
    caused: Counter[str] = Counter()
    of_brokers = (
        ("kill", "stand_still", "stop")
        if soak is None
        else ("kill", "stand_still", "stop", "kill_all", "lose_store")
    )

    async def run(running: dict[int, BrokerProcess], zookeeper: servers.ZooKeeper) -> str:
        async with faults(running, wire=0, consumers=4, pace_s=pace_s) as happen:
            await happen.whole()
            while not caused or time.monotonic() < until:
                for kind in rng.sample(of_brokers, len(of_brokers)):
                    match kind:
                        case "kill_all":
                            await happen.kill_all()
                        case "lose_store":
                            await happen.lose_store(zookeeper)
                        case _:
                            await getattr(happen, kind)("leader")
                    caused[f"brokers: {kind.replace('_', ' ')}"] += 1
                    of_member = rng.choice(KINDS)
                    await afflict(happen.traffic, of_member, rng)
                    caused[f"consumers: {of_member}"] += 1
        return happen.summary()

    with servers.zookeeper() as zookeeper, brokers(tmp_path, zookeeper.connect(), SHARE_SETTINGS) as running:
        told = asyncio.run(run(running, zookeeper))
    report = pytestconfig.getoption("--report")
    if report is not None:
        text = f"{_INTRO}\n\n{table(('what', 'times'), [*sorted(caused.items())])}\n\nIn the end: {told}."
        write_section(Path(report), "share consumers, killed", text)


_INTRO = """## Share consumers on a cluster of real processes

Three brokers, a ZooKeeper, and four processes with kohort's share consumer, which accept, release and reject
records, keep them until their locks end, or are slow. Nothing was lost, nothing whose acknowledgement was
answered came back, and no record was given again while its consumer had the lock:
`tests/torture/test_share_consumers_killed.py`."""
