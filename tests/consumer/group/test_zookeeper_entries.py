"""What a member reads and writes in ZooKeeper, request by request, where responses are lost and others write.

Covers: consumer/group/zookeeper.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoAuthError, NodeExistsError, NoNodeError

from kohort.client.errors import ZooKeeperConnectionError
from kohort.client.offsets import CommittedOffset
from kohort.client.waiting import now_ms
from kohort.consumer.group import zookeeper as zookeeper_registry
from kohort.consumer.group.registry import CheckRegistry, ClaimPartitions, Register, Release, Withdraw
from kohort.consumer.group.zookeeper import ZooKeeperRegistry, _offset_in, _topics_in
from kohort.protocol import ErrorCode, TopicPartition
from tests.consumer.zookeeper_entries import (
    ID,
    MINE,
    OFFSET,
    OTHERS,
    OWNER,
    PARTITION,
    Entries,
    Session,
    fails,
)


@pytest.fixture
def entries() -> Entries:
    return Entries()


@pytest.fixture
def told() -> list[Any]:
    """What the member is told, one after another: of the others their topics."""
    return []


@pytest.fixture
def registry(entries: Entries, told: list[Any], monkeypatch: pytest.MonkeyPatch) -> ZooKeeperRegistry:
    registry = ZooKeeperRegistry("localhost:2181", "billing", 20, 1_000)
    session: Any = Session(entries, registry._settings)
    registry._session = session

    def say(what: Any, now: float) -> None:
        assert abs(now - now_ms()) < 60_000  # the driver's clock
        told.append(what)

    registry._member = SimpleNamespace(  # type: ignore[assignment]
        owned=frozenset(),
        on_freed=say,
        on_connected=partial(say, "connected"),
        on_suspended=partial(say, "suspended"),
        on_expired=partial(say, "expired"),
        members_changed=say,
    )
    registry._told = lambda: told.append("told")
    monkeypatch.setattr(zookeeper_registry, "_READ_AGAIN_S", 0.0)
    return registry


def commit(registry: ZooKeeperRegistry, offset: int) -> Awaitable[dict[TopicPartition, ErrorCode]]:
    return registry.commit({PARTITION: CommittedOffset(offset)})


async def owner(registry: ZooKeeperRegistry) -> None:
    assert await registry.carry_out(Register("me", ("orders",))) == frozenset()
    assert await registry.carry_out(ClaimPartitions((PARTITION,))) == {PARTITION}


async def test_an_owner_writes_the_offset_once_before_it_commits(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    entries[OFFSET] = [b"41", 3, 0]
    await owner(registry)
    assert entries[OFFSET] == [b"41", 4, 0]
    assert entries[OWNER] == [b"me-0", 0, MINE]
    assert registry.owned_offsets([PARTITION]) == {PARTITION: CommittedOffset(41)}
    assert "localhost:2181/consumers/billing, 1 partitions" in repr(registry)
    assert await commit(registry, 42) == {PARTITION: ErrorCode.NONE}
    assert entries[OFFSET] == [b"42", 5, 0]
    assert registry.owned_offsets([PARTITION]) == {PARTITION: CommittedOffset(42)}
    await registry.carry_out(Release((PARTITION,)))
    assert OWNER not in entries
    assert registry.owned_offsets([PARTITION]) == {}
    assert await commit(registry, 43) == {PARTITION: ErrorCode.ILLEGAL_GENERATION}
    assert entries[OFFSET] == [b"42", 5, 0]


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("there", [True, False])
async def test_after_a_commit_without_an_answer_the_next_one_finds_out_whether_it_was_made(
    registry: ZooKeeperRegistry, entries: Entries, made: bool, there: bool
) -> None:
    entries[OFFSET] = [b"4", 3, 0]
    await owner(registry)
    request = f"set {OFFSET}"
    if not there:
        del entries[OFFSET]
        request = f"create {OFFSET}"
    (entries.after if made else entries.before)[request] = fails(ConnectionLoss)
    with pytest.raises(ZooKeeperConnectionError, match="the change may have been made"):
        await commit(registry, 5)
    assert (entries.get(OFFSET, [None])[0] == b"5") == made
    assert await commit(registry, 6) == {PARTITION: ErrorCode.NONE}
    assert entries[OFFSET][0] == b"6"
    assert await commit(registry, 7) == {PARTITION: ErrorCode.NONE}


async def test_after_commits_without_an_answer_what_is_known_to_be_stored_counts(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    await owner(registry)
    assert entries[OFFSET] == [b"-1", 0, 0]
    for offset, hooks in ((5, entries.after), (6, entries.before)):
        hooks[f"set {OFFSET}"] = fails(ConnectionLoss)
        with pytest.raises(ZooKeeperConnectionError):
            await commit(registry, offset)
    assert registry.owned_offsets([PARTITION]) == {PARTITION: CommittedOffset(5)}


async def test_after_a_commit_without_an_answer_another_owners_is_not_taken_for_it(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    await owner(registry)
    entries.before[f"set {OFFSET}"] = fails(ConnectionLoss)
    with pytest.raises(ZooKeeperConnectionError):
        await commit(registry, 5)
    entries[OFFSET] = [b"-1", 1, 0]  # the next owner writes what it finds
    assert await commit(registry, 6) == {PARTITION: ErrorCode.ILLEGAL_GENERATION}
    assert entries[OFFSET] == [b"-1", 1, 0]


async def test_an_offset_that_was_removed_is_made_again_by_its_owner_alone(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    await owner(registry)
    del entries[OFFSET]
    assert await commit(registry, 5) == {PARTITION: ErrorCode.NONE}
    assert entries[OFFSET] == [b"5", 0, 0]
    del entries[OFFSET]
    entries[OWNER][2] = OTHERS
    assert await commit(registry, 6) == {PARTITION: ErrorCode.ILLEGAL_GENERATION}
    assert OFFSET not in entries
    assert registry.owned_offsets([PARTITION]) == {}


async def test_a_partition_that_is_released_while_its_commit_is_on_the_way_stays_released(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    await owner(registry)
    entries.after[f"set {OFFSET}"] = lambda: registry._stored.clear()
    assert await commit(registry, 5) == {PARTITION: ErrorCode.NONE}
    assert registry.owned_offsets([PARTITION]) == {}


async def test_a_partition_that_is_released_while_its_commit_is_refused_stays_released(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    await owner(registry)
    entries[OFFSET] = [b"3", 9, 0]
    entries.before[f"set {OFFSET}"] = lambda: registry._stored.clear()
    assert await commit(registry, 5) == {PARTITION: ErrorCode.ILLEGAL_GENERATION}


async def test_an_entry_that_goes_before_it_is_removed_is_removed(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    await owner(registry)
    for path in (OWNER, ID):
        entries.before[f"delete {path}"] = partial(entries.pop, path)
    await registry.carry_out(Withdraw((PARTITION,)))
    assert set(entries) == {OFFSET}


@pytest.mark.parametrize(
    ("request_name", "others"),
    [
        ("set", lambda entries: entries.__setitem__(OFFSET, [b"3", 9, 0])),
        ("set", lambda entries: entries.pop(OFFSET)),
        ("create", lambda entries: entries.__setitem__(OFFSET, [b"3", 9, 0])),
    ],
)
async def test_a_new_owner_reads_the_offset_again_if_somebody_writes_meanwhile(
    registry: ZooKeeperRegistry, entries: Entries, request_name: str, others: Callable[[Entries], object]
) -> None:
    if request_name == "set":
        entries[OFFSET] = [b"2", 1, 0]
    entries.before[f"{request_name} {OFFSET}"] = lambda: others(entries)
    await owner(registry)
    data, version, _ = entries[OFFSET]
    assert (data, version) in ((b"3", 10), (b"-1", 0))
    assert await commit(registry, 4) == {PARTITION: ErrorCode.NONE}


async def test_a_partition_whose_offset_may_not_be_read_is_given_back(
    registry: ZooKeeperRegistry, entries: Entries, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        entries.before[f"get {OFFSET}"] = fails(NoAuthError)
        assert await registry.carry_out(ClaimPartitions((PARTITION,))) == frozenset()
        assert OWNER not in entries
    # once, not with every try
    assert caplog.messages == ["ZooKeeper refuses orders-0 of /consumers/billing: NoAuthError()"]


async def test_a_commit_that_zookeeper_refuses_is_an_error_of_rights(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    await owner(registry)
    entries.before[f"set {OFFSET}"] = fails(NoAuthError)
    assert await commit(registry, 5) == {PARTITION: ErrorCode.GROUP_AUTHORIZATION_FAILED}


async def test_offsets_of_any_partitions_are_read_without_those_that_have_none(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    others = [TopicPartition("orders", number) for number in range(4)]
    for number, data in enumerate((b"4", b"-1", None)):
        entries[f"/consumers/billing/offsets/orders/{number}"] = [data, 0, 0]
    assert await registry.stored_offsets(others) == {PARTITION: CommittedOffset(4)}
    entries.before[f"get {OFFSET}"] = fails(ConnectionLoss)
    with pytest.raises(ZooKeeperConnectionError, match="localhost:2181: no answer from ZooKeeper"):
        await registry.stored_offsets(others)


async def test_an_entry_that_goes_between_two_requests_is_made_all_the_same(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    entries[OWNER] = [b"other-0", 0, OTHERS]
    entries.before[f"exists {OWNER}"] = lambda: entries.pop(OWNER)
    assert await registry.carry_out(ClaimPartitions((PARTITION,))) == {PARTITION}
    assert entries[OWNER][2] == MINE
    entries.before[f"set {OWNER}"] = lambda: entries.pop(OWNER)
    assert await registry.carry_out(ClaimPartitions((PARTITION,))) == {PARTITION}
    assert entries[OWNER][2] == MINE


async def test_entries_of_others_are_neither_taken_nor_removed(
    registry: ZooKeeperRegistry, entries: Entries, caplog: pytest.LogCaptureFixture
) -> None:
    for path in (OWNER, ID):
        entries[path] = [b"other", 0, OTHERS]
    assert await registry.carry_out(ClaimPartitions((PARTITION,))) == frozenset()
    assert await registry.carry_out(CheckRegistry((PARTITION,))) == frozenset()
    refused = "localhost:2181: ZooKeeper refuses a request: NodeExistsError"
    with pytest.raises(ZooKeeperConnectionError, match=refused):
        await registry.carry_out(Register("me", ("orders",)))
    await registry.carry_out(Withdraw((PARTITION,)))
    assert set(entries) == {OWNER, ID}
    assert "belongs to no session" not in caplog.text
    entries[OWNER][2] = 0
    for _ in range(2):
        await registry.carry_out(ClaimPartitions((PARTITION,)))
    assert caplog.text.count(f"{OWNER} in ZooKeeper belongs to no session") == 1


async def test_a_new_registration_replaces_the_one_before_and_a_withdrawal_removes_it(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    await owner(registry)
    await registry.carry_out(Register("me.1", ("bills",)))
    assert ID not in entries
    assert ("exists", ID) in entries.asked
    entry = json.loads(entries[f"{ID}.1"][0])
    assert entry.pop("timestamp").isdigit()
    assert entry == {"version": 1, "subscription": {"bills": 1}, "pattern": "static"}
    assert entries[f"{ID}.1"][2] == MINE
    entries.asked.clear()
    await registry.carry_out(Register("me.1", ("orders",)))
    assert ("exists", ID) not in entries.asked
    assert b'"subscription": {"orders": 1}' in entries[f"{ID}.1"][0]
    assert await registry.carry_out(CheckRegistry((PARTITION,))) == {PARTITION}
    await registry.carry_out(Withdraw((PARTITION,)))
    assert set(entries) == {OFFSET}


async def test_what_nobody_owns_is_neither_this_members_nor_has_to_be_removed(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    assert await registry.carry_out(CheckRegistry((PARTITION,))) == frozenset()
    await registry.carry_out(Release((PARTITION,)))
    await registry.carry_out(Withdraw((PARTITION,)))
    assert entries == {}


async def test_a_check_without_partitions_asks_zookeeper_too(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    entries.before["exists /consumers/billing"] = fails(ConnectionLoss)
    with pytest.raises(ZooKeeperConnectionError):
        await registry.carry_out(CheckRegistry(()))


async def test_without_a_connection_it_is_unknown_whose_an_entry_is(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    await owner(registry)
    assert registry._session is not None
    registry._session.client.client_id = None
    for effect in (CheckRegistry((PARTITION,)), Release((PARTITION,)), ClaimPartitions((PARTITION,))):
        with pytest.raises(ZooKeeperConnectionError):
            await registry.carry_out(effect)
    assert OWNER in entries


@pytest.mark.parametrize("back", [True, False])
async def test_the_last_change_is_forgotten_when_a_session_passes_without_a_connection(
    registry: ZooKeeperRegistry, back: bool
) -> None:
    """Servers that have lost data refuse clients that saw later changes."""
    assert registry._session is not None
    client: Any = registry._session.client
    client.client_id = None
    registry._state_changed("SUSPENDED")
    await asyncio.sleep(0)
    assert client.last_zxid == 5
    client.client_id = (MINE, b"") if back else None
    await asyncio.gather(*registry._tasks)
    assert client.last_zxid == (5 if back else 0)
    await asyncio.sleep(0)
    assert registry._tasks == set()


async def settled(registry: ZooKeeperRegistry) -> None:
    while registry._tasks:
        await asyncio.gather(*registry._tasks)
        await asyncio.sleep(0)


async def test_members_are_told_of_in_the_order_of_the_reads_and_registrations_are_read_once(
    registry: ZooKeeperRegistry, entries: Entries, told: list[Any]
) -> None:
    registry._read_members()  # there is no folder of them yet
    await settled(registry)
    await registry.carry_out(Register("me", ("orders",)))
    registry._read_members()
    registry._read_members()  # the first of both is out of date
    await settled(registry)
    assert told == [{}, "told", {"me": {"orders": 1}}, "told"]
    registry._read_members()
    await settled(registry)
    assert told[4:] == [{"me": {"orders": 1}}, "told"]
    assert entries.asked.count(("get", ID)) == 2
    # one that comes back after it was gone may have other topics
    for topics in ({}, {"bills": 1}):
        entries.pop(ID)
        if topics:
            await registry.carry_out(Register("me", tuple(topics)))
        else:
            entries["/consumers/billing/ids"] = [b"", 0, 0]
        fired = registry.watches_fired
        paths = entries.fire("CHILD")
        assert paths[-1] == "/consumers/billing/ids"
        assert registry.watches_fired == fired + len(paths)
        await settled(registry)
        assert told[-2] == ({"me": topics} if topics else {})
        entries.setdefault(ID, [b"", 0, MINE])
    asked, fired = len(entries.asked), registry.watches_fired
    entries.fire("NONE")  # the connection broke
    await settled(registry)
    assert (len(entries.asked), registry.watches_fired) == (asked, fired)


@pytest.mark.parametrize("request_name", [f"get {ID}", "get_children /consumers/billing/ids"])
async def test_what_zookeeper_refuses_to_tell_of_the_members_is_asked_for_again(
    registry: ZooKeeperRegistry,
    entries: Entries,
    told: list[Any],
    caplog: pytest.LogCaptureFixture,
    request_name: str,
) -> None:
    registry._read_members()
    await settled(registry)
    await registry.carry_out(Register("me", ("orders",)))
    entries.before[request_name] = fails(NoAuthError)
    registry._read_members()
    await settled(registry)
    what = "ZooKeeper refuses me of" if request_name == f"get {ID}" else "the members of"
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"{what} /consumers/billing")
    assert caplog.messages[0].endswith(": NoAuthError()")
    # until then a member that is not known gets no partitions
    of_others = [each for each in told if each != "told"]
    assert of_others[1:-1] == ([{"me": {}}] if request_name == f"get {ID}" else [])
    assert of_others[-1] == {"me": {"orders": 1}}


async def test_without_an_answer_the_members_are_read_in_the_next_connection(
    registry: ZooKeeperRegistry, entries: Entries, told: list[Any]
) -> None:
    entries.before["get_children /consumers/billing/ids"] = fails(ConnectionLoss)
    registry._read_members()
    await settled(registry)
    assert told == []
    assert len(entries.asked) == 1


async def test_a_registration_that_was_read_in_vain_is_not_read_again(
    registry: ZooKeeperRegistry, entries: Entries, told: list[Any]
) -> None:
    await registry.carry_out(Register("me", ("orders",)))
    request = "get_children /consumers/billing/ids"
    # the second read makes the first one out of date, and fails
    entries.after[request] = lambda: entries.before.update({request: fails(ConnectionLoss)})
    registry._read_members()
    registry._read_members()
    await settled(registry)
    assert told == []
    registry._read_members()
    await settled(registry)
    assert told == [{"me": {"orders": 1}}, "told"]
    assert entries.asked.count(("get", ID)) == 1


async def test_a_member_that_goes_while_it_is_read_is_left_out(
    registry: ZooKeeperRegistry, entries: Entries, told: list[Any]
) -> None:
    registry._read_members()
    await settled(registry)
    await registry.carry_out(Register("me", ("orders",)))
    for name in ("a", "z"):
        entries[f"/consumers/billing/ids/{name}"] = [b'{"subscription":{"orders":1}}', 0, OTHERS]
    entries.before[f"get {ID}"] = lambda: entries.pop(ID)
    registry._read_members()
    await settled(registry)
    assert told[2:] == [{"a": {"orders": 1}, "z": {"orders": 1}}, "told"]


async def test_members_whose_registrations_may_not_be_read_hide_no_others(
    registry: ZooKeeperRegistry, entries: Entries, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    for name, session in (("a", OTHERS), ("me", OTHERS), ("z", 0)):
        entries[f"/consumers/billing/ids/{name}"] = [b'{"subscription":{"orders":1}}', 0, session]
    entries["/consumers/billing/ids/b"] = [b"", 0, OTHERS]
    entries.before[f"get {ID}"] = fails(NoAuthError)
    registry._read_members()
    await settled(registry)
    others: dict[str, Any] = {"a": {"orders": 1}, "b": {}, "z": {"orders": 1}}
    assert told == [others | {"me": {}}, "told", others | {"me": {"orders": 1}}, "told"]
    assert caplog.messages == [
        "ZooKeeper refuses me of /consumers/billing: NoAuthError()",
        "the registration of b in ZooKeeper cannot be read: it gets no partitions",
        "/consumers/billing/ids/z in ZooKeeper belongs to no session and stays for good: remove it",
    ]
    # each was read until it could be
    assert entries.asked.count(("get", ID)) == 2
    assert entries.asked.count(("get", "/consumers/billing/ids/a")) == 1


async def test_an_error_that_is_not_zookeepers_is_raised(
    registry: ZooKeeperRegistry, entries: Entries
) -> None:
    entries.before[f"create {OWNER}"] = fails(RuntimeError)
    with pytest.raises(RuntimeError):
        await registry.carry_out(ClaimPartitions((PARTITION,)))


async def test_what_happens_to_the_session_is_told_to_the_member(
    registry: ZooKeeperRegistry, entries: Entries, told: list[Any]
) -> None:
    await owner(registry)
    await settled(registry)
    told.clear()
    registry._state_changed("SUSPENDED")
    assert told == ["suspended", "told"]
    registry._state_changed("CONNECTED")
    await settled(registry)
    assert told[2:] == ["connected", "told", {"me": {"orders": 1}}, "told"]
    assert await commit(registry, 3) == {PARTITION: ErrorCode.NONE}
    # watches end with a connection, and are set again with the check that comes first in the next one
    entries.watches.clear()
    await registry.carry_out(CheckRegistry((PARTITION,)))
    await settled(registry)
    assert [path for path, _ in entries.watches] == [OWNER]
    registry._state_changed("LOST")
    assert told[6:] == ["expired", "told"]
    assert registry.owned_offsets([PARTITION]) == {}
    assert await commit(registry, 4) == {PARTITION: ErrorCode.ILLEGAL_GENERATION}


async def test_the_owner_of_a_partition_is_watched_until_it_is_free(
    registry: ZooKeeperRegistry, entries: Entries, told: list[Any]
) -> None:
    entries[OWNER] = [b"other-0", 0, OTHERS]
    for _ in range(2):
        assert await registry.carry_out(ClaimPartitions((PARTITION,))) == frozenset()
        await settled(registry)
    assert entries.fire("NONE") == [OWNER]  # the connection broke: what it was set for ended with it
    assert told == []
    registry._watched.clear()
    await registry.carry_out(ClaimPartitions((PARTITION,)))
    await settled(registry)
    assert entries.fire("CHANGED") == [OWNER]
    await settled(registry)
    assert told == []
    assert entries.fire("DELETED") == [OWNER]
    assert told == [PARTITION, "told"]
    assert registry.watches_fired == 2
    del entries[OWNER]
    entries.before[f"create {OWNER}"] = fails(NodeExistsError)
    entries.before[f"exists {OWNER}"] = lambda: entries.__setitem__(OWNER, [b"", 0, OTHERS])
    assert await registry.carry_out(ClaimPartitions((PARTITION,))) == frozenset()
    del entries[OWNER]  # before the watch is set
    await settled(registry)
    assert told[2:] == [PARTITION, "told"]


async def test_a_partition_that_another_member_took_is_told_to_its_reader(
    registry: ZooKeeperRegistry, entries: Entries, told: list[Any]
) -> None:
    await owner(registry)
    await settled(registry)
    assert told == []
    registry._member.owned = frozenset({PARTITION})
    entries.fire("CHANGED")
    await settled(registry)
    assert told == []
    entries[OWNER][2] = OTHERS
    entries.fire("CHANGED")
    await settled(registry)
    assert told == [PARTITION, "told"]


async def test_an_owner_that_cannot_be_watched_is_watched_with_the_next_claim(
    registry: ZooKeeperRegistry, entries: Entries, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "kohort.consumer")
    entries[OWNER] = [b"other-0", 0, OTHERS]
    for error in (ConnectionLoss, None):
        await registry.carry_out(ClaimPartitions((PARTITION,)))
        if error is not None:
            entries.before[f"exists {OWNER}"] = fails(error)
        await settled(registry)
    assert [path for path, _ in entries.watches] == [OWNER]
    assert told == []
    assert [text for text in caplog.messages if "orders-0" in text] == [
        "the owner of orders-0 is not watched: ConnectionLoss()"
    ]


async def test_a_group_is_read_with_its_members_and_those_offsets_that_are_numbers(
    registry: ZooKeeperRegistry, entries: Entries, caplog: pytest.LogCaptureFixture
) -> None:
    assert await registry.read() == ({}, {})
    for path, data in {
        "ids/a": b'{"subscription":{"orders":2}}',
        "ids/b": b"",
        "ids/c": b"{}",
        "offsets/orders/0": b"4",
        "offsets/orders/1": b"-1",
        "offsets/orders/2": b"x",
        "offsets/orders/03": b"5",
        "offsets/bills/3": b"6",
        "offsets/bills/4": b"7",
    }.items():
        entries[f"/consumers/billing/{path}"] = [data, 0, 0]
    for gone in ("/consumers/billing/ids/c", "/consumers/billing/offsets/bills/4"):
        entries.before[f"get {gone}"] = fails(NoNodeError)
    members, offsets = await registry.read()
    assert members == {"a": {"orders": 2}, "b": {}}
    assert offsets == {PARTITION: 4, TopicPartition("bills", 3): 6}
    assert caplog.text.count("is no number") == 1
    assert "the offset of orders-2 in ZooKeeper is no number: b'x'" in caplog.messages
    assert "the registration of b in ZooKeeper cannot be read" in caplog.text
    entries.before[f"get {OFFSET}"] = fails(NoAuthError)
    with pytest.raises(ZooKeeperConnectionError, match="ZooKeeper refuses a request: NoAuthError"):
        await registry.read()


async def test_an_offset_that_is_no_number_is_named_when_the_partition_is_claimed(
    registry: ZooKeeperRegistry, entries: Entries, caplog: pytest.LogCaptureFixture
) -> None:
    for data, named in ((b"-1", 0), (b"5", 0), (b"x" * 100, 1), (None, 2)):
        entries[OFFSET] = [data, 0, 0]
        assert await registry.carry_out(ClaimPartitions((PARTITION,))) == {PARTITION}
        assert caplog.text.count("the offset of orders-0 in ZooKeeper is no number") == named


@pytest.mark.parametrize(
    "entry",
    [
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"",
        b"5",
        b'{"subscription":[1]}',
        b'{"subscription":{"orders":1e400}}',
        b'{"version":9,"subscription":{"orders":1000000000},"pattern":"static"}',
        b'{"version":1,"subscription":{"orders":-4},"pattern":"static"}',
        b'{"version":1,"subscription":{"orders":10001},"pattern":"static"}',
        None,
    ],
)
def test_a_registration_that_makes_no_sense_has_no_topics_and_is_named(
    entry: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert _topics_in("other", entry) == {}
    assert caplog.messages == ["the registration of other in ZooKeeper cannot be read: it gets no partitions"]


def test_a_registration_for_a_pattern_has_no_topics_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    assert _topics_in("other", b'{"version":1,"subscription":{"ord.*":1},"pattern":"white_list"}') == {}
    (said,) = caplog.messages
    assert said == (
        "other subscribes to a pattern in ZooKeeper, which is not supported: it gets no partitions"
    )


@pytest.mark.parametrize("threads", [0, 2, 10_000])
def test_a_registration_of_a_client_of_kafka_0_8_is_read(threads: int) -> None:
    entry = b'{"version":1,"subscription":{"orders":%d},"pattern":"static","timestamp":"1416"}' % threads
    assert _topics_in("other", entry) == {"orders": threads}


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"0", 0),
        (b"42", 42),
        (b"-1", None),
        (b"", None),
        (b"\xb2", None),
        (b"9" * 19, None),
        (b"9" * 99, None),
        (b"9" * 5_000, None),
        (b"%d" % (2**63 - 1), 2**63 - 1),
        (b"%d" % 2**63, None),
        (None, None),
    ],
)
def test_an_offset_is_a_number_that_there_can_be(data: bytes | None, offset: int | None) -> None:
    assert _offset_in(data) == offset
