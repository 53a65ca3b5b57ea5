"""Executors elsewhere, with a kohort that was sent to them; and secrets that nobody is shown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
import pytest

from kohort.spark import java_home
from kohort.testing import RunningBroker, running_broker
from tests.broker.security.certificates import Certificates
from tests.spark.cluster_job import ROWS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
JOB = Path(__file__).with_name("cluster_job.py")
PASSWORD = "a-password-nobody-may-see"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Way(NamedTuple):
    """A way to the broker: the options of both modes, and what must not be seen of them."""

    bootstrap: str
    python: dict[str, str]
    spark: dict[str, str]
    secrets: tuple[str, ...]


class Secured:
    """A broker that asks its clients for certificates on one listener, and for a password on another."""

    def __init__(self, folder: Path) -> None:
        self.certificates = Certificates(folder)
        self.keystore = str(folder / "encrypted.pem")
        self.key = encrypted(Path(self.certificates.client("etl")), Path(self.keystore))
        self.settings: dict[str, Any] = {
            "listeners": "SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
            "ssl.keystore.location": self.certificates.server(),
            "ssl.truststore.location": self.certificates.cafile,
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{MODULE} required user_etl="{PASSWORD}";',
            "group.initial.rebalance.delay.ms": 0,
        }

    def by_certificate(self, broker: RunningBroker) -> Way:
        """With a key that needs a password."""
        given = {
            "ssl_cafile": self.certificates.cafile,
            "ssl_certfile": self.keystore,
            "ssl_password": PASSWORD,
        }
        names = {
            "ssl_cafile": "truststore.location",
            "ssl_certfile": "keystore.location",
            "ssl_password": "key.password",
        }
        return Way(
            broker.endpoints["SSL"],
            {"security_protocol": "SSL", **given},
            {"kafka.security.protocol": "SSL"}
            | {f"kafka.ssl.{names[name]}": text for name, text in given.items()},
            (PASSWORD, self.key),
        )

    def by_password(self, broker: RunningBroker) -> Way:
        return Way(
            broker.endpoints["SASL_SSL"],
            {
                "security_protocol": "SASL_SSL",
                "ssl_cafile": self.certificates.cafile,
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": "etl",
                "sasl_plain_password": PASSWORD,
            },
            {
                "kafka.security.protocol": "SASL_SSL",
                "kafka.ssl.truststore.location": self.certificates.cafile,
                "kafka.sasl.mechanism": "PLAIN",
                "kafka.sasl.jaas.config": f'{MODULE} required username="etl" password="{PASSWORD}";',
            },
            (PASSWORD,),
        )


@pytest.fixture(scope="module", autouse=True)
def _asked_for(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--executors"):
        pytest.skip("starts executors in processes of their own: run by make test-spark-executors")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    return Secured(tmp_path_factory.mktemp("secured"))


@pytest.fixture(scope="module")
def broker(secured: Secured) -> Iterator[RunningBroker]:
    with running_broker(**secured.settings) as running:
        yield running


def encrypted(keystore: Path, target: Path) -> str:
    """Write the keystore with its key under the password; a line of the key."""
    from cryptography.hazmat.primitives import serialization as forms

    pem = keystore.read_bytes()
    key = forms.load_pem_private_key(pem, None)
    sealed = key.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(PASSWORD.encode())
    )
    target.write_bytes(sealed + pem[pem.index(b"-----BEGIN CERTIFICATE") :])
    return sealed.decode().splitlines()[2]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """kohort as a file for --py-files, and as a wheel that has been installed into a folder."""
    folder = tmp_path_factory.mktemp("package")
    tree = folder / "tree"  # setuptools leaves files where it builds
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "tests", "docs", "*.egg-info"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(tree)], check=True, timeout=300)
    wheel = next(folder.glob("kohort-*.whl"))
    installed = folder / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    return {"py-files": wheel.rename(folder / "kohort.zip"), "wheel": installed}


@pytest.mark.parametrize("shipped", ["py-files", "wheel"])
def test_both_modes_read_and_the_sink_writes_on_executors_elsewhere_and_no_secret_is_shown(
    shipped: str, secured: Secured, broker: RunningBroker, package: dict[str, Path], tmp_path: Path
) -> None:
    topic, out = f"orders-{shipped}", f"out-{shipped}"
    produce(broker.endpoints["PLAINTEXT"], topic, out)
    way = secured.by_certificate(broker) if shipped == "py-files" else secured.by_password(broker)
    job = {
        "bootstrap": way.bootstrap,
        "topic": topic,
        "out": out,
        "group": f"etl-{shipped}",
        "checkpoint": str(tmp_path / "checkpoint"),
        "security": way.python,
        "options": way.spark,
    }
    done, told = submitted(job, shipped, package, tmp_path)
    assert done.returncode == 0, "\n".join(line for line in told.splitlines() if " INFO " not in line)[-6000:]
    found = json.loads(done.stdout.rpartition("FOUND ")[2])
    homes = {home for home, _ in found["executors"]}
    folders = {folder for _, folder in found["executors"]}
    if shipped == "wheel":
        assert homes == {str(package["wheel"] / "kohort" / "__init__.py")}
    else:
        assert all("kohort.zip" in home and str(package["py-files"]) not in home for home in homes), homes
    assert all(str(tmp_path / "spark" / "work") in folder for folder in folders), folders
    everything = [[ROWS, sum(range(ROWS))]]
    assert found["loop"] == found["query"] == found["read"] == found["written"] == everything
    for secret in way.secrets:
        at = told.find(secret)
        assert at < 0, f"a secret is shown: ...{told[max(0, at - 400) : at + 40]}"


def produce(bootstrap: str, topic: str, out: str) -> None:
    """Both topics, and records in the first."""
    from kafka import KafkaAdminClient, KafkaProducer

    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        sizes = {"num_partitions": 3, "replication_factor": 1}
        admin.create_topics({topic: sizes, out: sizes}, wait_for_metadata=True)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(ROWS):
        producer.send(topic, value=b"%d" % number, partition=number % 3)
    producer.close()


def submitted(
    job: dict[str, Any], shipped: str, package: dict[str, Path], folder: Path
) -> tuple[subprocess.CompletedProcess[str], str]:
    """The job on two executors of a cluster of processes; and all that anyone could read of it."""
    spark_home = folder / "spark"  # executors have their folders under it
    spark_home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (spark_home / part.name).symlink_to(part)
    events = folder / "events"
    events.mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.port": "0",
        "spark.log.level": "INFO",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.executorEnv.PYTHONPATH": str(package["wheel"]) if shipped == "wheel" else "",
    }
    command = [str(spark_home / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]"]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    if shipped == "py-files":
        command += ["--py-files", str(package["py-files"])]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))},
        "JAVA_HOME": str(java_home().path),
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # the driver's, which has --py-files from spark-submit
        "PYTHONPATH": str(package["wheel"]) if shipped == "wheel" else "",
    }
    done = subprocess.run(
        [*command, str(JOB), json.dumps(job)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    logs = [
        path for path in (spark_home / "work").rglob("*") if path.is_file() and path.name.startswith("std")
    ]
    told = [path.read_text(errors="replace") for path in [*logs, *events.rglob("*")] if path.is_file()]
    assert len(told) >= 3 or done.returncode, "two executors' logs and the events of the driver"
    return done, "\n".join([*told, done.stdout, done.stderr])
