"""The test suites of other makers' clients: where each comes from, how it is run, what of it is left out."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.foreign.brokers import PLAIN_LOGIN, Ports, Target
from tests.foreign.results import Results, read_go, read_librdkafka, read_pytest

_HERE = Path(__file__).resolve().parent


class LeftOutError(Exception):
    """The suite cannot run here; the text says in one line what it needs."""


@dataclass(frozen=True, slots=True)
class Command:
    """A suite ready to run: words, folder, and what is added to the environment."""

    words: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests of one client.

    ``prepare`` brings them into the cache, ``command`` runs them (or some, by name) on a broker,
    ``read`` understands what they print. ``left_out`` are tests that are not run, on any broker, and why;
    ``known`` are those that fail on kohort alone, and why, ``known_on_apache_kafka`` those that fail there
    alone. ``settings`` are what its broker needs beside
    those of all, ``ports`` those that the suite has written into its tests.
    """

    name: str
    version: str
    source: str
    prepare: Callable[[Suite, Path], Path]
    command: Callable[[Suite, Path, Target, Sequence[str]], Command]
    read: Callable[[str], Results]
    left_out: Mapping[str, str]
    known: Mapping[str, str] = field(default_factory=dict)
    known_on_apache_kafka: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    ports: Ports | None = None
    limit_s: float = 1800.0


def _need(tool: str, package: str) -> None:
    if shutil.which(tool) is None:
        raise LeftOutError(f"there is no {tool} here: install {package}")


def _go_module(module: str) -> Callable[[Suite, Path], Path]:
    """The module's files from the Go module proxy, in a folder that may be written to."""

    def prepare(suite: Suite, cache: Path) -> Path:
        _need("go", "Go")
        folder = cache / f"{suite.name}-{suite.version}"
        if not folder.exists():
            cache.mkdir(parents=True, exist_ok=True)
            words = ["go", "mod", "download", f"{module}@v{suite.version}"]
            # outside of any module, which could pin another version
            subprocess.run(words, cwd=cache, check=True)
            found = _output("go", "env", "GOMODCACHE", cwd=cache)
            beside = cache / f"{folder.name}.part"
            shutil.rmtree(beside, ignore_errors=True)
            shutil.copytree(f"{found}/{module}@v{suite.version}", beside, copy_function=shutil.copyfile)
            for path in (beside, *beside.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            # the modules that its tests alone need
            subprocess.run(["go", "mod", "tidy"], cwd=beside, check=True)
            beside.rename(folder)
        return folder

    return prepare


def _output(*words: str, cwd: Path) -> str:
    return subprocess.run(words, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def _go_chosen(suite: Suite, only: Sequence[str]) -> tuple[str, ...]:
    """The arguments of ``go test`` that choose among tests, whose names are ``package:Test/sub``.

    Of ``only`` whole tests are run: parts may build on those before them.
    """
    skipped = [
        "/".join(f"^{part}$" for part in name.split(":", 1)[1].split("/")) for name in sorted(suite.left_out)
    ]
    wanted = sorted({f"^{name.split(':', 1)[1].split('/')[0]}$" for name in only})
    return (
        *(("-skip", "|".join(skipped)) if skipped else ()),
        *(("-run", "|".join(wanted)) if wanted else ()),
    )


def _kgo(suite: Suite, folder: Path, target: Target, only: Sequence[str]) -> Command:
    environment = {
        "KGO_SEEDS": target.bootstrap,
        "KGO_TEST_RF": "1",
        "KGO_TEST_RECORDS": "20000",
        "KGO_TEST_STABLE_FETCH": "true",
        "KGO_LOG_LEVEL": "none",
    }
    if target.sasl:
        environment |= {
            "KGO_TEST_SCRAM_SEEDS": target.sasl,
            "KGO_TEST_SCRAM": "adminscram256:admin-secret-256",
        }
    words = ("go", "test", "-json", "-count=1", "-timeout=25m", *_go_chosen(suite, only), "./pkg/kgo")
    return Command(words, folder, environment)


def _kafka_go(suite: Suite, folder: Path, _target: Target, only: Sequence[str]) -> Command:
    words = ("go", "test", "-json", "-count=1", "-p=1", "-timeout=25m", *_go_chosen(suite, only))
    packages = (".", "./topics", "./sasl", "./protocol/...")
    return Command((*words, *packages), folder, {"KAFKA_VERSION": "4.3.1", "KAFKA_SKIP_NETTEST": "1"})


def _prepare_kafka_python(suite: Suite, cache: Path) -> Path:
    folder = cache / f"kafka_python-{suite.version}"
    if not (folder / "test" / "service.py").exists():
        cache.mkdir(parents=True, exist_ok=True)
        words = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:")
        subprocess.run([*words, "--dest", str(cache), f"kafka-python=={suite.version}"], check=True)
        with tarfile.open(cache / f"kafka_python-{suite.version}.tar.gz") as archive:
            archive.extractall(cache, filter="data")
        # two files that the sdist lacks: without the first, `test` is Python's own package
        (folder / "test" / "__init__.py").touch()
        shutil.copyfile(_HERE / "kafka_python_service.py", folder / "test" / "service.py")
    return folder


def _kafka_python(suite: Suite, folder: Path, target: Target, only: Sequence[str]) -> Command:
    words = (sys.executable, "-m", "pytest", "-v", "--tb=short", "--show-capture=no", "--color=no")
    plugins = ("-p", "no:cacheprovider", "-p", "no:kohort", "-o", "timeout=90")
    skipped = tuple(word for name in suite.left_out for word in ("--deselect", name))
    environment = {
        "KAFKA_ROOT": str(folder),  # which has to exist
        "KAFKA_VERSION": "4.3.1",
        "KAFKA_URI": f"kafka://{target.bootstrap}",
        "COLUMNS": "200",
    }
    return Command((*words, *plugins, *skipped, *(only or ("test/integration",))), folder, environment)


LIBRDKAFKA = "LIBRDKAFKA_CHECKOUT"


def _prepare_librdkafka(suite: Suite, cache: Path) -> Path:
    checkout = os.environ.get(LIBRDKAFKA)
    if not checkout:
        raise LeftOutError(f"its tests are in no package: set {LIBRDKAFKA} to a checkout of v{suite.version}")
    if not (Path(checkout) / "tests" / "test.c").is_file():
        raise LeftOutError(f"{LIBRDKAFKA}={checkout} is no checkout of librdkafka: there is no tests/test.c")
    for tool in ("make", "gcc", "g++"):
        _need(tool, "make and a C and C++ compiler")
    folder = cache / f"librdkafka-{suite.version}"
    if not (folder / "tests" / "test-runner").exists():
        shutil.copytree(checkout, folder, dirs_exist_ok=True, symlinks=True)
    if not (folder / "tests" / "test-runner").exists():  # a checkout may come built
        subprocess.run(["./configure"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for words in (["make", "libs"], ["make", "-C", "tests", "test-runner"]):
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder


def _librdkafka(suite: Suite, folder: Path, target: Target, only: Sequence[str]) -> Command:
    # -Q: the size that its makers run on each change
    return _run_librdkafka(suite, folder, target, only, "-Q", "-p1" if only else "-p4")


def _librdkafka_share(suite: Suite, folder: Path, target: Target, only: Sequence[str]) -> Command:
    # they wait most of the time
    return _run_librdkafka(suite, folder, target, only or _LIBRDKAFKA_SHARE, "-p1" if only else "-p8")


def _run_librdkafka(
    suite: Suite, folder: Path, target: Target, only: Sequence[str], *options: str
) -> Command:
    tests = folder / "tests"
    (tests / "test.conf").write_text(f"bootstrap.servers={target.bootstrap}\ntest.timeout.multiplier=4\n")
    environment = {
        "TEST_KAFKA_VERSION": "4.3.1",
        "TESTS_SKIP": ",".join(name[:4] for name in suite.left_out),
        **({"TESTS": ",".join(name[:4] for name in only)} if only else {}),
        "LD_LIBRARY_PATH": f"{folder}/src:{folder}/src-cpp",
    }
    # -L: without those that need no broker
    return Command(("./test-runner", "-L", *options), tests, environment)


AIOKAFKA = "AIOKAFKA_CHECKOUT"
_AIOKAFKA_PLUGIN = "aiokafka_fixtures"


def _prepare_aiokafka(suite: Suite, cache: Path) -> Path:
    checkout = os.environ.get(AIOKAFKA)
    if not checkout:
        raise LeftOutError(f"its tests are in no package: set {AIOKAFKA} to a checkout of v{suite.version}")
    if not (Path(checkout) / "tests" / "conftest.py").is_file():
        raise LeftOutError(f"{AIOKAFKA}={checkout} is no checkout of aiokafka: there is no tests/conftest.py")
    installed = importlib.metadata.version("aiokafka")
    if installed != suite.version:
        raise LeftOutError(f"they are tests of aiokafka {suite.version}, and {installed} is installed")
    folder = cache / f"aiokafka-{suite.version}"
    # without its modules: what is tested is the package that is installed
    shutil.copytree(Path(checkout) / "tests", folder / "tests", dirs_exist_ok=True)
    shutil.copyfile(Path(checkout) / "pyproject.toml", folder / "pyproject.toml")
    shutil.copyfile(_HERE / f"{_AIOKAFKA_PLUGIN}.py", folder / f"{_AIOKAFKA_PLUGIN}.py")
    return folder


def _aiokafka(suite: Suite, folder: Path, target: Target, only: Sequence[str]) -> Command:
    words = (sys.executable, "-m", "pytest", "-v", "--tb=short", "--show-capture=no", "--color=no")
    plugins = ("-p", "no:cacheprovider", "-p", "no:kohort", "-p", _AIOKAFKA_PLUGIN)
    # their own settings make errors of warnings, such as that pytest-asyncio is not told the scope of loops
    options = ("-o", "timeout=180", "-o", "asyncio_default_fixture_loop_scope=function")
    skipped = tuple(word for name in suite.left_out for word in ("--deselect", name))
    with_broker = sorted(
        f"tests/{path.name}"
        for path in (folder / "tests").glob("test_*.py")
        if "KafkaIntegrationTestCase" in path.read_text() and (target.sasl or path.name != "test_sasl.py")
    )
    environment = {
        "KOHORT_FOREIGN_PLAIN": target.bootstrap.rpartition(":")[2],
        **({"KOHORT_FOREIGN_SASL": target.sasl.rpartition(":")[2]} if target.sasl else {}),
        "COLUMNS": "200",
    }
    version = ("--docker-image", "kafka:2.13_4.3.1")  # whose number alone is read
    return Command(
        (*words, *plugins, *options, *skipped, *version, *(only or with_broker)), folder, environment
    )


_CREATED_AT_ONCE = (
    "a Metadata request that creates a topic describes it; Apache Kafka answers first that there is none"
)
_HEARD_LATER = "reads a change back at once; Apache Kafka's broker hears of it a moment later"
_READS_NOTHING = "its reader has no record before the time of the test is over"
_KAFKA_GO_PANICS = tuple(
    f"kafka-go:TestReaderConsumerGroup/{test}"
    for test in (
        "verify_offset_committed",
        "verify_offset_committed_when_using_interval_committer",
        "consumer_group_commits_on_close",
    )
)
_KAFKA_GO_CONCURRENTLY = "writing_and_reading_messages_concurrently_should_preserve_the_order"
_AIOKAFKA_TLS = "its certificates are made in its Docker image"
_KERBEROS = "Kerberos, which kohort's broker does not take"
_ADMIN = "test/integration/test_admin_integration.py"
_KAFKA_PYTHON_SSL = tuple(
    f"test/integration/test_ssl_integration.py::TestSSLConnection::{test}"
    for test in ("test_ssl_handshake", "test_legacy_kafka_client_ssl")
)
_LIBRDKAFKA_SHARE = (
    *("0170_share_consumer_subscription", "0171_share_consumer_consume", "0172_share_consumer_acknowledge"),
    *("0173_share_consumer_commit_async", "0174_share_consumer_concurrency", "0175_share_consumer_groups"),
    *("0176_share_consumer_commit_sync", "0177_share_consumer_transactions", "0178_share_consumer_close"),
    *("0179_share_consumer_destroy", "0180_share_consumer_config", "0181_share_consumer_topic_delete"),
    *("0184_share_consumer_topic_recreate", "0185_share_consumer_max_poll_interval"),
)
_LIBRDKAFKA_SCRIPTS = (
    *("0052_msg_timestamps", "0077_compaction", "0109_auto_create_topics"),
    *("0115_producer_auth", "0119_consumer_auth"),
)

SUITES = (
    Suite(
        name="franz-go",
        version="1.22.3",
        source="Go module",
        prepare=_go_module("github.com/twmb/franz-go"),
        command=_kgo,
        read=read_go,
        left_out={
            "kgo:TestOAuthAuth": "logs in with a token that nobody signed, which kohort lets nobody do",
        },
    ),
    Suite(
        name="kafka-go",
        version="0.4.51",
        source="Go module",
        prepare=_go_module("github.com/segmentio/kafka-go"),
        command=_kafka_go,
        read=read_go,
        left_out={
            **dict.fromkeys(
                _KAFKA_GO_PANICS,
                "panics with both brokers, in the suite's own `getOffsets`, and ends all tests behind it",
            ),
            "kafka-go:TestReaderConsumerGroup/consumer_group_rebalance": "fails with both brokers, run by "
            "itself: two readers of three partitions do not get half of the records each",
            f"kafka-go:TestConn/{_KAFKA_GO_CONCURRENTLY}": "may go round for ever on Apache Kafka: reader "
            "and writer of one connection leave each other a response that neither takes",
            "kafka-go:TestReaderReadCompactedMessage": "asks for segments of 200 bytes, which Apache Kafka "
            "4.x refuses",
        },
        known={
            "kafka-go:TestConn/test_delete_topics": _CREATED_AT_ONCE,
            "kafka-go:TestConn/test_delete_topics_with_an_invalid_topic": _CREATED_AT_ONCE,
        },
        known_on_apache_kafka={
            "kafka-go:TestConn/test_delete_topics": _HEARD_LATER,
            "kafka-go:TestDescribeUserScramCredentials": _HEARD_LATER,
            "kafka-go:TestClientElectLeaders": "the election is answered REQUEST_TIMED_OUT",
            "kafka-go:TestClient/retrieve_committed_offsets_for_a_consumer_group_and_topic": _READS_NOTHING,
            "kafka-go:TestRebalanceTooManyConsumers": _READS_NOTHING,
        },
        ports=Ports(plain=9092, sasl=9093, controller=9094, host="localhost"),
    ),
    Suite(
        name="kafka-python",
        version="3.0.12",
        source="sdist",
        prepare=_prepare_kafka_python,
        command=_kafka_python,
        read=read_pytest,
        settings={"group.min.session.timeout.ms": "500"},
        left_out={
            f"{_ADMIN}::test_create_partitions": "assigns partitions to broker 0, without looking for one",
            **dict.fromkeys(
                _KAFKA_PYTHON_SSL, "starts an Apache Kafka of its own, also where it is told of one"
            ),
        },
        known={
            f"{_ADMIN}::test_describe_metadata_quorum": "DescribeQuorum: it has no quorum of controllers",
        },
    ),
    Suite(
        name="librdkafka",
        version="2.15.0",
        source=f"a checkout, named by `{LIBRDKAFKA}`",
        prepare=_prepare_librdkafka,
        command=_librdkafka,
        read=read_librdkafka,
        left_out={
            **dict.fromkeys(_LIBRDKAFKA_SHARE, "share groups (KIP-932): run by librdkafka-share, whole"),
            **dict.fromkeys(_LIBRDKAFKA_SCRIPTS, "runs shell scripts of an Apache Kafka (KAFKA_PATH)"),
            "0103_transactions": "its topics have three replicas: needs three brokers",
        },
    ),
    Suite(
        name="librdkafka-share",
        version="2.15.0",
        source=f"a checkout, named by `{LIBRDKAFKA}`",
        prepare=_prepare_librdkafka,
        command=_librdkafka_share,
        read=read_librdkafka,
        left_out={},
        settings={"group.share.min.record.lock.duration.ms": "1000"},
    ),
    Suite(
        name="aiokafka",
        version="0.14.0",
        source=f"a checkout, named by `{AIOKAFKA}`",
        prepare=_prepare_aiokafka,
        command=_aiokafka,
        read=read_pytest,
        settings={
            "num.partitions": "2",
            "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN_LOGIN} required user_test="test";',
        },
        left_out={
            "tests/test_consumer.py::TestConsumerIntegration::test_ssl_consume": _AIOKAFKA_TLS,
            "tests/test_producer.py::TestKafkaProducerIntegration::test_producer_ssl": _AIOKAFKA_TLS,
            "tests/test_sender.py::TestSender::test_sender__handler_base_do": "asks broker 0, without "
            "looking for one",
            "tests/test_sasl.py::TestKafkaSASL::test_sasl_plaintext_gssapi": _KERBEROS,
            "tests/test_sasl.py::TestKafkaSASL::test_admin_client_sasl_plaintext_gssapi": _KERBEROS,
        },
    ),
)
