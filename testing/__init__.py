"""Brokers for tests: no Docker, no JVM, ready in the blink of an eye.

``with running_broker(num_partitions=3) as broker:`` serves clients of any kind at ``broker.bootstrap``; with
pytest, ask for the fixture ``kohort_broker``.
"""

from ._running import RunningBroker, running_broker

__all__ = ["RunningBroker", "running_broker"]
