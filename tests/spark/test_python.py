"""Python processes of a session take PySpark as it is installed, not from the zip file beside it.

Covers: spark/_daemon.py.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from kohort.spark import _python
from kohort.spark._python import workers_python, workers_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

HOME = Path(pyspark.__file__).parent
ZIP = HOME / "python" / "lib" / "pyspark.zip"


def started(*search_path: str) -> list[str]:
    """What Python says of itself: its program, the search path that it was given, and where PySpark is."""
    code = (
        "import os, sys, pyspark; print(sys.executable, os.environ['PYTHONPATH'], pyspark.__file__, sep='|')"
    )
    shown = subprocess.run(
        [workers_python(), "-c", code],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(search_path)),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return shown.strip().split("|")


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark counts as installed, wherever the tests have it from."""
    py4j = find_spec("py4j")
    assert py4j is not None
    assert py4j.origin is not None
    there = [str(HOME.parent), str(Path(py4j.origin).parents[1])]
    monkeypatch.setattr(_python, "_site_folders", lambda: there)


@pytest.mark.usefixtures("_installed")
def test_the_zip_file_is_left_out_and_all_else_stays(tmp_path: Path) -> None:
    mine = [str(tmp_path / name) for name in ("my own", "kohort.zip", "*")]
    assert ZIP.is_file()
    assert started(str(ZIP), str(HOME / "python" / "lib" / "py4j-0.0-src.zip"), *mine) == [
        sys.executable,
        os.pathsep.join(mine),
        pyspark.__file__,
    ]
    assert started(str(ZIP))[1:] == started(str(ZIP.resolve()))[1:] == ["", pyspark.__file__]


def test_arguments_arrive_as_they_are() -> None:
    given = ["a b", "$HOME", "*", ""]
    command = [workers_python(), "-c", "import sys; print(sys.argv[1:])", *given]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == str(given)


def test_a_pyspark_that_is_found_by_a_search_path_alone_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "pyspark")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert workers_python() == sys.executable


@pytest.mark.pyspark("4.0")
@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        ("pyspark.worker", "kohort.spark._task"),
        ("pyspark.sql.worker.create_data_source", "kohort.spark._source"),
        ("pyspark.sql.worker.plan_data_source_read", "kohort.spark._readers"),
        ("pyspark.sql.worker.write_into_data_source", "kohort.spark._sink"),
        ("pyspark.sql.worker.commit_data_source_write", "kohort.spark._sink"),
        ("pyspark.sql.worker.python_streaming_sink_runner", "kohort.spark._sink_options"),
        ("pyspark.sql.worker.lookup_data_sources", "pyspark.sql.worker.lookup_data_sources"),
    ],
)
def test_a_daemon_has_loaded_what_its_processes_need_and_nothing_that_starts_threads(
    kind: str, needed: str
) -> None:
    code = (
        # what PySpark's own daemon has before it forks: numpy is among it in some versions
        "import sys, threading, pyspark.daemon, pyspark.sql.datasource; "
        "heavy = {'numpy', 'pandas', 'pyarrow', 'uvloop'}; own = heavy & sys.modules.keys(); "
        f"from kohort.spark._daemon import load; load({kind!r}); "
        f"print({needed!r} in sys.modules, threading.active_count(), heavy & sys.modules.keys() == own)"
    )
    shown = subprocess.run([workers_python(), "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "True 1 True"


@pytest.mark.pyspark("4.1")
def test_a_process_without_a_task_says_nothing_when_the_jvm_is_gone() -> None:
    code = """
import os, socket
os.environ["PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"] = "1"  # as Spark's default
from pyspark import daemon
from kohort.spark._daemon import without_parting_words

def work(sock, authenticated):
    try:
        return daemon.worker(sock, authenticated)
    except OSError as error:
        print(type(error).__name__)
        raise

ours, jvm = socket.socketpair()
jvm.close()
print(without_parting_words(work)(ours, True))
"""
    shown = subprocess.run([workers_python(), "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["BrokenPipeError", "1"], shown.stderr
    assert "Traceback" not in shown.stderr


def read_exactly(stream: Any) -> bytes:
    """What Spark reads: a length of four bytes, and so many bytes."""
    return bytes(stream.read(int.from_bytes(stream.read(4))))


@pytest.mark.pyspark("4.1")
@pytest.mark.usefixtures("_installed")
def test_a_process_that_looked_up_data_sources_says_nothing_when_the_jvm_is_gone() -> None:
    """Spark starts PySpark's own daemon for it, whatever its settings are."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # short enough for the name of a socket
        spark = {
            "PYTHON_UNIX_DOMAIN_ENABLED": "true",
            "PYTHON_WORKER_FACTORY_SOCK_DIR": folder,
            "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
        }
        with subprocess.Popen(
            [workers_python(), "-m", "pyspark.daemon", "pyspark.sql.worker.lookup_data_sources"],
            env=os.environ | spark,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as daemon:
            assert daemon.stdin is not None
            assert daemon.stderr is not None
            with socket.socket(socket.AF_UNIX) as jvm:
                jvm.connect(read_exactly(daemon.stdout))
                process = int.from_bytes(jvm.recv(4, socket.MSG_WAITALL))
                assert process > 0
            # the daemon's end would end it before it can say anything
            ended = os.pidfd_open(process)
            assert select.select([ended], [], [], 60)[0]
            os.close(ended)
            daemon.stdin.close()
            assert daemon.stderr.read() == b""


@pytest.mark.usefixtures("_installed")
def test_the_launcher_has_no_daemon_of_a_kohort_that_only_this_process_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "kohort.spark._daemon" in Path(workers_python()).read_text()
    monkeypatch.setattr(_python, "_found_by_others", lambda: False)
    assert "daemon" not in Path(workers_python()).read_text()


def test_a_kohort_that_only_this_process_finds_is_in_no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workers_settings() == {"spark.python.daemon.module": "kohort.spark._daemon"}
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(_python, "_site_folders", list)
    monkeypatch.setattr(sys, "meta_path", [])
    assert workers_settings() == {}


@pytest.mark.spark
def test_tasks_of_a_session_have_the_installed_pyspark_on_the_same_python(spark: SparkSession) -> None:
    def where(_: Any) -> Iterator[tuple[str, str, str]]:
        import sys

        import pyspark

        yield pyspark.__file__, sys.executable, sys.argv[0]

    ((home, python, daemon),) = spark.sparkContext.parallelize([0], 1).mapPartitions(where).collect()
    assert (home, python) == (pyspark.__file__, sys.executable)
    ours = find_spec("kohort.spark._daemon")
    assert ours is not None
    assert ours.origin is not None
    assert Path(daemon).samefile(ours.origin)


def test_a_process_collects_garbage_without_its_modules_from_its_second_task_on() -> None:
    code = """
import gc, socket
from kohort.spark._daemon import freeze_modules

class Ring:
    there = 0
    def __init__(self):
        self.itself = self
        Ring.there += 1
    def __del__(self):
        Ring.there -= 1

def work(sock, authenticated):
    Ring()
    return 0

run, ours = freeze_modules(work), socket.socket()
counts = []
for _ in range(3):
    assert run(ours, True) == 0
    gc.collect()
    counts.append((gc.get_freeze_count() > 1_000, len(gc.get_objects()) < 1_000, Ring.there))
print(counts)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str([(True, True, 0)] * 3)
