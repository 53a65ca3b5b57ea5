"""Records of ``__share_group_state`` in readable form, for ``kohort log dump``."""

from __future__ import annotations

from typing import Final

from ..protocol import JsonObject
from ..protocol.messages.read_share_group_state import StateBatch
from .records import CorruptStateError, ShareSnapshot, ShareStateDeleted, decode

_STATES: Final = {0: "available", 2: "acknowledged", 4: "archived"}


def readable_state(key: bytes | None, value: bytes | None) -> tuple[str, JsonObject]:
    """Return the kind of a record, and its fields by name.

    For a record that cannot be decoded the kind is "unreadable", with the reason as the field ``why``.
    """
    try:
        record = decode(key, value)
    except CorruptStateError as error:
        return "unreadable", {"why": str(error)}
    if record is None:
        return "other", {}
    place = {
        "group": record.key.group_id,
        "topic_id": str(record.key.topic_id),
        "partition": record.key.partition,
    }
    if isinstance(record, ShareStateDeleted):
        return "share state tombstone", place
    fields = record._asdict()
    del fields["key"]
    fields["batches"] = [_readable_batch(batch) for batch in record.batches]
    return "share state" if isinstance(record, ShareSnapshot) else "share state update", place | fields


def _readable_batch(batch: StateBatch) -> JsonObject:
    first, last, state, count = batch
    return {"first": first, "last": last, "state": _STATES.get(state, state), "delivery_count": count}
