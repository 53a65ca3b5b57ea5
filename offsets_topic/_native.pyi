from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..protocol import TopicPartition
from ._encoded import Commits, Known
from .records import OffsetCommitted, Record

V = TypeVar("V")

def take_commits(
    data: bytes,
    position: int,
    by_group: Commits,
    known: Known,
    learn: Callable[[bytes, Known], bool],
) -> tuple[int, int]: ...
def encode_commits(
    records: Iterable[Record],
    plain: type[OffsetCommitted],
    encode: Callable[[Record], tuple[bytes, bytes | None]],
) -> tuple[list[tuple[bytes, bytes | None]], int]: ...
def commits_again(
    kind: type[OffsetCommitted],
    group: str,
    places: Sequence[tuple[str, int, bytes]],
    numbers: tuple[int, ...],
    committed_ms: int,
) -> list[OffsetCommitted]: ...
def enter_commits(
    records: Sequence[OffsetCommitted],
    record_offset: int,
    by_group: dict[str, dict[TopicPartition, V]],
    known: dict[tuple[str, int], TopicPartition],
    learn: Callable[[str, int], TopicPartition],
    entry: type[tuple[object, ...]],
) -> None: ...
