"""User data that the sticky assignors of all clients put into a subscription (KIP-54, KIP-341, KIP-429).

==================  =====  ============================================================
assignor            type   field; nothing says the version
==================  =====  ============================================================
sticky              int16  0, before all others in what kafka-python writes
                    array  owned partitions, (string topic, array of int32)
                    int32  generation in which they were owned: not in v0
cooperative-sticky  int32  generation; the subscription itself has the owned partitions
==================  =====  ============================================================

The bytes come from other clients: unreadable ones mean "owns nothing".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..protocol import (
    MalformedMessageError,
    Subscription,
    TopicPartition,
    WireReader,
    encode_topic_partitions,
)

#: Generation of a member that was in none, or does not say; lower than any real one.
NO_GENERATION = -1

_INT32 = struct.Struct(">i")
_VERSION_SIZE = 2
#: From this version on, a subscription has a generation field (KIP-792).
_GENERATION_SINCE = 2


class Claim(NamedTuple):
    """Partitions that a member says it owned, and the generation in which it owned them."""

    partitions: Sequence[TopicPartition]
    generation: int = NO_GENERATION


def encode_sticky(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """Encode user data of ``sticky``, v1; partitions are sorted."""
    return encode_topic_partitions(sorted(partitions)) + _INT32.pack(generation)


def decode_sticky(data: bytes | None) -> Claim:
    """Decode user data of ``sticky``, v0, v1 or kafka-python's; unreadable bytes claim nothing."""
    if not data:
        return Claim(())
    # read without its version, kafka-python's form would have 65536 topics or more, and is refused
    for start in (0, _VERSION_SIZE):
        reader = WireReader(data[start:])
        try:
            partitions = reader.topic_partitions()
        except MalformedMessageError:
            continue
        generation = reader.int32() if reader.remaining >= _INT32.size else NO_GENERATION
        return Claim(partitions, generation)
    return Claim(())


def encode_cooperative(generation: int) -> bytes:
    """Encode user data of ``cooperative-sticky``, v0."""
    return _INT32.pack(generation)


def decode_cooperative(data: bytes | None) -> int:
    """Decode the generation in user data of ``cooperative-sticky``; NO_GENERATION if there is none.

    Some clients send the user data of ``sticky`` here: then it is the generation at the end of that.
    """
    if not data or len(data) < _INT32.size:
        return NO_GENERATION
    if len(data) > _INT32.size and (claim := decode_sticky(data)) != Claim(()):
        return claim.generation
    return WireReader(data).int32()


def cooperative_claim(subscription: Subscription) -> Claim:
    """Return the partitions that a member of a cooperative group still owns.

    The generation comes from the subscription's own field (v2, KIP-792), or from user data in older versions.
    """
    if subscription.version >= _GENERATION_SINCE:
        return Claim(subscription.owned, subscription.generation)
    return Claim(subscription.owned, decode_cooperative(subscription.user_data))
