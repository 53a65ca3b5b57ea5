"""Messages are named tuples, as ``typing.NamedTuple`` makes them."""

from __future__ import annotations

import copy
import pickle
import typing
from collections.abc import Sequence
from typing import Any

import pytest

from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic


class Plain(typing.NamedTuple):
    """What a message is like."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


def test_it_is_made_and_shown_as_a_named_tuple() -> None:
    for values, named in ((("g", 3), {"member_id": "m"}), ((), {}), (("g", 1, "m", "i"), {})):
        made: Any = HeartbeatRequest(*values, **named)  # type: ignore[arg-type]
        plain = Plain(*values, **named)  # type: ignore[arg-type]
        assert made == plain
        assert hash(made) == hash(plain)
        assert repr(made) == repr(plain).replace("Plain", "HeartbeatRequest")
        assert made._asdict() == plain._asdict()
        assert (made.group_id, made.generation_id, made.group_instance_id) == (plain[0], plain[1], plain[3])
        assert made._replace(member_id="other") == plain._replace(member_id="other")
    assert HeartbeatRequest._fields == HeartbeatRequest.__match_args__ == Plain._fields
    assert HeartbeatRequest._field_defaults == Plain._field_defaults
    assert not hasattr(HeartbeatRequest(), "__dict__")


def test_what_it_has_no_field_for_is_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'group'"):
        HeartbeatResponse(group="g")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional arguments"):
        HeartbeatResponse(1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        HeartbeatResponse()._replace(group="g")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        HeartbeatResponse().error_code = 3  # type: ignore[misc]


def test_it_is_copied_and_pickled_and_matched_by_its_fields() -> None:
    body = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t")])
    for again in (copy.copy(body), copy.deepcopy(body), pickle.loads(pickle.dumps(body))):
        assert again == body
        assert type(again) is OffsetCommitRequest
    match body:
        case OffsetCommitRequest(group_id, topics=[OffsetCommitRequestTopic(name)]):
            assert (group_id, name) == ("g", "t")
        case _:
            pytest.fail("no match")


def test_the_types_of_its_fields_can_be_asked() -> None:
    hints = typing.get_type_hints(OffsetCommitRequest)
    assert hints["group_instance_id"] == str | None
    assert hints["topics"] == Sequence[OffsetCommitRequestTopic]
