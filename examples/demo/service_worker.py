"""Process: one member of group "delays". It keeps the delay of every flight in SQLite."""

from __future__ import annotations

import argparse
import logging
import time
from pathlib import Path

from child_side import end_with_the_demo, say
from data import SERVICES_GROUP, TOPIC
from pydantic import BaseModel
from store import Store

from kohort.consumer import Record
from kohort.service import ConsumerService


class Flight(BaseModel):
    """The fields of a flight that the service uses."""

    carrier: str
    origin: str
    month: int
    dep_delay: int | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("database", type=Path)
    parser.add_argument("name")
    parser.add_argument("--batch", type=int, default=1_000, help="most flights in one transaction")
    parser.add_argument(
        "--pause-ms", type=int, default=0, help="rest after each batch, so that a short run lasts"
    )
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s {args.name} %(levelname)s %(message)s")
    end_with_the_demo()
    store = Store(args.database)
    service = make_service(args.bootstrap, store, args.name, args.batch, args.pause_ms)
    say(started=args.name)
    service.run()
    store.close()


def make_service(bootstrap: str, store: Store, name: str, batch: int, pause_ms: int) -> ConsumerService:
    """Return the service. It commits a batch to the group after the batch's transaction in the database."""
    service = ConsumerService(
        bootstrap=bootstrap,
        group=SERVICES_GROUP,
        assignor="cooperative-sticky",
        client_id=name,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
        auto_commit_interval_ms=1_000,
    )

    # one thread, because SQLite allows only one writer at a time
    @service.batch_handler(TOPIC, model=Flight, max_records=batch, concurrency=1)
    def keep(flights: list[Flight], records: list[Record]) -> None:
        store.keep(
            (
                record.partition,
                record.offset,
                flight.carrier,
                flight.origin,
                flight.month,
                flight.dep_delay,
                name,
            )
            for flight, record in zip(flights, records, strict=True)
        )
        time.sleep(pause_ms / 1000)

    return service


if __name__ == "__main__":
    main()
