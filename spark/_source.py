"""``format("kohort")``: a Spark data source in Python, without a jar.

Spark creates the source in several Python processes for each query, most of which need little of it. So the
modules that read and write are imported on demand.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakSet

from pyspark.sql.datasource import DataSource

from ._schema import COLUMNS, COLUMNS_WITH_HEADERS

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from ._sink_options import SinkOptions
    from ._source_options import SourceOptions


class KohortDataSource(DataSource):
    """Reads topics from a group's committed offsets on, and writes topics.

    Register it with ``kohort.spark.register(spark)``.
    """

    #: Number of tasks that can run at the same time. Spark's processes are not told by the session.
    cores: ClassVar[int | None] = None

    @classmethod
    def name(cls) -> str:
        """The name for ``spark.read.format``."""
        return "kohort"

    def schema(self) -> str:
        """The columns of Spark's Kafka source; headers only if they are asked for."""
        options = {key.lower(): value for key, value in self.options.items()}
        headers = str(options.get("includeheaders", "false")).lower() == "true"
        return COLUMNS_WITH_HEADERS if headers else COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """See pyspark's DataSource. Raises OptionsError."""
        from ._readers import BatchReader

        return BatchReader(self._source_options(schema, stream=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """See pyspark's DataSource. Raises OptionsError."""
        from ._readers import stream_reader

        return stream_reader(self._source_options(schema, stream=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """See pyspark's DataSource. Raises OptionsError, also for modes other than "append"."""
        from ._sink import BatchWriter

        writer = BatchWriter(self._sink_options(schema, "mode('append')" if overwrite else ""))
        writer.start()
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """See pyspark's DataSource. Raises OptionsError where this PySpark cannot write streams."""
        from . import _sink
        from ._options import OptionsError

        if not _sink.WRITES_STREAMS:
            raise OptionsError("writeStream needs PySpark 4.1 or newer: use foreachBatch and df.write")
        instead = "outputMode('append')" if overwrite else ""
        return _sink.StreamWriter(self._sink_options(schema, instead, ["checkpointlocation"]))

    def _source_options(self, schema: StructType, *, stream: bool) -> SourceOptions:
        """Return the checked options. Raises OptionsError, also for another schema."""
        from ._source_options import read_source_options

        options = read_source_options(dict(self.options.items()), stream=stream)
        _check_schema(schema, options)
        return options.model_copy(update={"cores": options.cores or self.cores})

    def _sink_options(self, schema: StructType, instead: str, ignored: Sequence[str] = ()) -> SinkOptions:
        """Return the checked options. Raises OptionsError, also for a mode that overwrites.

        ``instead``: for such a mode, the one to use instead. ``ignored``: options of Spark, in lower case.
        """
        from ._options import OptionsError
        from ._sink_options import check_columns, read_sink_options

        if instead:
            raise OptionsError(f"topics are only added to: use {instead}")
        ours = {key: value for key, value in self.options.items() if key.lower() not in ignored}
        options = read_sink_options(ours)
        check_columns(schema, options)
        return options


def register(spark: SparkSession) -> None:
    """Register ``format("kohort")`` in a session; ``spark_session`` does this itself. Safe to call again."""
    from ._dataframes import context_of, count_cores

    if spark in _registered:
        return  # Spark would warn that it is replaced
    # a class that cannot be imported is sent with its attributes
    known = {"cores": count_cores(spark, for_good=True)}
    with _sent_archives(context_of(spark)):
        spark.dataSource.register(type(KohortDataSource.__name__, (KohortDataSource,), known))
    _registered.add(spark)


#: Sessions that have the source.
_registered: WeakSet[SparkSession] = WeakSet()


@contextmanager
def _sent_archives(context: SparkContext | None) -> Iterator[None]:
    """Let the source's processes on the driver's machine import the archives of ``spark-submit --py-files``.

    Spark gives them to tasks only. It takes the environment of these processes when a source is registered.
    """
    archives = [path for path in sys.path if _is_archive(path)]
    if context is None or not archives:
        yield
        return
    before = context.environment
    paths = [*filter(None, [before.get("PYTHONPATH")]), *archives]
    context.environment = before | {"PYTHONPATH": os.pathsep.join(paths)}
    try:
        yield
    finally:
        context.environment = before


def _is_archive(path: str) -> bool:
    is_sparks = os.path.basename(path).startswith(("pyspark", "py4j"))
    return path.endswith((".zip", ".egg", ".whl")) and os.path.isfile(path) and not is_sparks


def _check_schema(schema: StructType, options: SourceOptions) -> None:
    """Raise OptionsError for another schema, since the columns are fixed."""
    columns = COLUMNS_WITH_HEADERS if options.include_headers else COLUMNS
    # compared as text: parsing DDL needs a Spark session, and there is none in this process
    wanted = columns.replace(": ", ":").replace(", ", ",").replace(" ", ":")
    if schema.simpleString() != f"struct<{wanted}>":
        from ._options import OptionsError

        raise OptionsError(
            f"the schema is fixed: {columns}. Leave .schema() out, and select or cast columns afterwards"
        )
