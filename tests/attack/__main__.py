"""``python -m tests.attack [small] [WORD]``: figures of docs/reports/evidence.md, of attacks with WORD."""

from __future__ import annotations

import sys

from tests.attack.attacks import many_files
from tests.attack.measure import full, run, small


def main(arguments: list[str]) -> None:
    many_files()
    plans = small() if "small" in arguments else full()
    words = [word for word in arguments if word != "small"]
    print("| attack | usual p99 | p99 under attack | memory | allowed |\n| --- | --- | --- | --- | --- |")
    for plan in plans:
        if words and not any(word in plan.what for word in words):
            continue
        found = run(plan)
        print(
            f"| {found.what} | {found.usual_p99_ms:.1f} ms | {found.attack_p99_ms:.1f} ms "
            f"| +{found.grown_mib:.0f} MiB | {found.bound_mib:,.0f} MiB |",
            flush=True,
        )
        print(found.counts, found.requests, found.wrong[:3], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
