from __future__ import annotations

import pytest

from kohort.protocol import TopicPartition
from kohort.spark import OffsetRange, OptionsError
from kohort.spark._plan import Limits
from kohort.spark._source_options import read_source_options
from kohort.spark._stream import SourceOffsets

GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "groupId": "etl", "subscribe": "orders, clicks"}


def test_names_count_in_any_case_as_spark_gives_them() -> None:
    options = read_source_options(
        {
            "KAFKA.BOOTSTRAP.SERVERS": "a:1",
            "kafka.group.id": "etl",
            "subscribe": "orders",
            "includeheaders": "true",
        },
        stream=True,
    )
    assert (options.bootstrap, options.group, options.include_headers) == ("a:1", "etl", True)


def test_limits_and_topics_are_those_of_the_driver_loop() -> None:
    options = read_source_options(GIVEN | {"maxOffsetsPerTrigger": "500"}, stream=True)
    assert options.limits == Limits(500, None)
    assert options.group_options.topics == ("orders", "clicks")
    assert options.rules.start == "committed"


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("30s", 30), ("15m", 900), ("1h", 3600)])
def test_a_delay_has_a_unit(text: str, seconds: float) -> None:
    options = read_source_options(GIVEN | {"minOffsetsPerTrigger": "1", "maxTriggerDelay": text}, stream=True)
    assert options.max_trigger_delay == seconds


def test_times_are_for_all_partitions_or_for_each() -> None:
    assert read_source_options(GIVEN | {"startingTimestamp": "5"}, stream=True).times("starting") == 5
    by_partition = read_source_options(
        GIVEN | {"endingOffsetsByTimestamp": '{"orders":{"0":7}}'}, stream=False
    )
    assert by_partition.times("ending") == {TopicPartition("orders", 0): 7}
    assert by_partition.times("starting") is None


@pytest.mark.parametrize(
    ("change", "stream", "problem"),
    [
        ({"maxOfsets": "5"}, True, "maxOfsets is no option of the source: did you mean "),
        ({"groupId": ""}, True, "groupId=''"),
        ({"maxOffsetsPerTrigger": "many"}, True, "maxOffsetsPerTrigger='many'"),
        ({"startingOffsets": "yesterday"}, True, "startingOffsets='yesterday': neither one of committed"),
        ({"endingOffsets": "earliest"}, False, "endingOffsets='earliest': neither one of latest, committed"),
        ({"endingOffsets": "latest"}, True, "endingOffsets: only for spark.read"),
        ({"maxOffsetsPerTrigger": "5"}, False, "maxOffsetsPerTrigger: only for spark.readStream"),
        ({"startingTimestamp": "5", "startingOffsets": "latest"}, True, "at most one of startingOffsets"),
        ({"assign": '{"orders":[0]}'}, True, "exactly one of subscribe, subscribePattern and assign"),
        ({"assign": "orders"}, True, "assign='orders': no JSON"),
        ({"maxTriggerDelay": "soon"}, True, "maxTriggerDelay='soon': no duration: write 500ms"),
        ({"kafka.auto.offset.reset": "latest"}, True, "auto.offset.reset is not taken: use startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, True, "commits follow Spark's own log"),
        ({"groupMode": "shared"}, True, "groupMode='shared'"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_right(
    change: dict[str, str], stream: bool, problem: str
) -> None:
    with pytest.raises(OptionsError, match=problem):
        read_source_options(GIVEN | change, stream=stream)


def test_a_batch_read_goes_without_a_group_and_begins_at_the_first_records() -> None:
    given = {name: value for name, value in GIVEN.items() if name != "groupId"}
    options = read_source_options(given, stream=False)
    assert (options.group, options.starting_offsets, options.group_options.group) == (None, "earliest", "")
    assert read_source_options(given | {"startingTimestamp": "5"}, stream=False).times("starting") == 5
    for name in ("startingOffsets", "endingOffsets"):
        with pytest.raises(OptionsError, match=f"{name}=committed needs groupId"):
            read_source_options(given | {name: "committed"}, stream=False)
    with pytest.raises(OptionsError, match="option groupId is required"):
        read_source_options(given, stream=True)


def test_settings_of_javas_clients_that_change_no_row_are_taken_and_left_unused() -> None:
    tuning = {
        "kafkaConsumer.pollTimeoutMs": "512",
        "fetchOffset.numRetries": "3",
        "fetchOffset.retryIntervalMs": "10",
        "groupIdPrefix": "team-a",
        "kafka.max.poll.records": "500",
        "kafka.Session.Timeout.ms": "10000",
    }
    assert read_source_options(GIVEN | tuning, stream=True) == read_source_options(GIVEN, stream=True)
    with pytest.raises(OptionsError, match=r"kafka.max.pol.records is no option of the source"):
        read_source_options(GIVEN | {"kafka.max.pol.records": "500"}, stream=True)


def test_tasks_are_bounded_by_the_records_of_one() -> None:
    bounded = read_source_options(GIVEN | {"maxRecordsPerPartition": "10", "cores": "2"}, stream=True)
    ranges = [OffsetRange("orders", 0, 0, 102)]
    sizes = [sum(span.offsets for span in task.ranges) for task in SourceOffsets(bounded).tasks(ranges)]
    assert (sum(sizes), max(sizes)) == (102, 10)


def test_a_table_of_the_catalog_whose_options_spark_keeps_to_itself_is_told_how_to_be_read() -> None:
    with pytest.raises(OptionsError, match=r"FROM table WITH \(subscribe = 'orders', ...\), or CREATE TEMP"):
        read_source_options({}, stream=False)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(
        OptionsError, match=r"option kafka.bootstrap.servers is required; option groupId is req"
    ):
        read_source_options({"subscribe": "orders"}, stream=True)
