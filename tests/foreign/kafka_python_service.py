"""What kafka-python's tests need of a file that its sdist lacks: the name of a broker that runs already."""

from __future__ import annotations


class ExternalService:
    """A broker that someone else started and ends."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def open(self) -> None:
        """It is open."""

    def close(self) -> None:
        """Others close it."""

    def dump_logs(self) -> None:
        """Its log is with whoever started it."""


class SpawnedService:
    """A broker of the test's own, which it cannot have: those tests are skipped where KAFKA_URI is set."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("these tests run on the broker of KAFKA_URI")
