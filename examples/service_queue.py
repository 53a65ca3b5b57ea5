"""A service that sends mails from a work queue: a share group, whose members share every partition.

    kohort broker --port 9092          # or Apache Kafka from 4.2 on
    python examples/service_queue.py localhost:9092

Start as many of it as you like. A mail that cannot be sent is tried again, its record stays locked meanwhile;
after four tries it becomes a dead letter. SIGTERM or Ctrl-C finishes what has begun, gives back the rest and
exits with 0.
"""

from __future__ import annotations

import logging
import sys

from pydantic import BaseModel

from kohort.service import ConsumerService, LockedRecord, Retry


class Mail(BaseModel):
    """The JSON in topic "mails"."""

    to: str


def make_service(bootstrap: str) -> ConsumerService:
    """Return a service that is a member of share group "mails"."""
    service = ConsumerService(bootstrap=bootstrap, group="mails", group_type="share", health_port=0)

    @service.handler(
        "mails",
        model=Mail,
        concurrency=32,
        retry=Retry(attempts=4, backoff_ms=200),
        dead_letter="mails.dlt",
    )
    async def send(mail: Mail, record: LockedRecord) -> None:
        if "@" not in mail.to:
            raise ValueError(f"{mail.to!r} is no address")
        print(f"sent to {mail.to} at delivery {record.delivery_count}", flush=True)

    return service


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    make_service(sys.argv[1] if len(sys.argv) > 1 else "localhost:9092").run()
