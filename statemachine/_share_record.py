"""The states of a record in a share group: who has it, and whether it is done (KIP-932).

Members of a share group read the same partition. Each record that is in flight is either waiting for a member
or locked by one:

==============  =====================================================================================
State           Meaning
==============  =====================================================================================
Available       no member has it; the next fetch of any member may acquire it
Acquired        one member has it, under a lock that ends by itself
Acknowledged    a member has accepted it; final
Archived        nobody is given it any more, though no member has accepted it; final
==============  =====================================================================================

A record that was never acquired is Available. The leader of the partition keeps the states in memory and
writes all but Acquired to ``__share_group_state``: whoever leads next gives an acquired record again, and the
delivery that was cut short does not count.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ._machine import LifeCycle, Transition


class ShareRecordState(Enum):
    """The four states.

    * **Available**: a fetch acquires it, and its delivery count goes up.
    * **Acquired**: its member may accept, release, reject or renew it; others are refused.
    * **Acknowledged**: the start offset may move past it.
    * **Archived**: the same; it was rejected, was a gap, was delivered as often as the group allows, or was
      written by a transaction that was aborted.
    """

    AVAILABLE = "Available"
    ACQUIRED = "Acquired"
    ACKNOWLEDGED = "Acknowledged"
    ARCHIVED = "Archived"


class ShareRecordTrigger(Enum):
    """Triggers that move a record. The value is the name of the machine's event."""

    ACQUIRE = "acquire"
    ACCEPT = "accept"
    RELEASE = "release"
    REJECT = "reject"
    RENEW = "renew"
    TAKE_BACK = "take_back"
    EXHAUST = "exhaust"
    DISCARD = "discard"


_S, _T = ShareRecordState, ShareRecordTrigger

#: Every legal move; all others raise IllegalTransitionError.
SHARE_RECORD_TRANSITIONS: Final[tuple[Transition[ShareRecordState, ShareRecordTrigger], ...]] = (
    Transition(_T.ACQUIRE, _S.AVAILABLE, _S.ACQUIRED, "a member fetches it"),
    Transition(_T.ACCEPT, _S.ACQUIRED, _S.ACKNOWLEDGED, "its member has worked on it"),
    Transition(
        _T.RELEASE,
        _S.ACQUIRED,
        _S.AVAILABLE,
        "its member gives it back or closes its session, or the lock ends; more deliveries are allowed",
    ),
    Transition(
        _T.TAKE_BACK,
        _S.ACQUIRED,
        _S.AVAILABLE,
        "the answer that gave it to its member was not sent: the delivery does not count",
    ),
    Transition(_T.EXHAUST, _S.ACQUIRED, _S.ARCHIVED, "the same, after its last delivery"),
    Transition(_T.REJECT, _S.ACQUIRED, _S.ARCHIVED, "its member rejects it, or found no record there"),
    Transition(_T.RENEW, _S.ACQUIRED, _S.ACQUIRED, "its member needs more time"),
    Transition(_T.DISCARD, _S.AVAILABLE, _S.ARCHIVED, "compacted away, or of an aborted transaction"),
)

SHARE_RECORD: Final = LifeCycle(
    "record", SHARE_RECORD_TRANSITIONS, begins=[_S.AVAILABLE], ends=[_S.ACKNOWLEDGED, _S.ARCHIVED]
)
