"""Snippets with a name of these pages, run as they stand there, but for names and the address."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.client.registry import FakeRegistry, framed
from tests.cluster import servers

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PAGES = [
    DOCS / "service.md",
    DOCS / "producer.md",
    DOCS / "migrating.md",
    *sorted((DOCS / "tutorials").glob("*.md")),
]
SNIPPETS: dict[str, str] = dict(
    re.findall(r"```python\n# (\w+)\n(.*?)```", "".join(page.read_text() for page in PAGES), flags=re.DOTALL)
)
#: Those that tests/spark/test_snippets.py runs.
OF_SPARK = {"first_spark_job", "from_spark_sql_kafka"}
#: Values of the topic's records, and lines that a snippet is to print.
BILLED = [f"billed b'{number}'" for number in range(6)]
EXPECTED: dict[str, tuple[list[str], list[str]]] = {
    "decode": (['{"id": 7}', "{", '{"id": 8}'], ["billed None 7", "billed None 8"]),
    "encode": ([], ["wrote orders 0"]),
    "encode_avro": ([], ["wrote 0"]),
    "encode_results": (['{"id": 7}', "{", '{"id": 8}'], ["billed 7", "billed 8"]),
    "first_assignor": (["0"], ["assigned 1 partitions"]),
    "first_service": (
        ['{"id": 1, "amount": 9.5}', "rubbish", '{"id": 2, "amount": 3}'],
        ["billed order 1 over 9.5", "billed order 2 over 3.0"],
    ),
    "from_aiokafka": (["first", "last"], ["read b'first'", "read b'last'"]),
    "from_confluent_kafka": (["first", "last"], ["read b'first'", "read b'last'"]),
    "from_faust": (['{"id": 7}'], ["billed 7"]),
    "from_kafka_08": (["first", "last"], ["read b'first'", "read b'last'"]),
    "from_kafka_python": (["first", "last"], ["read b'first'", "read b'last'"]),
    "from_faststream_or_spring": (["{", '{"id": 7}'], ["billed 7"]),
    "exactly_once": (list("ab"), ["billed b'a'", "billed b'b'"]),
    "exactly_once_kafka": (list("ab"), ["billed b'a'", "billed b'b'"]),
    "failed": (["1", "x", "3"], ["booked 1", "booked 3"]),
    "lifespan": (list("ab"), ["billed b'a'", "billed b'b'"]),
    "middleware": (["0", "1"], ["orders 0: 0.", "orders 1: 0."]),
    "producer": ([], ["0 0"]),
    "pause": ([str(number) for number in range(6)], BILLED),
    "registry": ([], ["billed id=5"]),
    "retry_topics": (list("abcde"), [f"billed orders 0 {n} b'{c}'" for n, c in enumerate("abcde")]),
    "test_billing": ([], ["2 passed"]),
    "routed": (["{", '{"id": 8}'], ["billed 8"]),
    "service": (['{"id": 7, "amount": 1}'], ["billed 7"]),
    "transaction": ([], ["moved"]),
    "services": (["0"], ["billed b'0'", "shipped b'0'"]),
}

pytestmark = pytest.mark.kafka


@pytest.fixture
def zookeeper() -> Iterator[servers.ZooKeeper]:
    with servers.zookeeper() as running:
        yield running


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    fake = FakeRegistry()
    yield fake
    fake.close()


def test_the_pages_have_their_snippets() -> None:
    assert SNIPPETS.keys() == EXPECTED.keys() | OF_SPARK


@pytest.mark.parametrize("name", EXPECTED)
def test_a_snippet_runs(
    name: str,
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    fake: FakeRegistry,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    values, lines = EXPECTED[name]
    if name in ("registry", "encode_avro"):
        pytest.importorskip("fastavro", reason="the extra 'avro' is not installed")
        order = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
    if name == "registry":
        # zigzag: 10 is 5
        values = [framed(fake.add(json.dumps(order)), b"\x0a").decode()]
    topic = new_topic("orders", partitions=1)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(topic, value.encode())
    code = SNIPPETS[name].replace("localhost:9092", bootstrap).replace('"orders', f'"{topic}')
    code = code.replace("http://localhost:8081", fake.url).replace("health_port=8080", "health_port=0")
    if '"bills"' in code:
        code = code.replace('"bills"', f'"{new_topic("bills", partitions=1)}"')
    if "localhost:2181" in code:
        code = code.replace("localhost:2181", request.getfixturevalue("zookeeper").connect())
    path = tmp_path / f"{name}.py"
    path.write_text(
        re.sub(r'(group|group_id)="(\w+)"', lambda found: f'{found[1]}="{group(found[2])}"', code)
    )
    pytest_ = ["-m", "pytest", "-p", "no:cacheprovider"] if name.startswith("test_") else []
    process = subprocess.Popen(
        [sys.executable, *pytest_, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    # for one that hangs: on a machine full of others some take more than a minute
    watchdog = threading.Timer(240, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        missing = [line.replace("orders", topic) for line in lines]
        while missing and (said := process.stdout.readline()):
            missing = [line for line in missing if line not in said]
        if ".run()" in code:  # the others end by themselves
            process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    finally:
        watchdog.cancel()
        process.kill()
    assert missing == [], errors
    assert process.returncode == 0, errors
