"""Makes random groups and asks Apache Kafka's own assignors about them: ``ask.py COUNT SEED > cases.tsv``.

Needs a JVM, and kafka-clients' class path in KAFKA_CLASSPATH. Each line of the outcome is a case as
KafkaAnswers.java reads it, a tab, "->", a tab, and the answer; test_kafka_answers.py holds kohort to them.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

RACKS = ["r1", "r2", "r3"]


def random_case(rnd: random.Random) -> str:
    racks_known = rnd.random() < 0.7
    one_count = rnd.randint(1, 9) if rnd.random() < 0.5 else 0  # topics of one size are assigned together
    topics = [f"t{i}" for i in range(rnd.randint(1, 5))]
    fields = [rnd.choice(["range", "range", "roundrobin"])]
    for topic in topics:
        racks = (_racks(rnd, racks_known) for _ in range(one_count or rnd.randint(1, 9)))
        fields.append(f"{topic}={'/'.join(racks)}")
    same = rnd.random() < 0.4
    wanted = _wanted(rnd, topics)
    for i in range(rnd.randint(1, 7)):
        instance = f"i{rnd.randint(0, 9)}{i}" if rnd.random() < 0.3 else "-"
        rack = rnd.choice(RACKS) if rnd.random() < 0.8 else "-"
        fields.append(
            ",".join(
                [f"c{rnd.randint(0, 99)}x{i}", instance, rack, *(wanted if same else _wanted(rnd, topics))]
            )
        )
    return "\t".join(fields)


def _racks(rnd: random.Random, known: bool) -> str:
    return "+".join(rnd.sample(RACKS, rnd.randint(1, 3))) if known else "-"


def _wanted(rnd: random.Random, topics: list[str]) -> list[str]:
    wanted = [topic for topic in topics if rnd.random() < 0.7]
    return [*wanted, "unknown"] if rnd.random() < 0.1 else wanted or topics[:1]


def main(count: int, seed: int) -> None:
    rnd = random.Random(seed)
    cases = [random_case(rnd) for _ in range(count)]
    program = Path(__file__).with_name("KafkaAnswers.java")
    command = ["java", "-cp", os.environ["KAFKA_CLASSPATH"], str(program)]
    done = subprocess.run(command, input="\n".join(cases), capture_output=True, text=True, check=True)
    for case, answer in zip(cases, done.stdout.splitlines(), strict=True):
        print(case, "->", answer, sep="\t")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
