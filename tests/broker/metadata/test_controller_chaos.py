"""Topics are created and deleted, and quotas changed, at every broker while brokers are killed, stopped,
paused and lose sessions: what was answered is so in the end, at every broker.

Covers: broker/metadata/controller_client.py.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress

import pytest

from kohort.protocol import ApiKey
from kohort.testing import RunningCluster, running_cluster
from tests.broker.wire import Wire, create_topic

#: How long brokers are struck, in seconds.
STRUCK_S = 6.0
#: How long an answer is waited for, in seconds.
PATIENCE_S = 20.0


class Admin(threading.Thread):
    """Creates topics and deletes some again. ``there`` says which of them are, None where an answer was
    lost.
    """

    def __init__(self, cluster: RunningCluster, number: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._number = number
        self._rng = random.Random(f"{seed} {number}")
        self.ended = False
        self.there: dict[str, bool | None] = {}
        #: Quotas of its user that may be in force: the last one that was answered, and all without an answer.
        self.quotas: set[float] = set()
        self._answered = 0.0

    def run(self) -> None:
        count = 0
        while not self.ended:
            count += 1
            # a broker that goes, and one that has gone meanwhile
            with suppress(OSError, EOFError, KeyError, IndexError):
                number = self._rng.choice(list(self._cluster.brokers))
                with Wire(self._cluster.brokers[number].bootstrap, timeout_s=PATIENCE_S) as wire:
                    self._make(wire, f"topic-{self._number}-{count}")
                    self._limit(wire, float(count))
                    if self._rng.random() < 0.3:
                        self._unmake(wire, self._rng.choice(list(self.there)))

    def _make(self, wire: Wire, name: str) -> None:
        self.there[name] = None
        code = create_topic(wire, name, 2).error_code
        # another try may have found what the first one has made
        self.there[name] = True if code == 0 else None

    @property
    def user(self) -> str:
        return f"user-{self._number}"

    def _limit(self, wire: Wire, rate: float) -> None:
        self.quotas.add(rate)
        entry = ([("user", self.user)], [("producer_byte_rate", rate, False)])
        answer = wire.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[entry], validate_only=False)
        if answer.entries[0].error_code == 0:
            self.quotas.discard(self._answered)
            self._answered = rate

    def _unmake(self, wire: Wire, name: str) -> None:
        self.there[name] = None
        answer = wire.call(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout_ms=3_000)
        self.there[name] = False if answer.responses[0].error_code == 0 else None


def strike(cluster: RunningCluster, rng: random.Random) -> None:
    number = rng.choice(list(cluster.brokers))
    match rng.randrange(4):
        case 0:
            cluster.kill(number)
            cluster.restart(number)
        case 1:
            cluster.stop(number)
            cluster.restart(number)
        case 2:
            cluster.pause(number, missed=rng.random() < 0.5)
            time.sleep(rng.random() / 2)
            cluster.resume(number)
        case _:
            cluster.lose_session(number)
    time.sleep(rng.random() / 4)


@pytest.mark.slow(12)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_answered_is_so_at_every_broker(seed: int) -> None:
    rng = random.Random(seed)
    with running_cluster(3, replica_lag_time_max_ms=1_000, replica_fetch_wait_max_ms=50) as cluster:
        admins = [Admin(cluster, number, seed) for number in range(3)]
        for each in admins:
            each.start()
        until = time.monotonic() + STRUCK_S
        while time.monotonic() < until:
            strike(cluster, rng)
        for each in admins:
            each.ended = True
        for each in admins:
            # what is under way waits for its answer: three requests, as long as each may take
            each.join(4 * PATIENCE_S)
            assert not each.is_alive(), "what it does now would count as not done"
        told = {name: there for each in admins for name, there in each.there.items() if there is not None}
        assert any(told.values()), "topics were made all the while"
        for name, there in told.items():
            if there:
                cluster.wait_in_sync(name)

        def partitions(number: int) -> dict[str, object]:
            return {topic.name: topic.partitions for topic in cluster._image(number).topics()}

        cluster._eventually(lambda: partitions(1) == partitions(2) == partitions(3) or None)
        for number in cluster.brokers:
            image = cluster._image(number)
            assert {name: image.topic(name) is not None for name in told} == told

        def quotas(number: int) -> list[float]:
            with Wire(cluster.brokers[number].bootstrap) as wire:
                asked = [[("user", 0, each.user)] for each in admins]
                found = [
                    wire.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=one, strict=True) for one in asked
                ]
            return [value.value for each in found for entry in each.entries for value in entry.values]

        cluster._eventually(lambda: quotas(1) == quotas(2) == quotas(3) or None)
        assert all(value in each.quotas for value, each in zip(quotas(1), admins, strict=True))
