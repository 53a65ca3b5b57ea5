"""Consumer groups (KIP-848): the coordinator assigns, and each member moves to its target by heartbeats."""

from typing import Final

from ...offsets_topic import ConsumerGroupRecord
from ..engine.shard import Kind
from ..groups import Groups

#: What consumer groups bring to a shard.
CONSUMER: Final[Kind[Groups]] = Kind(
    applies={
        ConsumerGroupRecord: lambda groups, run, _at, _producer_id: groups.durable.store_consumer_groups(run),
    },
)
