"""Clients of several makes in one group, with the one assignor that all of them know: ``range``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.clients.drivers import DRIVERS, RANGE
from tests.clients.members import Member, shared_out, wait_for_records, wait_until
from tests.kafka_python import HANGS

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

PARTITIONS = 8
#: Members hear of a rebalance by a heartbeat: every 0.6 s, not every 3 s.
QUICK = RANGE._replace(session_timeout_ms=6_000)


@HANGS
@pytest.mark.parametrize("leader", list(DRIVERS))
def test_each_partition_has_one_owner_through_joining_and_leaving(
    leader: str, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    """The first to join leads, so each make assigns for the others once; it is also the first to leave."""
    topic, group_id = new_topic("mixed", partitions=PARTITIONS), group("mixed")
    values = [b"value-%03d" % number for number in range(300)]

    with ExitStack() as stack:

        def join(name: str) -> Member:
            return stack.enter_context(Member(DRIVERS[name], bootstrap, group_id, topic, QUICK))

        first = join(leader)
        wait_until(lambda: shared_out([first], PARTITIONS), "the first holds everything", [first])

        rest = [join(name) for name in DRIVERS if name != leader]
        everyone = [first, *rest]
        wait_until(lambda: shared_out(everyone, PARTITIONS), "all share the partitions", everyone)

        DRIVERS[leader].produce(bootstrap, topic, values)
        got = wait_for_records(everyone, len(values))
        assert sorted(record.value or b"" for record in got) == values, (
            "each record comes to one member, once"
        )
        assert all(record.partition in member.held for member in everyone for record in member.got)
        for member in everyone:
            member.commit()

        first.close()
        wait_until(lambda: shared_out(rest, PARTITIONS), "those who stay share what was left", rest)
        DRIVERS[leader].produce(bootstrap, topic, [b"more-%03d" % number for number in range(50)])
        wait_for_records(rest, len(values) - len(first.got) + 50)
