"""A broker whose process was held up: what came in time counts, whatever was due meanwhile.

Covers: coordinator/engine/runner.py, broker/network/_server.py.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from kohort.protocol.messages.join_group import JoinGroupRequestProtocol
from tests.broker.group_members import Member
from tests.broker.wire import Wire, create_topic
from tests.broker_process import QUICK_SETTINGS, BrokerProcess
from tests.waiting import wait_until

#: Sessions, timeouts of transactions, and the time after which idle connections are closed.
PATIENCE_MS = 2_500
MEMBERS = 10
TIMEOUT_S = 30.0
NONE = ErrorCode.NONE


class Transaction:
    """An open transaction of a connection."""

    def __init__(self, wire: Wire, name: str, topic: str) -> None:
        self.wire, self.name = wire, name
        assert wire.call(ApiKey.FIND_COORDINATOR, 3, key=name, key_type=1).error_code == NONE
        fields = {"transactional_id": name, "transaction_timeout_ms": PATIENCE_MS}
        made = wire.call(ApiKey.INIT_PRODUCER_ID, 4, **fields, producer_id=-1, producer_epoch=-1)
        assert made.error_code == NONE
        self.producer = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
        fields = {f"v3_and_below_{key}": value for key, value in self.producer.items()}
        added = wire.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=name,
            v3_and_below_topics=[(topic, [0])],
            **fields,
        )
        assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == NONE

    def send_commit(self) -> int:
        return self.wire.send(ApiKey.END_TXN, 3, transactional_id=self.name, committed=True, **self.producer)

    def state(self, wire: Wire) -> str:
        (found,) = wire.call(
            ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[self.name]
        ).transaction_states
        state: str = found.transaction_state
        return state


@pytest.fixture
def process(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {
        **QUICK_SETTINGS,
        "group.consumer.session.timeout.ms": str(PATIENCE_MS),
        "connections.max.idle.ms": str(PATIENCE_MS),
    }
    broker = BrokerProcess(tmp_path, data=tmp_path / "data", settings=settings)
    broker.start()
    yield broker
    broker.kill()


def joined(wire: Wire, group: str) -> dict[str, Any]:
    """A classic member alone in its group; the fields of its heartbeats."""
    member = wire.call(
        ApiKey.JOIN_GROUP,
        3,
        group_id=group,
        session_timeout_ms=PATIENCE_MS,
        rebalance_timeout_ms=PATIENCE_MS,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )
    mine = {"group_id": group, "generation_id": member.generation_id, "member_id": member.member_id}
    assert wire.call(ApiKey.SYNC_GROUP, 1, **mine, assignments=[]).error_code == NONE
    return mine


@pytest.mark.slow(4)
def test_who_was_heard_of_in_time_is_there_and_who_was_silent_goes_soon(process: BrokerProcess) -> None:
    with ExitStack() as stack:

        def connected() -> Wire:
            return stack.enter_context(Wire(process.bootstrap))

        tool = connected()
        create_topic(tool, "t")
        wires = [connected() for _ in range(MEMBERS)]
        members = [joined(wire, f"g{number}") for number, wire in enumerate(wires)]
        consumer, silent = (Member("of-two", name, topics=["t"]) for name in ("lively", "silent"))
        consumer_wire = connected()
        ended, late = (Transaction(connected(), name, "t") for name in ("ended", "late"))
        gone = joined(tool, "gone")["group_id"]
        silent.beat(tool)
        for wire, mine in zip(wires, members, strict=True):
            assert wire.call(ApiKey.HEARTBEAT, 1, **mine).error_code == NONE
        consumer.beat(consumer_wire)

        process.send(signal.SIGSTOP)
        stopped_s = time.monotonic()
        sent = [wire.send(ApiKey.HEARTBEAT, 1, **mine) for wire, mine in zip(wires, members, strict=True)]
        beat = {"group_id": consumer.group, "member_id": consumer.name, "member_epoch": consumer.epoch}
        sent_beat = consumer_wire.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **beat, rebalance_timeout_ms=-1)
        sent_commit = ended.send_commit()
        time.sleep(max(0.0, stopped_s + 1.15 * PATIENCE_MS / 1_000 - time.monotonic()))
        process.send(signal.SIGCONT)

        answers = [
            wire.receive(ApiKey.HEARTBEAT, 1, number) for wire, number in zip(wires, sent, strict=True)
        ]
        assert {answer.error_code for answer in answers} == {NONE}
        answer = consumer_wire.receive(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, sent_beat)
        assert answer.error_code == NONE
        assert ended.wire.receive(ApiKey.END_TXN, 3, sent_commit).error_code == NONE

        with Wire(process.bootstrap) as asking:

            def members_of(key: ApiKey, version: int, *groups: str) -> int:
                names = {ApiKey.DESCRIBE_GROUPS: "groups"}.get(key, "group_ids")
                found = asking.call(
                    key, version, **{names: list(groups)}, include_authorized_operations=False
                )
                return len(found.groups[0].members)

            wait_until(lambda: members_of(ApiKey.DESCRIBE_GROUPS, 3, gone) == 0)
            wait_until(lambda: members_of(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, "of-two") == 1)
            wait_until(lambda: late.state(asking) == "CompleteAbort")
            wait_until(lambda: ended.state(asking) == "CompleteCommit")
