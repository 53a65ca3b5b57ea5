"""The columns of the source, in a separate module for processes that need nothing else."""

from __future__ import annotations

#: The columns of Spark's built-in Kafka source.
COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)

#: The same with ``include_headers``.
COLUMNS_WITH_HEADERS = COLUMNS + ", headers array<struct<key: string, value: binary>>"
