"""``kohort run``: what it runs, what it refuses, and a whole life with workers on a broker."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kohort.cli import main
from kohort.service import ConsumerService, Services
from kohort.service._command import load_service
from tests.clients.members import Group

APP = """
import os
from kohort.service import ConsumerService

number = 7
service = ConsumerService(
    bootstrap={bootstrap!r}, group={group!r}, auto_offset_reset="earliest", heartbeat_interval_ms=200,
    session_timeout_ms=60_000, drain_timeout_ms=2000,
)

@service.handler({topic!r})
async def handle(record):
    with open("handled", "a") as file:
        file.write(record.value.decode() + " " + str(os.getpid()) + "\\n")
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"app_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(APP.format(bootstrap="localhost:1", group="billing", topic="orders"))
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_the_service_is_found(app: str) -> None:
    service = load_service(f"{app}:service")
    assert isinstance(service, ConsumerService)
    assert service.group == "billing"


def test_several_services_are_found_as_one(app: str) -> None:
    module = importlib.import_module(app)
    module.both = Services(module.service)  # type: ignore[attr-defined]
    assert load_service(f"{app}:both") is module.both


def test_a_module_that_runs_the_service_itself_is_refused(
    app: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / f"{app}.py").open("a") as module:
        module.write("\nservice.run()\n")
    assert main(["run", f"{app}:service"]) == 2
    assert "runs the service while it is imported" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("app", "is no MODULE:SERVICE"),
        ("no_such_module:service", "there is no module 'no_such_module'"),
        ("{app}:nothing", "has no such name"),
        ("{app}:number", "is a int; it must be a ConsumerService or Services"),
    ],
)
def test_a_wrong_target_is_one_line_and_exit_code_2(
    app: str, target: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", target.format(app=app)]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


LIFESPAN = """

from collections.abc import AsyncIterator

@service.lifespan
async def database() -> AsyncIterator[None]:
    int("not a number")
    yield
"""


def test_an_error_of_a_lifespan_is_no_wrong_use_and_shows_its_line(
    app: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (tmp_path / f"{app}.py").open("a") as file:
        file.write(LIFESPAN)
    assert main(["run", f"{app}:service"]) == 1
    assert 'int("not a number")' in caplog.text
    assert f"{app}.py" in caplog.text


def test_an_error_of_the_module_is_no_wrong_use_and_shows_its_line(
    app: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / f"{app}.py").write_text("number = int('not a number')\n")
    assert main(["run", f"{app}:service"]) == 1
    error = capfd.readouterr().err
    assert f'{app}.py", line 1' in error
    assert "ValueError: invalid literal" in error


@pytest.mark.parametrize(
    "wrong",
    [
        "ConsumerService(bootstrap='localhost:1', group='billing', session_timeout=5)",
        "ConsumerService(bootstrap='localhost:1', group='billing')",
    ],
)
def test_a_wrong_configuration_is_one_line_and_exit_code_2(
    app: str, tmp_path: Path, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"from kohort.service import ConsumerService\nservice = {wrong}\n"
    (tmp_path / f"{app}.py").write_text(text)
    assert main(["run", f"{app}:service"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("bootstrap.servers=b:port", "'b:port'"),
        ("fetch.min.bytes=1", "bootstrap is missing: give it, or set KOHORT_BOOTSTRAP"),
    ],
)
def test_a_file_has_what_the_service_leaves_open(
    app: str,
    file: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KOHORT_CONFIG", "/nowhere")
    text = "from kohort.service import ConsumerService\nservice = ConsumerService(group='billing')\n"
    (tmp_path / f"{app}.py").write_text(text)
    (tmp_path / "client.properties").write_text(file)
    assert main(["run", f"{app}:service", "--config", str(tmp_path / "client.properties")]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "client.properties" in said


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--workers", "0"], "is no number of workers"),
        (["--workers", "many"], "is no number of workers"),
    ],
)
def test_wrong_options_are_refused(words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["run", "app:service", *words])
    assert stopped.value.code == 2
    assert text in capsys.readouterr().err


def test_instance_ids_are_for_workers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "app:service", "--instance-id", "billing"]) == 2
    assert "--instance-id is for --workers" in capsys.readouterr().err


@contextmanager
def _command(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "err").open("wb") as err:
        process = subprocess.Popen([sys.executable, "-m", "kohort", "run", *words], cwd=folder, stderr=err)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _until(holds: Callable[[], bool], what: str, folder: Path) -> None:
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline, f"{what}: {(folder / 'err').read_text()[-3000:]}"
        time.sleep(0.05)


@pytest.mark.slow(4)
@pytest.mark.kafka
def test_static_workers_are_renewed_without_a_rebalance_and_end_with_code_0(
    tmp_path: Path,
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    produce: Callable[..., None],
) -> None:
    topic, name = new_topic("orders", partitions=4), group("billing")
    (tmp_path / "app.py").write_text(APP.format(bootstrap=bootstrap, group=name, topic=topic))
    watched = Group(bootstrap, name)
    words = ["app:service", "--workers", "2", "--instance-id", "billing"]

    def pids() -> set[str]:
        file = tmp_path / "handled"
        return {line.split()[1] for line in file.read_text().splitlines()} if file.exists() else set()

    def values() -> list[int]:
        return sorted(int(line.split()[0]) for line in (tmp_path / "handled").read_text().splitlines())

    def alike() -> bool:
        """Whether each has its two partitions: the first one has all four for a while."""
        group = watched.describe()
        return group.group_state == "Stable" and len({len(m.member_assignment) for m in group.members}) == 1

    with _command(tmp_path, *words) as process:
        _until(
            lambda: set(watched.members()) == {"billing-0", "billing-1"} and alike(),
            "both join",
            tmp_path,
        )
        produce(topic, range(40), partitions=4)
        _until(lambda: len(pids()) == 2 and len(values()) == 40, "both handle", tmp_path)
        first, generation = pids(), watched.generation()
        members = watched.members()

        process.send_signal(signal.SIGHUP)
        _until(
            lambda: not set(members.values()) & set(watched.members().values()), "both are renewed", tmp_path
        )
        produce(topic, range(40, 80), partitions=4)
        _until(lambda: len(pids() - first) == 2, "the new ones handle", tmp_path)
        _until(lambda: len(values()) >= 80, "all is handled", tmp_path)
        assert values() == list(range(80)), "each once: nothing is redone at a rolling restart"
        assert watched.generation() == generation, "no rebalance"

        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0, (tmp_path / "err").read_text()[-3000:]
    assert not any(_alive(int(pid)) for pid in pids())


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
