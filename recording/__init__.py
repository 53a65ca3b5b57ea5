"""A recording of what happened to groups, on disk and within bounds: a writer that nobody waits for, and a
reader.

It knows rows and times, and no broker. ``Recorder`` writes, ``read_group`` reads while another process does.
"""

from .file import FILE_NAME
from .recorder import Recorder, RecorderFigures
from .rows import EventRow, GroupRecording, KeptRow, LagSample, Loss, Stretch, gaps_between
from .store import END_OF_TIME, group_names, read_group
from .thinning import RecordingBounds

__all__ = [
    "END_OF_TIME",
    "FILE_NAME",
    "EventRow",
    "GroupRecording",
    "KeptRow",
    "LagSample",
    "Loss",
    "Recorder",
    "RecorderFigures",
    "RecordingBounds",
    "Stretch",
    "gaps_between",
    "group_names",
    "read_group",
]
