"""What a run came to, as a section of docs/reports/reliability.md."""

from __future__ import annotations

from tests.churn.crowd import Crowd
from tests.churn.judge import Verdict
from tests.churn.member import OURS
from tests.reliability_report import table

_DONE = {
    "join": "members that joined",
    "leave": "left (SIGTERM)",
    "kill": "killed (SIGKILL)",
    "stop": "stopped beyond their session (SIGSTOP)",
    "pause": "blocked in their own code beyond their session",
    "broker killed and started": "the broker was killed and started again",
    "ended by itself": "members of other makes that ended by themselves",
    "does not leave": "members of other makes that did not leave in two minutes",
}


def told(crowd: Crowd, verdict: Verdict, title: str, where: str) -> str:
    """The section."""
    plan = crowd.plan
    ours = [(before, again) for before, again in verdict.twice if _is_ours(before.member)]
    early = [each for each in verdict.out_of_order if _is_ours(each.member)]
    rows: list[tuple[object, ...]] = [
        ("records acknowledged", verdict.records),
        ("records handled", verdict.handled),
        ("**lost**", len(verdict.lost)),
        ("**handled before their predecessor** by members of ours", len(early)),
        ("**handled twice without a kill or an expired session** after a member of ours", len(ours)),
        ("the same after a member of another make", len(verdict.twice) - len(ours)),
        (
            "handled twice, within a kill or an expired session, or by a process that starved",
            verdict.explained,
        ),
        ("longest time in which nothing was handled", f"{verdict.silence_s:.2f} s"),
        (
            "longest time in which the machine let nothing be sent, or a process starve",
            f"{verdict.stall_s:.2f} s",
        ),
        ("times that a process starved", sum(each.what == "starved" for each in crowd.troubles)),
        ("longest time that a member of ours took to leave", f"{max(crowd.leaves_s, default=0.0):.1f} s"),
    ]
    times = {text: _times(crowd, what) for what, text in _DONE.items()}
    done: list[tuple[object, ...]] = [(text, count) for text, count in times.items() if count]
    rate = plan.records // max(1, round(plan.seconds))
    how = (
        f"{plan.seconds:.0f} s, {rate:,} records a second, seed {plan.seed}, protocol {plan.protocol}, "
        f"assignor {plan.assignor}; members: {', '.join(plan.kinds)}. `tests/churn`"
    )
    tables = table(("what was done", "times"), done), table(("what came of it", ""), rows)
    return "\n\n".join((f"## Churn on {where}: {title}", how, *tables))


def _times(crowd: Crowd, what: str) -> int:
    return sum(count for text, count in crowd.done.items() if text.startswith(what))


def _is_ours(member: str) -> bool:
    return member.partition("-")[2] in OURS
