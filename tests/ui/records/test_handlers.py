"""Pages of records: browsing, searching, one record, its bytes, and export; hostile records among them.

Covers: ui/records/handlers.py, ui/records/pages.py.
"""

from __future__ import annotations

import asyncio
import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kohort.admin.access.acls import AclRule
from kohort.admin.access.cluster_admin import ClusterAdmin
from kohort.admin.records.search import FoundRecords, SearchCursor
from kohort.client import Cluster
from kohort.producer import Producer
from kohort.protocol import CorruptBatchError
from kohort.ui.records import handlers as records
from kohort.ui.records import pages as record_pages
from tests.client.registry import FakeRegistry, framed
from tests.secured import PASSWORD, Secured
from tests.ui.conftest import Browser, MakeBrowser
from tests.waiting import wait_until

pytestmark = pytest.mark.kafka

EVIL = b"</td><script>alert('v')</script><img src=x onerror=alert(1)>"
BEGAN_MS = 1_750_000_000_000


def words(answer: httpx.Response) -> str:
    """What a reader reads."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", answer.text)))


@pytest.fixture
def page(bootstrap: str, browser: MakeBrowser) -> Browser:
    return browser("--bootstrap", bootstrap)


Row = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


@pytest.fixture
def write(bootstrap: str) -> Callable[..., None]:
    """``write(topic, (key, value, headers), ...)``: records of partition 0, a second apart."""

    def send(topic: str, *rows: Row, partition: int = 0, **settings: Any) -> None:
        async def run() -> None:
            async with Producer(bootstrap=bootstrap, **settings) as producer:
                for number, row in enumerate(rows):
                    timed = [(*row, BEGAN_MS + 1_000 * number)]
                    await (await producer.send_batch(topic, partition, timed))

        asyncio.run(run())

    return send


def next_of(answer: httpx.Response) -> str | None:
    found = re.search(r'href="(records\?[^"]*)" rel="next"', answer.text)
    return None if found is None else "/" + html.unescape(found[1])


def offsets_in(answer: httpx.Response) -> list[str]:
    return re.findall(r">(\d+ at \d+)<", answer.text)


def test_records_are_browsed_from_the_end_page_by_page(
    page: Browser, new_topic: Callable[..., str], write: Callable[..., None]
) -> None:
    topic = new_topic("browsed", partitions=1)
    write(topic, *((b"k%d" % n, b"v%d" % n, ()) for n in range(120)))
    seen: list[str] = []
    address: str | None = f"/records?name={topic}"
    while address:
        shown = page.get(address)
        assert shown.status_code == 200
        seen += offsets_in(shown)
        address = next_of(shown)
    assert seen == [f"0 at {offset}" for offset in reversed(range(120))]
    first = words(page.get(f"/records?name={topic}"))
    assert "0 at 119 2025-06-15 15:08:39.000 k119 v119 -" in first
    assert "50 shown. 50 of 120 offsets looked at (42%)" in first
    oldest = page.get(f"/records?name={topic}&order=oldest&offset=7&rows=100")
    assert offsets_in(oldest) == [f"0 at {offset}" for offset in range(7, 107)]


def test_records_are_found_by_key_text_time_and_partition(
    page: Browser, new_topic: Callable[..., str], write: Callable[..., None]
) -> None:
    topic = new_topic("searched", partitions=2)
    write(
        topic,
        (b"user-1", b"Hello World", ()),
        (b"user-10", b'{"name": "\\u00c9va"}', (("trace", b"abc-hello"),)),
        (b"\x00\x00\x00\x2a", b"\xff\xfe", (("hello", None),)),
        (None, None, ()),
    )
    write(topic, (b"user-1", b"elsewhere", ()), partition=1)

    def found(**query: object) -> list[str]:
        answer = page.get("/records", params={"name": topic, "order": "oldest", **query})
        assert answer.status_code == 200, answer.text
        return sorted(offsets_in(answer))

    assert found(key="user-1") == ["0 at 0", "1 at 0"]
    assert found(key="user-1", partition="1") == ["1 at 0"]
    assert found(key="42") == ["0 at 2"]
    assert found(text="HELLO") == ["0 at 0", "0 at 1", "0 at 2"]
    assert found(text="hello", **{"in": "value"}) == ["0 at 0"]
    assert found(text="hello", **{"in": "headers"}) == ["0 at 1", "0 at 2"]
    assert found(text="user", **{"in": "key"}) == ["0 at 0", "0 at 1", "1 at 0"]
    assert found(text="éva") == ["0 at 1"]
    assert found(since="2025-06-15T15:06:41Z", until="2025-06-15T15:06:42Z") == ["0 at 1", "0 at 2"]
    assert found(since="1h") == []
    assert "Nothing found. 5 of 5 offsets looked at (100%)" in words(
        page.get(f"/records?name={topic}&text=zzz")
    )


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"partition": "x"}, "'x' is no partition: give a whole number"),
        ({"partition": "9"}, "has partitions 0 to 0, not 9"),
        ({"offset": "-1"}, "'-1' is no offset"),
        ({"offset": "9" * 30}, "is no offset"),
        ({"since": "yesterdayish"}, "is no time: write yesterday"),
        ({"in": "soul"}, "'soul' is no part of a record"),
        ({"from": "xyz"}, "this is no place to go on from"),
        ({"name": "no-such-topic"}, "topic 'no-such-topic' does not exist"),
        ({"name": ""}, "this address names no topic: write it as name=TOPIC"),
    ],
)
def test_a_search_that_cannot_be_is_told_with_its_form(
    page: Browser, new_topic: Callable[..., str], query: dict[str, str], told: str
) -> None:
    answer = page.get("/records", params={"name": new_topic("asked", partitions=1), **query})
    assert answer.status_code in (400, 502)
    assert told in words(answer)
    assert 'action="records"' in answer.text


def test_hostile_records_are_text(
    page: Browser, new_topic: Callable[..., str], write: Callable[..., None]
) -> None:
    topic = new_topic("hostile", partitions=1, max_message_bytes=str(4 * 1024 * 1024))
    write(
        topic,
        (EVIL, EVIL, ((EVIL.decode(), EVIL),)),
        (b"\x1b[2J\x07", "\u202etxt.exe".encode(), ()),
        (b"k", b"x" * 3_000_000, ()),
        (b"k", b"[" * 200_000, tuple((f"h{n}", b"v") for n in range(500))),
        (b"k", None, ()),
        max_request_size=4 * 1024 * 1024,
    )
    listed = page.get(f"/records?name={topic}")
    assert listed.status_code == 200
    assert "<script>alert" not in listed.text
    assert "<img" not in listed.text
    assert "alert('v')" in words(listed)
    assert not set(listed.text) & {"\x1b", "\x07", "\u202e"}
    assert "… ( 2.9 MiB )" in words(listed).replace("(2.9 MiB)", "( 2.9 MiB )")
    assert "and 480 more" in words(listed)
    assert "tombstone" in words(listed)
    assert len(listed.text) < 60_000
    for offset in range(5):
        one = page.get(f"/record?name={topic}&partition=0&offset={offset}")
        assert one.status_code == 200
        assert "<script>alert" not in one.text
        assert len(one.text) < 400_000
    assert "text, 3,000,000 bytes, the beginning is shown" in words(
        page.get(f"/record?name={topic}&partition=0&offset=2")
    )
    assert "null: a tombstone" in words(page.get(f"/record?name={topic}&partition=0&offset=4"))
    missing = page.get(f"/record?name={topic}&partition=0&offset=99")
    assert "There is no record at this offset" in words(missing)
    assert (
        page.get("/records", params={"name": EVIL.decode(), "text": EVIL.decode()}).text.count(
            "<script>alert"
        )
        == 0
    )
    assert page.get(f"/record?name={topic}").status_code == 400


def test_all_bytes_of_a_value_are_a_file(
    page: Browser, new_topic: Callable[..., str], write: Callable[..., None]
) -> None:
    topic = new_topic("raw", partitions=1)
    write(topic, (b"\x00key", EVIL, ()), (None, None, ()))
    address = f"/value?name={topic}&partition=0&offset=0"
    answer = page.get(address)
    assert answer.content == EVIL
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == f'attachment; filename="{topic}-0-0-value.bin"'
    assert page.get(f"{address}&part=key").content == b"\x00key"
    assert page.get(f"/value?name={topic}&partition=0&offset=1").status_code == 404


def test_what_a_search_finds_is_exported(
    page: Browser, new_topic: Callable[..., str], write: Callable[..., None]
) -> None:
    topic = new_topic("exported", partitions=1)
    write(
        topic,
        (b"k1", b"=1+2", (("h", b"\xff"),)),
        (b"k2", b'a,"b"\nc', ()),
        (b"k1", b"\xff\xfe", ()),
        (b"k1", None, ()),
        (b"k1", b"-5", ()),
    )
    answer = page.get(f"/export?name={topic}&key=k1")
    assert answer.headers["content-disposition"] == f'attachment; filename="{topic}.jsonl"'
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [(row["offset"], row["value"]) for row in rows] == [
        (0, "=1+2"),
        (2, {"base64": "//4="}),
        (3, None),
        (4, "-5"),
    ]
    assert rows[0]["headers"] == [["h", {"base64": "/w=="}]]
    answer = page.get(f"/export?name={topic}&format=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    table = [*csv.DictReader(io.StringIO(answer.text, newline=""))]
    assert [row["value"] for row in table] == ["'=1+2", 'a,"b"\nc', '{"base64": "//4="}', "", "-5"]
    assert table[0]["timestamp"] == str(BEGAN_MS)
    assert page.get(f"/export?name={topic}&format=xml").status_code == 400
    assert page.get(f"/export?name={topic}&offset=x").status_code == 400
    assert page.get("/export?name=no-such-topic").status_code == 502
    empty = page.get(f"/export?name={topic}&text=zzz&format=csv")
    assert empty.text == "topic,partition,offset,timestamp,key,value,headers,error\r\n"
    elsewhere = page.get(f"/export?name={topic}", headers={"sec-fetch-site": "cross-site"})
    assert elsewhere.status_code == 403


def test_no_more_exports_and_searches_than_fit_are_under_way(
    bootstrap: str,
    browser: MakeBrowser,
    new_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("_SEARCHES", 0), ("_EXPORTS", 0), ("_WAIT_S", 0.05)):
        monkeypatch.setattr(records, name, value)
    page, topic = browser("--bootstrap", bootstrap), new_topic("busy", partitions=1)
    for path in (f"/records?name={topic}", f"/export?name={topic}"):
        answer = page.get(path)
        assert answer.status_code == 503
        assert "try again" in words(answer)


def test_damage_in_the_middle_of_an_export_is_a_line_of_it(
    page: Browser,
    new_topic: Callable[..., str],
    write: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kohort.consumer.reading.fetched_records import ChunkReader

    topic = new_topic("torn", partitions=1)
    write(topic, *((b"k", b"v%d" % n, ()) for n in range(3)))
    real = ChunkReader._find_batch

    def find(reader: ChunkReader, header: Any) -> Any:
        if header.base_offset == 1:
            raise CorruptBatchError("bad checksum", 0)
        return real(reader, header)

    monkeypatch.setattr(ChunkReader, "_find_batch", find)
    rows = [json.loads(line) for line in page.get(f"/export?name={topic}").text.splitlines()]
    assert [row["value"] for row in rows if "value" in row] == ["v0", "v2"]
    [told] = [row["error"] for row in rows if "error" in row]
    assert "offsets 1 to 1 are damaged" in told
    listed = page.get(f"/records?name={topic}")
    assert "offsets 1 to 1 are damaged" in words(listed)
    assert offsets_in(listed) == ["0 at 2", "0 at 0"]


def test_only_committed_records_are_shown_if_that_is_asked(
    page: Browser, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("committed", partitions=1)

    async def run() -> None:
        async with Producer(bootstrap=bootstrap, transactional_id=f"w-{topic}") as producer:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"kept")
            producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted")
            await producer.abort_transaction()

    asyncio.run(run())
    assert offsets_in(page.get(f"/records?name={topic}")) == ["0 at 2", "0 at 0"]
    assert offsets_in(page.get(f"/records?name={topic}&committed=1")) == ["0 at 0"]
    exported = page.get(f"/export?name={topic}&committed=1").text.splitlines()
    assert [json.loads(line)["value"] for line in exported] == ["kept"]


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    registry = FakeRegistry()
    yield registry
    registry.close()


def test_values_are_decoded_by_the_registry(
    bootstrap: str,
    browser: MakeBrowser,
    new_topic: Callable[..., str],
    write: Callable[..., None],
    fake: FakeRegistry,
) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
    schema_id = fake.add(json.dumps(schema))
    topic = new_topic("avro", partitions=1)
    write(topic, (b"k", framed(schema_id, b"\x0eorder-7"), ()), (b"k", framed(999, b"abc"), ()))
    page = browser("--bootstrap", bootstrap, "--schema-registry", fake.url)
    listed = words(page.get(f"/records?name={topic}"))
    assert f'avro {schema_id} {{"id": "order-7"}}' in listed
    assert "the registry has no schema 999" in listed
    assert offsets_in(page.get("/records", params={"name": topic, "text": '"id": "order'})) == ["0 at 0"]
    first = json.loads(page.get(f"/export?name={topic}").text.splitlines()[0])
    assert first["decoded"] == {"id": "order-7"}
    assert '""id"": ""order-7""' in page.get(f"/export?name={topic}&format=csv").text


def test_a_right_that_is_missing_is_one_sentence(
    secured: Secured, browser: MakeBrowser, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    name, password = topic("secret"), tmp_path / "password"
    password.write_text(PASSWORD)
    as_bob = f"--bootstrap {secured.sasl} --security-protocol SASL_PLAINTEXT --sasl-mechanism PLAIN"
    page = browser(*as_bob.split(), "--sasl-username", "bob", "--sasl-password-file", str(password))

    async def create() -> None:
        async with Cluster(secured.plain) as cluster:
            await cluster.create_topics({name: 1})
        async with Producer(bootstrap=secured.plain) as producer:
            await producer.send_and_wait(name, b"for nobody")

    asyncio.run(create())
    unseen = trouble_of(page.get(f"/records?name={name}"))
    assert f"topic '{name}'; ask for the right to DESCRIBE (to read: READ" in unseen
    rule = AclRule("User:bob", "Allow", "Describe", "topic", name)

    async def allow() -> None:
        async with ClusterAdmin(secured.plain) as admin:
            assert (await admin.add_acls([rule]))[rule].ok

    asyncio.run(allow())
    # what may be described and not read

    def reading() -> str:
        told = trouble_of(page.get(f"/records?name={name}"))
        return told if "reading" in told else ""

    refused = wait_until(reading, "only READ is missing")
    assert f"reading {name}-0; ask for the right to DESCRIBE (to read: READ" in refused
    exported = page.get(f"/export?name={name}")
    assert exported.status_code == 502
    assert "ask for the right to" in words(exported)
    shown = page.run(page_of_topic(page, name))
    assert "Sizes are not all known: " in words(shown)
    assert "ask for the right to DESCRIBE (to change: ALTER; configs and quotas" in words(shown)


def trouble_of(answer: httpx.Response) -> str:
    assert answer.status_code == 502
    assert "for nobody" not in answer.text
    [told] = re.findall(r'<p id="trouble"[^>]*>([^<]+)</p>', answer.text)
    return html.unescape(told)


async def page_of_topic(page: Browser, name: str) -> httpx.Response:
    """The page of a topic with its details."""
    async with asyncio.timeout(30):
        while "not all known" not in (answer := await page.ask(f"/topic?name={name}")).text:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    return answer


def test_progress_is_told_of_what_is_unfinished() -> None:
    found: FoundRecords[Any] = FoundRecords([], SearchCursor({}, 3, 250, 1_000, 200, 2_048), True, ["a note"])
    shown = record_pages.records({"name": "t", "text": "x"}, found, (50,))
    assert 'value="250" max="1000"' in shown
    assert "Nothing found so far. 250 of 1,000 offsets looked at (25%), 200 records read, 2.0 KiB." in shown
    assert ">Search on</a>" in shown
    assert "a note" in shown
