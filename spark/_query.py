"""``stream``: a query that keeps its start in its checkpoint and commits each batch's end to the group."""

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
from ._dataframes import application_of, jvm_of
from ._events import Event, Listener, all_of
from ._follower import BatchTeller, Done, Follower, OffsetMirror
from ._group import GroupOffsets
from ._intent import Mark, format_mark
from ._log_keeper import LogKeeper
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

#: File with the query's start, inside its checkpoint.
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
    **options: object,
) -> StreamingQuery:
    """Start a Structured Streaming query over topics, from the group's committed offsets on.

    ``checkpoint``: the query's checkpoint folder. Give either ``foreach_batch``, or ``write``, a function
    from the DataFrame to its writer, such as ``lambda df: df.writeStream.format("console")``. ``trigger``:
    "available_now", or the arguments of ``DataStreamWriter.trigger``. ``options``: those of the source, in
    Python's spelling (``bootstrap``, ``group``, ``topics``, ``max_offsets``) or in Spark's.

    The group's offsets follow Spark's own log and are never ahead of it; the last batch is committed too,
    however the query ends. ``on_event``: one listener or several. They are called with a BatchCommitted for
    each batch that Spark has done, an OffsetsLost for lost offsets, and a CommitRefused while the coordinator
    refuses commits, in other threads than the caller's. Raises OptionsError, and the errors of the source
    when it starts.
    """
    if (write is None) == (foreach_batch is None):
        raise OptionsError("give exactly one of write and foreach_batch")
    when = _trigger_arguments(trigger)
    named = {ALIAS_OF.get(key, key): to_spark(key, _option_text(value)) for key, value in options.items()}
    checked = read_source_options(named, stream=True)
    register(spark)
    if checked.start_state_path is None:
        # the start that is kept in the checkpoint replaces the options that choose one
        others = ("startingTimestamp", "startingOffsetsByTimestamp")
        named = {key: value for key, value in named.items() if key not in others}
        named |= _pinned_start(spark, checkpoint, checked)
    if checked.group_mode == "exclusive":
        # this process is the member, so it commits, and not the source's process
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
        return _start_followed(spark, writer, checked, Reports(Path(folder)), all_of(on_event))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _start_followed(
    spark: SparkSession,
    writer: DataStreamWriter,
    options: SourceOptions,
    reports: Reports,
    tell: Callable[[Event], None],
) -> StreamingQuery:
    client = Client(options.connection)
    group = GroupOffsets(client, options.group_options, on_event=tell, stopping=threading.Event())

    keeper, application = LogKeeper(), application_of(spark)

    def commit(done: Done) -> None:
        if not options.commits:
            return
        if not keeper.is_loaded:
            keeper.load(group.commits_of(), application)
        noted = keeper.log
        for row in done.rows:
            noted = noted.end(row)
        metadata = format_mark(Mark(done.number))
        ends = {p: Committed(at, metadata) for p, at in done.ends.items()}
        group.commit_once(done.number, keeper.carry(ends, noted))
        keeper.log = noted

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


def _trigger_arguments(trigger: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """Return the arguments of ``DataStreamWriter.trigger``. Raises OptionsError."""
    if trigger is None or isinstance(trigger, Mapping):
        return trigger or {}
    if trigger in AVAILABLE_NOW:
        return {"availableNow": True}
    raise OptionsError(
        f"trigger={trigger!r}: write 'available_now', or the arguments of DataStreamWriter.trigger, such as "
        '{"processingTime": "10 seconds"}'
    )


def _pinned_start(spark: SparkSession, checkpoint: str, options: SourceOptions) -> dict[str, str]:
    """Return the start as options, from a file in the checkpoint; choose it and write the file at the first
    run.

    The checkpoint may be in any file system that Spark supports.
    """
    jvm = jvm_of(spark)
    if jvm is None:
        raise OptionsError(
            "a Spark Connect session cannot reach the checkpoint: set start_state_path, a file of the "
            "server's machine that keeps where the first batch began"
        )
    path = jvm.org.apache.hadoop.fs.Path(checkpoint.rstrip("/") + "/" + START_STATE)
    store = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not store.exists(path):
        client = Client(options.connection)
        try:
            reading = options.model_copy(update={"commit_offsets": "never"})
            chosen = SourceOffsets(reading, client).initial()
        finally:
            client.close()
        _write_file(store, path, format_offsets(chosen))
    text = jvm.org.apache.commons.io.IOUtils.toString(store.open(path), "UTF-8")
    return {"startingOffsets": str(text)}


def _write_file(store: Any, path: Any, text: str) -> None:
    """Write a file under another name and rename it, so that it is never incomplete."""
    temporary = path.suffix(".new")
    out = store.create(temporary, True)
    try:
        out.write(bytearray(text.encode()))
    finally:
        out.close()
    if not store.rename(temporary, path) and not store.exists(path):
        raise KohortError(f"{path} cannot be written: is the checkpoint's folder there and writable?")


def _option_text(value: object) -> str:
    """Convert a value to the text of a Spark option: ``true``, numbers, names with commas, JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)
