from array import array
from collections.abc import Sequence

from ._batch import Headers, RecordToWrite
from .records import Buffer
from .rows import RowColumns

def read_numbers(data: bytes, start: int, fixed: bytes, places: bytes) -> tuple[int, ...] | None: ...
def join_records(records: Sequence[RecordToWrite], room: int) -> bytearray | None: ...
def check_records(
    data: bytes, position: int, number: int, most: int
) -> tuple[int, int, int, int, bool, bool]: ...
def read_records(
    data: Buffer,
    count: int,
    base_offset: int,
    base_ms: int,
    append_ms: int | None,
    offsets: list[int],
    timestamps_ms: list[int],
    keys: list[bytes | None],
    values: list[bytes | None],
    headers: list[Headers],
) -> bool: ...
def locate_records(data: Buffer, start: int, batches: Sequence[tuple[int, int]]) -> bytes | None: ...
def locate_headers(data: Buffer, places: bytes, ends: bytes) -> tuple[bytes, bytes] | None: ...
def copy_fields(data: Buffer, at: object, sizes: object, out: object) -> None: ...
def partition_rows(
    count: int,
    offsets: Buffer,
    width: int,
    data: Buffer,
    validity: Buffer | None,
    first: int,
    partitions: int,
) -> bytes: ...
def encode_rows(
    rows: RowColumns,
    start: int,
    places: array[int],
    keyless: int,
    now_ms: int,
    records: list[bytearray],
    numbers: array[int],
    full_bytes: int,
) -> int: ...
def sum_rows(rows: RowColumns, seeds: array[int]) -> int: ...
