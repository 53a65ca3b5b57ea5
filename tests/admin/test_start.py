"""What a command loads and asks for: no more than it needs, as people wait for it.

Covers: admin/records/reader.py, admin/topics/requests.py, admin/connection.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kohort.producer import Producer

Topics = Callable[..., str]

#: What takes longest to load, and is for groups, for settings in Python, or for tokens.
SLOW = (
    "kohort.assignors",
    "kohort.consumer.consumer",
    "kohort.consumer.run.assembly",
    "kohort.service._service",
    "kohort.coordinator",
    "kohort.offsets_topic",
    "pydantic",
    "transitions",
    "urllib.request",
)
SCRIPT = f"""
import json, sys
from kohort.cli import main
from kohort.client.connection import Connection

sent = []
real = Connection._send_request
def send(self, body, *rest):
    sent.append(type(body).__name__.removesuffix("Request"))
    return real(self, body, *rest)
Connection._send_request = send
code = main(sys.argv[1:])
print(file=sys.stderr)
json.dump([code, sent, [name for name in {SLOW!r} if name in sys.modules]], sys.stderr)
"""


@pytest.fixture
async def topic(bootstrap: str, new_topic: Topics) -> str:
    """A topic with one record."""
    name = new_topic("start", partitions=2)
    async with Producer(bootstrap=bootstrap) as producer:
        await producer.send_and_wait(name, b"value", partition=0)
    return name


def start(bootstrap: str, *words: str) -> tuple[int, list[str], list[str]]:
    """The exit code, the requests in their order, and what was loaded of ``SLOW``."""
    code = [sys.executable, "-c", SCRIPT, *words, "--bootstrap", bootstrap]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60, check=True)
    found: Any = json.loads(done.stderr.splitlines()[-1])
    return found[0], found[1], found[2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # the last one asks whether access rules hide some
        (["topics", "list"], ["ApiVersions", "Metadata", "Metadata", "Metadata"]),
        (["groups", "list"], ["ApiVersions", "Metadata", "Metadata", "ListGroups", "DescribeCluster"]),
        (["users", "list"], ["ApiVersions", "Metadata", "DescribeUserScramCredentials"]),
        (["quotas", "list"], ["ApiVersions", "Metadata", "DescribeClientQuotas"]),
        (["configs", "list", "--topic", "TOPIC"], ["ApiVersions", "Metadata", "DescribeConfigs"]),
        (
            ["topics", "delete-records", "TOPIC", "--all"],
            ["ApiVersions", "Metadata", "Metadata", "ListOffsets", "ListOffsets"],
        ),
        (
            ["consume", "TOPIC", "--count", "1"],
            ["ApiVersions", "Metadata", "ListOffsets", "ListOffsets", "ApiVersions", "Fetch"],
        ),
        (
            ["deadletters", "list", "TOPIC"],
            ["ApiVersions", "Metadata", "ListOffsets", "ListOffsets", "ApiVersions", "Fetch"],
        ),
    ],
)
def test_a_command_loads_and_asks_for_no_more_than_it_needs(
    bootstrap: str, topic: str, words: list[str], expected: list[str]
) -> None:
    code, sent, loaded = start(bootstrap, *(topic if word == "TOPIC" else word for word in words))
    assert code == 0
    assert loaded == []
    assert sent == expected


def test_what_is_empty_is_not_fetched(bootstrap: str, new_topic: Topics) -> None:
    _, sent, _ = start(bootstrap, "consume", new_topic("empty"))
    assert "Fetch" not in sent
