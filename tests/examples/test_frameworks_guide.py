"""Pages about frameworks, SQLAlchemy, work and CI: their programs run as they are, but for the address."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from kohort.testing import RunningBroker
from tests.ports import free_port

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


def _snippets(page: str, language: str = "python") -> dict[str, str]:
    """The page's named blocks of this language."""
    found = re.findall(rf"```{language}\n# (\S+)\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)
    return dict(found)


def _run(*command: str, cwd: Path) -> str:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _until(client: Any, path: str, wanted: Any) -> None:
    for _ in range(1_000):
        answer = client.get(path)
        if answer.json() == wanted:
            assert answer.status_code == 200
            return
        time.sleep(0.02)
    pytest.fail(f"{path} never answers {wanted}")


def test_a_service_lives_as_long_as_a_fastapi_application(
    kohort_broker: RunningBroker, tmp_path: Path
) -> None:
    testclient = pytest.importorskip("fastapi.testclient", reason="it comes with the extra 'dev'")
    kohort_broker.produce("orders", ["first", "last"])
    path = tmp_path / "in_fastapi.py"
    path.write_text(_snippets("in-fastapi.md")["in_fastapi"])
    application = _imported(path)
    application.service.reconfigure(bootstrap=kohort_broker.bootstrap)
    with testclient.TestClient(application.app) as client:
        _until(client, "/bills", ["first", "last"])
        _until(client, "/readyz", True)
        _until(client, "/healthz", "ok")
        # such as of a right that is withdrawn
        fault = kohort_broker.faults.error("join_group", "GROUP_AUTHORIZATION_FAILED", times=1)
        assert kohort_broker.force_rebalance("billing")
        for _ in range(1_000):
            if (answer := client.get("/healthz")).status_code == 503:
                break
            time.sleep(0.02)
        assert "does not allow this client to read in group" in answer.text
        assert client.get("/readyz").status_code == 503
        assert fault.hits == 1
        _until(client, "/readyz", True)
    assert application.service.complaint() == "the service does not run"
    assert kohort_broker.members("billing") == {}


@pytest.mark.slow(4)
def test_a_fastapi_application_that_is_told_to_end_leaves_the_group(
    kohort_broker: RunningBroker, tmp_path: Path
) -> None:
    pytest.importorskip("fastapi", reason="it comes with the extra 'dev'")
    pytest.importorskip("uvicorn", reason="it comes with the extra 'ui'")
    code = _snippets("in-fastapi.md")["in_fastapi"].replace("localhost:9092", kohort_broker.bootstrap)
    (tmp_path / "in_fastapi.py").write_text(code)
    port = free_port()
    served = [sys.executable, "-m", "uvicorn", "in_fastapi:app", "--port", str(port)]
    with subprocess.Popen(served, cwd=tmp_path) as process:
        try:
            for _ in range(1_000):
                # an error is refused, or 503
                with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60):
                    break
                time.sleep(0.02)
            assert len(kohort_broker.members("billing")) == 1
            process.terminate()
            # uvicorn ends by the signal that has ended it
            assert process.wait(60) in (0, -signal.SIGTERM)
        finally:
            process.kill()
    assert kohort_broker.members("billing") == {}


@contextmanager
def _command(project: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A command that serves, ended by SIGTERM."""
    process = subprocess.Popen([sys.executable, *command], cwd=project, text=True)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()


@pytest.mark.slow(10)
def test_a_django_command_has_each_records_effect_once(kohort_broker: RunningBroker, tmp_path: Path) -> None:
    pytest.importorskip("django", reason="it comes with the extra 'dev'")
    snippets = _snippets("in-django.md")
    _run(sys.executable, "-m", "django", "startproject", "shop", str(tmp_path), cwd=tmp_path)
    _run(sys.executable, "manage.py", "startapp", "billing", cwd=tmp_path)
    settings = tmp_path / "shop" / "settings.py"
    settings.write_text(settings.read_text() + "\nINSTALLED_APPS += ['billing']\n")
    (tmp_path / "billing" / "models.py").write_text(snippets["django_models"])
    commands = tmp_path / "billing" / "management" / "commands"
    commands.mkdir(parents=True)
    command = snippets["django_command"].replace("localhost:9092", kohort_broker.bootstrap)
    (commands / "bill_orders.py").write_text(command)
    _run(sys.executable, "manage.py", "makemigrations", "billing", cwd=tmp_path)
    _run(sys.executable, "manage.py", "migrate", cwd=tmp_path)

    def billed() -> list[str]:
        with sqlite3.connect(tmp_path / "db.sqlite3", timeout=30) as database:
            return [order for (order,) in database.execute('SELECT "order" FROM billing_bill ORDER BY id')]

    wanted: list[str] = []
    for round_ in range(2):
        new = [f"{round_}-{number}" for number in range(10)]
        kohort_broker.produce("orders", new)
        wanted += new
        _serve_until(lambda: len(billed()), len(wanted), tmp_path, "manage.py", "bill_orders")
        assert sorted(billed()) == sorted(wanted)


def _serve_until(count: Callable[[], int], wanted: int, project: Path, *command: str) -> None:
    with _command(project, *command) as process:
        for _ in range(1_000):
            if count() >= wanted or process.poll() is not None:
                break
            time.sleep(0.05)


@pytest.mark.slow(8)
def test_a_flask_command_bills_once_what_its_views_have_written(
    kohort_broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flask", reason="it comes with the extra 'dev'")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in_flask.py"
    path.write_text(_snippets("in-flask.md")["in_flask"].replace("localhost:9092", kohort_broker.bootstrap))
    kohort_broker.create_topic("orders", 2)
    shop = _imported(path)
    client = shop.app.test_client()
    wanted: list[tuple[str, str]] = []
    try:
        for round_ in range(2):
            for number in range(10):
                amount = f"{round_}-{number}"
                assert client.post("/orders", data=amount).get_json()["offset"] >= 0
                wanted.append((amount, "EUR"))
            _serve_until(
                lambda: len(_rows(tmp_path, "SELECT * FROM bills")),
                len(wanted),
                tmp_path,
                *("-m", "flask", "--app", "in_flask", "bill-orders"),
            )
            assert sorted(_rows(tmp_path, "SELECT * FROM bills")) == sorted(wanted)
        # what cannot be billed, and has no dead-letter topic to go to, ends the process for all to see
        client.post("/orders", data=b"\xff")
        with pytest.raises(AssertionError, match="UnicodeDecodeError"):
            _run(sys.executable, "-m", "flask", "--app", "in_flask", "bill-orders", cwd=tmp_path)
    finally:
        shop.producer().close()


def _rows(folder: Path, query: str) -> list[Any]:
    """Rows of a database that may not have its table yet."""
    database = sqlite3.connect(folder / "shop.db", timeout=30)
    with closing(database), suppress(sqlite3.OperationalError):
        return list(database.execute(query))
    return []


@pytest.mark.slow(6)
def test_a_session_of_sqlalchemy_has_each_records_effect_once_also_after_a_kill(
    kohort_broker: RunningBroker, tmp_path: Path
) -> None:
    pytest.importorskip("sqlalchemy", reason="it comes with the extra 'dev'")
    code = _snippets("in-sqlalchemy.md")["in_sqlalchemy"]
    (tmp_path / "in_sqlalchemy.py").write_text(code.replace("localhost:9092", kohort_broker.bootstrap))
    names = ["ann", "bob", "eve"]
    kohort_broker.create_topic("orders.dlt", 1)

    def counted() -> int:
        return sum(orders for (orders,) in _rows(tmp_path, "SELECT orders FROM customers"))

    kohort_broker.produce("orders", [f'{{"customer": "{name}"}}' for name in names * 100])
    with subprocess.Popen([sys.executable, "in_sqlalchemy.py"], cwd=tmp_path) as process:
        while not counted() and process.poll() is None:
            time.sleep(0.005)
        process.kill()
    kohort_broker.produce("orders", ["{", '{"customer": "ann"}'])
    _serve_until(counted, 301, tmp_path, "in_sqlalchemy.py")
    found = _rows(tmp_path, "SELECT name, orders FROM customers ORDER BY name")
    assert found == [("ann", 101), ("bob", 100), ("eve", 100)]
    assert len(kohort_broker.read("orders.dlt")) == 1


@pytest.mark.slow(6)
def test_async_sessions_of_sqlalchemy_keep_each_record_once_also_when_it_is_read_again(
    kohort_broker: RunningBroker, tmp_path: Path
) -> None:
    pytest.importorskip("aiosqlite", reason="it comes with the extra 'dev'")
    pytest.importorskip("greenlet", reason="it comes with the extra 'dev'")
    code = _snippets("in-sqlalchemy.md")["async_sessions"].replace("localhost:9092", kohort_broker.bootstrap)
    wanted: list[str] = []
    # the second group reads what the first has written, and a record after it
    for group, names in (("billing", ["ann", "bob", "eve"] * 10), ("billing-again", ["joe"])):
        kohort_broker.produce("orders", names)
        wanted += names
        (tmp_path / "async_sessions.py").write_text(code.replace('"billing"', f'"{group}"'))
        _serve_until(
            lambda: len(_rows(tmp_path, "SELECT * FROM bills")), len(wanted), tmp_path, "async_sessions.py"
        )
    assert sorted(customer for _, customer in _rows(tmp_path, "SELECT * FROM bills")) == sorted(wanted)


@pytest.mark.slow(10)
def test_workers_do_the_work_that_is_asked_for_and_its_dead_letters_come_again(
    kohort_broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "background-work.md"
    monkeypatch.setenv("KOHORT_BOOTSTRAP", kohort_broker.bootstrap)
    for name, code in _snippets(page).items():
        (tmp_path / f"{name}.py").write_text(code.replace("localhost:9092", kohort_broker.bootstrap))
    create, configure, run = _commands(page, "run")
    describe, list_, replay = _commands(page, "look")
    _run(*create, cwd=tmp_path)
    _run(*configure, cwd=tmp_path)
    _run(sys.executable, "ask.py", cwd=tmp_path)
    # two workers print at once: unbuffered, the words of their lines would mix
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with subprocess.Popen(run, cwd=tmp_path, text=True, stdout=subprocess.PIPE) as workers:
        try:
            assert workers.stdout is not None
            sent = {workers.stdout.readline() for _ in range(2)}
            assert sent == {"sent to ann@example.org\n", "sent to eve@example.org\n"}
            for count in (1, 2):
                for _ in range(1_000):
                    if len(kohort_broker.read("mails.dlt")) == count:
                        break
                    time.sleep(0.02)
                letters = [letter.value for letter in kohort_broker.read("mails.dlt")]
                assert letters == [b'{"to":"nobody","text":"Good morning"}'] * count
                if count == 1:
                    _run(*replay, cwd=tmp_path)
            assert "mails" in _run(*describe, cwd=tmp_path)
            assert "builtins.ValueError  2" in _run(*list_, cwd=tmp_path)
            workers.terminate()
            assert workers.wait(60) == 0
        finally:
            workers.kill()


def _commands(page: str, name: str) -> list[list[str]]:
    """The words of the commands of a block."""
    lines = (shlex.split(line) for line in _snippets(page, "sh")[name].splitlines())
    return [[sys.executable, "-u", "-m", *words] for words in lines]


@pytest.mark.slow(4)
def test_the_command_of_the_ci_job_runs_the_tests_of_its_page(tmp_path: Path) -> None:
    page = "tests-in-ci.md"
    (job,) = yaml.safe_load(_snippets(page, "yaml")[".github/workflows/tests.yml"])["jobs"].values()
    install, test = [step["run"] for step in job["steps"] if "run" in step]
    assert "pip install" in install
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_in_ci.py").write_text(_snippets(page)["test_in_ci"])
    words = [sys.executable if word == "python" else word for word in shlex.split(test)]
    assert os.path.basename(words[0]).startswith("python")
    assert "3 passed" in _run(*words, cwd=tmp_path)
