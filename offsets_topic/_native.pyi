from collections.abc import Callable, Iterable

from ._encoded import Commits, Known
from .records import OffsetCommitted, Record

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
