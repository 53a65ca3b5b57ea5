"""The files for containers: their commands are run as they stand there, but for ports and folders."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from kohort.producer import BlockingProducer
from tests.ports import free_port

yaml = pytest.importorskip("yaml")

ROOT: Final = Path(__file__).resolve().parent.parent.parent
FOLDER: Final = ROOT / "examples" / "containers"
#: Ports of the files.
INSIDE, OUTSIDE, HEALTH = 9092, 9094, 8080


def compose() -> dict[str, dict[str, Any]]:
    """The services of the compose file."""
    services: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    return services


@contextmanager
def running(*command: str, folder: Path, bootstrap: str = "") -> Iterator[subprocess.Popen[str]]:
    """A command of kohort, that SIGTERM ends with 0."""
    environment = {"KOHORT_BOOTSTRAP": bootstrap} if bootstrap else None
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "kohort", *command],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield process
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


def lines_until(process: subprocess.Popen[str], pattern: str, count: int = 1) -> list[str]:
    """What the process prints until so many lines match."""
    assert process.stdout is not None
    found = []
    for line in process.stdout:
        found += [line] if re.search(pattern, line) else []
        if len(found) == count:
            return found
    pytest.fail(f"it ended with {process.wait()} before it printed {pattern!r}")


@pytest.mark.slow(6)
def test_what_compose_starts_is_a_broker_with_its_topics_and_a_service(tmp_path: Path) -> None:
    services, ports = compose(), {each: free_port() for each in (INSIDE, OUTSIDE, HEALTH)}
    (tmp_path / "shop.py").write_text(_moved((FOLDER / "shop.py").read_text(), ports))
    inside = f"localhost:{ports[INSIDE]}"
    assert services["service"]["environment"] == services["topics"]["environment"]
    assert services["topics"]["environment"] == {"KOHORT_BOOTSTRAP": f"broker:{INSIDE}"}
    broker, topics, service = (
        [_moved(word, ports).replace("/data", str(tmp_path / "data")) for word in services[name]["command"]]
        for name in ("broker", "topics", "service")
    )
    with ExitStack() as stack:
        ran = stack.enter_context(running(*broker, folder=tmp_path))
        lines_until(ran, "ready on")
        for _ in range(2):  # compose up once more
            with subprocess.Popen(
                [sys.executable, "-m", "kohort", *topics], env={"KOHORT_BOOTSTRAP": inside}
            ) as made:
                assert made.wait(60) == 0
        with BlockingProducer(bootstrap=f"localhost:{ports[OUTSIDE]}") as producer:
            assert producer.partitions_for("orders") == 4
            for number in range(8):
                producer.send_and_wait("orders", b'{"id": %d}' % number, partition=number % 4)
        served = stack.enter_context(running(*service, folder=tmp_path, bootstrap=inside))
        billed = lines_until(served, "^billed", 8)
        assert sorted(line.split()[1] for line in billed) == sorted(map(str, range(8)))
        kind, python, *check = services["service"]["healthcheck"]["test"]
        assert (kind, python) == ("CMD", "python")
        health = [_moved(word, ports) for word in check]
        assert subprocess.run([sys.executable, *health], timeout=60, check=False).returncode == 0
    assert subprocess.run([sys.executable, *health], timeout=60, check=False).returncode != 0


def _moved(text: str, ports: dict[int, int]) -> str:
    """The text with free ports, and "broker" a name that is known here."""
    for port, free in ports.items():
        text = text.replace(str(port), str(free))
    return text.replace("//broker:", "//localhost:")


def test_compose_waits_for_what_it_starts_and_gives_it_time_to_end() -> None:
    services = compose()
    waits = {
        (name, other): how["condition"]
        for name, service in services.items()
        for other, how in service.get("depends_on", {}).items()
    }
    assert waits == {
        ("topics", "broker"): "service_healthy",
        ("service", "topics"): "service_completed_successfully",
    }
    image = (ROOT / "Containerfile").read_text()
    assert "HEALTHCHECK" in image, "the broker's"
    assert f"EXPOSE {INSIDE}" in image
    assert (FOLDER / services["broker"]["build"]["context"]).resolve() == ROOT
    assert (ROOT / services["broker"]["build"]["dockerfile"]).exists()
    # 36 s in the worst case: docs/service.md
    assert int(services["service"]["stop_grace_period"].removesuffix("s")) > 36
    assert {each["image"] for each in services.values()} == {"kohort"}
