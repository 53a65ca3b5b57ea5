"""A checkpoint of Spark's Kafka source, or of ours: where its query has come to."""

from __future__ import annotations

from pathlib import Path

from ..protocol import KohortError, TopicPartition
from ._offsets import OffsetsFormatError, parse_offsets


class CheckpointError(KohortError):
    """A folder that is no checkpoint of a query over topics, or one without a batch."""


def read_checkpoint(folder: str | Path) -> tuple[int, dict[TopicPartition, int]]:
    """Number and ends of the last batch that the query has done; a batch under way does not count.

    Raises CheckpointError.
    """
    folder = Path(folder)
    done = _numbers(folder / "commits") & _numbers(folder / "offsets")
    if not done:
        raise CheckpointError(
            f"{folder} has no batch that is done: give the folder of option checkpointLocation, which has "
            "folders offsets and commits"
        )
    number = max(done)
    offsets: dict[TopicPartition, int] = {}
    # a version, the batch's settings, and then a line for each source
    for line in (folder / "offsets" / str(number)).read_text().splitlines()[2:]:
        try:
            offsets |= parse_offsets(line)
        except OffsetsFormatError:
            continue  # another kind of source
    if not offsets:
        raise CheckpointError(
            f"batch {number} of {folder} has no offsets of topics: no source of it is Kafka's"
        )
    return number, offsets


def _numbers(folder: Path) -> set[int]:
    return {int(file.name) for file in folder.glob("*") if file.name.isdigit()} if folder.is_dir() else set()
