"""JoinGroup: its checks in order, who gets in, which protocol is chosen, what each version is told."""

from __future__ import annotations

import pytest

from kohort.coordinator import RebalanceStarted
from kohort.protocol import ErrorCode
from tests.coordinator.bodies import RANGE_T, protocols, subscription
from tests.coordinator.driver import World


@pytest.mark.row(
    "3.3/order",
    "3.3/refused",
    "3.0/group-id",
    "4/group.min.session.timeout.ms",
    "4/group.max.session.timeout.ms",
)
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group": "", "session_ms": 1}, ErrorCode.INVALID_GROUP_ID),
        ({"session_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member": "x", "session_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member": "x", "offers": []}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"offers": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"type_": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_the_first_check_that_fails_is_the_answer(options: dict[str, object], error: ErrorCode) -> None:
    reply = World().join(**options).reply  # type: ignore[arg-type]
    assert (reply.error_code, reply.generation_id, reply.members) == (error, -1, ())
    assert reply.member_id == options.get("member", "")


@pytest.mark.row("3.3/new", "3.1/JoinGroup-v4")
@pytest.mark.parametrize("version", range(10))
def test_a_new_dynamic_member_gets_an_id_first_from_version_4_on(version: int) -> None:
    call = World().join(version=version)
    if version < 4:
        assert call.parked
    else:
        assert (call.error, call.reply.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "c-1")


def test_a_member_id_fits_a_string_whatever_it_begins_with() -> None:
    world = World()
    world.join(version=5, instance="\U0001f600" * 8_191)
    (member_id,) = world.groups["g"].members
    assert len(member_id.encode()) < 32_767


@pytest.mark.row("3.1/JoinGroup-v7")
@pytest.mark.parametrize(("version", "expected"), [(6, ""), (7, None)])
def test_an_absent_protocol_is_empty_below_version_7_and_null_from_it_on(
    version: int, expected: str | None
) -> None:
    assert World().join("g", "x", version=version).reply.protocol_name == expected


@pytest.mark.row("3.1/JoinGroup-v7")
@pytest.mark.parametrize(("version", "expected"), [(6, ""), (7, None)])
def test_a_protocol_without_letters_is_told_like_none(version: int, expected: str | None) -> None:
    world = World()
    a, parked = world.new_member(version=version, offers=protocols(**{"": b""}), type_="x")
    world.advance(0)
    assert (parked.error, parked.reply.protocol_name) == (0, expected)
    again = world.join("g", a, version=version, offers=protocols(**{"": b""}), type_="x")
    assert (again.error, again.reply.protocol_name) == (0, expected)
    assert world.sync("g", a, type_="x", protocol="").error == 0


def test_a_protocol_that_is_named_twice_counts_once_with_its_first_metadata() -> None:
    world = World()
    twice = [*protocols(range=b"first"), *protocols(range=b"second")]
    _, parked = world.new_member(offers=twice, type_="x")
    world.advance(0)
    assert [m.metadata for m in parked.reply.members] == [b"first"]


@pytest.mark.row("3.1/JoinGroup-v0", "9/31")
def test_version_0_has_no_rebalance_timeout_and_means_the_session_timeout_kafka_8653() -> None:
    world = World()
    world.join(version=0, rebalance_ms=-1, session_ms=7_000)
    (member,) = world.groups["g"].members.values()
    assert member.rebalance_timeout_ms == 7_000


@pytest.mark.row("9/31")
@pytest.mark.parametrize("rebalance_ms", [0, -1])
def test_a_rebalance_timeout_of_nothing_means_the_session_timeout(rebalance_ms: int) -> None:
    world = World()
    world.new_member(rebalance_ms=rebalance_ms, session_ms=7_000)
    (member,) = world.groups["g"].members.values()
    assert member.rebalance_timeout_ms == 7_000


@pytest.mark.row("2.3/complete-6")
def test_the_leader_alone_is_told_of_the_members() -> None:
    world = World()
    a, join_a = world.new_member(offers=protocols(range=b"of a"), type_="x")
    b, join_b = world.new_member(offers=protocols(range=b"of b"), type_="x")
    world.advance(0)
    told = [(m.member_id, m.group_instance_id, m.metadata) for m in join_a.reply.members]
    assert told == [(a, None, b"of a"), (b, None, b"of b")]
    assert (join_b.reply.leader, join_b.reply.members) == (a, [])
    assert (join_b.reply.protocol_type, join_b.reply.protocol_name) == ("x", "range")


@pytest.mark.row("3.3/pending")
def test_a_pending_id_with_an_instance_id_is_refused_as_a_mix_up() -> None:
    world = World()
    member = world.join().reply.member_id
    reply = world.join("g", member, instance="i").reply
    assert (reply.error_code, reply.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")


@pytest.mark.row("2.2/protocol-ok", "1.6/3")
def test_another_protocol_type_does_not_get_in() -> None:
    world = World()
    world.stable()
    assert world.join(type_="connect").error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.row("2.2/protocol-ok")
def test_a_lone_member_cannot_switch_to_a_list_that_shares_nothing() -> None:
    world = World()
    (a,) = world.stable()
    error = world.join("g", a, offers=protocols(sticky=b"")).error
    assert error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.row("1.2/protocol-type", "2.8/empty")
def test_an_emptied_group_takes_another_protocol_type() -> None:
    world = World()
    (a,) = world.stable()
    world.leave("g", (a, None))
    world.new_member(type_="connect", offers=protocols(default=b""))
    world.advance(0)
    assert world.describe().protocol_type == "connect"


@pytest.mark.row("2.5/vote", "2.5/tie")
@pytest.mark.parametrize(
    ("lists", "chosen"),
    [
        (["a b", "a b"], "a"),
        (["a b", "b a", "b a"], "b"),
        (["a b c", "c b", "b c"], "b"),
        # one vote each: the leader's preference decides, not the name
        (["b a", "a b"], "b"),
        (["x a b", "b a"], "a"),
    ],
)
def test_the_protocol_most_members_prefer_among_those_all_support_is_chosen(
    lists: list[str], chosen: str
) -> None:
    world = World()
    for names in lists:
        world.new_member(type_="x", offers=protocols(**dict.fromkeys(names.split(), b"")))
    world.advance(0)
    assert world.groups["g"].protocol_name == chosen


@pytest.mark.row("1.2/rebalance-timeout")
def test_the_round_lasts_as_long_as_the_most_patient_member_asks_for() -> None:
    world = World()
    a, _ = world.new_member(session_ms=100_000, rebalance_ms=5_000)
    b, _ = world.new_member(session_ms=100_000, rebalance_ms=9_000)
    world.advance(0)
    world.settle([a, b])
    assert world.groups["g"].rebalance_timeout_ms == 9_000
    parked = world.join("g", a, session_ms=100_000, rebalance_ms=5_000)
    world.advance(8_999)
    assert parked.parked
    world.advance(1)
    assert [m.member_id for m in parked.reply.members] == [a]
    assert world.groups["g"].rebalance_timeout_ms == 5_000
    world.leave("g", (a, None))
    assert world.groups["g"].rebalance_timeout_ms == 0


@pytest.mark.row("1.2/new-member-flag")
def test_an_arrival_at_the_end_of_one_initial_delay_does_not_prolong_the_next() -> None:
    world = World(initial_delay_ms=3_000)
    members = [world.new_member(rebalance_ms=5_000)[0]]
    for wait in (2_000, 2_000):
        world.advance(wait)
        members.append(world.new_member(rebalance_ms=5_000)[0])
    world.advance(1_000)
    assert world.state() == "CompletingRebalance"
    world.leave("g", *((member, None) for member in members))
    _, parked = world.new_member(rebalance_ms=60_000)
    world.advance(3_000)
    assert parked.reply.generation_id == 3


@pytest.mark.row("2.8/first")
def test_room_in_the_group_is_looked_at_before_its_protocols() -> None:
    world = World(group_max_size=1)
    world.stable()
    assert world.join(type_="connect").error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.join("g", "nobody").error == ErrorCode.GROUP_MAX_SIZE_REACHED


class TestMaxSize:
    """group.max.size (KIP-389)."""

    @pytest.mark.row("2.8/stable", "2.8/refused")
    def test_a_full_stable_group_turns_a_newcomer_away(self) -> None:
        world = World(group_max_size=2)
        world.stable(2)
        reply = world.join().reply
        assert (reply.error_code, reply.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        assert world.state() == "Stable"

    @pytest.mark.row("2.8/pending", "2.8/preparing")
    def test_an_id_that_was_handed_out_is_no_promise_of_a_seat(self) -> None:
        world = World(group_max_size=2)
        world.stable(1)
        late = world.join().reply.member_id
        b, _ = world.new_member()
        assert world.state() == "PreparingRebalance"
        world.join("g", "c-1")
        reply = world.join("g", late).reply
        assert (reply.error_code, reply.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        assert world.groups["g"].pending_join == {}
        assert world.state() == "CompletingRebalance", "nobody waits for the one turned away"
        assert b in world.groups["g"].members

    @pytest.mark.row("2.8/stable")
    def test_a_member_of_a_full_group_may_rejoin(self) -> None:
        world = World(group_max_size=2)
        a, b = world.stable(2)
        assert world.join("g", a).parked
        assert world.join("g", b).reply.generation_id == 2


class TestLimits:
    def test_32_protocols_are_the_most(self) -> None:
        offers = protocols(**{f"p{n}": b"" for n in range(32)})
        assert World().join(offers=offers).error == ErrorCode.MEMBER_ID_REQUIRED
        offers += protocols(one_more=b"")
        assert World().join(offers=offers).error == ErrorCode.INVALID_REQUEST

    def test_1_mib_of_metadata_a_member_is_the_most(self) -> None:
        assert World().join(offers=protocols(p=bytes(1 << 20))).error == ErrorCode.MEMBER_ID_REQUIRED
        assert World().join(offers=protocols(p=bytes((1 << 20) + 1))).error == ErrorCode.INVALID_REQUEST

    def test_64_mib_of_metadata_a_group_is_the_most(self) -> None:
        world = World()
        offers = protocols(p=bytes(1 << 20))
        errors = [world.join(offers=offers, version=3, type_="x") for _ in range(65)]
        assert all(call.parked for call in errors[:64])
        assert errors[64].error == ErrorCode.INVALID_REQUEST
        assert world.groups["g"].metadata_bytes == 64 << 20

    def test_a_static_member_that_comes_back_brings_no_more_than_it_had(self) -> None:
        world = World(kohort_group_max_metadata_bytes=1_500)
        offers = protocols(p=bytes(1_000))
        world.join(offers=offers, instance="i", type_="x")
        world.advance(0)
        assert world.join(offers=offers, instance="i", type_="x").error == 0
        assert world.join(offers=offers, instance="j", type_="x").error == ErrorCode.INVALID_REQUEST
        more = protocols(p=bytes(1_501))
        assert world.join(offers=more, instance="i", type_="x").error == ErrorCode.INVALID_REQUEST

    def test_10000_ids_handed_out_and_not_used_are_the_most(self) -> None:
        assert World().settings.kohort_group_max_pending_ids == 10_000
        world = World(kohort_group_max_pending_ids=3)
        errors = [world.join(session_ms=6_000).error for _ in range(4)]
        assert errors == [ErrorCode.MEMBER_ID_REQUIRED] * 3 + [ErrorCode.GROUP_MAX_SIZE_REACHED]
        world.advance(6_000)
        assert world.join().error == ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.row("1.3/member-id")
def test_a_member_id_begins_with_the_clients_name_or_the_instances() -> None:
    world = World()
    assert world.join(client="billing").reply.member_id == "billing-1"
    world.join(client="billing", instance="host-7")
    assert world.groups["g"].static_members == {"host-7": "host-7-2"}


@pytest.mark.row("3.1/JoinGroup-v8")
def test_the_reason_of_a_rejoin_is_part_of_the_cause() -> None:
    world = World()
    a, _ = world.stable(2)
    world.join("g", a, reason="partitions added")
    started = world.notes[-1]
    assert isinstance(started, RebalanceStarted)
    assert started.cause == f"leader {a} asked for a rebalance (partitions added)"


@pytest.mark.row("1.3/protocols", "3.3/changed")
def test_protocols_are_compared_in_order_and_byte_by_byte() -> None:
    world = World()
    offers = protocols(range=subscription("t"), sticky=subscription("t"))
    _, b = world.stable(2, offers=offers)
    assert world.join("g", b, offers=offers).error == 0
    assert world.join("g", b, offers=offers[::-1]).parked


@pytest.mark.row("2.6/one-guard")
def test_all_joined_does_not_end_the_initial_delay_early() -> None:
    world = World(initial_delay_ms=3_000)
    a, parked = world.new_member()
    b, _ = world.new_member()
    world.leave("g", (b, None))
    world.join("g", a, offers=RANGE_T)
    assert parked.error == ErrorCode.NOT_COORDINATOR
    assert world.state() == "PreparingRebalance"


def test_a_round_that_everybody_has_left_takes_any_protocol() -> None:
    # found by the simulator: INCONSISTENT_GROUP_PROTOCOL ended every client that came within the delay
    world = World(initial_delay_ms=3_000)
    member, join = world.new_member()
    world.leave("g", (member, None))
    assert join.error == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.state() == "PreparingRebalance"
    _, parked = world.new_member(offers=protocols(sticky=subscription("u")))
    assert parked.parked
    world.advance(6_000)
    assert parked.reply.protocol_name == "sticky"
