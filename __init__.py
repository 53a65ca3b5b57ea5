"""kohort: Kafka's consumer-group coordinator in Python, and what is built around it.

The rooms, from the ground up: :mod:`kohort.protocol` (frames, messages, errors), :mod:`kohort.statemachine`
(the two life cycles as data), :mod:`kohort.log` (Kafka's partition files), :mod:`kohort.cluster` (metadata),
:mod:`kohort.offsets_topic` (``__consumer_offsets``), :mod:`kohort.assignors`, :mod:`kohort.coordinator` (the
group coordinator, free of I/O), :mod:`kohort.consumer`, :mod:`kohort.admin`, :mod:`kohort.broker`,
:mod:`kohort.spark` and :mod:`kohort.testing`.

Importing this package imports none of them: take what you need from its room.
"""

__version__ = "0.1.0"
