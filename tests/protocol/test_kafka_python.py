"""kafka-python beside kohort in one application: it stays as it is installed."""

from __future__ import annotations

import subprocess
import sys

_APPLICATION = """
import asyncio, importlib, inspect, pkgutil, sys, warnings
warnings.simplefilter("ignore")
import kafka, kafka.protocol
for package in (kafka.protocol, importlib.import_module("kafka.protocol.schemas")):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if "resources" not in found.name:
            importlib.import_module(found.name)

def picture():
    seen = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] != "kafka":
            continue
        for key, value in list(vars(module).items()):
            seen[name, key] = value
            if inspect.isclass(value):
                for inner, attribute in list(vars(value).items()):
                    if callable(attribute) or isinstance(attribute, (staticmethod, classmethod, property)):
                        seen[name, key, inner] = attribute
    return seen

before = picture()
assert len(before) > 5_000, len(before)

from kohort.consumer import AsyncGroupConsumer
from kohort.testing import running_broker

async def read(bootstrap):
    settings = {"bootstrap": bootstrap, "group": "g", "auto_offset_reset": "earliest"}
    async with AsyncGroupConsumer("orders", **settings) as consumer:
        async for record in consumer:
            consumer.done(record)
            return record.value

with running_broker() as broker:
    broker.create_topic("orders", 1)
    broker.produce("orders", ["first"])
    value = asyncio.run(asyncio.wait_for(read(broker.bootstrap), 60))
    assert bytes(value) == b"first", value

after = picture()
changed = [key for key, value in before.items() if after.get(key) is not value]
assert not changed, changed
"""


def test_a_broker_and_a_consumer_leave_its_classes_and_functions_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _APPLICATION], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
