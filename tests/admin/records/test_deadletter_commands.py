"""``kohort deadletters``: letters are listed with their reasons, and replayed once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from kohort.admin.records import letters as letters_module
from kohort.client import Cluster
from kohort.consumer import AsyncGroupConsumer, Record
from kohort.producer import Producer
from kohort.protocol import Headers, TopicPartition
from kohort.service import ConsumerService
from kohort.service.letters.deadletter import error_headers
from tests.admin.conftest import Ran, ran

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]
Command = Callable[..., Ran]
Set = tuple[str, str]


@pytest.fixture
def deadletters(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """``deadletters("list", topic)``: ``kohort deadletters`` on the tests' cluster."""

    def run(*words: object) -> Ran:
        return ran(capsys, ["deadletters", "--bootstrap", bootstrap, "--timeout", "20", *map(str, words)])

    return run


@pytest.fixture
def aside(bootstrap: str, new_topic: Topics, group: Callable[[str], str]) -> tuple[Set, str]:
    """Topics of orders and of their letters, and the group: a KeyError for 0, 2, 4, ValueError for 1, 3."""
    orders, letters, name = new_topic("orders", partitions=2), new_topic("letters", partitions=1), group("g")
    asyncio.run(_set_aside(bootstrap, orders, letters, name))
    return (orders, letters), name


async def _set_aside(bootstrap: str, orders: str, letters: str, group: str) -> None:
    async with Producer(bootstrap=bootstrap) as producer:
        for number in range(5):
            value = str(number).encode()
            sent = await producer.send(orders, value, value, number % 2, headers=[("trace", value)])
        await sent
    service = ConsumerService(
        bootstrap=bootstrap, group=group, auto_offset_reset="earliest", leave_notice_ms=0
    )

    @service.handler(orders, dead_letter=letters)
    async def handle(record: Record) -> None:
        assert record.value is not None
        if int(record.value) % 2:
            raise ValueError(f"odd: {record.value!r}")
        raise KeyError(record.value)

    running = asyncio.create_task(service.serve())
    while service.finished < 5 and not running.done():  # noqa: ASYNC110 - the service tells nobody
        await asyncio.sleep(0.01)
    service.stop()
    await running


def origin(topic: str) -> list[tuple[str, bytes | None]]:
    """The headers of a letter from the topic."""
    record = Record(topic, 1, 0, 0, b"key", b"value")
    return error_headers(record, ValueError("odd"), 1, "g")


@pytest.fixture
def write(bootstrap: str) -> Callable[..., None]:
    """``write(topic, headers, value=b"v")``: one record, of any size."""

    async def send(topic: str, headers: Headers, value: bytes) -> None:
        settings = {"max_request_size": 1 << 30, "compression": "gzip"}
        async with Producer(bootstrap=bootstrap, **settings) as producer:
            await producer.send_and_wait(topic, value, b"key", headers=headers)

    return lambda topic, headers, value=b"v": asyncio.run(send(topic, headers, value))


def records(bootstrap: str, topic: str, count: int) -> list[Record]:
    """The records that were written again, in the order of their values."""

    async def read() -> list[Record]:
        found: list[Record] = []
        places = [TopicPartition(topic, number) for number in range(2)]
        consumer = AsyncGroupConsumer(
            partitions=places,
            bootstrap=bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        async with consumer, asyncio.timeout(30):
            while len(found) < 5 + count:
                found += await consumer.getmany(100, 200)
            found += await consumer.getmany(100, 300)
        return found

    def replayed(record: Record) -> bool:
        return any(name == "kohort.replayed" for name, _ in record.headers)

    return sorted(filter(replayed, asyncio.run(read())), key=lambda record: record.value or b"")


def test_letters_are_listed_with_origin_and_reason(deadletters: Command, aside: tuple[Set, str]) -> None:
    (orders, letters), group = aside
    found = deadletters("list", letters, "--json").document
    assert found["errors"] == {"builtins.KeyError": 3, "builtins.ValueError": 2}
    (odd,) = [row for row in found["letters"] if row["message"].endswith("odd: b'3'")]
    assert odd["origin"] == {"topic": orders, "partition": 1, "offset": 1}
    assert (odd["group"], odd["attempts"], odd["error"]) == (group, 1, "builtins.ValueError")
    assert "stack" not in odd
    some = deadletters(
        "list", letters, "--error", "*.KeyError", "--limit", "1", "--stacks", "--json"
    ).document
    assert [row["error"] for row in some["letters"]] == ["builtins.KeyError"]
    assert "Traceback" in some["letters"][0]["stack"]
    assert some["errors"] == {"builtins.KeyError": 3}
    assert deadletters("list", letters, "--group", "other", "--json").document["letters"] == []
    shown = deadletters("list", letters, "--limit", "2")
    assert "3 more: --limit N" in shown.out
    assert f"{orders}-1 at 1" in deadletters("list", letters).out
    with_stack = deadletters("list", letters, "--error", "*.ValueError", "--limit", "1", "--stacks").out
    assert ":\nTraceback (most recent call last):\n  File " in with_stack


def test_topics_of_letters_are_found_by_what_is_in_them(
    bootstrap: str,
    deadletters: Command,
    aside: tuple[Set, str],
    new_topic: Topics,
    write: Callable[..., None],
) -> None:
    (orders, letters), group = aside
    retries, empty = new_topic("retries", partitions=1), new_topic("empty", partitions=1)
    write(retries, [*origin(orders), ("kohort.retry.due_ms", b"1")])
    marked = new_topic("marked", partitions=2)

    async def set_aside_in_transaction() -> None:
        async with Producer(bootstrap=bootstrap, transactional_id=marked) as producer, producer.transaction():
            await producer.send(marked, b"v", headers=origin(orders))

    asyncio.run(set_aside_in_transaction())
    found = {row["topic"]: row for row in deadletters("topics", "--json").document["topics"]}
    assert found.keys() >= {letters, marked}
    assert not found.keys() & {orders, retries, empty}
    assert (found[letters]["records"], found[letters]["group"]) == (5, group)
    assert found[letters]["error"] in ("builtins.KeyError", "builtins.ValueError")
    assert any(row[0] == letters for row in deadletters("topics").rows())


def test_a_replay_writes_each_letter_once_where_it_came_from(
    bootstrap: str, deadletters: Command, aside: tuple[Set, str]
) -> None:
    (orders, letters), _ = aside
    looked = deadletters("replay", letters)
    assert "nothing is written: add --execute" in looked.out
    done = deadletters("replay", letters, "--execute", "--json").document
    assert done == {"executed": True, "replayed": {orders: 5}, "no_letters": 0}
    again = deadletters("replay", letters, "--execute")
    assert "(nothing to replay)" in again.out
    found = records(bootstrap, orders, 5)
    assert [record.value for record in found] == [b"0", b"1", b"2", b"3", b"4"]
    assert [record.partition for record in found] == [0, 1, 0, 1, 0]
    names = [[name for name, _ in record.headers] for record in found]
    assert names == [["trace", "kohort.replayed"]] * 5
    assert dict(found[3].headers)["kohort.replayed"] is not None


def test_some_letters_are_replayed_elsewhere_as_often_as_asked(
    bootstrap: str, deadletters: Command, aside: tuple[Set, str], new_topic: Topics
) -> None:
    (orders, letters), _ = aside
    done = deadletters("replay", letters, "--error", "builtins.ValueError", "--execute")
    assert "not remembered" in done.out
    assert [record.value for record in records(bootstrap, orders, 2)] == [b"1", b"3"]
    # those of all letters are another matter
    other = new_topic("other", partitions=2)
    assert deadletters("replay", letters, "--to", other, "--execute", "--json").document["replayed"] == {
        other: 5
    }


def test_what_no_service_set_aside_stays_where_it_is(
    deadletters: Command, new_topic: Topics, produce: Callable[..., None]
) -> None:
    topic = new_topic("letters", partitions=1)
    produce(topic, {0: 3})
    assert "(no letters" in deadletters("list", topic).out
    done = deadletters("replay", topic, "--execute", "--json").document
    assert (done["replayed"], done["no_letters"]) == ({}, 3)
    assert "(nothing to replay)" in deadletters("replay", topic, "--execute").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["replay", "letters", "--to", "letters"], "a loop"),
        (["replay", "letters", "--error", "x", "--progress-group", "g"], "is for replays of all letters"),
        (["list", "letters", "--limit", "-1"], "--limit"),
    ],
)
def test_wrong_use_is_told(deadletters: Command, words: list[str], says: str) -> None:
    found = deadletters(*words)
    assert found.code == 2
    assert says in found.err


def test_a_topic_that_is_not_there_is_told(deadletters: Command) -> None:
    found = deadletters("list", "no-such-letters")
    assert found.code == 1
    assert "no-such-letters" in found.err


def test_a_letter_of_any_size_is_replayed(
    bootstrap: str, deadletters: Command, new_topic: Topics, write: Callable[..., None]
) -> None:
    orders, letters = new_topic("orders", partitions=2), new_topic("letters", partitions=1)
    write(letters, origin(orders), value=bytes(3_000_000))
    assert deadletters("replay", letters, "--execute", "--json").document["replayed"] == {orders: 1}
    (found,) = records(bootstrap, orders, -4)
    assert len(found.value or b"") == 3_000_000


def test_a_letter_that_was_set_aside_again_is_the_letter_that_it_was(
    bootstrap: str, deadletters: Command, new_topic: Topics, write: Callable[..., None]
) -> None:
    orders, letters, again = (new_topic(name, partitions=2) for name in ("orders", "letters", "again"))
    first = [("trace", b"1"), *origin(orders)]
    write(again, [*first, *origin(letters)])
    assert deadletters("replay", again, "--execute", "--json").document["replayed"] == {letters: 1}
    (found,) = records(bootstrap, letters, -4)
    assert list(found.headers)[:-1] == first
    assert deadletters("replay", letters, "--execute", "--json").document["replayed"] == {orders: 1}


def test_a_topic_that_is_gone_is_not_made_again(
    deadletters: Command, new_topic: Topics, write: Callable[..., None]
) -> None:
    letters = new_topic("letters", partitions=1)
    gone = f"{letters}.gone"
    write(letters, origin(gone))
    for _ in range(2):
        refused = deadletters("replay", letters, "--execute")
        assert refused.code == 1
        assert f"{gone!r} does not exist" in refused.err
    assert deadletters("replay", letters).code == 1
    other = new_topic("other", partitions=2)
    assert deadletters("replay", letters, "--to", other, "--execute").code == 0


def test_a_replay_that_ends_early_says_what_it_has_written(
    deadletters: Command, new_topic: Topics, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters_module, "_TOGETHER", 1)
    orders, letters = new_topic("orders", partitions=2), new_topic("letters", partitions=1)
    for topic in (orders, f"{letters}.gone"):
        write(letters, origin(topic))
    some = deadletters("replay", letters, "--execute", "--error", "*.ValueError")
    assert (some.code, "1 letters were written before: the same command" in some.err) == (1, True)
    every = deadletters("replay", letters, "--execute")
    assert (every.code, "1 letters were written before: the next replay" in every.err) == (1, True)
    for words in ((), ("--execute",)):
        assert "written before" not in deadletters("replay", letters, *words).err


@pytest.mark.parametrize(("kept_from", "says"), [(2, 3), (None, "nothing more could be read")])
def test_letters_that_vanish_meanwhile_are_passed_over_or_told(
    bootstrap: str,
    deadletters: Command,
    aside: tuple[Set, str],
    monkeypatch: pytest.MonkeyPatch,
    kept_from: int | None,
    says: int | str,
) -> None:
    (_, letters), _ = aside
    real = letters_module.letter_ranges

    async def ranges(
        cluster: Cluster, topic: str
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        found = await real(cluster, topic)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        gone = (
            admin.delete_topics([topic])
            if kept_from is None
            else admin.delete_records([Place(topic, 0, kept_from)])
        )
        for each in gone.values():
            each.result(20)
        return found

    monkeypatch.setattr(letters_module, "letter_ranges", ranges)
    if isinstance(says, str):
        assert says in deadletters("list", letters, "--timeout", "2").err
    else:
        assert len(deadletters("list", letters, "--json").document["letters"]) == says


def test_a_letter_of_an_aborted_transaction_is_none(
    bootstrap: str, deadletters: Command, new_topic: Topics
) -> None:
    orders, letters = new_topic("orders", partitions=2), new_topic("letters", partitions=1)

    async def set_aside() -> None:
        async with Producer(bootstrap=bootstrap, transactional_id=letters) as producer:
            for value in (b"aborted", b"committed", b"aborted"):
                producer.begin_transaction()
                await producer.send_and_wait(letters, value, b"key", headers=origin(orders))
                end = producer.commit_transaction if value == b"committed" else producer.abort_transaction
                await end()

    asyncio.run(set_aside())
    assert deadletters("list", letters, "--json").document["errors"] == {"builtins.ValueError": 1}
    for count in (1, 0):
        found = deadletters("replay", letters, "--execute", "--json").document["replayed"]
        assert found == ({orders: 1} if count else {})
    assert [record.value for record in records(bootstrap, orders, -4)] == [b"committed"]
