"""What the metrics of a process tell is wrong: of kohort's brokers and services, and of Apache Kafka."""

from __future__ import annotations

from typing import Final

import pytest

from kohort.broker import Broker
from kohort.broker.metrics._exposer import exposition
from kohort.problems import Samples, find_in_metrics, read_samples

NOW_S = 1_700_000_000.0
DAY_S = 86_400


BROKER: Final = "kafka:9400"
FAILED_LOGINS: Final = "kafka_server_socket_server_metrics_failed_authentication_rate"
OLD_REQUESTS: Final = "kafka_network_requestmetrics_deprecatedrequests_total"
SARAMA: Final = 'clientSoftwareName="sarama",clientSoftwareVersion="1.26"'
END: Final = "kohort_certificate_expiry_timestamp_seconds"


def told(text: str, before: str | None = None) -> list[tuple[str, str, str]]:
    earlier: Samples | None = None if before is None else read_samples(before)
    found = find_in_metrics(read_samples(text), BROKER, NOW_S, earlier)
    return [(each.kind, each.about.removeprefix(BROKER).strip(), each.text) for each in found]


@pytest.mark.parametrize(
    ("lines", "kind", "about", "words"),
    [
        (["kohort_log_dir_failing 1"], "DiskRefusesWrites", "", "it takes no writes"),
        (
            ["kafka_server_replicamanager_partitionswithlatetransactionscount 2"],
            "TransactionHangs",
            "",
            "2 of its partitions have a transaction open for too long: `kohort transactions abort`",
        ),
        (
            ['kohort_share_group_stalled_seconds{group="queue"} 75.5'],
            "SharePartitionStalls",
            "group queue",
            "share partitions have records in flight and no progress for 76 s",
        ),
        (["kohort_log_dir_hanging_seconds 12.4"], "DiskHangs", "", "has not returned for 12 s"),
        (
            [
                f"kohort_log_dir_{name}_bytes {n}"
                for name, n in (("free", 1e9), ("total", 1e10), ("low", 2e9))
            ],
            "DiskFills",
            "",
            "its disk has 10% free (0.93 of 9.31 GiB)",
        ),
        (
            [f'{END}{{listener="SSL"}} {NOW_S + 2 * DAY_S}', f'{END}{{listener="IN"}} {NOW_S + 50 * DAY_S}'],
            "CertificateEnds",
            "listener SSL",
            "a certificate ends in 2.0 days",
        ),
        (
            [f'{FAILED_LOGINS}{{listener="OUT"}} 2.5', f'{FAILED_LOGINS}{{listener="IN"}} 0.0'],
            "LoginsRefused",
            "listener OUT",
            "it refuses 2.5 logins a second",
        ),
        (
            ["process_open_fds 750", "process_max_fds 1000", "kohort_connections_lack_descriptors 1"],
            "DescriptorsRunOut",
            "",
            "750 of 1,000 descriptors are open, new connections wait",
        ),
        (
            ["process_open_fds 810", "process_max_fds 1000"],
            "DescriptorsRunOut",
            "",
            "810 of 1,000 descriptors",
        ),
        (
            ["kohort_request_bytes_held 99614720", "kohort_request_bytes_limit 104857600"],
            "RequestsWaitForMemory",
            "",
            "requests wait: 95 of 100 MiB",
        ),
        (["kohort_recording_failing 1"], "RecordingFails", "", "cannot record what happens to groups"),
        (["kohort_zookeeper_connected 0"], "BrokerWithoutZooKeeper", "", "does not reach ZooKeeper"),
        (
            [f'kohort_cluster_brokers{{version="0.{n}"}} 1' for n in (2, 1)],
            "BuildsMixed",
            "cluster",
            "brokers of 2 builds run: 0.1, 0.2",
        ),
        (
            [f'{OLD_REQUESTS}{{request="Fetch",version="2",{SARAMA}}} 7', f'{OLD_REQUESTS}{{request="X"}} 0'],
            "OldRequests",
            "sarama 1.26",
            "sarama 1.26 sends versions of Fetch that the next broker does not know",
        ),
        (
            ['kohort_service_live{group="billing"} 0', 'kohort_service_live{group="audit"} 1'],
            "ServiceStandsStill",
            "group billing",
            "no record is finished though some wait",
        ),
        (
            [
                'kohort_group_lag_records{group="billing"} 1200',
                'kohort_group_lag_seconds{group="billing"} 301',
                'kohort_group_lag_standing_seconds{group="billing"} 300',
            ],
            "GroupBehind",
            "group billing",
            "1,200 records are unread, the oldest for 301 s",
        ),
        (
            ['kohort_group_lag_standing_seconds{group="billing"} 301'],
            "GroupStandsStill",
            "group billing",
            "no offset of a partition has moved for 301 s",
        ),
        (
            ['kohort_client_outage_seconds{group="billing"} 31'],
            "NoBrokerAnswers",
            "group billing",
            "its client has had no success for 31 s",
        ),
        (
            [
                'kohort_handler_long_calls{group="billing",handler="bill"} 2',
                'kohort_handler_oldest_call_seconds{group="billing",handler="bill"} 75.5',
            ],
            "HandlerHangs",
            "handler bill",
            "2 of its calls hang, one for 76 s",
        ),
    ],
)
def test_each_metric_that_tells_of_a_problem_gives_it(
    lines: list[str], kind: str, about: str, words: str
) -> None:
    ((found, subject, text),) = told("\n".join(lines))
    assert (found, subject) == (kind, about)
    assert words in text


@pytest.mark.parametrize(
    "text",
    [
        "kohort_log_dir_failing 0",
        "kohort_log_dir_hanging_seconds 0",
        "kohort_log_dir_free_bytes 9\nkohort_log_dir_total_bytes 10\nkohort_log_dir_low_bytes 0",
        "process_open_fds 800\nprocess_max_fds 1000",
        "kohort_zookeeper_connected 1",
        'kohort_cluster_brokers{version="0.1"} 3\nkohort_cluster_brokers{version="0.2"} 0',
        'kohort_client_outage_seconds{group="billing"} 30',
        'kohort_handler_long_calls{group="billing",handler="bill"} 0',
    ],
)
def test_where_all_is_well_nothing_is_told(text: str) -> None:
    assert told(text) == []


def test_what_should_not_grow_is_told_when_it_has_grown_since_the_earlier_look() -> None:
    name = 'kohort_handler_dead_letters_total{group="billing",handler="%s"} %d\n'
    before = name % ("bill", 3) + name % ("ship", 0)
    grown = [("DeadLetters", "", "2 records were set aside lately")]
    assert told(name % ("bill", 4) + name % ("ship", 1)) == []
    assert told(name % ("bill", 4) + name % ("ship", 1), before) == grown
    assert told(before, before) == []
    assert told(name % ("bill", 2), before) == grown, "it was started again"
    last = 'kohort_share_group_last_deliveries_total{group="queue"} 2'
    assert told(last, last.replace(" 2", " 0")) == [
        ("LastDeliveries", "", "2 records of share groups were given out for the last time lately")
    ]
    rebalances = 'kafka_consumer_coordinator_rebalance_total{group="billing"} %d\n'
    assert told(rebalances % 5, rebalances % 0) == []
    assert told(rebalances % 6, rebalances % 0) == [
        ("RebalancesTooOften", "", "6 rebalances were completed lately")
    ]


def test_a_text_of_prometheus_is_read_with_its_labels_times_and_comments() -> None:
    text = '# HELP a b\n\na{x="1",y="q\\"\\\\\\n}"} 2.5e3 1700000000000\na 1\nb{} NaN\n'
    found = read_samples(text)
    assert found["a"] == [({"x": "1", "y": 'q"\\\n}'}, 2_500.0), ({}, 1.0)]
    assert str(found["b"]) == "[({}, nan)]"
    for wrong in ("<html>\n", "a b\n"):
        with pytest.raises(ValueError, match=r"no line of metrics|could not convert"):
            read_samples(wrong)


async def test_a_broker_that_is_well_has_no_problem_and_its_metrics_are_read() -> None:
    async with Broker() as broker:
        now = read_samples(exposition(broker.metrics())[0].decode())
    assert now["kohort_log_dir_failing"] == [({}, 0.0)]
    assert find_in_metrics(now, "broker", NOW_S, now) == []
