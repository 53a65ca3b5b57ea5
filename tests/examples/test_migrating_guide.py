"""Coming from another client: the page's programs go on where that one stood, and the other way round."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from kohort.testing import RunningBroker
from tests.kafka_python import HANGS, group_consumer

PAGE: Final = Path(__file__).resolve().parent.parent.parent / "docs" / "migrating.md"
SNIPPETS: Final[dict[str, str]] = dict(
    re.findall(r"```python\n# (\w+)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
)
#: What the old programs are configured with.
TOPIC, GROUP = "orders", "billing"
TIMEOUT_S: Final = 90

Old = Callable[[str, int], list[bytes | None]]


def read_by_kafka_python(bootstrap: str, count: int) -> list[bytes | None]:
    consumer = group_consumer(TOPIC, GROUP, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    try:
        return [next(consumer).value for _ in range(count)]
    finally:
        consumer.close()


def read_by_confluent_kafka(bootstrap: str, count: int) -> list[bytes | None]:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([TOPIC])
    values: list[bytes | None] = []
    try:
        while len(values) < count:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            assert message.error() is None
            values.append(message.value())
    finally:
        consumer.close()
    return values


def read_by_aiokafka(bootstrap: str, count: int) -> list[bytes | None]:
    aiokafka = pytest.importorskip("aiokafka")

    async def read() -> list[bytes | None]:
        settings = {"bootstrap_servers": bootstrap, "group_id": GROUP, "auto_offset_reset": "earliest"}
        async with asyncio.timeout(TIMEOUT_S), aiokafka.AIOKafkaConsumer(TOPIC, **settings) as consumer:
            return [(await consumer.getone()).value for _ in range(count)]

    return asyncio.run(read())


def read_by_faststream(bootstrap: str, count: int) -> list[bytes | None]:
    faststream = pytest.importorskip("faststream.kafka")

    async def read() -> list[bytes | None]:
        values: list[bytes | None] = []
        broker, all_read = faststream.KafkaBroker(bootstrap), asyncio.Event()

        async def bill(order: Any) -> None:
            values.append(json.dumps(order).encode())
            if len(values) == count:
                all_read.set()

        broker.subscriber(TOPIC, group_id=GROUP, auto_offset_reset="earliest")(bill)
        async with asyncio.timeout(TIMEOUT_S), broker:
            await broker.start()
            await all_read.wait()
        return values

    return asyncio.run(read())


FAUST: Final = """
import faust

class Order(faust.Record):
    id: int

app = faust.App("billing", broker="kafka://localhost:9092", web_enabled=False, topic_partitions=1)

@app.agent(app.topic("orders", value_type=Order))
async def bill(orders):
    async for order in orders:
        print(f"billed {order.id}.")
"""


def read_by_faust(bootstrap: str, count: int) -> list[bytes | None]:
    # in no extra: it wants an older click than mutmut does
    pytest.importorskip("faust", reason="faust-streaming is to be installed by hand")
    with TemporaryDirectory() as folder:
        Path(folder, "old.py").write_text(FAUST.replace("localhost:9092", bootstrap))
        command = [sys.executable, "-m", "faust", "-A", "old", "worker", "-l", "warn"]
        output = Path(folder, "output")
        with (
            output.open("w") as file,
            subprocess.Popen(command, cwd=folder, stdout=file, stderr=file) as worker,
        ):
            found: list[str] = []
            while len(found) < count and worker.poll() is None:
                time.sleep(0.05)
                found = re.findall(r"billed (\d+)\.", output.read_text())
            worker.terminate()
            assert worker.wait(TIMEOUT_S) == 0, output.read_text()
        return [b'{"id": %s}' % number.encode() for number in found]


ENDING: Final = ([b"0", b"1"], [b"2", b"last"], b"after", ["read b'2'", "read b'last'"])
SERVING: Final = (
    [b'{"id": 0}', b'{"id": 1}'],
    [b'{"id": 2}', b'{"id": 3}'],
    b'{"id": 4}',
    ["billed 2", "billed 3"],
)


@HANGS
@pytest.mark.slow(8)
@pytest.mark.parametrize(
    ("name", "read", "case"),
    [
        pytest.param("from_kafka_python", read_by_kafka_python, ENDING, id="kafka-python"),
        pytest.param("from_confluent_kafka", read_by_confluent_kafka, ENDING, id="confluent-kafka"),
        pytest.param("from_aiokafka", read_by_aiokafka, ENDING, id="aiokafka"),
        pytest.param("from_faust", read_by_faust, SERVING, id="Faust"),
        pytest.param("from_faststream_or_spring", read_by_faststream, SERVING, id="FastStream"),
    ],
)
def test_the_new_program_goes_on_where_the_old_one_stood_and_the_old_one_after_it(
    name: str,
    read: Old,
    case: tuple[list[bytes], list[bytes], bytes, list[str]],
    kohort_broker: RunningBroker,
    tmp_path: Path,
) -> None:
    before, between, after, lines = case
    kohort_broker.produce(TOPIC, before)
    assert read(kohort_broker.bootstrap, len(before)) == before
    kohort_broker.produce(TOPIC, between)
    path = tmp_path / f"{name}.py"
    path.write_text(SNIPPETS[name].replace("localhost:9092", kohort_broker.bootstrap))
    with subprocess.Popen(
        [sys.executable, "-u", path], cwd=tmp_path, text=True, stdout=subprocess.PIPE
    ) as new:
        try:
            assert new.stdout is not None
            said = [new.stdout.readline().strip() for _ in lines]
            if ".run()" in SNIPPETS[name]:  # the others end by themselves
                new.terminate()
            assert new.wait(TIMEOUT_S) == 0
        finally:
            new.kill()
    assert said == lines
    kohort_broker.produce(TOPIC, [after])
    assert read(kohort_broker.bootstrap, 1) == [after]
