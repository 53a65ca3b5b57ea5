"""Stage: three services in one group; one is killed, a fourth joins; nothing is lost or counted twice."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

from children import Child, Children
from data import SERVICES_GROUP
from lags import lag
from screen import Screen, Update
from store import Store

from kohort.coordinator import CoordinatorEvent, MemberGone, RebalanceCompleted

#: One service is killed after this fraction of the flights.
KILL_AT = 0.35
#: Number of flights that a service writes in one transaction.
BATCH = 1_000
#: With fewer flights, services pause after each batch, so that the run lasts long enough.
LONG_RUN = 150_000
SHORT_RUN_BATCHES = 60
SHORT_RUN_PAUSE_MS = 300
#: If the number of flights in the database has not changed for this time, the stage fails.
STALLED_S = 60.0
_LOOK_EVERY_S = 0.1
#: The UUID at the end of a member id, which is not shown.
_MEMBER_ID_TAIL = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Rebalances:
    """Shows the rebalances of the services' group. The broker calls it with each of its events."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __call__(self, event: CoordinatorEvent) -> None:
        if event.group != SERVICES_GROUP:
            return
        if isinstance(event, MemberGone) and "expired" in event.cause:
            cause = _MEMBER_ID_TAIL.sub("", event.cause)
            self._screen.line(f"{event.client_id} is out of the group: {cause}")
        elif isinstance(event, RebalanceCompleted) and event.members:
            self._screen.line(
                f"rebalance: generation {event.generation}, {event.members} members, "
                f"{event.partitions_moved} of {event.partitions_total} partitions moved, "
                f"{event.duration_ms / 1000:.1f} s, because {_MEMBER_ID_TAIL.sub('', event.cause)}"
            )


async def run_services(
    screen: Screen, children: Children, bootstrap: str, database: Path, flights: int
) -> None:
    """Run the stage. Raises ChildFailedError if a service ends too soon, or none writes for STALLED_S."""
    store = Store(database)
    pace = _pace(flights)

    async def start(number: int) -> Child:
        name = f"service-{number}"
        return await children.start(name, "service_worker.py", bootstrap, database, name, *pace)

    try:
        members = [await start(number) for number in (1, 2, 3)]
        with screen.progress("flights kept", flights) as update:
            await _kept(store, members, int(flights * KILL_AT), update)
            victim = members.pop(1)
            victim.kill()
            screen.line(f"{victim.name} killed with SIGKILL, service-4 started")
            members.append(await start(4))
            await _kept(store, members, flights, update)
        await _committed(bootstrap, members)
        for member in members:
            member.terminate()
        await asyncio.gather(*(member.ended() for member in members))
        shares = ", ".join(f"{name} {count:,}" for name, count in store.by_service().items())
        screen.line(f"all flights kept ({shares}) and committed; the services stopped with exit code 0")
        carrier, delay = store.most_delayed_carrier()
        screen.line(f"most delayed carrier: {carrier}, {delay:.1f} minutes on average")
    finally:
        store.close()


def _pace(flights: int) -> tuple[str, ...]:
    if flights >= LONG_RUN:
        return ("--batch", str(BATCH))
    batch = max(1, flights // SHORT_RUN_BATCHES)
    return ("--batch", str(batch), "--pause-ms", str(SHORT_RUN_PAUSE_MS))


async def _kept(store: Store, members: list[Child], enough: int, update: Update) -> None:
    """Wait until ``enough`` flights are in the database."""
    last, moved_at = -1, time.monotonic()
    while True:
        count = store.count()
        update(count)
        if count >= enough:
            return
        if count != last:
            last, moved_at = count, time.monotonic()
        elif time.monotonic() - moved_at > STALLED_S:
            raise members[0].failure(f"and the others have kept no flight for {STALLED_S:.0f} s")
        for member in members:
            member.check_alive()
        await asyncio.sleep(_LOOK_EVERY_S)


async def _committed(bootstrap: str, members: list[Child]) -> None:
    """Wait until the group's lag is 0. Flights that the killed service did not commit are handled again."""
    deadline = time.monotonic() + STALLED_S
    while await lag(bootstrap, SERVICES_GROUP):
        if time.monotonic() > deadline:
            raise members[0].failure(f"and the others have not committed all within {STALLED_S:.0f} s")
        for member in members:
            member.check_alive()
        await asyncio.sleep(_LOOK_EVERY_S)
