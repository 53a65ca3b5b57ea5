"""Processors that work in transactions are killed and stand still, the broker is killed, its disk runs full:
who reads committed records finds each once, in its order.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.broker_process import QUICK_SETTINGS
from tests.reliability_report import table, write_section
from tests.torture.double_work import set_back, traces
from tests.torture.episode import machine
from tests.torture.exactly_once import TRANSACTION_MS
from tests.torture.history import History
from tests.torture.load import create_topic
from tests.torture.nemesis import FAULTS, Machine, Nemesis, may_overlap
from tests.torture.processors import (
    PARTITIONS,
    PROGRAMS,
    Processor,
    disorder,
    processors,
    read_committed,
    wait,
)
from tests.torture.test_kill_under_load import Numbers, confluent_numbers

pytestmark = [pytest.mark.clients, pytest.mark.slow(30)]

GROUP = "exactly-once"
TURNS, SOAKED_TURNS = 5, 100
#: Seconds between two faults.
SHORTEST_S, LONGEST_S = 0.2, 1.2
#: Seconds between two records of a partition.
PACE_S = 0.01
SETTINGS = {
    **QUICK_SETTINGS,
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.segment.bytes": "262144",
}

_INTRO = {
    "librdkafka": """
## Exactly once

Three processors (librdkafka) read numbers, write them to another topic and commit their offsets, in
transactions of up to 30 records. They are killed, suspended for longer than their transaction timeout, and
restarted under the same transactional id or a new one. Meanwhile the broker is killed and suspended, its disk
runs full and slow, its clock jumps, and connections to it are cut, held up and delayed. At the end the output
is read with read_committed: it must hold each number once and in order.
`make soak-transactions`, `tests/torture/test_exactly_once_killed.py`
""".strip(),
    "kohort": "The same with three of our services (`exactly_once(KafkaOutput())`):",
}


def meet(broken: Machine, nemesis: Nemesis[Machine], tended: list[Processor], rng: random.Random) -> None:
    """Let one fault happen, to a processor or to the broker, its disk, its clock, its network."""
    kind = rng.choice(("kill", "pause", "nemesis", "nemesis"))
    processor = rng.choice(tended)
    if kind == "kill":
        processor.kill(forget=rng.random() < 0.3)
        nemesis.caused["SIGKILL of a processor"] += 1
    elif kind == "pause":
        processor.pause(rng.uniform(0.5, 3.0) * TRANSACTION_MS / 1_000)
        nemesis.caused["SIGSTOP of a processor"] += 1
    else:
        nemesis.once()
        if not broken.broker.alive:  # a full disk may end it
            broken.broker.start()


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_record_is_committed_once_whatever_is_killed(
    tmp_path: Path, program: str, soaks: bool, pytestconfig: pytest.Config
) -> None:
    rng, history, errors = random.Random(21), History(), tmp_path / "errors"
    with machine(tmp_path / "machine", 21, history, SETTINGS) as broken:
        bootstrap = f"127.0.0.1:{broken.proxy.port}"
        for topic in ("source", "target"):
            create_topic(bootstrap, topic, PARTITIONS)
        feeders: list[Numbers] = [
            confluent_numbers(bootstrap, "source", number, "none", pause_s=PACE_S)
            for number in range(PARTITIONS)
        ]
        for feeder in feeders:
            feeder.start()
        nemesis = Nemesis(broken, 21, FAULTS, may_overlap)
        arguments = (bootstrap, "source", "target", GROUP, str(TRANSACTION_MS))
        with processors(errors, program, *arguments) as tended:
            for _ in range(SOAKED_TURNS if soaks else TURNS):
                wait(rng.uniform(SHORTEST_S, LONGEST_S), tended)
                meet(broken, nemesis, tended, rng)
            for feeder in feeders:
                feeder.stop()
            counts = [feeder.sent for feeder in feeders]
            found = read_committed(bootstrap, "target", counts, tended)
            begun = sum(each.begun for each in tended)
            wrong = disorder(counts, found)
            # whether it came in twice, or was put out twice
            source = disorder(counts, read_committed(bootstrap, "source", counts, tended)) if wrong else []
            traced = traces(broken.disk.folder, GROUP, history.fetched, errors, found) if wrong else ""
    assert wrong == [], f"{nemesis.story}, source {source}\n{traced}"
    assert set_back(history.fetched) == [], nemesis.story
    assert sum(counts) > 0
    report = pytestconfig.getoption("--report")
    if report is not None:
        rows: list[tuple[object, ...]] = [
            *sorted(nemesis.caused.items()),
            ("processes begun", begun),
            ("records, each committed once", sum(counts)),
        ]
        text = f"{_INTRO[program]}\n\n{table(('what', 'times'), rows)}"
        write_section(Path(report), f"exactly once, {program}", text)
