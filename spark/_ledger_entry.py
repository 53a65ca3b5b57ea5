"""What the ledger of a sink says about its last batch, and how that is written into a group's commits.

The commit on partition 0 of the ledger's topic has the number of complete batches as its offset, and JSON as
its metadata:

    {"k":"3-9f86d081884c7d65"}                                      the batch is in the topics
    {"b":"3-9f86d081884c7d65","s":"prepared","n":1,"u":..,"z":..}   its transactions are being committed
    {"b":"3-9f86d081884c7d65","s":"partial","n":1,"u":..,"z":..}    some are committed, the others are gone

``z`` lists the parts of the batch, compressed. If they are too many for one commit, ``n`` - 1 more, on the
partitions from 1 on, continue the list. ``u`` is the checksum of the whole list. It is base85
of deflated columns, each with the big-endian numbers of all parts:

======  =============================================================
type    column
======  =============================================================
int32   task; the first, then differences, which zlib makes small
int8    slot of the transactional id; -1: the part has no transaction
int64   producer id; the first, then differences
int16   producer epoch
int8    whether there is a digest
uint32  digest of the rows
======  =============================================================
"""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b85decode, b85encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, pairwise

from ..client.transactions import ProducerId, Transaction
from ..protocol import KohortError

#: Brokers accept metadata of 4,096 bytes by default.
_MAX_METADATA = 4_096
#: Parts in one commit: as many as always fit, and as many as always fit with their digests.
MAX_PARTS, _ROOMY_PARTS = 400, 225
#: Columns of the list of parts, as formats of ``struct``.
_COLUMNS = "ibqh?I"
_ROW_BYTES = sum(struct.calcsize(f">{column}") for column in _COLUMNS)


class LedgerError(KohortError):
    """A batch does not fit into the ledger, or the ledger's entry cannot be used."""


class Stage(Enum):
    """How far the batch of an entry is."""

    NOTHING = "nothing"
    PREPARED = "prepared"
    PARTIAL = "partial"
    WRITTEN = "written"


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one task: a digest of them if it is known, and their transaction until it is committed."""

    task: int
    digest: int | None = None
    transaction: Transaction | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """``batches``: number of complete batches. ``key``, ``stage`` and ``parts`` are of the last batch.

    The parts without a transaction stand in the topics.
    """

    batches: int = 0
    key: str = ""
    stage: Stage = Stage.NOTHING
    parts: tuple[Part, ...] = ()

    def holds(self, key: str) -> bool:
        """Return whether all records of a batch are in the topics."""
        return self.stage is Stage.WRITTEN and self.key == key

    def standing(self, key: str) -> dict[int, Part]:
        """Return, by task, the parts of a batch that are in the topics while others are missing."""
        if self.stage is not Stage.PARTIAL or self.key != key:
            return {}
        return {part.task: part for part in self.parts}

    @property
    def transactions(self) -> list[Transaction]:
        """Transactions that are to be committed."""
        return [part.transaction for part in self.parts if part.transaction is not None]


def transaction_name(prefix: str, task: int, slot: int = 0) -> str:
    """Return a transactional id of a task: one for each of its attempts that are at work at the same time."""
    return f"{prefix}-{task}.{slot}" if slot else f"{prefix}-{task}"


def is_name_of(prefix: str, name: str) -> bool:
    """Return whether ``transaction_name`` makes this name from a prefix."""
    task, dot, slot = name.removeprefix(f"{prefix}-").partition(".")
    return name.startswith(f"{prefix}-") and task.isdecimal() and (slot.isdecimal() if dot else not slot)


def encode_entry(entry: Entry, partitions: int = 1) -> list[str]:
    """Return the metadata of the commits on partition 0, 1, and so on of a topic with so many partitions.

    Raises LedgerError for more parts than fit.
    """
    if entry.stage is Stage.NOTHING:
        return [""]
    if entry.stage is Stage.WRITTEN:
        return [_to_json({"k": entry.key})]
    parts = entry.parts
    size = max(_ROOMY_PARTS, -(-len(parts) // partitions))
    head = {"b": entry.key, "s": entry.stage.value, "n": -(-len(parts) // size), "u": 2**32}
    room = _MAX_METADATA - len(_to_json(head | {"z": ""}).encode())
    chunks = [_pack_parts(parts[at : at + size], room) for at in range(0, len(parts), size)]
    if size > MAX_PARTS or max(map(len, chunks)) > room:
        raise LedgerError(describe_lack_of_room(len(parts), partitions))
    check = {"u": zlib.crc32("".join(chunks).encode())}
    return [_to_json((head if at == 0 else {}) | check | {"z": chunk}) for at, chunk in enumerate(chunks)]


def describe_lack_of_room(tasks: int, partitions: int) -> str:
    """Return the text of the error for too many tasks."""
    return (
        f"the transactions of {tasks} tasks do not fit into the ledger, which has room for those of "
        f"{MAX_PARTS} tasks in each of the {partitions} partitions of its topic: write with fewer tasks "
        f"(df.coalesce({MAX_PARTS * partitions})), with a ledgerTopic of more partitions, or with "
        "transactions=never"
    )


def parse_entry(prefix: str, batches: int, texts: Sequence[str]) -> Entry:
    """Parse the metadata of the commits, that of partition 0 first.

    Metadata of somebody else is an entry without a batch. Raises LedgerError if a sink's entry is not whole.
    """
    try:
        document = json.loads(texts[0])
        if "b" not in document:
            return _parsed_short(prefix, batches, document)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Entry(batches)
    try:
        key, stage, count = str(document["b"]), Stage(document["s"]), int(document["n"])
        chunks = [json.loads(text)["z"] for text in texts[:count]]
        if len(chunks) != count or zlib.crc32("".join(chunks).encode()) != document["u"]:
            raise ValueError("its commits do not belong together")
        return Entry(
            batches, key, stage, tuple(part for chunk in chunks for part in _unpack_parts(prefix, chunk))
        )
    except (ValueError, TypeError, KeyError, zlib.error, struct.error) as error:
        raise LedgerError(
            f"the ledger in group {prefix!r} is damaged ({error}): it is not known whether its last batch is "
            "in the topics. To have that written again, delete the group's offsets"
        ) from error


def _parsed_short(prefix: str, batches: int, document: dict[str, object]) -> Entry:
    """Parse an entry without ``b``: the batch is written, or its transactions are listed one by one in ``t``,
    as kohort did before there were parts.
    """
    rows: Iterable[tuple[int, int, int]] = document.get("t", ())  # type: ignore[assignment]
    parts = tuple(
        Part(
            int(task),
            None,
            Transaction(transaction_name(prefix, int(task)), ProducerId(int(id_), int(epoch))),
        )
        for task, id_, epoch in rows
    )
    return Entry(batches, str(document["k"]), Stage.PREPARED if parts else Stage.WRITTEN, parts)


def _pack_parts(parts: Sequence[Part], room: int) -> str:
    """Return the parts as text; without the digests if it is longer than ``room`` with them."""
    text = _compress_parts(parts)
    if len(text) > room:
        text = _compress_parts([Part(part.task, None, part.transaction) for part in parts])
    return text


def _compress_parts(parts: Sequence[Part]) -> str:
    rows = [_part_row(part) for part in parts]
    columns = [list(column) for column in zip(*rows, strict=True)]
    for at in (0, 2):
        columns[at] = [columns[at][0], *(after - before for before, after in pairwise(columns[at]))]
    packed = (
        struct.pack(f">{len(rows)}{kind}", *column) for kind, column in zip(_COLUMNS, columns, strict=True)
    )
    return b85encode(zlib.compress(b"".join(packed), 9)).decode()


def _part_row(part: Part) -> tuple[int, int, int, int, bool, int]:
    known, digest = part.digest is not None, part.digest or 0
    if part.transaction is None:
        return part.task, -1, 0, 0, known, digest
    name, producer = part.transaction
    slot = int(name.rpartition("-")[2].partition(".")[2] or 0)
    return part.task, slot, producer.id, producer.epoch, known, digest


def _unpack_parts(prefix: str, text: str) -> list[Part]:
    data = zlib.decompress(b85decode(text))
    count, at, columns = len(data) // _ROW_BYTES, 0, list[list[int]]()
    for kind in _COLUMNS:
        columns.append(list(struct.unpack_from(f">{count}{kind}", data, at)))
        at += struct.calcsize(f">{count}{kind}")
    columns[0], columns[2] = list(accumulate(columns[0])), list(accumulate(columns[2]))
    return [
        Part(
            task,
            digest if known else None,
            None
            if slot < 0
            else Transaction(transaction_name(prefix, task, slot), ProducerId(producer, epoch)),
        )
        for task, slot, producer, epoch, known, digest in zip(*columns, strict=True)
    ]


def _to_json(document: dict[str, object]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
