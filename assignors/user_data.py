"""User data that the sticky assignors of all clients put into a subscription (KIP-54, KIP-341, KIP-429).

* ``sticky`` v0: owned partitions. v1: the same and an int32 generation. Nothing in front tells them apart;
  kafka-python alone puts an int16 version there.
* ``cooperative-sticky`` v0: an int32 generation; owned partitions have a field of their own.

The bytes are other clients' input: what cannot be read means "owns nothing".
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

#: Generation of a member that was in none, or does not say; lower than every real one.
NO_GENERATION = -1

_INT32 = struct.Struct(">i")
_VERSION_SIZE = 2
#: From this version on, a subscription has a generation field (KIP-792).
_GENERATION_SINCE = 2


class Claim(NamedTuple):
    """Partitions that a member says it owned, and in which generation."""

    partitions: Sequence[TopicPartition]
    generation: int = NO_GENERATION


def encode_sticky(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """User data of ``sticky``, v1; partitions sorted."""
    return encode_topic_partitions(sorted(partitions)) + _INT32.pack(generation)


def decode_sticky(data: bytes | None) -> Claim:
    """Read user data of ``sticky``, v1 or v0, kafka-python's included; unreadable bytes claim nothing."""
    if not data:
        return Claim(())
    # a version in front reads as 65536 topics or more, which such bytes have no room for
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
    """User data of ``cooperative-sticky``, v0."""
    return _INT32.pack(generation)


def decode_cooperative(data: bytes | None) -> int:
    """The generation in user data of ``cooperative-sticky``; NO_GENERATION when there is none.

    Some clients write there what they write for ``sticky``: then it is the one at its end.
    """
    if not data or len(data) < _INT32.size:
        return NO_GENERATION
    if len(data) > _INT32.size and (claim := decode_sticky(data)) != Claim(()):
        return claim.generation
    return WireReader(data).int32()


def cooperative_claim(subscription: Subscription) -> Claim:
    """Partitions that a member of a cooperative group still owns.

    The generation comes from its own field; only subscriptions too old to have one are asked for user data.
    """
    if subscription.version >= _GENERATION_SINCE:
        return Claim(subscription.owned, subscription.generation)
    return Claim(subscription.owned, decode_cooperative(subscription.user_data))
