"""Examples of each command, for the end of its help; loaded with a help text alone."""

from __future__ import annotations

from typing import Final

#: By the words that lead to a command. One that only has actions shows the first of each of its first two.
_EXAMPLES: Final = {
    "kohort": ("kohort broker --port 9092 --data ./data", "kohort topics list --bootstrap kafka-1:9092"),
    "kohort broker": (
        "kohort broker --port 9092 --data ./data --set num.partitions=6",
        "kohort broker --settings server.properties --data ./data --metrics-port 9400",
    ),
    "kohort serve-check": (
        "kohort serve-check --settings server.properties --data ./data",
        "kohort serve-check --settings server.properties --strict",
    ),
    "kohort users list": ("kohort users list", "kohort users list alice --json"),
    "kohort users add": (
        "kohort users add alice",
        "kohort users add admin --data ./data --mechanism SCRAM-SHA-512",
    ),
    "kohort users remove": (
        "kohort users remove alice",
        "kohort users remove alice --mechanism SCRAM-SHA-256 --dry-run",
    ),
    "kohort groups list": ("kohort groups list", "kohort groups list --state Stable,Empty --type consumer"),
    "kohort groups describe": ("kohort groups describe billing", "kohort groups describe billing --json"),
    "kohort groups lag": (
        "kohort groups lag --over 1000",
        "kohort groups lag billing --older-than 5m --partitions",
    ),
    "kohort groups timeline": (
        "kohort groups timeline billing --limit 50",
        "kohort groups timeline billing --html billing.html",
    ),
    "kohort groups watch": (
        "kohort groups watch billing",
        "kohort groups watch billing --interval 5 --count 12",
    ),
    "kohort groups reset-offsets": (
        "kohort groups reset-offsets billing --to-earliest --topic orders",
        "kohort groups reset-offsets billing --by-duration 2h --all-topics --execute",
    ),
    "kohort groups import": (
        "kohort groups import billing --zookeeper zk1:2181",
        "kohort groups import billing --zookeeper zk1:2181/kafka --execute",
    ),
    "kohort groups delete": ("kohort groups delete billing", "kohort groups delete billing reports --json"),
    "kohort groups delete-offsets": (
        "kohort groups delete-offsets billing --topic orders",
        "kohort groups delete-offsets billing --topic orders:1,3 --topic clicks",
    ),
    "kohort topics list": ("kohort topics list", "kohort topics list --internal --json"),
    "kohort topics describe": (
        "kohort topics describe orders",
        "kohort topics describe orders --all-configs",
    ),
    "kohort topics create": (
        "kohort topics create orders --partitions 6 --config retention.ms=86400000",
        "kohort topics create orders clicks --if-not-exists",
    ),
    "kohort topics alter": (
        "kohort topics alter orders --partitions 12 --dry-run",
        "kohort topics alter orders --config cleanup.policy=compact --delete-config retention.ms",
    ),
    "kohort topics delete": (
        "kohort topics delete orders",
        "kohort topics delete orders clicks --if-exists --yes",
    ),
    "kohort topics delete-records": (
        "kohort topics delete-records orders --older-than 7d",
        "kohort topics delete-records orders:0 --before-offset 1200 --execute",
    ),
    "kohort produce": (
        "kohort produce orders --file orders.txt --key-separator :",
        "kohort produce orders --json --file orders.jsonl",
    ),
    "kohort consume": (
        "kohort consume orders --from -5 --keys",
        "kohort consume orders --group billing --follow",
    ),
    "kohort deadletters list": (
        "kohort deadletters list orders.failed",
        "kohort deadletters list orders.failed --error '*.KeyError' --limit 10 --stacks",
    ),
    "kohort deadletters topics": (
        "kohort deadletters topics",
        "kohort deadletters topics --json",
    ),
    "kohort deadletters replay": (
        "kohort deadletters replay orders.failed",
        "kohort deadletters replay orders.failed --error '*.KeyError' --execute",
    ),
    "kohort log verify": ("kohort log verify ./data", "kohort log verify ./data --json"),
    "kohort log dump": (
        "kohort log dump ./data/orders-0/00000000000000000000.log",
        "kohort log dump --records ./data/orders-0/00000000000000000000.log",
    ),
    "kohort log strays": ("kohort log strays ./data", "kohort log strays ./data --json"),
    "kohort run": (
        "kohort run app:service",
        "kohort run app:service --workers 4 --instance-id billing",
    ),
    "kohort assignors list": ("kohort assignors list", "kohort assignors list --json"),
    "kohort assignors try": (
        "kohort assignors try --assignor cooperative-sticky --group billing",
        "kohort assignors try --assignor tenants --file billing.yaml --leave m3 --join 2",
    ),
    "kohort assignors compare": (
        "kohort assignors compare sticky range --group billing",
        "kohort assignors compare tenants sticky --group billing --html page.html",
    ),
    "kohort assignors explain": (
        "kohort assignors explain --group billing",
        "kohort assignors explain --group billing --json",
    ),
    "kohort spark status": ("kohort spark status --group etl", "kohort spark status --group etl --json"),
    "kohort spark import-checkpoint": (
        "kohort spark import-checkpoint /data/checkpoints/etl --group etl",
        "kohort spark import-checkpoint /data/checkpoints/etl --group etl --execute",
    ),
    "kohort cluster status": (
        "kohort cluster status",
        "kohort cluster status --wait --timeout 600 --brokers 1,2,3",
    ),
    "kohort cluster reassign": (
        "kohort cluster reassign orders --brokers 2,3,4",
        "kohort cluster reassign --from 3 --execute --throttle 50000000",
    ),
    "kohort cluster elect": (
        "kohort cluster elect",
        "kohort cluster elect orders --partition 3 --unclean",
    ),
    "kohort cluster features": (
        "kohort cluster features",
        "kohort cluster features share.version=1 --execute",
    ),
    "kohort acls list": ("kohort acls list --topic orders", "kohort acls list --principal billing --json"),
    "kohort acls add": (
        "kohort acls add --allow billing --consumer --topic orders --group billing",
        "kohort acls add --deny intern --operation Delete,Alter --topic pay --prefixed --dry-run",
    ),
    "kohort acls remove": (
        "kohort acls remove --principal intern",
        "kohort acls remove --topic orders --operation Write --permission allow",
    ),
    "kohort quotas list": ("kohort quotas list", "kohort quotas list --user alice --json"),
    "kohort quotas set": (
        "kohort quotas set --user alice producer_byte_rate=1048576",
        "kohort quotas set --user-default --client-id etl request_percentage=20",
    ),
    "kohort quotas remove": (
        "kohort quotas remove --user alice request_percentage",
        "kohort quotas remove --client-id-default --dry-run",
    ),
    "kohort configs list": ("kohort configs list", "kohort configs list --topic orders --all"),
    "kohort configs set": (
        "kohort configs set --topic orders retention.ms=86400000",
        "kohort configs set --all-brokers log.retention.ms=604800000 --dry-run",
    ),
    "kohort configs delete": (
        "kohort configs delete --topic orders retention.ms",
        "kohort configs delete --broker 1 log.retention.ms",
    ),
    "kohort problems": ("kohort problems", "kohort problems --metrics localhost:9400 --page"),
    "kohort transactions list": ("kohort transactions list", "kohort transactions list --open --json"),
    "kohort transactions describe": (
        "kohort transactions describe billing-4f1c",
        "kohort transactions describe billing-4f1c --json",
    ),
    "kohort transactions abort": (
        "kohort transactions abort",
        "kohort transactions abort --topic bills --older-than 60 --execute",
    ),
    "kohort profiles list": ("kohort profiles list", "kohort profiles list --json"),
    "kohort completion": ("source <(kohort completion bash)", "kohort completion fish | source"),
    "kohort ui": ("kohort ui", "kohort ui --bootstrap kafka-1:9092"),
    "kohort top": ("kohort top localhost:9400", "kohort top localhost:9400 --interval 5"),
}


def examples_of(command: str) -> list[str]:
    """Examples of a command, named by the words that lead to it."""
    own = _EXAMPLES.get(command)
    if own is not None:
        return list(own)
    below = [examples for name, examples in _EXAMPLES.items() if name.startswith(f"{command} ")]
    if len(below) == 1:
        return list(below[0])
    return [examples[0] for examples in below[:2]]
