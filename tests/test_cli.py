"""``kohort``, as a user runs it: a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

import kohort
from kohort import cli
from kohort.broker import Broker
from kohort.cli import main
from kohort.protocol import ApiKey, ErrorCode, KafkaError, implementation
from tests.broker.wire import Wire, create_topic, part

PATIENCE_S = 20
LISTENERS = "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"
#: What takes long to import, and no help needs.
SLOW = (
    "kohort.client.cluster",
    "kohort.broker",
    "kohort.consumer",
    "kohort.offsets_topic",
    "pydantic",
    "rich",
)


@contextmanager
def running(
    *arguments: str, command: str = "broker", stdout: int | IO[str] = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "kohort", command, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str]) -> int:
    """Wait for the ready line; the port."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("kohort broker ready on 127.0.0.1:"), line
    return int(line.rsplit(":", 1)[1])


def wait_until_it_catches(number: signal.Signals, process: subprocess.Popen[bytes]) -> None:
    """As a broker does from the moment before it tells that it is ready."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = re.search(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
        if caught is not None and int(caught[1], 16) >> (number - 1) & 1:
            return
        assert process.poll() is None, "it has ended"
        assert time.monotonic() < deadline, "it does not start"
        time.sleep(0.05)


def ends(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end; exit code and standard error."""
    _, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, errors


@pytest.mark.parametrize("command", ["groups", "topics", "run", "users", "serve-check", "ui", "top", "spark"])
def test_the_help_of_a_command_loads_no_client_and_no_broker(command: str) -> None:
    script = (
        "import sys\nfrom kohort.cli import main\n"
        f"try:\n    main([{command!r}, '--help'])\nexcept SystemExit:\n    pass\n"
        f"print('loaded:', [name for name in {SLOW!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("loaded: []\n")


@pytest.mark.parametrize("command", ["broker", "groups", "users"])
def test_ctrl_c_while_a_command_is_being_loaded_is_no_traceback(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run_broker", interrupted)
    monkeypatch.setattr(cli, "import_module", interrupted)
    words = {"users": ["list", "--data", "x"], "groups": ["list"], "broker": ["--port", "0"]}[command]
    assert main([command, *words]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_says_when_it_serves_and_ends_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    with running("--port", "0", "--data", str(tmp_path)) as process:
        with socket.create_connection(("127.0.0.1", ready(process)), timeout=PATIENCE_S) as client:
            client.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))
            assert client.recv(4096)[4:10] == struct.pack(">ih", 7, 0)
        process.send_signal(number)
        code, errors = ends(process)
    assert (code, errors) == (0, "")
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_with_several_listeners_it_says_all_of_them() -> None:
    with running("--set", "listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0", "--set", LISTENERS) as one:
        assert one.stdout is not None
        line = one.stdout.readline()
        found = re.fullmatch(
            r"kohort broker ready on 127\.0\.0\.1:(\d+) \(INSIDE\), 127\.0\.0\.1:(\d+) \(OUTSIDE\)\n", line
        )
        assert found is not None, line
        for port in found.groups():
            with Wire(f"127.0.0.1:{port}") as wire:
                assert wire.call(ApiKey.METADATA, 8, topics=[]).brokers[0].port == int(port)


def test_a_terminal_that_is_closed_is_a_clean_stop(tmp_path: Path) -> None:
    arguments = ("-m", "kohort", "broker", "--port", "0", "--data", str(tmp_path))
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, (sys.executable, *arguments))
    try:
        said = b""
        while b"ready on" not in said:
            said += os.read(terminal, 1_000)
        os.close(terminal)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_terminal_that_is_gone_before_the_broker_is_ready_is_no_error(tmp_path: Path) -> None:
    """Without a hang-up, as in a session of its own, it serves on."""
    command = [sys.executable, "-m", "kohort", "broker", "--port", "0", "--data", str(tmp_path)]
    master, terminal = pty.openpty()
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    ) as process:
        os.close(terminal)
        os.close(master)
        try:
            wait_until_it_catches(signal.SIGTERM, process)
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_ready_line_that_cannot_be_written_ends_the_broker_with_the_reason(tmp_path: Path) -> None:
    with (
        Path("/dev/full").open("w") as full,
        running("--port", "0", "--data", str(tmp_path), stdout=full) as one,
    ):
        assert ends(one) == (2, "kohort broker: standard output: No space left on device\n")
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_under_nohup_it_outlives_the_terminal(tmp_path: Path) -> None:
    command = ["nohup", sys.executable, "-m", "kohort", "broker", "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            port = ready(process)
            process.send_signal(signal.SIGHUP)
            with Wire(f"127.0.0.1:{port}") as wire:
                assert create_topic(wire, "orders").error_code == 0
            process.terminate()
            assert ends(process)[0] == 0
        finally:
            process.kill()


def test_a_temporary_folder_is_said_and_removed() -> None:
    with running("--port", "0") as process:
        ready(process)
        process.terminate()
        code, errors = ends(process)
    assert code == 0
    (line,) = errors.splitlines()
    assert line.startswith("kohort broker: data in ")
    assert line.endswith(", removed at the end")
    folder = Path(line.removeprefix("kohort broker: data in ").removesuffix(", removed at the end"))
    assert folder.name.startswith("kohort-")
    assert not folder.exists()


def test_a_stop_that_cannot_write_the_last_records_is_a_failure_and_not_wrong_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def full(*_: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left on device")

    monkeypatch.setattr("kohort.cli._serve_broker", full)
    assert main(["broker", "--port", "0", "--data", str(tmp_path)]) == 1
    assert "no space left on device" in capsys.readouterr().err


def test_a_signal_right_after_the_ready_line_is_a_clean_stop(tmp_path: Path) -> None:
    for _ in range(3):
        with running("--port", "0", "--data", str(tmp_path)) as process:
            ready(process)
            process.terminate()
            assert ends(process)[0] == 0


def test_a_data_folder_in_use_is_refused_in_one_line(tmp_path: Path) -> None:
    with running("--port", "0", "--data", str(tmp_path)) as first:
        ready(first)
        with running("--port", "0", "--data", str(tmp_path)) as second:
            code, errors = ends(second)
    assert code == 2
    (line,) = errors.splitlines()
    assert line.startswith(f"kohort broker: {tmp_path} is in use")


def test_a_port_that_is_taken_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with running("--port", str(port), "--data", str(tmp_path)) as process:
            code, errors = ends(process)
    assert code == 2
    (line,) = errors.splitlines()
    assert "Address already in use" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["broker", "--set", "group.max.sise=3"],
            "group.max.sise is no setting: did you mean group.max.size?",
        ),
        (
            ["broker", "--set", "num.partitions=none"],
            "num.partitions=none is not allowed: it must be a whole number",
        ),
        (["broker", "--set", "num.partitions"], "'num.partitions' is no setting: give KEY=VALUE"),
        (["broker", "--port", "99999"], "'99999' is no port: give a number from 0 to 65535"),
        (["broker", "--port", "http"], "'http' is no port"),
        (["broker", "--log-level", "loud"], "--log-level"),
        (["broker", "--log-format", "xml"], "--log-format"),
        (["broker", "--no-such-option"], "--no-such-option"),
        (["groups", "list", "--state", "Foo"], "'Foo' is no state of a group: give PreparingRebalance, "),
        (["groups", "list", "--type", "old"], "'old' is no type of a group: give classic, consumer"),
        (["groups", "list", "--bootstrap", "http://localhost"], 'write "host:port" alone, without http://'),
        (["top", "localhost:9999", "--interval", "often"], "'often': give seconds, 0.1 to 3,600"),
    ],
)
def test_wrong_use_is_said_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(arguments)
    except SystemExit as left:
        code = left.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    (line,) = captured.err.splitlines()
    assert line.startswith("kohort")
    assert said in line


def test_events_are_logged_as_json_when_asked(tmp_path: Path) -> None:
    arguments = [
        "--data",
        str(tmp_path),
        "--log-format",
        "json",
        "--set",
        "group.initial.rebalance.delay.ms=0",
    ]
    with running("--port", "0", *arguments) as process:
        with Wire(f"127.0.0.1:{ready(process)}") as wire:
            protocol = part(ApiKey.JOIN_GROUP, 3, "JoinGroupRequestProtocol", name="range", metadata=b"")
            joined = wire.call(
                ApiKey.JOIN_GROUP,
                3,
                group_id="g\n",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id="",
                protocol_type="consumer",
                protocols=[protocol],
            )
            assert joined.error_code == 0
        process.terminate()
        code, errors = ends(process)
    assert code == 0
    (line,) = errors.splitlines()
    found = json.loads(line)
    assert (found["event"], found["level"], found["group"]) == ("RebalanceStarted", "info", "g\n")


def test_settings_reach_the_broker(tmp_path: Path) -> None:
    arguments = ["--set", "num.partitions=7", "--set", "auto.create.topics.enable=false"]
    with (
        running("--port", "0", "--data", str(tmp_path), *arguments) as process,
        Wire(f"127.0.0.1:{ready(process)}") as wire,
    ):
        assert create_topic(wire, "orders", -1).num_partitions == 7


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"kohort {kohort.__version__} ({implementation()})\n"
    assert main([]) == 0
    assert "broker" in capsys.readouterr().out


def test_nothing_heavy_is_loaded_before_a_command_runs() -> None:
    code = "import sys, kohort.cli; sys.exit('asyncio' in sys.modules or 'kohort.broker' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["topics", "--help"], ["assignors", "list"], []]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_goes_nowhere_is_told_in_a_line_or_not_at_all(words: list[str], unbuffered: str) -> None:
    command = [sys.executable, "-m", "kohort", *words]
    around = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=around, check=False
        )
    if done.returncode:  # argparse drops the error of help that is not buffered
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.endswith("standard output: No space left on device")
    else:
        assert (unbuffered, done.stderr) == ("1", "")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=around) as closed:
        assert closed.stdout is not None
        assert closed.stderr is not None
        closed.stdout.close()
        assert (closed.wait(PATIENCE_S), closed.stderr.read()) == (0, b"")


def test_a_metrics_port_without_prometheus_client_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "prometheus_client" else find(name)
    )
    assert main(["broker", "--port", "0", "--metrics-port", "0"]) == 2
    assert "pip install 'kohort[service]'" in capsys.readouterr().err


def test_a_start_whose_session_with_zookeeper_ends_is_worth_another(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def start(_: Broker) -> None:
        raise ConnectionError("no answer from ZooKeeper")

    monkeypatch.setattr(Broker, "start", start)
    assert main(["broker", "--port", "0"]) == 1
    told = "the cluster's metadata are out of reach, start it again: no answer from ZooKeeper"
    assert capsys.readouterr().err == f"kohort broker: {told}\n"


@pytest.mark.parametrize(
    ("words", "said", "program"),
    [
        (["topic", "list"], "argument COMMAND: invalid choice: 'topic', did you mean topics?", "kohort"),
        (["groups", "lst"], "argument ACTION: invalid choice: 'lst', did you mean list?", "kohort groups"),
        (["--prot"], "unrecognized arguments: --prot, did you mean kohort broker --port?", "kohort"),
        (
            ["topics", "list", "--protocol"],
            "unrecognized arguments: --protocol, did you mean --security-protocol?",
            "kohort topics list",
        ),
        (
            ["topics", "records", "delete"],
            "argument ACTION: invalid choice: 'records', did you mean delete-records?",
            "kohort topics",
        ),
        (
            ["groups", "offsets"],
            "argument ACTION: invalid choice: 'offsets', did you mean reset-offsets or delete-offsets?",
            "kohort groups",
        ),
        (["--prot", "9"], "unrecognized arguments: --prot 9, did you mean kohort broker --port?", "kohort"),
        (["broker", "--prot=9"], "unrecognized arguments: --prot=9, did you mean --port?", "kohort broker"),
        (
            ["groups", "list", "--bootsrap", "x:1"],
            "unrecognized arguments: --bootsrap x:1, did you mean --bootstrap?",
            "kohort groups list",
        ),
    ],
)
def test_a_slip_of_the_pen_is_told_with_what_was_meant(
    words: list[str], said: str, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{program}: {said} (see {program} --help)\n"


def test_a_word_that_is_like_no_command_is_told_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["xyzzy"])
    said = capsys.readouterr().err
    assert "'broker', 'serve-check'" in said or "broker, serve-check" in said
    assert "did you mean" not in said


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["produce", "orders"], "kohort produce"),
        (["groups", "list"], "kohort groups list"),
        (["topics", "delete", "orders"], "kohort topics delete"),
    ],
)
def test_an_unknown_option_points_to_the_help_of_its_command(
    words: list[str], program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--nope"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{program}: unrecognized arguments: --nope (see {program} --help)\n"
