"""Fetched data as Arrow batches for the user, without an object per record. Needs numpy and pyarrow.

Each batch's schema metadata names its partition session and the offsets that it covers, so that the batch, or
a slice, filter or selection of columns of it, can be marked done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..record import Record
from . import arrow
from .fetch_buffer import ArrowForm, Made
from .fetched_records import ChunkReader

if TYPE_CHECKING:
    from ..done.partition_session import PartitionSession
    from .delivery import Chunk

_KEY = b"kohort"
_OFFSET = arrow.SCHEMA.get_field_index("offset")


def prepare_pyarrow() -> None:
    """Make pyarrow look for pandas and import it, which it does for its first array."""
    pa.array(np.empty(0, np.int64))


class Covered(NamedTuple):
    """The offsets ``first`` to, not including, ``end`` of a session."""

    session_id: int
    first: int
    end: int


def covered_offsets(batch: pa.RecordBatch) -> Covered:
    """The offsets that a consumer's batch covers. Raises ValueError for a batch from elsewhere."""
    text = (batch.schema.metadata or {}).get(_KEY)
    if text is None:
        raise ValueError(
            "this batch is not from arrow_batches, or has lost its schema's metadata: mark the batch that "
            "was delivered, or one that was made of it by slicing, filtering or choosing columns"
        )
    return Covered(*map(int, text.split(b" ")))


def batches_of(chunk: Chunk, form: ArrowForm) -> list[Made]:
    """Batches of the chunk's next records that no earlier session has done. If there are none, their offsets
    are passed.

    Raises CorruptBatchError if there is nothing before the damage.
    """
    session, reader = chunk.session, chunk.reader
    if reader is None:
        batches = [_of_records(chunk.records, form.include_headers)]
        end = chunk.records[-1].offset + 1
    else:
        batches = _decode_batches(reader, form)
        end = reader.next_offset
        session.read_under(reader.leader_epoch)
    fresh = [batch for batch in (_fresh_records(session, batch) for batch in batches) if batch.num_rows]
    if not fresh:
        session.pass_by(end)
    firsts = [batch.column(_OFFSET)[0].as_py() for batch in fresh]
    made = []
    for batch, first, behind in zip(fresh, firsts, [*firsts, end][1:], strict=True):
        mark = b"%d %d %d" % (session.session_id, first, behind)
        runs = _runs_of(batch.column(_OFFSET).to_numpy())
        made.append(Made(batch.replace_schema_metadata({_KEY: mark}), runs, behind))
    return made


def _runs_of(offsets: npt.NDArray[np.int64]) -> list[range]:
    """The offsets without the holes between them."""
    runs = np.split(offsets, np.flatnonzero(np.diff(offsets) != 1) + 1)
    return [range(int(run[0]), int(run[-1]) + 1) for run in runs]


def _decode_batches(reader: ChunkReader, form: ArrowForm) -> list[pa.RecordBatch]:
    """The next records, up to the first damage."""
    start, run = reader.next_offset, reader.next_run(form.max_rows)
    return list(arrow.decode_run(run, reader.partition, start, None, *form)) if run else []


def _fresh_records(session: PartitionSession, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without the records that an earlier session has done."""
    closed = session.closed_beyond(session.position)
    if not closed or not batch.num_rows:
        return batch
    offsets = batch.column(_OFFSET).to_numpy()
    keep = np.ones(len(offsets), np.bool_)
    for start, end in closed:
        keep[np.searchsorted(offsets, start) : np.searchsorted(offsets, end)] = False
    return batch if keep.all() else batch.filter(pa.array(keep))


def _of_records(records: list[Record], include_headers: bool) -> pa.RecordBatch:
    """A batch of records that were decoded before, to be read one by one."""
    schema = arrow.SCHEMA_WITH_HEADERS if include_headers else arrow.SCHEMA
    columns = [
        [record.key for record in records],
        [record.value for record in records],
        [record.topic for record in records],
        [record.partition for record in records],
        [record.offset for record in records],
        [record.timestamp_ms * 1000 for record in records],
        [0] * len(records),
    ]
    if include_headers:
        columns.append([[{"key": k, "value": v} for k, v in record.headers] for record in records])
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
