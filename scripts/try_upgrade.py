"""Tries an upgrade and the way back: ``python scripts/try_upgrade.py v0.1.0`` (or any older commit).

With ``--zookeeper HOST:PORT/PATH``, where PATH is not in use, it is a cluster of three brokers, replaced one
after the other by the new version, and back. Else:

One data folder is opened in turn by the broker of the old commit and by that of this one, each time with
clients of one of the two. At every step a group reads what was written since the last and nothing else, and a
new group reads every record once, and members of the two versions share one group. Some brokers are killed
instead of stopped. docs/upgrading.md says what follows from it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDS = 100
#: Time in which two members share a group, in seconds, and between two looks at it.
JOIN_S, LOOK_S = 60.0, 1.0
#: Time in seconds in which a command ends, a broker is ready, and one that is stopped ends.
COMMAND_S, START_S, STOP_S = 120.0, 120.0, 60.0
#: Which of the two is the broker, which the client, and how the broker ends.
STEPS = (
    ("old", "old", signal.SIGTERM),
    ("new", "new", signal.SIGTERM),
    ("new", "old", signal.SIGKILL),
    ("old", "old", signal.SIGTERM),
    ("old", "new", signal.SIGKILL),
    ("new", "new", signal.SIGTERM),
)


@dataclass(frozen=True)
class Version:
    """A checkout whose commands are run, without compiled parts: an old one has none for this Python."""

    name: str
    root: Path

    def command(self, *words: str) -> list[str]:
        """The command line of kohort with these words."""
        return [sys.executable, "-P", "-m", "kohort", *words]

    @property
    def environment(self) -> dict[str, str]:
        """Where Python finds this version."""
        return {**os.environ, "PYTHONPATH": str(self.root / ".src"), "KOHORT_PURE": "1"}

    def run(self, *words: str, given: str = "") -> str:
        """The output of a command. Raises RuntimeError if it fails, or does not end."""
        command = self.command(*words)
        try:
            done = subprocess.run(
                command, env=self.environment, input=given, capture_output=True, text=True, timeout=COMMAND_S
            )
        except subprocess.TimeoutExpired as error:
            said = (error.stderr or b"").decode(errors="replace")
            raise RuntimeError(
                f"{self.name}: kohort {' '.join(words)} did not end within {COMMAND_S:.0f} s\n{said}".rstrip()
            ) from None
        if done.returncode:
            raise RuntimeError(f"{self.name}: kohort {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout


@contextmanager
def broker(version: Version, data: Path, end: signal.Signals, *options: str) -> Iterator[str]:
    """A broker on the folder; its address. Raises RuntimeError if it does not start, or does not end well."""
    log = data.parent / f"{version.name}-{data.name}.log"
    with log.open("a") as errors:
        process = subprocess.Popen(
            version.command("broker", "--port", "0", "--data", str(data), *options),
            env=version.environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        timer = threading.Timer(START_S, process.kill)
        timer.start()
        line = next((line for line in process.stdout if "ready on" in line), "")
        timer.cancel()
        if not line:
            raise RuntimeError(
                f"the {version.name} broker does not open the folder within {START_S:.0f} s:\n"
                f"{log.read_text()[-3000:]}"
            )
        yield line.split("ready on ")[1].split()[0]
        process.send_signal(end)
        try:
            code = process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the {version.name} broker did not end within {STOP_S:.0f} s") from None
        if code != (0 if end == signal.SIGTERM else -end):
            raise RuntimeError(f"the {version.name} broker ended with {code}:\n{log.read_text()[-3000:]}")
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def read(client: Version, address: str, group: str) -> list[int]:
    """What a group has not read yet, sorted; it is committed."""
    text = client.run("consume", "orders", "--group", group, "--bootstrap", address)
    return sorted(int(line) for line in text.split())


def try_records(at: int, client: Version, address: str) -> None:
    """Write the records number ``at`` and read them. Raises RuntimeError if a record or offset is lost."""
    first, beyond = at * RECORDS, (at + 1) * RECORDS
    written = "".join(f"{number}\n" for number in range(first, beyond))
    client.run("produce", "orders", "--bootstrap", address, given=written)
    found = read(client, address, "billing")
    if found != list(range(first, beyond)):
        raise RuntimeError(f"the group read {len(found)} records, not {RECORDS}: {found[:5]} ...")
    if read(client, address, f"audit-{at}") != list(range(beyond)):
        raise RuntimeError(f"a new group does not read each of {beyond} records once")


@contextmanager
def members(versions: dict[str, Version], group: str, address: str) -> Iterator[None]:
    """Within it a member of each version reads in a group."""
    with ExitStack() as stack:
        for version in versions.values():
            words = ("consume", "orders", "--group", group, "--follow", "--bootstrap", address)
            member = subprocess.Popen(
                version.command(*words),
                env=version.environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(member.wait)
            stack.callback(member.kill)
        yield


def try_members(at: int, versions: dict[str, Version], address: str) -> None:
    """Let members of both versions share a group. Raises RuntimeError if not both get partitions."""
    group, until = f"both-{at}", time.monotonic() + JOIN_S
    with members(versions, group, address):
        while True:
            groups = json.loads(versions["new"].run("groups", "list", "--json", "--bootstrap", address))
            if group in (each["group"] for each in groups["groups"]):
                words = ("groups", "describe", group, "--json", "--bootstrap", address)
                found = json.loads(versions["new"].run(*words))["members"]
                if sum(bool(each["assignment"]) for each in found) == len(versions):
                    return
            if time.monotonic() > until:
                raise RuntimeError(f"members of both versions do not share a group within {JOIN_S:.0f} s")
            time.sleep(LOOK_S)


def try_step(at: int, versions: dict[str, Version], data: Path) -> None:
    """Write and read through one broker, which then ends. Raises RuntimeError."""
    server, client, end = versions[STEPS[at][0]], versions[STEPS[at][1]], STEPS[at][2]
    with broker(server, data, end) as address:
        if at == 0:
            client.run("topics", "create", "orders", "--partitions", "3", "--bootstrap", address)
        try_records(at, client, address)
        try_members(at, versions, address)
    how = "stopped" if end == signal.SIGTERM else "killed"
    print(f"{server.name} broker, {client.name} clients, {how}: {RECORDS * (at + 1)} records", flush=True)


class Cluster:
    """Brokers that are replaced one by one, each on its own folder."""

    def __init__(self, folder: Path, zookeeper: str) -> None:
        self.folder = folder
        self.zookeeper = zookeeper
        self.running: dict[int, tuple[str, str, ExitStack]] = {}

    def replace(self, node: int, version: Version) -> str:
        """Stop a broker, if it runs, and start it in this version; its address."""
        if node in self.running:
            self.running.pop(node)[2].close()
        stack = ExitStack()
        options = ("--zookeeper", self.zookeeper, "--node-id", str(node))
        started = broker(version, self.folder / str(node), signal.SIGTERM, *options)
        address = stack.enter_context(started)
        self.running[node] = (version.name, address, stack)
        return address

    def stop(self) -> None:
        """Stop all brokers, also if one of them does not end."""
        with ExitStack() as brokers:
            for _, _, stack in self.running.values():
                brokers.push(stack)


def try_rolling(versions: dict[str, Version], folder: Path, zookeeper: str) -> None:
    """Replace one broker after the other, forward and back, and write and read at each step."""
    old, new = versions["old"], versions["new"]
    cluster = Cluster(folder, zookeeper)
    nodes = (1, 2, 3)
    try:
        for node in nodes:
            address = cluster.replace(node, old)
        whole = ("cluster", "status", "--wait", "--brokers", "1,2,3", "--bootstrap")
        new.run(*whole, address)
        create = ("topics", "create", "orders", "--partitions", "3", "--replication-factor", "3")
        old.run(*create, "--config", "min.insync.replicas=2", "--bootstrap", address)
        steps = [(node, version) for version in (new, old) for node in nodes]
        for at, (node, version) in enumerate(steps):
            address = cluster.replace(node, version)
            new.run(*whole, address)
            try_records(at, (old, new)[at % 2], address)
            names = ", ".join(name for name, _, _ in (cluster.running[each] for each in nodes))
            print(f"brokers {names}: {RECORDS * (at + 1)} records", flush=True)
    finally:
        cluster.stop()


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A working tree of a commit, for as long as the block runs. Raises RuntimeError if there is no such."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "old"
        git = ["git", "-C", str(ROOT), "worktree"]
        added = subprocess.run(
            [*git, "add", "--quiet", "--detach", str(tree), commit], capture_output=True, text=True
        )
        if added.returncode:
            raise RuntimeError(f"git does not check it out: {added.stderr.strip()}")
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def try_upgrade(versions: dict[str, Version], data: Path) -> None:
    """Take all steps on one folder."""
    for at in range(len(STEPS)):
        try_step(at, versions, data)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the upgrade from the commit that the command line names."""
    parser = argparse.ArgumentParser(description="Try an upgrade from an older commit, and the way back.")
    parser.add_argument("commit", help="an older tag or commit")
    parser.add_argument("--zookeeper", help="try a cluster of three, with this ZooKeeper and an unused path")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="kohort-upgrade-"))
    try:
        with checkout(options.commit) as tree:
            versions = {"old": Version("old", tree), "new": Version("new", ROOT)}
            if options.zookeeper:
                try_rolling(versions, folder, options.zookeeper)
            else:
                try_upgrade(versions, folder / "data")
    except RuntimeError as error:
        print(f"{options.commit}: {error}\nThe brokers' logs and data are in {folder}.", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
