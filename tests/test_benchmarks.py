"""The benchmarks run, refuse wrong answers and judge by their goals; what they measure is not judged here."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import _sticky, _table, assignors, transactions
from benchmarks import _wire as wire
from benchmarks._brokers import choose_contenders
from benchmarks._clients import enqueue
from benchmarks._connection import Connection, WrongAnswerError, must
from benchmarks._load import RING, Stream, numbered, percentile
from benchmarks._log_rows import PARTS
from benchmarks._rows import FRESH, IDLE, ROWS, Metric, Part
from benchmarks.coordinator import NAMES, parse
from kohort.testing import running_broker

pytestmark = pytest.mark.slow(1)

ROOT = Path(__file__).resolve().parent.parent
TINY = {
    "--rounds": "1",
    "--warm": "0",
    "--seconds": "0.05",
    "--requests": "40",
    "--groups": "3",
    "--changes": "1",
    "--most-members": "12",
    "--idle-groups": "80",
    "--rest-s": "0.1",
}


@pytest.fixture(scope="module")
def figures() -> dict[str, list[dict[str, float]]]:
    """Every row, run against a kohort of the benchmark's own."""
    options = [word for option in TINY.items() for word in option]
    command = [sys.executable, "-m", "benchmarks.coordinator", *options, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    measured: dict[str, list[dict[str, float]]] = json.loads(done.stdout)["figures"]["kohort"]
    return measured


@pytest.mark.parametrize("part", [FRESH, *ROWS, IDLE], ids=lambda part: part.name)
def test_each_row_measures_what_its_lines_show(
    figures: dict[str, list[dict[str, float]]], part: Part
) -> None:
    (only,) = figures[part.name]
    assert all(only[metric.key] > 0 for metric in part.metrics)


@pytest.mark.parametrize(("option", "face"), [("--tls", "kohort, TLS"), ("--guards", "kohort, guarded")])
def test_a_row_runs_over_tls_and_behind_rules_and_quotas(option: str, face: str) -> None:
    options = [word for pair in TINY.items() for word in pair]
    command = [
        sys.executable,
        "-m",
        "benchmarks.coordinator",
        option,
        *options,
        "--only",
        "commits",
        "--json",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)["figures"]
    assert set(measured) == {"kohort", face}
    assert all(only["commits"] > 0 for rows in measured.values() for only in rows["commits"])


def test_rows_that_need_a_broker_of_their_own_are_not_run_on_a_given_one() -> None:
    wanted = parse(["--bootstrap", "127.0.0.1:1"]).wanted
    assert set(NAMES) - set(wanted) == {"fresh", "idle_groups"}
    with pytest.raises(SystemExit):
        parse(["--bootstrap", "127.0.0.1:1", "--only", "idle_groups"])


@pytest.mark.parametrize(
    ("bootstrap", "compare", "names"),
    [
        (None, False, ["kohort"]),
        (None, True, ["Apache Kafka", "kohort"]),
        ("127.0.0.1:9092", True, ["127.0.0.1:9092"]),
    ],
)
def test_the_brokers_are_those_that_the_options_name(
    bootstrap: str | None, compare: bool, names: list[str]
) -> None:
    chosen = choose_contenders(Namespace(bootstrap=bootstrap, compare=compare))
    assert [each.name for each in chosen] == names


def test_one_more_broker_is_measured_beside_where_the_benchmark_needs_no_process_of_its_own() -> None:
    options = [word for pair in TINY.items() for word in pair]
    command = [sys.executable, "-m", "benchmarks.coordinator", *options, "--only", "fresh,commits"]
    with running_broker() as broker:
        command += ["--beside", f"other={broker.bootstrap}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    head, _, *lines = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.split("\n\n")[0].splitlines()
    )
    assert head == ["work", "unit", "other", "kohort", "ratio", "goal", ""]
    both = [line[0] for line in lines if line[2] != "-" and line[4]]
    assert both == [metric.title for row in ROWS if row.name == "commits" for metric in row.metrics]
    assert len(lines) == len(both) + len(FRESH.metrics)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--beside", "127.0.0.1:1"], "--beside takes NAME=HOST:PORT, not 127.0.0.1:1"),
        (["--beside", "a=h:1", "--tls"], "--beside goes with neither --tls nor --guards"),
        (["--beside", "a=h:1", "--guards"], "--beside goes with neither --tls nor --guards"),
    ],
)
def test_a_broker_beside_is_refused(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(words)
    assert why in capsys.readouterr().err


def heartbeat_answer(correlation_id: int, error: int = 0) -> bytes:
    return (
        b"\x00\x00\x00\x0c"
        + correlation_id.to_bytes(4, "big")
        + bytes(5)
        + error.to_bytes(2, "big")
        + b"\x00"
    )


@pytest.fixture
def server() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (heartbeat_answer(0) + heartbeat_answer(1, error=27), "is not as the checked one"),
        (heartbeat_answer(0) + heartbeat_answer(2), "is not as the checked one"),
        (b"", "closed the connection"),
    ],
    ids=["an error", "another's answer", "none"],
)
def test_a_stream_refuses(server: socket.socket, wrong: bytes, why: str) -> None:
    frames = numbered(wire.heartbeat(b"group", 1, b"member"), RING, wire.REQUEST_ID_AT)
    with server, Connection(f"127.0.0.1:{server.getsockname()[1]}") as connection:
        stream = Stream(connection, frames, heartbeat_answer(0))
        peer, _ = server.accept()
        with peer:
            stream.send(2)
            assert peer.recv(1 << 16) == frames[: 2 * stream.frame_size]
            peer.sendall(wrong)
        with pytest.raises(WrongAnswerError, match=why):
            stream.receive()


def test_a_stream_counts_whole_answers_around_its_ring(server: socket.socket) -> None:
    frames = numbered(wire.heartbeat(b"group", 1, b"member"), RING, wire.REQUEST_ID_AT)
    with server, Connection(f"127.0.0.1:{server.getsockname()[1]}") as connection:
        stream = Stream(connection, frames, heartbeat_answer(0))
        peer, _ = server.accept()
        with peer:
            stream.received = (RING - 1) * stream.answer_size
            peer.sendall(heartbeat_answer(RING - 1) + heartbeat_answer(0)[:7])
            assert stream.receive() == 1
            peer.sendall(heartbeat_answer(0)[7:])
            assert stream.receive() == 1


def test_an_error_is_named() -> None:
    with pytest.raises(WrongAnswerError, match="25 UNKNOWN_MEMBER_ID"):
        must("Heartbeat", 25)


class Producer:
    """One that has no room twice."""

    def __init__(self) -> None:
        self.polls = 0
        self.taken: list[tuple[object, ...]] = []

    def produce(self, *record: object, **fields: object) -> None:
        if self.polls < 2:
            raise BufferError("Local: Queue full")
        self.taken.append((*record, fields))

    def poll(self, _seconds: float) -> None:
        self.polls += 1


def test_a_record_waits_for_room_in_the_producer() -> None:
    producer = Producer()
    enqueue(producer, "topic", b"value", partition=3)
    assert producer.taken == [("topic", b"value", {"partition": 3})]


def test_percentiles_are_of_what_was_measured() -> None:
    assert percentile(range(100), 0.99) == 99
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0


def test_the_table_gives_the_median_of_the_rounds_ratios_and_judges_it() -> None:
    part = Part(
        "rates", (Metric("rate", "requests", "/s", 1.5, True), Metric("time", "a request", "µs", 1.0))
    )
    measured = {
        "peer": {"rates": [{"rate": rate, "time": 10.0} for rate in (100.0, 200.0, 100.0)]},
        "kohort": {
            "rates": [
                {"rate": rate, "time": time} for rate, time in [(150.0, 9.0), (320.0, 11.0), (140.0, 12.0)]
            ]
        },
    }
    lines = _table.table(measured, [part], "kohort", ["peer"]).splitlines()[2:]
    rates, times = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    assert rates == ["requests", "/s", "100", "150", "1.50", "≥ 1.5", "met"]
    assert times == ["a request", "µs", "10", "11", "1.10", "≤ 1", "missed"]


def test_a_further_peer_has_a_column_of_figures_and_one_of_ratios() -> None:
    part = Part("p", (Metric("k", "requests", "/s", 1.5, True),))
    measured: _table.Measured = {
        name: {"p": [{"k": rate}]} for name, rate in (("a", 100.0), ("b", 400.0), ("us", 200.0))
    }
    head, _, row = _table.table(measured, [part], "us", ["a", "b"]).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in (head, row)]
    assert cells[0] == ["work", "unit", "a", "b", "us", "ratio", "goal", "", "ratio to b"]
    assert cells[1] == ["requests", "/s", "100", "400", "200", "2.00", "≥ 1.5", "met", "0.50"]


def test_the_block_of_the_page_is_replaced_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "performance.md"
    page.write_text(_table.PAGE.read_text())
    monkeypatch.setattr(_table, "PAGE", page)
    _table.update_page("first", "coordinator")
    once = page.read_text()
    _table.update_page("second", "coordinator")
    assert page.read_text() == once.replace("\nfirst\n", "\nsecond\n")
    assert once.count("\nfirst\n") == 1


LOG_TINY = {
    "--rounds": "1",
    "--records": "300",
    "--groups": "800",
    "--loaded": "5000",
    "--reads": "1",
    "--gib": "0.01",
    "--lookups": "20",
    "--topics": "3",
}


@pytest.fixture(scope="module")
def log_figures() -> dict[str, list[dict[str, float]]]:
    options = [word for option in LOG_TINY.items() for word in option]
    command = [sys.executable, "-m", "benchmarks.log", *options, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    measured: dict[str, list[dict[str, float]]] = json.loads(done.stdout)["figures"]["kohort"]
    return measured


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_row_of_the_log_measures_what_its_lines_show(
    log_figures: dict[str, list[dict[str, float]]], part: Part
) -> None:
    (only,) = log_figures[part.name]
    assert all(metric.key in only for metric in part.metrics)
    assert all(only[metric.key] > 0 for metric in part.metrics if metric.key != "bytes")


def test_what_only_kohort_has_a_figure_for_is_judged_by_itself() -> None:
    part = Part("p", (Metric("k", "rate", "/s", 1_000_000, True, own=True),))
    measured: _table.Measured = {"them": {"p": []}, "us": {"p": [{"k": 2_000_000.0}]}}
    (row,) = _table.table(measured, [part], "us", ["them"]).splitlines()[2:]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["rate", "/s", "-", "2,000,000", "", "≥ 1,000,000", "met"]


def test_the_offsets_of_an_answer_are_read() -> None:
    row = b"\x00\x00\x00\x03" + (77).to_bytes(8, "big") + bytes(4) + b"\x01\x00\x00\x00"
    group = (
        wire.compact(b"g") + wire.array([wire.compact(b"t") + wire.array([row]) + b"\x00"]) + b"\x00\x10\x00"
    )
    answer = bytes(8) + b"\x00" + bytes(4) + wire.array([group]) + b"\x00"
    assert wire.fetched(answer) == {b"g": (16, [77])}


def test_the_assignors_are_measured_beside_kafka_python(monkeypatch: pytest.MonkeyPatch) -> None:
    case = _sticky.same("tiny", topics=3, partitions=7, members=4, goals=(1000, 0))
    monkeypatch.setattr(assignors, "java_classpath", lambda: None)
    results = assignors.measure([case], assignors.parse(["--compare", "--rounds", "1"]))
    took = results["tiny"]
    assert (took["kohort"].moves, took["kohort"].highest, took["kohort"].lowest) == (0, 7, 7)
    assert took["kafka-python"].highest == 7
    (row,) = assignors.table([case], results).splitlines()[2:]
    assert row.startswith("| 21 x 4 ")
    assert [cell.strip() for cell in row.split("|")][5:7] == ["≤ 1000 / 0 ms", "missed"]


def test_a_leaders_sync_group_is_read_as_it_was_written() -> None:
    synced = _sticky.sync_group(_sticky.mixed("mixed", topics=20, members=30, goals=(0, 0)), rounds=1)
    assert synced.mib * 2**20 > 1000 * 4
    assert min(synced.encode, synced.decode) > 0


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc"
)
def test_the_assignors_peak_memory_is_that_of_one_call() -> None:
    case = _sticky.same("medium", topics=100, partitions=100, members=50, goals=(0, 0))
    assert 0 < _sticky.peak_mib(case) < 100


def test_the_loops_benchmark_measures_each_arrangement() -> None:
    command = [sys.executable, "-m", "benchmarks.loops", "--rounds", "1", "--seconds", "0.1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=True)
    for name in ("one loop", "two, in threads", "two, in processes"):
        assert f"| {name} |" in done.stdout


@pytest.mark.slow(10)
def test_each_row_of_transactions_measures_what_its_lines_show() -> None:
    options = ["--rounds", "1", "--seconds", "0.2", "--records", "300", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.transactions", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    figures = json.loads(done.stdout)["figures"]["kohort"]
    for row in transactions.ROWS:
        (only,) = figures[row.name]
        assert all(only[metric.key] > 0 for metric in row.metrics)
