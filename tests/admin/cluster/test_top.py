"""``kohort top``: what is shown of two looks, and of a broker that runs."""

from __future__ import annotations

import argparse
import socket
import threading
from collections.abc import Iterator

import pytest

from kohort.admin.cluster.top import add_arguments, escape_text, look_at, rows_of
from kohort.cli import main

FIRST = """
kafka_network_requestmetrics_requests_total{request="Fetch"} 100
kafka_network_requestmetrics_requests_total{request="Produce"} 100
kafka_server_brokertopicmetrics_bytesin_total{topic="a"} 0
kafka_server_brokertopicmetrics_bytesin_total{topic="b"} 0
kohort_client_requests_total{user="ANONYMOUS",client_id="x"} 1000
kohort_group_rebalances_total{cause="join"} 1
"""
SECOND = """
kafka_network_requestmetrics_requests_total{request="Fetch"} 120
kafka_network_requestmetrics_requests_total{request="Produce"} 50100
kafka_network_requestmetrics_errors_total{request="Produce",error="NOT_LEADER_OR_FOLLOWER"} 20
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} 4.5
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.5"} 1.5
kafka_server_brokertopicmetrics_bytesin_total{topic="a"} 10
kafka_server_brokertopicmetrics_bytesin_total{topic="b"} 2000
kafka_coordinator_group_groupmetadatamanager_numgroups 3
kafka_coordinator_group_groupmetadatamanager_numgroupsstable 2
kohort_groups{type="classic",state="Stable"} 1
kohort_groups{type="consumer",state="Stable"} 1
kohort_groups{type="consumer",state="Assigning"} 1
kohort_groups{type="consumer",state="Reconciling"} 0
kohort_client_requests_total{user="ANONYMOUS",client_id="x"} 30
kohort_group_rebalances_total{cause="join"} 5
"""


def tables(first: str = FIRST, second: str = SECOND, limit: int = 10) -> dict[str, list[list[str]]]:
    shown = rows_of(look_at(first, 10.0), look_at(second, 20.0), limit)
    return {title: rows for title, _, rows in shown.tables}


def test_rates_are_what_was_between_two_looks_the_busiest_first() -> None:
    assert tables()["APIs"] == [["Produce", "5,000.0", "2.0", "4.50", ""], ["Fetch", "2.0", "0.0", "", ""]]
    assert [row[0] for row in tables()["Topics"]] == ["b", "a"]
    assert [row[0] for row in tables(limit=1)["Topics"]] == ["b"]


def test_groups_are_shown_by_state_and_rebalances_by_cause() -> None:
    states = [["assigning", "1", ""], ["stable", "2", ""]]
    assert tables()["Groups"] == [*states, ["rebalances: join", "5", "0.4"]]


def test_a_broker_that_was_started_anew_has_no_negative_rates() -> None:
    assert tables()["Clients"] == [["ANONYMOUS x", "0", "3.0", "0.0", "0.0"]]


def test_what_is_no_metrics_of_a_broker_is_refused() -> None:
    with pytest.raises(ValueError, match="no metrics of a broker"):
        look_at("python_info 1\n", 0.0)


def test_names_steer_no_terminal() -> None:
    assert escape_text("a\x1b[2Jb") == "a\\x1b[2Jb"


@pytest.fixture
def metrics_address() -> Iterator[str]:
    """The metrics of a broker of its own, in a thread."""
    import asyncio

    from kohort.broker import Broker

    started, stop = threading.Event(), threading.Event()
    found: list[str] = []

    async def serve() -> None:
        async with Broker(metrics_port=0) as broker:
            found.append(f"127.0.0.1:{broker.metrics_port}")
            started.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert started.wait(60)
        yield found[0]
    finally:
        stop.set()
        thread.join()


def test_one_look_is_printed(metrics_address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", metrics_address, "--once", "--interval", "0.1"]) == 0
    assert "requests/s" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["http://{}/metrics", "http://{}", "http://{}/", "{}/metrics"])
def test_an_address_may_be_a_url(metrics_address: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", form.format(metrics_address), "--once", "--interval", "0.1"]) == 0
    assert "requests/s" in capsys.readouterr().out


def test_a_url_without_a_port_has_its_schemes() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args(["https://kafka.example/metrics"]).address == "https://kafka.example/metrics"


@pytest.mark.parametrize(
    "address",
    ["localhost", "ftp://localhost:1/metrics", "localhost:port", "local host:1", "http://", ":9400"],
)
def test_what_is_no_address_is_wrong_use(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["top", address, "--once"])
    assert ended.value.code == 2
    assert "give HOST:PORT or http://HOST:PORT/metrics" in capsys.readouterr().err


def test_a_name_that_cannot_be_resolved_is_not_blamed_on_the_broker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert main(["top", "nobody.invalid:9400", "--once"]) == 3
    assert capsys.readouterr().err == (
        "kohort top: no metrics at nobody.invalid:9400 (Name or service not known): check the name\n"
    )


def test_what_answers_and_is_no_broker_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as link:
                link.recv(4_096)
                link.sendall(b"HTTP/1.0 404 Not Found\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert main(["top", f"127.0.0.1:{server.getsockname()[1]}", "--once"]) == 3
        thread.join()
    assert "is it the --metrics-port of a broker that runs?" in capsys.readouterr().err


def test_a_broker_without_metrics_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "127.0.0.1:1", "--once"]) == 3, "as of every command that reaches nobody"
    assert "start the broker with --metrics-port" in capsys.readouterr().err
