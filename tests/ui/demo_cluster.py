"""A broker as operators know them: groups at work and behind, dead letters, a share group, a Spark job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from kohort.client import Cluster
from kohort.consumer import BlockingShareConsumer, Record
from kohort.producer import Producer
from kohort.service.letters.deadletter import error_headers
from kohort.spark._batch_log import BatchLog, BatchRow, UnderWay, encode_log
from kohort.spark._intent import add_log
from kohort.testing import RunningBroker, running_broker
from tests.ui.conftest import commit
from tests.ui.members import grouped
from tests.waiting import wait_until

_TOPICS = {"orders": 6, "payments": 3, "invoices": 2, "images": 1, "orders.dlt": 1}


class PaymentError(Exception):
    """What the handler of orders raises."""

    __module__ = "billing.payments"


class DemoCluster(NamedTuple):
    """The broker, and the group "billing", whose members come ("app") and go ("-app") as they are told."""

    broker: RunningBroker
    told: Callable[[str], None]


@contextmanager
def demo_cluster() -> Iterator[DemoCluster]:
    """A broker with groups whose members stay until the block ends."""
    with running_broker() as broker, ExitStack() as stack:
        asyncio.run(_make_topics(broker.bootstrap))
        for number in range(6):
            orders = ({"order": 100 * number + each, "total": 12.5} for each in range(40 + 30 * number))
            broker.produce("orders", orders, partition=number)
        broker.produce("payments", ({"order": each} for each in range(400)))
        told = stack.enter_context(grouped(broker, "billing", "orders", ["app-1", "app-2"], partitions=6))
        told("app-3")
        commit(broker.bootstrap, "reporting", {"payments": 20, "invoices": 0})
        _run_spark_job(broker)
        asyncio.run(_set_aside(broker.bootstrap))
        _share_images(broker, stack)
        yield DemoCluster(broker, told)


async def _make_topics(bootstrap: str) -> None:
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics(_TOPICS)


def _run_spark_job(broker: RunningBroker) -> None:
    mark = '{"b":7,"e":50,"k":"f00d"}'
    began = 1_700_000_000_000
    rows = tuple(
        BatchRow(number, began + 5_000 * number, 4_000 + 90 * number, 2, 750, sink_ms=1_500, lag=4, run=1)
        for number in range(3, 7)
    )
    log = BatchLog(rows, UnderWay(7, began + 35_000, 1), runs=1, applications={1: "nightly-invoices"})
    commit(broker.bootstrap, "spark-invoices", {"invoices": 3}, metadata=add_log(mark, encode_log(log)))


async def _set_aside(bootstrap: str) -> None:
    """Letters of orders that billing could not handle."""
    errors = [
        PaymentError("card declined by the bank"),
        KeyError("customer"),
        TimeoutError("payments.internal did not answer within 3 s"),
        PaymentError("card declined by the bank"),
        ValueError("total is negative: -3.00"),
        TimeoutError("payments.internal did not answer within 3 s"),
    ]
    async with Producer(bootstrap=bootstrap) as producer:
        for number, error in enumerate(errors):
            value = b'{"order": %d, "total": 12.5}' % (500 + number)
            record = Record("orders", number, 17 + number, 1_700_000_000_000, b"c-%d" % number, value)
            headers = error_headers(record, error, 3, "billing")
            await producer.send_and_wait("orders.dlt", value, record.key, headers=headers)


def _share_images(broker: RunningBroker, stack: ExitStack) -> None:
    """Two members of a share group with records in their hands; one record was rejected, some given back."""
    members = [
        stack.enter_context(
            BlockingShareConsumer(
                "images",
                bootstrap=broker.bootstrap,
                group="thumbnails",
                client_id=f"resizer-{number}",
                max_locked_records=8,
            )
        )
        for number in (1, 2)
    ]
    for member in members:
        wait_until(lambda: member.assignment(), "the member has its partition")  # noqa: B023
        member.getmany(1, 200)  # a new group begins at the end, once it has asked for records
    broker.produce("images", ({"image": f"img-{number}.png"} for number in range(60)))
    for member in members:
        records = wait_until(lambda: member.getmany(6, 500), "records come")  # noqa: B023
        member.accept(records[1:2])
        member.reject(records[:1])
        member.release(records[2:3])
        member.flush()
