"""The pages about web frameworks and CI: their programs run as they stand there, but for the address."""

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from kohort.testing import RunningBroker

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


@contextmanager
def _command(project: Path) -> Iterator[subprocess.Popen[str]]:
    """The page's management command, ended by SIGTERM."""
    process = subprocess.Popen([sys.executable, "manage.py", "bill_orders"], cwd=project, text=True)
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
        with _command(tmp_path) as process:
            for _ in range(1_000):
                if len(billed()) >= len(wanted) or process.poll() is not None:
                    break
                time.sleep(0.05)
        assert sorted(billed()) == sorted(wanted)


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
