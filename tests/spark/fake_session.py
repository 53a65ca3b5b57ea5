"""What kohort asks a Spark session for, without a JVM."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource


class FakeContext:
    def __init__(self, parallelism: int) -> None:
        self.defaultParallelism = parallelism
        self.environment = {"PYTHONHASHSEED": "0"}


class FakeConf:
    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings

    def get(self, name: str, default: str | None) -> str | None:
        return self._settings.get(name, default)


class FakeSources:
    """Keeps the sources that are registered, and the environment of their processes."""

    def __init__(self, context: FakeContext) -> None:
        self._context = context
        self.registered: list[type[DataSource]] = []
        self.environments: list[dict[str, str]] = []

    def register(self, source: type[DataSource]) -> None:
        self.registered.append(source)
        self.environments.append(dict(self._context.environment))


class FakeSession:
    """``parallelism``: number of tasks that the executors of now run at the same time."""

    def __init__(self, settings: Mapping[str, str], parallelism: int = 2) -> None:
        self.sparkContext = FakeContext(parallelism)
        self.conf = FakeConf(settings)
        self.dataSource = FakeSources(self.sparkContext)
