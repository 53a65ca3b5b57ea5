"""kohort users and kohort serve-check."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.metadata.live_settings import LiveSettings
from kohort.broker.quotas import QuotaEntity, QuotaKey, QuotaTable
from kohort.broker.settings import BrokerSettings
from kohort.cli import main
from kohort.cluster import FolderStore
from kohort.testing import running_broker
from tests.broker.security.certificates import Certificates
from tests.broker.security.logins import asks, log_in_scram
from tests.broker.wire import Wire


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``typed("secret")``: what stands on standard input."""

    def give(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text + "\n"))

    return give


def test_the_first_user_is_made_before_the_broker_starts(
    tmp_path: Path, typed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(tmp_path / "data")
    typed("gehe1m")
    assert main(["users", "add", "alice", "--data", data]) == 0
    typed("other")
    assert (
        main(["users", "add", "bob", "--data", data, "--mechanism", "SCRAM-SHA-512", "--iterations", "8192"])
        == 0
    )
    assert main(["users", "remove", "alice", "--data", data, "--mechanism", "SCRAM-SHA-512"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"kohort users: alice can log in by SCRAM-SHA-256, SCRAM-SHA-512 (written to {data})",
        f"kohort users: bob can log in by SCRAM-SHA-512 (written to {data})",
        f"kohort users: alice can no longer log in by SCRAM-SHA-512 (written to {data})",
    ]
    assert main(["users", "list", "--data", data]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "alice\tSCRAM-SHA-256\t4096 iterations",
        "bob\tSCRAM-SHA-512\t8192 iterations",
    ]
    given: dict[str, Any] = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}
    with running_broker(data=data, **given) as broker, Wire(broker.bootstrap) as wire:
        assert log_in_scram(wire, password="gehe1m").error_code == 0
        assert asks(wire)


def test_what_cannot_be_is_refused_in_one_line(
    tmp_path: Path, typed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(tmp_path)
    for words, advice in (
        (["remove", "nobody", "--data", data], "'nobody' has no credential"),
        (["add", "alice", "--data", data, "--iterations", "1"], "--iterations is 4096 to 16384"),
        (["add", "alice", "--data", data], "the password of alice is empty"),
        (["add", "alice", "--data", data, "--password-env", "NOT_SET"], "the variable NOT_SET is not set"),
        (["list", "--data", data, "--json"], "--json and --dry-run are for running brokers"),
        (["list", "--data", str(tmp_path / "nowhere")], "there is no folder"),
    ):
        typed("")
        assert main(["users", *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert advice in line
    with running_broker(data=data):
        assert main(["users", "list", "--data", data]) == 2
    assert "is in use" in capsys.readouterr().err


def test_a_clean_stop_stays_one(tmp_path: Path, typed: Any) -> None:
    with running_broker(data=tmp_path):
        pass
    marker = tmp_path / ".kafka_cleanshutdown"
    assert marker.exists()
    typed("x")
    assert main(["users", "add", "alice", "--data", str(tmp_path)]) == 0
    assert marker.exists()


def test_serve_check_says_what_is_open_to_whom(
    tmp_path: Path, certificates: Certificates, capsys: pytest.CaptureFixture[str]
) -> None:
    keystore = Path(certificates.server())
    keystore.chmod(0o644)
    file = tmp_path / "server.properties"
    file.write_text(
        "listeners=OUT://0.0.0.0:9093,IN://127.0.0.1:9092\n"
        "listener.security.protocol.map=OUT:SASL_SSL,IN:PLAINTEXT\n"
        f"ssl.keystore.location={keystore}\n"
        "kohort.scram.users=alice=gehe1m\n"
    )
    assert main(["serve-check", "--settings", str(file), "--strict"]) == 1
    said = capsys.readouterr().out
    for expected in (
        "listener OUT://0.0.0.0:9093",
        "let in        users, by SCRAM-SHA-256 (1 users), SCRAM-SHA-512 (1 users)",
        "let in        everyone, as User:ANONYMOUS",
        "every connected client may do everything",
        "OUT: it listens on every address",
        "chmod 600",
    ):
        assert expected in said
    assert "gehe1m" not in said
    keystore.chmod(0o600)
    better = ["advertised.listeners=OUT://kafka.example.org:9093,IN://127.0.0.1:9092", "max.connections=100"]
    words = [word for each in better for word in ("--set", each)]
    main(["serve-check", "--settings", str(file), *words])
    rest = capsys.readouterr().out.partition("warnings\n")[2].splitlines()
    assert [line.strip() for line in rest] == [
        "one address can take every connection: set max.connections.per.ip below max.connections"
    ]


@pytest.mark.parametrize(
    ("given", "reached", "warned"),
    [
        ([], "this machine", False),
        (["--host", "0.0.0.0"], "wherever its address is reached", True),
        (
            ["--set", "listeners=IN://:9092", "--set", "listener.security.protocol.map=IN:PLAINTEXT"],
            "this machine",
            False,
        ),
        (
            ["--set", "listeners=IN://10.1.2.3:9092", "--set", "listener.security.protocol.map=IN:PLAINTEXT"],
            "wherever its address is reached",
            True,
        ),
    ],
)
def test_serve_check_says_who_reaches_the_metrics(
    capsys: pytest.CaptureFixture[str], given: list[str], reached: str, warned: bool
) -> None:
    main(["serve-check", "--metrics-port", "9400", *given])
    said = capsys.readouterr().out
    assert (
        f"metrics at port 9400\n  reached from  {reached}\n  encrypted     no\n  let in        everyone; 64"
        in said
    )
    assert (
        "metrics: names of topics, users and clients are shown to anyone who reaches the port" in said
    ) is warned
    main(["serve-check"])
    assert "metrics at" not in capsys.readouterr().out


def test_serve_check_says_what_the_data_folder_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve-check", "--data", str(tmp_path)]
    assert main(words) == 0
    assert "not limited for clients that are not named here: producer_byte_rate" in capsys.readouterr().out
    user, everybody = QuotaEntity((("user", "alice"),)), QuotaEntity((("user", None),))
    table = QuotaTable()
    table.change(user, {QuotaKey.REQUEST_PERCENTAGE: 5.0})
    table.change(everybody, dict.fromkeys(QuotaKey, 1e6))
    store = FolderStore(tmp_path)
    store.document("client-quotas").save_now(table.to_stored())
    live = LiveSettings(BrokerSettings(), store.document("settings"))
    asyncio.run(live.set(for_all=False, values=live.check({"max.connections": "77"})))
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "user=alice: request_percentage=5" in said
    assert "user=<default>: producer_byte_rate=1,000,000" in said
    assert "not limited for clients" not in said
    assert "connections          77; one more waits" in said


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        (["listeners=PLAINTEXT://:9092"], "nobody has to prove who they are"),
        (
            [
                "super.users=User:ANONYMOUS",
                "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            ],
            "User:ANONYMOUS is a super user",
        ),
        (["listeners=SASL_PLAINTEXT://127.0.0.1:0"], "SCRAM-SHA-256 has no users"),
        (
            [
                "listeners=SASL_PLAINTEXT://127.0.0.1:0",
                "sasl.enabled.mechanisms=PLAIN",
                "kohort.sasl.plain.without.tls=SASL_PLAINTEXT",
            ],
            "PLAIN sends passwords in the clear here",
        ),
        (
            [
                "listeners=SASL_PLAINTEXT://127.0.0.1:0",
                "sasl.enabled.mechanisms=OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url=http://h/keys",
            ],
            "keys are fetched without TLS",
        ),
        (["connections.max.idle.ms=-1"], "kept for ever"),
        (["queued.max.request.bytes=1000"], "one request can hold up all others"),
    ],
    ids=["open", "anonymous super user", "no users", "plain", "tokens", "idle", "queue"],
)
def test_serve_check_warns(capsys: pytest.CaptureFixture[str], given: list[str], warning: str) -> None:
    assert main(["serve-check", *(word for each in given for word in ("--set", each))]) == 0
    assert warning in capsys.readouterr().out.partition("\nwarnings\n")[2]


def test_serve_check_finds_no_fault_with_a_broker_of_this_machine_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.broker.security._check._open_files", lambda: 100_000)
    assert main(["serve-check", "--strict"]) == 0
    assert capsys.readouterr().out.endswith("no warnings\n")


def test_serve_check_refuses_what_no_broker_could_start_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve-check", "--set", "listeners=SSL://:9093"]) == 2
    assert "it has no certificate: set ssl.keystore.location" in capsys.readouterr().err


def test_a_settings_file_is_the_brokers_too_and_gives_way_to_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://127.0.0.1:0\n")
    assert main(["broker", "--settings", str(file), "--port", "1"]) == 2
    assert "give listeners, or --host and --port: not both" in capsys.readouterr().err
    file.write_text("nonsense=1\n")
    assert main(["broker", "--settings", str(file)]) == 2
    assert "nonsense is no setting" in capsys.readouterr().err
    assert main(["broker", "--settings", str(tmp_path / "none")]) == 2
