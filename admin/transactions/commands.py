"""``kohort transactions``: open transactions of any broker, which of them hold readers back, and their end.

``list`` asks every broker, ``describe`` a transaction's coordinator and the leaders of its partitions. A
transaction *hangs* when a partition has it open and its coordinator does not know it (KIP-664): no
coordinator will end it, and ``read_committed`` consumers never get past it. ``abort`` ends it there.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..commands import add_commands, reader, run_program, whole
from ..screen import OK, REFUSED, Screen

if TYPE_CHECKING:
    from rich.table import Table

    from ...client import Cluster
    from .open_transactions import DescribedTransaction, ListedTransaction

_STATES: Final = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
    *("CompleteCommit", "CompleteAbort", "PrepareEpochFence", "Dead"),
)
#: The same as OPEN of open_transactions, which a help text should not have to import.
_OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
_CLIENT: Final = "kohort-transactions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort transactions`` its commands."""
    command = add_commands(parser)
    listing = command("list", "transactional ids of all coordinators, and the states of their transactions")
    listing.add_argument(
        "--state",
        dest="states",
        metavar="STATE,...",
        type=reader(_state_names),
        default=[],
        help=f"of {', '.join(_STATES)}",
    )
    listing.add_argument("--open", action="store_true", help=f"the same as --state {','.join(_OPEN)}")
    command("describe", "a transaction: how long it is open, and where it holds readers back", "id")
    words = "find transactions that hang, which no coordinator will end, and end them with --execute"
    abort = command("abort", words)
    abort.add_argument(
        "--topic",
        dest="topics",
        metavar="TOPIC",
        action="append",
        help="look at this topic alone; many times",
    )
    abort.add_argument(
        "--partition", metavar="P", type=lambda text: whole(text, 0), help="end those of this one alone"
    )
    abort.add_argument(
        "--producer-id", metavar="ID", type=lambda text: whole(text, 0), help="end this one alone"
    )
    abort.add_argument(
        "--older-than",
        metavar="SECONDS",
        type=lambda text: whole(text, 0),
        default=900,
        help="without a record for so long (default: %(default)s, the broker's longest timeout)",
    )
    abort.add_argument("--execute", action="store_true", help="write the markers that end them")


def _state_names(text: str) -> list[str]:
    spelled = {name.lower(): name for name in _STATES}
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name.lower() not in spelled:
            raise ValueError(f"{name!r} is no state of a transaction: give {', '.join(_STATES)}")
    return [spelled[name.lower()] for name in wanted]


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort transactions", lambda: asyncio.run(_run_command(options)))


async def _run_command(options: argparse.Namespace) -> int:
    from ..connection import open_cluster
    from . import open_transactions

    async with open_cluster(options, _CLIENT) as cluster:
        if options.action == "list":
            wanted = [*options.states, *(_OPEN if options.open else ())]
            return await _list_transactions(cluster, options, wanted)
        if options.action == "describe":
            _show_transactions(options, await open_transactions.describe_transaction(cluster, options.id))
        else:
            return await _abort_transaction(cluster, options)
    return OK


async def _list_transactions(cluster: Cluster, options: argparse.Namespace, states: list[str]) -> int:
    from ..visibility import ask_hidden_transactions
    from .open_transactions import list_transactions

    found = await list_transactions(cluster, states)
    hidden = await ask_hidden_transactions(cluster)
    _show_transactions(options, found)
    Screen(as_json=options.json).remark(*hidden)
    return REFUSED if hidden and not (found or await list_transactions(cluster)) else OK


async def _abort_transaction(cluster: Cluster, options: argparse.Namespace) -> int:
    from ..topics.requests import list_topics
    from ..visibility import ask_hidden_topics
    from .open_transactions import abort_hanging, find_hanging

    hanging = [
        each
        for each in await find_hanging(cluster, options.topics, options.older_than * 1_000)
        if options.partition in (None, each.where.partition)
        and options.producer_id in (None, each.where.producer_id)
    ]
    hidden = () if options.topics else await ask_hidden_topics(cluster)
    screen = Screen(as_json=options.json)
    try:
        if options.execute:
            for at, each in enumerate(hanging):
                await abort_hanging(cluster, each.where)
                hanging[at] = replace(each, aborted=True)
    finally:
        # also if one of them cannot be ended: those before it are
        if hanging or not hidden or options.json:
            _show_transactions(options, hanging)
        else:
            screen.remark("no transaction hangs in topics that this user may see")
    screen.remark(*hidden)
    if hidden and not hanging and not await list_topics(cluster):
        return REFUSED
    return OK if options.execute or not hanging else REFUSED


# --- what is shown ------------------------------------------------------------------------------------------


def _show_transactions(options: argparse.Namespace, found: Any) -> None:
    screen = Screen(as_json=options.json)
    if options.json:
        screen.document(found)
    elif options.action == "describe":
        screen.show(*_description_of(found))
    elif options.action == "list":
        screen.show(_transaction_table(found))
    elif not found:
        screen.remark("no transaction hangs")
    else:
        screen.show(_hanging_table(found))
        if not options.execute:
            screen.remark("nothing was changed: --execute ends them")


def _transaction_table(rows: Iterable[ListedTransaction]) -> Table:
    from ..tables import table

    cells = ((row.transactional_id, row.state, row.producer_id, f"node {row.coordinator}") for row in rows)
    return table(["TRANSACTIONAL ID", "STATE", "PRODUCER", "COORDINATOR"], cells)


def _description_of(found: DescribedTransaction) -> list[object]:
    from ..notation import span
    from ..tables import pairs, table

    head: list[tuple[str, object]] = [
        ("transactional id", found.transactional_id),
        ("state", found.state),
        ("producer", f"{found.producer_id}, epoch {found.producer_epoch}"),
        ("open for", None if found.open_ms is None else span(found.open_ms)),
        ("timeout", span(found.timeout_ms)),
        ("partitions", ", ".join(found.partitions) or None),
    ]
    parts: list[object] = [pairs(head)]
    if found.holds_back:
        rows = ((p.topic, p.partition, p.start_offset, p.held_back) for p in found.holds_back)
        parts.append(table(["TOPIC", "PARTITION", "START", "HELD BACK"], rows))
    return parts


def _hanging_table(rows: Iterable[Any]) -> Table:
    from ..notation import span
    from ..tables import table

    cells = (
        (
            *(row.where.topic, row.where.partition, row.where.start_offset, row.where.held_back),
            f"{row.where.producer_id}, epoch {row.where.producer_epoch}",
            span(row.silent_ms),
            "ended" if row.aborted else "hangs",
        )
        for row in rows
    )
    return table(["TOPIC", "PARTITION", "START", "HELD BACK", "PRODUCER", "SILENT FOR", "NOW"], cells)
