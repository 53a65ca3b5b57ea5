"""``kohort top``: the difference between two snapshots of a broker's metrics, again and again."""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..screen import OK, UNREACHABLE, WRONG_USE

if TYPE_CHECKING:
    from rich.console import Console, Group


#: Label values of a sample, in the order of ``Look.by``'s labels.
Key = tuple[str, ...]

_REQUESTS = "kafka_network_requestmetrics_"
_TOPICS = "kafka_server_brokertopicmetrics_"
_STATES = "kafka_coordinator_group_groupmetadatamanager_numgroups"


@dataclass(frozen=True, slots=True)
class Look:
    """All samples at one moment: name, then (labels, value) of each."""

    at_s: float
    samples: dict[str, list[tuple[dict[str, str], float]]]

    def by(self, name: str, *labels: str, **fixed: str) -> dict[Key, float]:
        """Sums of a metric by these labels, over the samples that have the fixed ones."""
        found: dict[Key, float] = {}
        for own, value in self.samples.get(name, ()):
            if all(own.get(label) == wanted for label, wanted in fixed.items()):
                key = tuple(own.get(label, "") for label in labels)
                found[key] = found.get(key, 0.0) + value
        return found

    def total(self, name: str) -> float:
        """The sum of a metric; 0 for one that is not there."""
        return sum(self.by(name).values())


@dataclass(frozen=True, slots=True)
class Shown:
    """A line, and tables: title, columns, rows of text."""

    headline: str
    tables: list[tuple[str, list[str], list[list[str]]]]


def look_at(text: str, at_s: float) -> Look:
    """The samples of a response to GET /metrics. Raises ValueError if no broker sent it."""
    from prometheus_client.parser import text_string_to_metric_families

    samples: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    if f"{_REQUESTS}requests_total" not in samples and _STATES not in samples:
        raise ValueError("these are no metrics of a broker")
    return Look(at_s, samples)


def rows_of(before: Look, now: Look, limit: int) -> Shown:
    """The tables, at most ``limit`` rows each, the busiest first."""

    def rates(name: str, *labels: str) -> dict[Key, float]:
        return _rates_of(before, now, name, *labels)

    requests = rates(f"{_REQUESTS}requests_total", "request")
    headline = (
        f"{_number_text(sum(requests.values()))} requests/s  "
        f"{now.total('kafka_server_socket_server_metrics_connection_count'):.0f} connections  "
        f"{now.total(_STATES):.0f} groups  {now.total('kohort_group_members'):.0f} members"
    )
    return Shown(
        headline,
        [
            ("APIs", *_api_table(before, now, requests, limit)),
            ("Groups", *_group_table(before, now)),
            ("Clients", *_client_table(rates, now, limit)),
            ("Topics", *_topic_table(rates, limit)),
            ("Quotas", *_quota_table(before, now, limit)),
        ],
    )


_Rates = Callable[..., dict[Key, float]]
_Table = tuple[list[str], list[list[str]]]


def _rates_of(before: Look, now: Look, name: str, *labels: str) -> dict[Key, float]:
    """Growth of a counter per second; after a restart of the broker, its whole value."""
    seconds = max(now.at_s - before.at_s, 0.001)
    then = before.by(name, *labels)
    return {
        key: (value - then.get(key, 0.0) if value >= then.get(key, 0.0) else value) / seconds
        for key, value in now.by(name, *labels).items()
    }


def _api_table(before: Look, now: Look, requests: dict[Key, float], limit: int) -> _Table:
    errors = _rates_of(before, now, f"{_REQUESTS}errors_total", "request")
    slow = now.by(f"{_REQUESTS}totaltimems", "request", quantile="0.99")
    local = now.by(f"{_REQUESTS}localtimems", "request", quantile="0.99")
    rows = [
        [
            key[0],
            _number_text(rate),
            _number_text(errors.get(key, 0.0)),
            _ms_text(slow.get(key)),
            _ms_text(local.get(key)),
        ]
        for key, rate in _busiest_keys(requests, limit)
    ]
    return ["request", "per s", "errors/s", "p99 ms", "local p99 ms"], rows


def _group_table(before: Look, now: Look) -> _Table:
    counts = {
        name.removeprefix(_STATES): now.total(name)
        for name in now.samples
        if name.startswith(_STATES) and name != _STATES
    }
    # Apache Kafka's metrics lack some states
    for (state,), count in now.by("kohort_groups", "state").items():
        counts.setdefault(state.lower(), count)
    states = [[state, f"{count:.0f}", ""] for state, count in sorted(counts.items()) if count]
    causes = _rates_of(before, now, "kohort_group_rebalances_total", "cause")
    totals = now.by("kohort_group_rebalances_total", "cause")
    rows = [
        [f"rebalances: {key[0]}", f"{totals[key]:.0f}", _number_text(rate)] for key, rate in causes.items()
    ]
    return ["", "now", "per s"], states + rows


def _client_table(rates: _Rates, now: Look, limit: int) -> _Table:
    labels = ("user", "client_id")
    requests = rates("kohort_client_requests_total", *labels)
    produced = rates("kohort_client_produced_bytes_total", *labels)
    fetched = rates("kohort_client_fetched_bytes_total", *labels)
    connections = now.by("kohort_client_connections", *labels)
    rows = []
    for key, rate in _busiest_keys(requests, limit):
        figures = map(_number_text, (rate, produced.get(key, 0.0), fetched.get(key, 0.0)))
        rows.append([" ".join(key), f"{connections.get(key, 0):.0f}", *figures])
    return ["user, client id", "connections", "requests/s", "produced B/s", "fetched B/s"], rows


def _topic_table(rates: _Rates, limit: int) -> _Table:
    records = rates(f"{_TOPICS}messagesin_total", "topic")
    bytes_in = rates(f"{_TOPICS}bytesin_total", "topic")
    bytes_out = rates(f"{_TOPICS}bytesout_total", "topic")
    both = {key: value + bytes_out.get(key, 0.0) for key, value in bytes_in.items()}
    rows = [
        [
            key[0],
            _number_text(records.get(key, 0.0)),
            _number_text(bytes_in[key]),
            _number_text(bytes_out.get(key, 0.0)),
        ]
        for key, _ in _busiest_keys(both, limit)
    ]
    return ["topic", "records/s", "in B/s", "out B/s"], rows


def _quota_table(before: Look, now: Look, limit: int) -> _Table:
    labels = ("quota", "user", "client_id")
    limits = now.by("kohort_quota_limit", *labels)
    waits = _rates_of(before, now, "kohort_quota_throttled_seconds_total", *labels)
    rows = [
        [" ".join(part or "*" for part in key), _number_text(limits.get(key, 0.0)), f"{rate:.2f}"]
        for key, rate in _busiest_keys(waits, limit)
    ]
    return ["quota, user, client id", "limit", "s of delay per s"], rows


def _busiest_keys(rates: dict[Key, float], limit: int) -> list[tuple[Key, float]]:
    busy = [item for item in rates.items() if item[1] > 0]
    return sorted(busy, key=lambda item: (-item[1], item[0]))[:limit]


def _number_text(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if unit == 'k' else size):,.1f} {unit}"
    return f"{value:,.1f}"


def _ms_text(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def escape_text(text: str) -> str:
    """Client-supplied text without sequences that control a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


#: Shortest and longest interval.
_LEAST_S, _MOST_S = 0.1, 3_600

_TIMEOUT_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kohort top``."""
    parser.add_argument(
        "address",
        type=metrics_address,
        metavar="HOST:PORT",
        help="the broker's --metrics-port, or a URL: http://HOST:PORT/metrics",
    )
    parser.add_argument(
        "--interval",
        type=_positive_seconds,
        default=2.0,
        metavar="S",
        help="seconds between two looks (default: %(default)s)",
    )
    parser.add_argument("--rows", type=int, default=10, metavar="N", help="rows of each table (default: 10)")
    parser.add_argument("--once", action="store_true", help="print one look, over one interval, and end")


def run(options: argparse.Namespace) -> int:
    """Show snapshots until interrupted; returns the exit code."""
    from rich.console import Console

    console = Console()
    try:
        if options.once:
            first, second = _two_looks(options)
            console.print(_draw_screen(first, second, options))
        else:
            _show_live(console, options)
    except ImportError:
        print("kohort top: it needs prometheus-client: pip install 'kohort[service]'", file=sys.stderr)
        return WRONG_USE
    except (OSError, ValueError) as error:
        print(f"kohort top: no metrics at {options.address} {_advice_on(error)}", file=sys.stderr)
        return UNREACHABLE
    except KeyboardInterrupt:
        pass
    return OK


def _advice_on(error: OSError | ValueError) -> str:
    """What went wrong, and what to do about it."""
    reason = getattr(error, "reason", error)
    if isinstance(reason, socket.gaierror):
        return f"({reason.strerror}): check the name"
    if isinstance(reason, ConnectionRefusedError):
        return f"({reason}): start the broker with --metrics-port"
    return f"({reason}): is it the --metrics-port of a broker that runs?"


def _two_looks(options: argparse.Namespace) -> tuple[Look, Look]:
    first = _fetch_snapshot(options.address)
    time.sleep(options.interval)
    return first, _fetch_snapshot(options.address)


def _show_live(console: Console, options: argparse.Namespace) -> None:
    from rich.live import Live

    before, now = _two_looks(options)
    with Live(_draw_screen(before, now, options), console=console, screen=console.is_terminal) as live:
        while True:
            time.sleep(options.interval)
            before, now = now, _fetch_snapshot(options.address)
            live.update(_draw_screen(before, now, options))


def _fetch_snapshot(address: str) -> Look:
    """Read a snapshot. Raises OSError, and ValueError for anything but a broker's metrics."""
    import urllib.request  # not above: the help needs no HTTP

    with urllib.request.urlopen(metrics_url(address), timeout=_TIMEOUT_S) as answer:
        return look_at(str(answer.read(), "utf-8"), time.monotonic())


def _draw_screen(before: Look, now: Look, options: argparse.Namespace) -> Group:
    """All tables, with the differences between two snapshots."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown = rows_of(before, now, options.rows)
    tables: list[Table | Text] = [Text(escape_text(f"{options.address}  {shown.headline}"), style="bold")]
    for title, columns, rows in shown.tables:
        if not rows:
            continue
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for number, column in enumerate(columns):
            table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(escape_text(cell)) for cell in row))
        tables.append(table)
    return Group(*tables)


def metrics_url(address: str) -> str:
    """The URL of ``HOST:PORT``, with or without a scheme and a path."""
    url = address if "://" in address else f"http://{address}"
    return url if urlsplit(url).path.strip("/") else url.rstrip("/") + "/metrics"


def metrics_address(text: str) -> str:
    url = metrics_url(text)
    try:
        parts = urlsplit(url)
        # a URL has the port of its scheme
        has_port = parts.port is not None or "://" in text
        known = has_port and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        known = False
    if not known or any(char <= " " for char in text):
        raise argparse.ArgumentTypeError(f"{text!r}: give HOST:PORT or http://HOST:PORT/metrics")
    return text


def _positive_seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not _LEAST_S <= value <= _MOST_S:
        raise argparse.ArgumentTypeError(f"{text!r}: give seconds, {_LEAST_S:g} to {_MOST_S:,}")
    return value
