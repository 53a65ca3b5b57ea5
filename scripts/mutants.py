"""Mutation testing: makes thousands of small changes to the code and reports those that no test notices.

``make mutants`` tests whole rooms, which takes hours. ``make mutants MUTANTS_ARGS='--functions 30 --minutes
3'``, which CI uses, draws functions of one room and three in ten of their mutants, and stops after that time:
three mutants in ten of many functions say more about a room than all mutants of a few. A room is copied to
``build/mutants``, as package ``kohort`` beside its tests, and mutmut is run there. Survivors that
``tests/mutants.toml`` lists, with the reason why no test needs to notice them, are not counted. Exits 1 below
``--goal`` percent, unless too few mutants were tried.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "mutants"
LISTED = ROOT / "tests" / "mutants.toml"
#: Files and folders that tests read besides the code.
BESIDE = ("docs", "scripts", "examples", "README.md", "pyproject.toml", "Makefile")

#: Rooms, with the tests that should notice their mutants, without those that use other clients.
ROOMS = {
    "coordinator": ("tests/coordinator",),
    "coordinator/groups": ("tests/coordinator",),
    "coordinator/engine": ("tests/coordinator",),
    "coordinator/offsets": ("tests/coordinator",),
    "coordinator/classic_groups": ("tests/coordinator",),
    # code that runs at import is attributed to the first test by name, which is in test_answers.py and sees
    # it all
    "statemachine": ("tests/statemachine",),
    "offsets_topic": (
        "tests/offsets_topic",
        "tests/coordinator/groups/test_durable.py",
        "tests/coordinator/test_kafka_log.py",
        "tests/coordinator/engine/test_loader.py",
        "tests/coordinator/engine/test_loading.py",
    ),
    "cluster": ("tests/cluster",),
    "log": (
        "tests/log",
        "tests/broker/partitions/test_cleaner.py",
        "tests/broker/partitions/test_partition.py",
    ),
    "client": ("tests/client", "tests/consumer"),
    "consumer": ("tests/consumer", "tests/client"),
    "service": ("tests/service",),
    "producer": ("tests/producer",),
    "broker/security": ("tests/broker/security", "tests/broker/test_commands.py"),
    "broker/authorizer": ("tests/broker/authorizer",),
}
#: Tests that are not run on mutants: they start processes, which run the original code, or take seconds.
LEFT_OUT = (
    "tests/broker/security/test_guide.py",
    "tests/broker/security/test_hostile.py",
    "tests/broker/authorizer/test_clients.py",
    "tests/broker/authorizer/test_tools.py",
    "tests/consumer/test_e2e_*.py",
    "tests/consumer/reading/test_e2e_*.py",
    "tests/consumer/test_complaints.py",
    "tests/consumer/test_imports.py",
    "tests/consumer/test_long_handlers.py",
    "tests/consumer/test_uvloop.py",
    "tests/service/test_command.py",
    "tests/service/test_end_to_end.py",
    "tests/service/exactly_once/test_deleted_logs.py",
    "tests/service/exactly_once/test_sinks.py",
    "tests/service/exactly_once/test_start.py",
    "tests/service/run/test_signals.py",
    "tests/service/run/test_stopping.py",
    "tests/producer/test_disturbed.py",
    "tests/producer/test_rights.py",
    # thousands of cases each, on all of the log
    "tests/log/test_bit_flips.py",
    "tests/log/test_crashes.py",
    "tests/log/test_every_byte.py",
    "tests/log/test_faults.py",
    "tests/log/test_fuzz.py",
    "tests/log/test_kill.py",
    "tests/log/test_model.py",
)
#: Rooms whose functions run at import (they make tables): each mutant needs a process that has imported
#: nothing, which takes seconds.
IMPORTED_ANEW = ("statemachine",)
#: Rooms that CI draws from: their tests need no sockets and take seconds.
QUICK = (
    "coordinator",
    "coordinator/engine",
    "coordinator/offsets",
    "coordinator/classic_groups",
    "offsets_topic",
)

#: With fewer mutants, as on a busy machine, a percentage means nothing.
LEAST_FOR_A_VERDICT = 25
#: Of a drawn function, the mutants whose numbers end with one of this many digits are tried.
DRAWN_DIGITS = 3

NOTICED = {1, 3, 24, 36, 152, 255, -9, -11, -24}
NO_TEST = {5, 33}
SURVIVED = 0


@dataclass(slots=True)
class Outcome:
    """The mutants of a room, by name, according to their outcomes; ``folder`` is where the room was copied
    to.
    """

    room: str
    folder: Path
    noticed: list[str] = field(default_factory=list)
    survived: list[str] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)
    excused: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)

    @property
    def counted(self) -> int:
        return len(self.noticed) + len(self.survived) + len(self.untested)

    @property
    def percent(self) -> float:
        return 100 * len(self.noticed) / self.counted if self.counted else 100.0

    def reaches(self, goal: float) -> bool:
        """Return whether ``goal`` percent were noticed, or too few mutants were tried to tell."""
        return self.percent >= goal or (bool(self.untried) and self.counted < LEAST_FOR_A_VERDICT)


def main() -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args()
    rooms = options.rooms or (QUICK if options.functions else tuple(ROOMS))
    unknown = sorted(set(rooms) - ROOMS.keys())
    if unknown:
        print(f"mutants: no such room: {', '.join(unknown)}; there are {', '.join(ROOMS)}", file=sys.stderr)
        return 2
    excuses = read_excuses(LISTED)
    if options.functions:
        rooms = (random.Random(f"room {options.seed}").choice(rooms),)
    outcomes = [_run(room, options, excuses) for room in rooms]
    print()
    for outcome in outcomes:
        _tell(outcome)
    return 0 if all(outcome.reaches(options.goal) for outcome in outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Change the code a little and see whether a test notices.")
    parser.add_argument("rooms", metavar="ROOM", nargs="*", help=f"of {', '.join(ROOMS)} (default: all)")
    parser.add_argument(
        "--functions",
        type=int,
        metavar="N",
        help="only so many functions of one room, and three in ten of their mutants, drawn by chance",
    )
    parser.add_argument("--seed", default=_head(), help="of that draw (default: the commit)")
    parser.add_argument("--goal", type=float, default=90.0, help="least percentage noticed (default: 90)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at once (default: the cores)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=float("inf"),
        help="most that mutmut works (default: until it is through)",
    )
    parser.add_argument("--module", metavar="GLOB", default="*", help="of the room, such as 'join'")
    return parser


def _head() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "none"


# --- survivors with a reason --------------------------------------------------------------------------------


def read_excuses(path: Path) -> list[tuple[str, str]]:
    """Return (pattern of mutants' names, reason) of every ``[[survivor]]``."""
    entries = tomllib.loads(path.read_text()).get("survivor", []) if path.exists() else []
    return [(entry["mutants"], entry["reason"]) for entry in entries]


# --- one room -----------------------------------------------------------------------------------------------


def _run(room: str, options: argparse.Namespace, excuses: list[tuple[str, str]]) -> Outcome:
    # a sample has a folder of its own, so that it does not overwrite the results of whole rooms
    folder = BUILD / ("sample" if options.functions else "") / room.replace("/", "-")
    modules = [module for module in modules_of(room) if fnmatch(module.stem, options.module)]
    wanted: list[str] = []
    if options.functions:
        wanted, modules = _drawn(modules, options)
    _lay_out(folder, room, modules)
    print(f"{room}: {len(modules)} modules; the report of mutmut is in {folder / 'report.txt'}", flush=True)
    _mutate(folder, options.jobs, wanted, options.minutes)
    anew = _ask_anew(room, folder, wanted) if room not in IMPORTED_ANEW else {}
    return _outcome(room, folder, wanted, excuses, anew)


def _ask_anew(room: str, folder: Path, wanted: list[str]) -> dict[str, int]:
    """Return exit codes for mutants of functions that run only at import, which mutmut imports unchanged.

    mutmut attributes such a function to the first test only. Here all tests are run for each mutant, in a
    process of its own.
    """
    path = folder / "mutants" / "mutmut-stats.json"
    if not path.exists():
        return {}  # the time was over before mutmut had run all tests once
    stats = json.loads(path.read_text())
    first = {next(iter(stats["duration_by_test"]), "")}
    at_import = {name for name, tests in stats["tests_by_mangled_function_name"].items() if {*tests} == first}
    command = [sys.executable, "-m", "pytest", "-x", "-q", *_pytest_arguments(), *ROOMS[room]]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder / "mutants"),
        "PY_IGNORE_IMPORTMISMATCH": "1",
        "KOHORT_PURE": "1",  # what is changed is Python
    }
    return {
        # a mutant that cannot be imported is noticed, too
        name: min(
            1,
            subprocess.run(
                command,
                cwd=folder / "mutants",
                env={**environment, "MUTANT_UNDER_TEST": name},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            ).returncode,
        )
        for name, code in _codes(folder).items()
        if code == SURVIVED
        and name.partition("__mutmut_")[0] in at_import
        and (not wanted or any(fnmatch(name, pattern) for pattern in wanted))
    }


def _pytest_arguments() -> list[str]:
    apart = [f"--ignore-glob={name}" for name in LEFT_OUT]
    return ["-p", "no:cacheprovider", "-m", "not clients and not spark", *apart]


def modules_of(room: str) -> list[Path]:
    """Return the files of a room and of its folders."""
    return sorted((ROOT / room).rglob("*.py"))


def _drawn(modules: list[Path], options: argparse.Namespace) -> tuple[list[str], list[Path]]:
    """Draw functions; return patterns of their mutants that are to be tried, and their files."""
    every = [(module, name) for module in modules for name in _functions(module)]
    rng = random.Random(f"functions {options.seed}")
    drawn = rng.sample(every, min(options.functions, len(every)))
    patterns = [
        f"{_dotted(module)}.{name}__mutmut_*[{''.join(rng.sample('0123456789', DRAWN_DIGITS))}]"
        for module, name in drawn
    ]
    return patterns, sorted({module for module, _ in drawn})


def _dotted(module: Path) -> str:
    """Return the name of a module as mutmut writes it; a package's ``__init__`` has the package's name."""
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(("kohort", *(part for part in parts if part != "__init__")))


def _functions(module: Path) -> Iterator[str]:
    """Yield the functions' names as mutmut mangles them; inner functions belong to the outer ones."""
    body = ast.parse(module.read_text()).body
    yield from (f"x_{name}" for name in _mutated(body))
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from (f"xǁ{node.name}ǁ{name}" for name in _mutated(node.body))


def _mutated(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the functions that mutmut changes: no decorated ones, except static and class methods."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if decorators in ([], ["staticmethod"], ["classmethod"]):
                yield node.name


def _lay_out(folder: Path, room: str, modules: list[Path]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    skip = shutil.ignore_patterns("__pycache__")
    for source in (ROOT / ".src" / "kohort").iterdir():
        target = folder / "kohort" / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source.resolve(), target, ignore=skip)
        else:
            shutil.copy2(source.resolve(), target)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=skip)
    # folders on the path must exist when Python starts, which caches that they are missing
    (folder / "mutants").mkdir()
    for name in BESIDE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=skip)
        else:
            shutil.copy2(ROOT / name, folder / name)
    own: dict[str, Any] = {
        "source_paths": ["kohort"],
        "only_mutate": [f"kohort/{module.relative_to(ROOT).as_posix()}" for module in modules],
        "also_copy": [name for name in BESIDE if name != "pyproject.toml"],
        "pytest_add_cli_args_test_selection": list(ROOMS[room]),
        # a mutant counts as endless after 24 s of processor time, plus 2 s for each second that its tests
        # take
        "timeout_constant": 12.0,
        "timeout_multiplier": 1.0,
        "pytest_add_cli_args": _pytest_arguments(),
    }
    if room in IMPORTED_ANEW:
        # the imports take seconds, too
        own |= {"process_isolation": "forkserver", "forkserver_warmup": "none", "timeout_constant": 30.0}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in own.items())
    project = folder / "pyproject.toml"
    project.write_text(f"{project.read_text()}\n[tool.mutmut]\n{lines}")


def _mutate(folder: Path, jobs: int, wanted: list[str], minutes: float) -> None:
    """Run mutmut until it has tried all mutants, or for so many minutes; the others stay untried."""
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(jobs), *wanted]
    environment = {**os.environ, "PYTHONPATH": str(folder / "mutants"), "KOHORT_PURE": "1"}
    began = time.monotonic()
    with (folder / "report.txt").open("w") as report:
        # mutants are processes, too: in a process group of their own all can be ended together
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=report, stderr=report, start_new_session=True
        )
        spent = 0.0
        try:
            while process.poll() is None and spent < minutes:
                time.sleep(1)
                spent = (time.monotonic() - began) / 60
                if sys.stderr.isatty():
                    known = sum(code is not None for code in _codes(folder).values())
                    print(f"\r{known} mutants tried, {spent:.1f} min ", end="", file=sys.stderr, flush=True)
        finally:
            ended = process.poll()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if ended:
        sys.exit(f"mutants: mutmut ended with {ended}: see {folder / 'report.txt'}")


def _codes(folder: Path) -> dict[str, int | None]:
    codes: dict[str, int | None] = {}
    for meta in (folder / "mutants").rglob("*.meta"):
        try:
            codes |= json.loads(meta.read_text())["exit_code_by_key"]
        except ValueError:
            continue  # it is being written
    return codes


def _outcome(
    room: str, folder: Path, wanted: list[str], excuses: list[tuple[str, str]], anew: dict[str, int]
) -> Outcome:
    outcome = Outcome(room, folder)
    for name, code in sorted((_codes(folder) | anew).items()):
        if wanted and not any(fnmatch(name, pattern) for pattern in wanted):
            continue
        if code is None:
            outcome.untried.append(name)
        elif code in NOTICED:
            outcome.noticed.append(name)
        elif code not in NO_TEST and code != SURVIVED:
            outcome.unclear.append(name)
        elif any(fnmatch(name, pattern) for pattern, _ in excuses):
            outcome.excused.append(name)
        elif code in NO_TEST:
            outcome.untested.append(name)
        else:
            outcome.survived.append(name)
    return outcome


def _tell(outcome: Outcome) -> None:
    print(
        f"{outcome.room}: {outcome.percent:.1f} % noticed ({len(outcome.noticed)} noticed, "
        f"{len(outcome.survived)} survived, {len(outcome.untested)} in code that no test of the room runs, "
        f"{len(outcome.excused)} listed with a reason, {len(outcome.unclear)} unclear, "
        f"{len(outcome.untried)} not tried)"
    )
    for title, names in (("survived", outcome.survived), ("untested", outcome.untested)):
        for name in names:
            print(f"  {title}  {name}")
    if outcome.survived:
        print(f"'cd {outcome.folder} && {sys.executable} -m mutmut show NAME' shows what was changed")


if __name__ == "__main__":
    sys.exit(main())
