"""``write`` and ``writeStream.format("kohort")``.

Covers: spark/_sink_options.py, spark/_task.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kohort.protocol import Codec
from kohort.spark import OptionsError, stream
from kohort.spark._produce import WriteSettings
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic
from tests.spark.queries import run_to_end
from tests.spark.test_produce import read_back

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "topic": "out"}


def test_options_name_a_codec_and_a_ledger() -> None:
    from kohort.spark._sink_options import read_sink_options

    options = read_sink_options(
        GIVEN | {"kafka.compression.type": "lz4", "ledgerGroup": "l", "batchKey": "3-f00d"}
    )
    assert (options.compression, options.ledger_group, options.batch_key) == (Codec.LZ4, "l", "3-f00d")


def test_batches_and_partitions_are_set_as_for_javas_producers() -> None:
    from kohort.spark._sink_options import read_sink_options

    given = {"kafka.batch.size": "16384", "kafka.partitioner.ignore.keys": "true"}
    assert read_sink_options(GIVEN | given).write_settings == WriteSettings(Codec.NONE, 16_384, True)
    assert read_sink_options(GIVEN).write_settings == WriteSettings()


def test_settings_of_javas_producers_that_change_no_record_are_taken() -> None:
    from kohort.spark._sink_options import read_sink_options

    tuning = {"kafka.acks": "all", "kafka.linger.ms": "5", "kafka.enable.idempotence": "true"}
    assert read_sink_options(GIVEN | tuning) == read_sink_options(GIVEN)


def test_security_goes_into_the_connection_and_secrets_into_no_text() -> None:
    from kohort.spark._sink_options import read_sink_options

    secured = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.username": "etl",
        "kafka.sasl.password": "hush",
    }
    options = read_sink_options(GIVEN | secured)
    assert options.connection.security.password == "hush"
    assert "hush" not in repr(options) + repr(options.connection)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kafka.sasl.mechanism": "PLAIN"}, "sasl_mechanism needs security_protocol"),
        ({"acks": "1"}, "acks is no option of the sink: docs/spark.md lists them all"),
        ({"kafka.compression.type": "brotli"}, "no codec: use none, gzip"),
        ({"batchKey": "3-f00d"}, "batchKey needs ledgerGroup"),
        ({"batchnumber": "3", "ledgerGroup": "l"}, "Give batchKey=batch.key"),
        ({"ledgerGroup": "l", "topic": ""}, "ledgerGroup needs ledgerTopic"),
    ],
)
def test_a_wrong_option_is_named(change: dict[str, str], problem: str) -> None:
    from kohort.spark._sink_options import read_sink_options

    with pytest.raises(OptionsError, match=problem):
        read_sink_options(GIVEN | change)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"value": "string", "colour": "string"}, "column 'colour' is none of topic, key"),
        ({"value": "integer"}, "column 'value' is int: cast it to binary or string"),
        ({"key": "binary"}, "there is no column 'value'"),
    ],
)
def test_rows_that_cannot_be_records_are_refused(columns: dict[str, str], problem: str) -> None:
    from pyspark.sql.types import StructType

    from kohort.spark._sink_options import check_columns, read_sink_options

    schema = StructType()
    for name, kind in columns.items():
        schema = schema.add(name, kind)
    with pytest.raises(OptionsError, match=problem):
        check_columns(schema, read_sink_options(GIVEN))


@pytest.mark.spark
@pytest.mark.kafka
def test_a_batch_of_a_key_is_written_once(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named
) -> None:
    # the broker must not take records of that age for old ones
    out, ledger = new_topic("out", partitions=2), group("ledger")
    rows = spark.sql(
        "select cast(id as string) key, concat('v', id) value, 1 as partition, "
        "timestamp'2024-05-06 07:08:09.5' timestamp, array(struct('h' as key, binary('x') as value)) headers "
        "from range(10)"
    )

    def write(**key: str) -> None:
        rows.write.format("kohort").mode("append").options(
            **{"kafka.bootstrap.servers": side.bootstrap, "topic": out, "kafka.compression.type": "zstd"},
            ledgerGroup=ledger,
            **key,
        ).save()

    for _ in range(2):
        write(batchKey="0-f00d")
    with pytest.raises(Exception, match="ledgerGroup needs batchKey"):
        write()
    assert side.committed(ledger, out) == {0: 1}
    side.send(out, value=b"end", partition=1)
    found: list[Any] = read_back(side.bootstrap, out, 11)
    assert [record.value for record in found][-1] == b"end"
    assert {record.partition for record in found} == {1}
    # New York, in May
    assert (found[0].value[:1], found[0].timestamp, found[0].headers) == (b"v", 1714993689500, [("h", b"x")])


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.pyspark("4.2")
def test_a_querys_batch_that_is_replayed_writes_nothing_twice(
    spark: SparkSession, side: Side, new_topic: NewTopic, group: Named, tmp_path: Path
) -> None:
    orders, out, etl, ledger = new_topic("orders", 2), new_topic("out", 1), group("etl"), group("ledger")
    side.produce(orders, {0: 30, 1: 30})
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        run_to_end(
            lambda: stream(
                spark,
                checkpoint=str(checkpoint),
                write=lambda df: (
                    df.select("key", "value")
                    .writeStream.format("kohort")
                    .options(**{"kafka.bootstrap.servers": side.bootstrap, "topic": out}, ledgerGroup=ledger)
                ),
                trigger={"availableNow": True},
                bootstrap=side.bootstrap,
                group=etl,
                topics=orders,
                max_offsets=40,
            )
        )

    run()
    assert side.committed(ledger, out) == {0: 2}
    for file in (checkpoint / "commits").glob("*1*"):
        file.unlink()  # as if Spark had been killed between the sink and its own log
    side.produce(orders, {0: 5})
    run()
    side.send(out, value=b"end", partition=0)
    assert len(read_back(side.bootstrap, out, 66)) == 66
    assert side.committed(ledger, out) == {0: 3}
