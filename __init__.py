"""kohort: Kafka's consumer-group coordinator in Python, and what is built around it.

The rooms, from the ground up: :mod:`kohort.protocol` (frames, messages, errors), :mod:`kohort.statemachine`
(the two life cycles as data), :mod:`kohort.log` (Kafka's partition files), :mod:`kohort.cluster` (metadata),
:mod:`kohort.offsets_topic` (``__consumer_offsets``), :mod:`kohort.assignors`, :mod:`kohort.coordinator` (the
group coordinator, free of I/O), :mod:`kohort.consumer`, :mod:`kohort.admin`, :mod:`kohort.broker`,
:mod:`kohort.spark` and :mod:`kohort.testing`.

Importing this package imports none of them: take what you need from its room.
"""

import sys

#: The installed version: that of the tag, or of the commits behind it.
__version__: str


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # here and not above: it takes longer to import than all the rest of this file
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("kohort")
    except PackageNotFoundError:  # run from its sources, not installed
        found = "0+unknown"
    setattr(sys.modules[__name__], name, found)
    return found
