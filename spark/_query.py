"""``stream``: a query whose start is pinned in its checkpoint and which the group follows to the end."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..protocol import KohortError
from ._client import Client
from ._connection_options import to_spark
from ._events import Event, Listener, all_of
from ._follower import BatchTeller, Done, Follower, OffsetMirror
from ._frames import cores
from ._group import GroupOffsets
from ._intent import Mark, format_mark
from ._offsets import Committed, format_offsets
from ._options import AVAILABLE_NOW, OptionsError
from ._source import register
from ._source_options import ALIAS_OF, SourceOptions, read_source_options
from ._stream import SourceOffsets
from ._stream_plan import Reports

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: Where a query's start is kept, inside its checkpoint.
START_STATE = "kohort/start.json"


def stream(
    spark: SparkSession,
    *,
    checkpoint: str,
    write: Callable[[DataFrame], DataStreamWriter] | None = None,
    foreach_batch: Callable[[DataFrame, int], None] | None = None,
    trigger: Mapping[str, Any] | Literal["available_now", "availableNow"] | None = None,
    query_name: str | None = None,
    on_event: Listener | Sequence[Listener] | None = None,
    **options: Any,
) -> StreamingQuery:
    """Start a query over topics, from the group's committed offsets on; ``checkpoint`` is Spark's folder.

    Give ``foreach_batch``, or ``write``, which makes a writer of the DataFrame (``lambda df:
    df.groupBy(...).count().writeStream.outputMode("update").format("console")``). ``trigger`` is
    "available_now", or the arguments of ``DataStreamWriter.trigger``. ``options`` are those of the source, in
    Python's spelling (``bootstrap``, ``group``, ``topics``, ``max_offsets``) or in Spark's. The group stands
    behind Spark's own log, never before it; the last batch is committed, too, however the query ends.
    ``on_event``, a function or several, gets a BatchCommitted for each batch that Spark has done, an
    OffsetsLost for what it went on after, and a CommitRefused while the group cannot follow, in threads of
    its own. Raises OptionsError, and what the source raises at its start.
    """
    if (write is None) == (foreach_batch is None):
        raise OptionsError("give exactly one of write and foreach_batch")
    when = _arguments(trigger)
    named = {"cores": str(cores(spark))} | {
        ALIAS_OF.get(key, key): to_spark(key, _text(value)) for key, value in options.items()
    }
    checked = read_source_options(named, stream=True)
    register(spark)
    if checked.start_state_path is None:
        # the pinned start stands for every way to choose one
        others = ("startingTimestamp", "startingOffsetsByTimestamp")
        named = {key: value for key, value in named.items() if key not in others}
        named |= _pinned_start(spark, checkpoint, checked)
    if checked.group_mode == "exclusive":
        # the source's own process is no member: commits come from here
        named["commitOffsets"] = "never"
    folder = named["reportFolder"] = tempfile.mkdtemp(prefix="kohort-query-")
    try:
        frame = spark.readStream.format("kohort").options(**named).load()
        writer = frame.writeStream.foreachBatch(foreach_batch) if foreach_batch else write(frame)  # type: ignore[misc]
        writer = writer.option("checkpointLocation", checkpoint)
        if when:
            writer = writer.trigger(**when)
        if query_name:
            writer = writer.queryName(query_name)
        return _followed(spark, writer, checked, Reports(Path(folder)), all_of(on_event))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _followed(
    spark: SparkSession,
    writer: DataStreamWriter,
    options: SourceOptions,
    reports: Reports,
    tell: Callable[[Event], None],
) -> StreamingQuery:
    client = Client(options.connection)
    group = GroupOffsets(client, options.group_options, on_event=tell, stopping=threading.Event())

    def commit(done: Done) -> None:
        if not options.commits:
            return
        metadata = format_mark(Mark(done.number))
        group.commit_once(done.number, {p: Committed(at, metadata) for p, at in done.ends.items()})

    def closed() -> None:
        spark.streams.removeListener(follower)
        group.close()
        client.close()
        reports.close()

    if options.group_mode == "exclusive" and options.commits:
        try:
            group.look()
        except BaseException:
            client.close()
            raise
    teller = BatchTeller(options.group_options.group, tell)
    follower = Follower(teller, OffsetMirror(commit, closed), reports)
    spark.streams.addListener(follower)
    try:
        query = writer.start()
    except BaseException:
        follower.mirror.close()
        raise
    follower.follow(str(query.runId))
    return query


def _arguments(trigger: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """Arguments of ``DataStreamWriter.trigger``. Raises OptionsError."""
    if trigger is None or isinstance(trigger, Mapping):
        return trigger or {}
    if trigger in AVAILABLE_NOW:
        return {"availableNow": True}
    raise OptionsError(
        f"trigger={trigger!r}: write 'available_now', or the arguments of DataStreamWriter.trigger, such as "
        '{"processingTime": "10 seconds"}'
    )


def _pinned_start(spark: SparkSession, checkpoint: str, options: SourceOptions) -> dict[str, str]:
    """The start as options, from a file in the checkpoint that is written once, on any of Spark's stores."""
    jvm: Any = spark._jvm
    if jvm is None:
        raise OptionsError("a Spark Connect session cannot reach the checkpoint: set start_state_path")
    path = jvm.org.apache.hadoop.fs.Path(checkpoint.rstrip("/") + "/" + START_STATE)
    store = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not store.exists(path):
        client = Client(options.connection)
        try:
            reading = options.model_copy(update={"commit_offsets": "never"})
            chosen = SourceOffsets(reading, client).initial()
        finally:
            client.close()
        _write(store, path, format_offsets(chosen))
    text = jvm.org.apache.commons.io.IOUtils.toString(store.open(path), "UTF-8")
    return {"startingOffsets": str(text)}


def _write(store: Any, path: Any, text: str) -> None:
    """Write a file, under another name first: a file that is there is whole."""
    temporary = path.suffix(".new")
    out = store.create(temporary, True)
    try:
        out.write(bytearray(text.encode()))
    finally:
        out.close()
    if not store.rename(temporary, path) and not store.exists(path):
        raise KohortError(f"{path} cannot be written: is the checkpoint's folder there and writable?")


def _text(value: Any) -> str:
    """Value as text of Spark's options: ``true``, numbers, names with commas, JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)
