"""The ``kohort`` command: imports little until a command runs, as ``kohort broker`` must serve in 0.3 s."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from .broker import Broker, LogHandler

#: Exit codes, as shells know them: all went well, "you asked for something I cannot do", and Ctrl-C.
OK, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

_READY = "kohort broker ready on"
_MOST_WORKERS = 1_000
#: So many characters of a name, an option's dashes included, are taken for a part of it.
_FRAGMENT = 5


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            if not (meant := _did_you_mean(str(value), map(str, action.choices or ()))):
                raise
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{meant}") from None

    def refuse_options(self, words: Sequence[str], *others: argparse.ArgumentParser) -> NoReturn:
        """End, as this parser has no such options; ``others`` may have what was meant."""
        option = words[0].partition("=")[0]
        meant = ""
        for parser in (self, *others):
            known = [name for name in parser._option_string_actions if name.startswith("--")]
            meant = meant or _did_you_mean(option, known, "" if parser is self else f"{parser.prog} ")
        self.error(f"unrecognized arguments: {' '.join(words)}{meant}")

    def parser_of(self, *commands: str | None) -> _Parser:
        """The parser of a command, of a command's action, and so on."""
        parser = self
        for word in filter(None, commands):
            for action in parser._actions:
                if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                    parser = action.choices[word]
        return parser

    def format_help(self) -> str:
        """The help, with examples in the end."""
        from .admin.help.examples import examples_of

        lines = "".join(f"  {line}\n" for line in examples_of(self.prog))
        return super().format_help() + (f"\nexamples:\n{lines}" if lines else "")

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USE, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def exit(self, status: int = OK, message: str | None = None) -> NoReturn:
        super().exit(_flush_output(status), message)


#: Commands with a module of their own: help, description, the module, and its functions that add arguments
#: and run the command. A module is imported only where the words name its command; where importing it takes
#: long, the arguments are here.
_COMMANDS: Final = {
    "serve-check": (
        "what a broker's settings open to whom, what they limit, and what to think about again",
        "Read the settings of a broker and say what they mean. Nothing is started or changed.",
        ("broker.commands", "", "run_check"),
    ),
    "users": (
        "SCRAM users: of running brokers of any make, or of a data folder before a broker starts",
        "Look at SCRAM users and change them: of running brokers, or of a data folder that no broker uses.",
        ("admin.access.user_commands", "add_arguments", "run"),
    ),
    "groups": (
        "look at groups, reset their offsets, delete them: on any broker of Kafka's protocol",
        "Look at consumer groups and change them. Works on any broker of Kafka's protocol.",
        ("admin.groups.commands", "add_arguments", "run"),
    ),
    "topics": (
        "make topics, look at them, change and delete them: on any broker of Kafka's protocol",
        "Look at topics and change them. Works on any broker of Kafka's protocol.",
        ("admin.topics.commands", "add_arguments", "run"),
    ),
    "produce": (
        "write lines of a file or a pipe to a topic: on any broker of Kafka's protocol",
        "Write each line as a record. It ends at the first one that fails, and names its line.",
        ("admin.records.produce_command", "add_arguments", "run"),
    ),
    "consume": (
        "print the records of topics: on any broker of Kafka's protocol",
        "Print records, in a group or without one, to the present end of the topics or as they come.",
        ("admin.records.consume_command", "add_arguments", "run"),
    ),
    "deadletters": (
        "records that services have set aside: look at them, and write them to their topics again",
        "Look at dead letters of services and replay them. Works on any broker of Kafka's protocol.",
        ("admin.records.deadletter_commands", "add_arguments", "run"),
    ),
    "log": (
        "look into the files of a data folder: verify it, or show what is in a file",
        "Look into the files of a data folder, kohort's or Apache Kafka's. Only strays --remove changes any.",
        ("admin.log_commands", "add_arguments", "run"),
    ),
    "run": (
        "run a ConsumerService, in one process or in several",
        "Run a ConsumerService. SIGTERM: drain, commit, leave. SIGHUP, with --workers: restart one by one.",
        ("service._command", "", "run"),
    ),
    "assignors": (
        "what a group would get from an assignor, what would move, and how assignors compare",
        "Try assignors on a live group of any broker, or on one in a file. Nothing is changed.",
        ("admin.assignors.commands", "add_arguments", "run"),
    ),
    "spark": (
        "batches and lag of a group's Spark job; a checkpoint's offsets for a group",
        "Look at the Spark job of a group. Works on any broker of Kafka's protocol.",
        ("admin.spark_commands", "add_arguments", "run"),
    ),
    "cluster": (
        "brokers, missing replicas, reassignments and leaders of a cluster: on any broker",
        "Look at brokers and replicas, move them, elect leaders. Works on any broker of Kafka's protocol.",
        ("admin.cluster.commands", "add_arguments", "run"),
    ),
    "acls": (
        "who may do what: look at access rules, add and remove some: on any broker",
        "Look at access rules and change them. Works on any broker of Kafka's protocol.",
        ("admin.access.acl_commands", "add_arguments", "run"),
    ),
    "quotas": (
        "how much of the brokers clients may use: look at quotas, set and remove some: on any broker",
        "Look at quotas of clients and change them. Works on any broker of Kafka's protocol.",
        ("admin.access.quota_commands", "add_arguments", "run"),
    ),
    "configs": (
        "configs of topics, groups and brokers: look at them, set and delete some: on any broker",
        "Look at configs and change them. Works on any broker of Kafka's protocol.",
        ("admin.access.config_commands", "add_arguments", "run"),
    ),
    "problems": (
        "what is wrong with a cluster now, its brokers and services: of any broker",
        "Say what is wrong with a cluster. The exit code is 1 if anything is. Nothing is changed.",
        ("admin.cluster.problem_commands", "add_arguments", "run"),
    ),
    "transactions": (
        "open transactions, what they hold back, and the end of those that hang: on any broker",
        "Look at transactions, and end those that hang. Works on any broker of Kafka's protocol.",
        ("admin.transactions.commands", "add_arguments", "run"),
    ),
    "profiles": (
        "the clusters that --profile may name",
        "Look at the profiles, connections of several clusters in one file.",
        ("admin.profiles.commands", "add_arguments", "run"),
    ),
    "completion": (
        "a script that completes commands and options in bash, zsh or fish",
        "Print the script that completes kohort's commands and options in a shell.",
        ("admin.help.completion", "add_completion_arguments", ""),
    ),
    "ui": (
        "a page for a cluster: groups, who had what when, why they rebalanced: of any broker",
        "Serve a page for a cluster of Kafka's protocol. It changes nothing unless --allow-changes is given.",
        ("ui.commands", "add_arguments", "run"),
    ),
    "top": (
        "a live look at a broker: rates, groups, the busiest clients and topics",
        "Look at the metrics of a broker that was started with --metrics-port.",
        ("admin.cluster.top", "add_arguments", "run"),
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; gives the exit code."""
    try:
        return _run(argv)
    except KeyboardInterrupt:
        return INTERRUPTED  # before the command has begun to listen for it


def _run(argv: Sequence[str] | None) -> int:
    _occupy_standard_streams()
    words = sys.argv[1:] if argv is None else argv
    parser = _make_parser(words)
    if words and words[0].startswith("--") and not parser._get_option_tuples(words[0]):
        parser.refuse_options(words, parser.parser_of("broker"))
    options, unknown = parser.parse_known_args(words)
    if unknown:
        parser.parser_of(options.command, getattr(options, "action", None)).refuse_options(unknown)
    if options.command is None:
        parser.print_help()
        return _flush_output(OK)
    if options.command == "broker":
        return _run_broker(options)
    if options.command == "completion":
        return _print_completion(options.shell)
    module, _, run = _COMMANDS[options.command][2]
    if options.command == "users" and (options.data or options.settings_file):
        module, run = "broker.commands", "run_users"  # of brokers that are stopped
    code: int = getattr(import_module(f".{module}", __package__), run)(options)
    return code


def _print_completion(shell: str) -> int:
    from .admin.commands import run_program
    from .admin.help.completion import completion_script

    def print_script() -> int:
        print(completion_script(shell, _make_parser(tuple(_COMMANDS))), end="")
        return OK

    return run_program("kohort completion", print_script)


def _did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    import difflib

    names = list(known)
    near: list[str] = []
    if len(word) >= _FRAGMENT:
        # a part of a name, as --protocol or records
        part = word.removeprefix("--")
        near = [name for name in names if f"-{part}" in name and name.startswith("--") == (part != word)]
    near = near or difflib.get_close_matches(word, names, n=1, cutoff=0.7)
    return f", did you mean {' or '.join(f'{prefix}{name}' for name in near[:2])}?" if near else ""


def _occupy_standard_streams() -> None:
    """Open closed ones on the null device: a data file would get their numbers, and errors in it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    # sys.stdout stays None: commands whose output nobody reads say so
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _flush_output(code: int) -> int:
    """Write what help and version have printed; the exit code, of a full disk if there was ``code`` 0."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        from .admin.screen import drop_output

        drop_output()
        if not isinstance(error, BrokenPipeError):
            print(f"kohort: standard output: {error.strerror}", file=sys.stderr)
            return code or WRONG_USE
    return code


class _Version(argparse.Action):
    """Looks the version up when it is asked for: that takes as long as all else before a command begins."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from . import __version__
        from .protocol import implementation

        parser._print_message(f"kohort {__version__} ({implementation()})\n", sys.stdout)
        parser.exit()


def _make_parser(words: Sequence[str]) -> _Parser:
    parser = _Parser(prog="kohort", description="Kafka's consumer-group coordinator in Python.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    broker = commands.add_parser(
        "broker",
        help="run a broker that speaks Kafka's protocol",
        description=f"Run a broker. It prints '{_READY} HOST:PORT' when it serves and ends on SIGTERM.",
    )
    _add_broker_arguments(broker)
    broker.add_argument(
        "--log-level",
        type=str.upper,
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        default="INFO",
        help="what to say on standard error (default: %(default)s)",
    )
    broker.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="lines of text with keys and values, or JSON objects (default: %(default)s)",
    )
    for name, (told, description, (module, add_arguments, _)) in _COMMANDS.items():
        command = commands.add_parser(name, help=told, description=description)
        if name in _ARGUMENTS:
            _ARGUMENTS[name](command)
        elif name in words:
            getattr(import_module(f".{module}", __package__), add_arguments)(command)
    return parser


def _add_broker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on, unless listeners are set (default: 127.0.0.1)")
    parser.add_argument(
        "--port",
        type=_port_number,
        help="port to listen on, 0 for a free one, unless listeners are set (default: 9092)",
    )
    parser.add_argument(
        "--zookeeper",
        metavar="HOST:PORT,.../CHROOT",
        help="be a broker of the cluster whose metadata are there (zookeeper.connect)",
    )
    parser.add_argument("--node-id", metavar="N", help="number of this broker in its cluster (node.id)")
    parser.add_argument("--rack", help="rack of this broker: replicas are spread over racks (broker.rack)")
    parser.add_argument(
        "--data", metavar="DIR", help="data folder; without it a temporary one, removed at the end"
    )
    parser.add_argument(
        "--settings", metavar="FILE", dest="settings_file", help="a file of settings, as server.properties"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="settings",
        action="append",
        type=_setting_pair,
        default=[],
        help="a setting by Kafka's name, such as num.partitions=6; may be given many times",
    )
    parser.add_argument(
        "--metrics-port",
        type=_port_number,
        metavar="PORT",
        help="serve Prometheus metrics at http://HOST:PORT/metrics, 0 for a free one (default: not served)",
    )


def _add_check_arguments(parser: argparse.ArgumentParser) -> None:
    _add_broker_arguments(parser)
    parser.add_argument("--strict", action="store_true", help="end with 1 if there is a warning")


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="MODULE:SERVICE", help="where the ConsumerService is, as app:service"
    )
    parser.add_argument(
        "--workers", type=_worker_count, metavar="N", help="run it in N processes, which are kept running"
    )
    parser.add_argument(
        "--instance-id",
        metavar="PREFIX",
        help="with --workers: make them static members PREFIX-0, PREFIX-1 ...: no rebalance at restarts",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="settings that the service leaves open, by Java's names or as TOML (default: KOHORT_CONFIG; "
        "see docs/connections.md)",
    )
    parser.add_argument(
        "--log-level",
        type=str.upper,
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        default="INFO",
        help="what to say on standard error (default: %(default)s)",
    )


_ARGUMENTS: Final = {
    "serve-check": _add_check_arguments,
    "run": _add_run_arguments,
}


def _worker_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST_WORKERS):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of workers: give one from 1 to {_MOST_WORKERS}"
        )
    return int(text)


def _port_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 0 to 65535")
    return int(text)


def _setting_pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is no setting: give KEY=VALUE, such as num.partitions=6")
    return name.strip(), value.strip()


def _run_broker(options: argparse.Namespace) -> int:
    import gc
    import importlib.util
    import logging

    # what is imported is never garbage: the collector would traverse it again and again
    gc.disable()
    import asyncio

    from .broker import Broker, LogHandler, allow_open_files, loop_factory
    from .broker.settings import given_settings
    from .protocol import KafkaError, KohortError

    gc.enable()

    if options.metrics_port is not None and importlib.util.find_spec("prometheus_client") is None:
        _say_on_stderr("--metrics-port needs prometheus-client: pip install 'kohort[service]'")
        return WRONG_USE
    handler = LogHandler(options.log_format)
    logging.getLogger().addHandler(handler)
    logging.getLogger("kohort").setLevel(options.log_level)
    try:
        settings = given_settings(options)
        if settings.get("listeners") and (options.host is not None or options.port is not None):
            _say_on_stderr("give listeners, or --host and --port: not both")
            return WRONG_USE
        broker = Broker(
            host="127.0.0.1" if options.host is None else options.host,
            port=9092 if options.port is None else options.port,
            data=options.data,
            settings=settings,
            metrics_port=options.metrics_port,
        )
        allow_open_files()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve_broker(broker, handler))
    except KafkaError as error:
        # the disk fails, most often when the last records are flushed
        _say_on_stderr(f"{error}")
        return FAILED
    except KohortError as error:
        _say_on_stderr(f"{error}")
        return WRONG_USE
    except ConnectionError as error:
        # most often a session with ZooKeeper that ended during the start
        _say_on_stderr(f"the cluster's metadata are out of reach, start it again: {error}")
        return FAILED
    except OSError as error:
        _say_on_stderr(f"cannot serve on {error.strerror or error}")
        return WRONG_USE
    finally:
        # whoever called main goes on without it
        handler.flush()
        logging.getLogger().removeHandler(handler)
    return OK


def _listening_text(addresses: Mapping[str, str]) -> str:
    """Where a broker listens: an address, and each with its listener's name if there are several."""
    if len(addresses) == 1:
        return "".join(addresses.values())
    return ", ".join(f"{address} ({name})" for name, address in addresses.items())


def _say_on_stderr(line: str) -> None:
    """Say it on standard error: what cannot be said, as on a terminal that is gone, ends no broker."""
    with suppress(OSError):
        print(f"kohort broker: {line}", file=sys.stderr, flush=True)


def _say_ready(addresses: str) -> None:
    """Tell on standard output that the broker serves.

    A terminal that is closed just then is no error: if the broker is to end with it, SIGHUP follows. Anything
    else that refuses the line does: whoever waits for it would wait for ever.
    """
    try:
        print(_READY, addresses, flush=True)
    except OSError as error:
        from .admin.screen import drop_output
        from .protocol import KohortError

        drop_output()
        if error.errno != errno.EIO:
            raise KohortError(f"standard output: {error.strerror}") from error


async def _serve_broker(broker: Broker, handler: LogHandler) -> None:
    import asyncio
    import signal

    from .broker import settle_collector

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    ending = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # ignored under nohup: the broker is to outlive the terminal
        ending.append(signal.SIGHUP)
    async with broker:
        for number in ending:
            loop.add_signal_handler(number, stop.set)
        if broker.temporary:
            _say_on_stderr(f"data in {broker.data}, removed at the end")
        if broker.metrics_port is not None:
            _say_on_stderr(f"metrics at http://{broker.host}:{broker.metrics_port}/metrics")
        _say_ready(_listening_text(broker.addresses))
        settle_collector()
        handler.open()
        stopped, failed = asyncio.create_task(stop.wait()), asyncio.create_task(broker.failure())
        await asyncio.wait({stopped, failed}, return_when=asyncio.FIRST_COMPLETED)
        for task in (stopped, failed):
            task.cancel()
        if failed.done() and not failed.cancelled():
            failed.result()
