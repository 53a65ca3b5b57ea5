"""Assignors in processes of their own: what they answer counts, what they do wrong costs the group nothing.

Covers: assignors/server.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kohort.assignors import AssignorError
from kohort.coordinator import AssignorFailed, CoordinatorEvent, GroupCoordinator, GroupSettings
from kohort.coordinator.consumer_groups.assignor_processes import AssignorProcesses
from kohort.protocol import ApiKey, RequestContext
from tests.coordinator.bodies import DIRECTORY
from tests.coordinator.memory_log import MemoryLog
from tests.messages import request_of

PLUG_IN = """
import os, sys, time
from pathlib import Path
from kohort.assignors import Assignor, RangeAssignor

class ByTenant(RangeAssignor):
    name = "by-tenant"

    def assign(self, topics, members):
        print("what an assignor prints harms nobody")
        do = Path(__file__).with_name("do").read_text()
        if do == "raise":
            raise LookupError("no such tenant")
        if do == "hang":
            while True:
                pass
        if do == "die":
            os._exit(3)
        if do == "exit":
            sys.exit("enough")
        if do == "memory":
            return bytearray(1 << 62)
        if do == "nonsense":
            return {"stranger": [("t", 0)]}
        if do == "clients":
            assert [member.client_id for member in members.values()] == ["tenant-a"]
        return super().assign(topics, members)
"""


@pytest.fixture
def do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A distribution with an assignor, which does what it is told."""
    (tmp_path / "kohort_by_tenant.py").write_text(PLUG_IN)
    info = tmp_path / "kohort_by_tenant-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kohort-by-tenant\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kohort.assignors]\nby-tenant = kohort_by_tenant:ByTenant\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    tell = (tmp_path / "do").write_text
    tell("assign")
    yield lambda what: (tell(what), None)[1]
    sys.modules.pop("kohort_by_tenant", None)


def processes_of(c: GroupCoordinator) -> AssignorProcesses:
    (worker,) = c._workers.values()
    assert isinstance(worker, AssignorProcesses)
    return worker


@asynccontextmanager
async def serving(
    events: list[CoordinatorEvent], assignors: str = "by-tenant,uniform", **settings: Any
) -> AsyncIterator[GroupCoordinator]:
    c = GroupCoordinator(
        settings=GroupSettings(
            group_consumer_assignors=assignors, group_consumer_assignment_interval_ms=0, **settings
        ),
        store=MemoryLog(partition_count=1),
        partition_count_of=DIRECTORY.partition_count_of,
        topic_of_id=DIRECTORY.topic_of_id,
        id_of_topic=DIRECTORY.id_of_topic,
        on_event=events.append,
    )
    await c.start()
    try:
        yield c
    finally:
        await c.stop()


async def beat(c: GroupCoordinator, member: str, epoch: int, group: str = "g", **fields: Any) -> Any:
    fields = {"subscribed_topic_names": None, "topic_partitions": None, **fields}
    if not epoch:
        fields |= {"rebalance_timeout_ms": 10_000, "topic_partitions": [], "subscribed_topic_names": ["t"]}
    body = request_of(ApiKey.CONSUMER_GROUP_HEARTBEAT)(
        group_id=group, member_id=member, member_epoch=epoch, **fields
    )
    context = RequestContext("tenant-a", "/host")
    answer = await c.handle(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body, context)
    assert answer.error_code == 0, answer
    return answer


async def until_at(c: GroupCoordinator, member: str, epoch: int, to: int, group: str = "g") -> Any:
    while (answer := await beat(c, member, epoch, group)).member_epoch != to:
        epoch = answer.member_epoch
        await asyncio.sleep(0.01)
    return answer


async def until_failed(events: list[CoordinatorEvent]) -> str:
    while True:
        await asyncio.sleep(0.01)
        for event in events:
            if isinstance(event, AssignorFailed):
                return event.cause


@pytest.mark.parametrize("what", ["assign", "clients"])
async def test_a_group_has_what_its_assignor_answers(do: Callable[[str], None], what: str) -> None:
    do(what)
    events: list[CoordinatorEvent] = []
    async with serving(events) as c:
        assert (await beat(c, "m", 0)).member_epoch == 1
        answer = await until_at(c, "m", 1, 2)
        assert [len(topic.partitions) for topic in answer.assignment.topic_partitions] == [8]
        assert "1.0" not in repr(c)
    assert not [event for event in events if isinstance(event, AssignorFailed)]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("raise", "LookupError: no such tenant"),
        ("hang", "it gave no answer within 0.2 s, and was ended"),
        ("die", "its process ended before it had answered"),
        ("exit", "SystemExit: enough"),
        ("memory", "MemoryError"),
        ("nonsense", "'stranger' is assigned partitions and is no member of the group"),
    ],
)
async def test_an_assignor_that_fails_costs_the_group_nothing(
    do: Callable[[str], None], what: str, why: str
) -> None:
    events: list[CoordinatorEvent] = []
    async with serving(events) as c:
        await beat(c, "m", 0)
        await until_at(c, "m", 1, 2)
        do(what)
        assignors = processes_of(c)
        patient_s = assignors._timeout_s
        if what == "hang":
            assignors._timeout_s = 0.2
        await beat(c, "n", 0)
        # another assignor's groups do not wait for it
        await beat(c, "other", 0, "h", server_assignor="uniform")
        assert why in await until_failed(events)
        answer = await beat(c, "m", 2)
        assert (answer.member_epoch, answer.assignment) == (2, None)
        assert why in answer.error_message
        # once it does what it should, the next epoch has a target
        do("assign")
        assignors._timeout_s = patient_s
        await beat(c, "n", 2, subscribed_topic_names=[])
        await until_at(c, "m", 2, 4)


@pytest.mark.usefixtures("do")
async def test_a_process_that_was_killed_is_replaced() -> None:
    events: list[CoordinatorEvent] = []
    async with serving(events) as c:
        await beat(c, "m", 0)
        await until_at(c, "m", 1, 2)
        (process,) = processes_of(c)._processes.values()
        assert process.child is not None
        os.kill(process.child.pid, signal.SIGKILL)
        await process.child.wait()
        await beat(c, "m", 2, subscribed_topic_names=["t", "x"])
        await until_at(c, "m", 2, 3)
        child = process.child
    await child.wait()
    assert child.returncode == -signal.SIGKILL
    assert not events or not [event for event in events if isinstance(event, AssignorFailed)]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone can be told")
@pytest.mark.usefixtures("do")
async def test_the_system_ends_an_assignor_before_the_broker_when_memory_runs_out() -> None:
    async with serving([]) as c:
        await beat(c, "m", 0)
        await until_at(c, "m", 1, 2)
        (process,) = processes_of(c)._processes.values()
        assert process.child is not None
        assert Path(f"/proc/{process.child.pid}/oom_score_adj").read_text() == "1000\n"


async def test_a_large_group_is_assigned_by_kohorts_own_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kohort.coordinator.consumer_groups.target._MOST_AT_ONCE", 0)
    events: list[CoordinatorEvent] = []
    async with serving(events, "uniform") as c:
        assert (await beat(c, "m", 0)).member_epoch == 1
        await until_at(c, "m", 1, 2)


def test_an_assignor_that_cannot_be_used_is_told_of_before_the_broker_serves() -> None:
    with pytest.raises(AssignorError, match="no assignor is named 'by-nobody'"):
        GroupCoordinator(
            settings=GroupSettings(group_consumer_assignors="uniform,by-nobody"),
            store=MemoryLog(),
            partition_count_of=DIRECTORY.partition_count_of,
            topic_of_id=DIRECTORY.topic_of_id,
            id_of_topic=DIRECTORY.id_of_topic,
        )


@pytest.mark.parametrize(
    "sent", [b"", b"\0\0", b'\0\0\0\x09{"orders'], ids=["nothing", "half a length", "half a frame"]
)
def test_a_process_ends_with_the_broker_that_wrote_to_it(sent: bytes) -> None:
    code = "from kohort.assignors.server import main; main()"
    child = subprocess.run([sys.executable, "-c", code, "uniform"], input=sent, timeout=30, check=False)
    assert child.returncode == 0
