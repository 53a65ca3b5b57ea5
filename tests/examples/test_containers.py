"""The files for containers: their commands are run as they stand there, but for ports and folders."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import pytest

from kohort.cli import _make_parser
from kohort.producer import BlockingProducer
from tests.ports import free_port
from tests.test_dashboards import check, of_brokers

yaml = pytest.importorskip("yaml")

ROOT: Final = Path(__file__).resolve().parent.parent.parent
FOLDER: Final = ROOT / "examples" / "containers"
#: Ports of the files.
INSIDE, OUTSIDE, HEALTH, METRICS = 9092, 9094, 8080, 9400


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
    """The text with free ports, and the broker's name one that is known here."""
    text = re.sub(r"\d{4}", lambda found: str(ports.get(int(found[0]), found[0])), text)
    return re.sub("//(broker|kohort):", "//localhost:", text)


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


def instructions(file: Path) -> list[tuple[str, str]]:
    """The instructions of a Containerfile, each with its words in one line."""
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in whole if line)]


@pytest.mark.parametrize(
    ("file", "context"), [(ROOT / "Containerfile", ROOT), (FOLDER / "Containerfile", FOLDER)]
)
def test_files_stages_and_commands_of_a_containerfile_are_there(file: Path, context: Path) -> None:
    stages, made = set(), {"dist"}  # make dist writes it
    for word, rest in instructions(file):
        if word == "FROM":
            image, _, stage = rest.partition(" AS ")
            stages.add(stage)
            assert re.fullmatch(r"kohort|docker\.io/library/python:3\.(11|12|13|14)(-slim)?", image)
        for source in re.findall(r"--mount=type=bind,source=([^,]+)", rest):
            assert source in made or (context / source).exists()
        assert set(re.findall(r"from=([^,]+)", rest)) <= stages
        if word == "COPY":
            assert all((context / name).exists() for name in rest.split()[:-1])
    named = dict(instructions(file))
    if "ENTRYPOINT" in named:
        (program,) = json.loads(named["ENTRYPOINT"])
        assert program in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
        health = json.loads(named["HEALTHCHECK"].partition("CMD ")[2])
        assert health[0] == program
        for words in (json.loads(named["CMD"]), health[1:]):
            assert _make_parser(words).parse_args(words).command == words[0]


def manifests() -> dict[str, dict[str, Any]]:
    """What Kubernetes is to make, by kind and name."""
    found = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


def pod(workload: str) -> dict[str, Any]:
    """The pods of a workload."""
    spec = manifests()[workload]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    found: dict[str, Any] = spec["template"]["spec"]
    return found


@pytest.mark.slow(8)
def test_what_kubernetes_runs_answers_its_probes_and_shows_the_lag_that_it_scales_by(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client", reason="it comes with the extra 'service'")
    ports = {each: free_port() for each in (INSIDE, HEALTH, METRICS)}
    (tmp_path / "shop.py").write_text(_moved((FOLDER / "shop.py").read_text(), ports))
    (broker,), (service,) = pod("StatefulSet/kohort")["containers"], pod("Deployment/billing")["containers"]
    (topics,) = pod("Deployment/billing")["initContainers"]
    (asked,) = manifests()["ScaledObject/billing"]["spec"]["triggers"]
    metric, group = re.findall(r"(\w+)\{group=\"(\w+)\"\}", asked["metadata"]["query"])[0]
    inside = f"localhost:{ports[INSIDE]}"
    with ExitStack() as stack:
        words = [
            *_words(broker, ports, tmp_path),
            f"--port={ports[INSIDE]}",
            "--set=kohort.lag.interval.ms=50",
        ]
        ran = stack.enter_context(running(*words, folder=tmp_path))
        lines_until(ran, "ready on")
        made = [sys.executable, "-m", "kohort", *_words(topics, ports, tmp_path)]
        assert subprocess.run(made, env={"KOHORT_BOOTSTRAP": inside}, timeout=60, check=False).returncode == 0
        with BlockingProducer(bootstrap=inside) as producer:
            producer.send_and_wait("orders", b'{"id": 1}')
        served = stack.enter_context(
            running(*_words(service, ports, tmp_path), folder=tmp_path, bootstrap=inside)
        )
        lines_until(served, "^billed 1 ")
        for container in (broker, service):
            for name in ("readinessProbe", "livenessProbe"):
                _probe(container, container[name], ports)
        _until_shown(ports[METRICS], f'{metric}{{group="{group}"}} 0.0')


def _words(container: dict[str, Any], ports: dict[int, int], folder: Path) -> list[str]:
    return [_moved(word, ports).replace("/data", str(folder / "data")) for word in container["args"]]


def _probe(container: dict[str, Any], probe: dict[str, Any], ports: dict[int, int]) -> None:
    """Ask as the kubelet does: the container's port has the name that the probe gives."""
    how = probe.get("httpGet") or probe["tcpSocket"]
    (port,) = [each["containerPort"] for each in container["ports"] if each["name"] == how["port"]]
    connection = HTTPConnection("127.0.0.1", ports[port], timeout=60)
    with closing(connection):
        connection.connect()
        if "path" in how:
            connection.request("GET", how["path"])
            assert connection.getresponse().status == 200, how["path"]


def _until_shown(port: int, line: str) -> None:
    for _ in range(600):
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        with closing(connection):
            connection.request("GET", "/metrics")
            if line in connection.getresponse().read().decode().splitlines():
                return
        time.sleep(0.05)
    pytest.fail(f"the broker does not show {line}")


def test_kubernetes_scales_by_a_metric_that_there_is_up_to_the_partitions_that_there_are() -> None:
    scaled = manifests()["ScaledObject/billing"]["spec"]
    assert f"Deployment/{scaled['scaleTargetRef']['name']}" in manifests()
    (trigger,) = scaled["triggers"]
    check(trigger["metadata"]["query"], of_brokers())
    (topics,) = pod("Deployment/billing")["initContainers"]
    assert f"--partitions={scaled['maxReplicaCount']}" in topics["args"]
    assert 'group="billing"' in (FOLDER / "shop.py").read_text()


def test_kubernetes_finds_the_broker_by_the_name_that_its_clients_are_told() -> None:
    service = manifests()["Service/kohort"]["spec"]
    broker = manifests()["StatefulSet/kohort"]["spec"]
    assert service["selector"] == broker["selector"]["matchLabels"]
    (container,) = pod("StatefulSet/kohort")["containers"]
    offered = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == offered
    assert f"--set=advertised.listeners=PLAINTEXT://kohort:{offered['kafka']}" in container["args"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted == {each["metadata"]["name"]: "/data" for each in broker["volumeClaimTemplates"]}
    (client,) = pod("Deployment/billing")["containers"]
    assert client["env"] == [{"name": "KOHORT_BOOTSTRAP", "value": f"kohort:{offered['kafka']}"}]
    # 36 s in the worst case: docs/service.md
    assert pod("Deployment/billing")["terminationGracePeriodSeconds"] > 36


def test_the_job_that_the_page_submits_to_spark_takes_the_options_that_it_is_given() -> None:
    page = (ROOT / "docs" / "in-kubernetes.md").read_text()
    given = page.partition("spark_job.py ")[2].partition("```")[0]
    script = (ROOT / "examples" / "spark_job.py").read_text()
    options = re.findall(r"--[\w-]+", given)
    assert options == ["--group", "--folder"]
    assert all(f'"{option}"' in script for option in options)
