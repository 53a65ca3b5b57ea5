"""A process that appends is killed: everything it had told is in the log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kohort.log import DataFolder, LogConfig
from kohort.protocol import iter_batches, verify_batch
from tests.log.batches import NOW_MS, all_records, committed

WRITER = """
import sys, uuid
from kohort.log import DataFolder, LogConfig
from kohort.protocol import build_batch

folder = DataFolder.open(sys.argv[1])
config = LogConfig(segment_bytes=4000, index_interval_bytes=200)
log = folder.open_log("orders", 0, config, now_ms=1, topic_id=uuid.UUID(int=1))
batch = bytes(build_batch([(b"k", b"v" * 50, ())] * 2, timestamp_ms=1))
while True:
    info = log.append(batch, now_ms=1)
    if info.base_offset % 64 == 0:
        log.flush()
        folder.write_checkpoints([log])
    print(info.last_offset, flush=True)
"""


def test_what_a_killed_process_had_acknowledged_is_there(tmp_path: Path) -> None:
    acknowledged = -1
    for lines in (10, 75, 200):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            for _ in range(lines):
                acknowledged = int(writer.stdout.readline())
            writer.kill()
            told = writer.stdout.read().split(b"\n")[:-1]
            acknowledged = int(told[-1]) if told else acknowledged
        folder = DataFolder.open(tmp_path)
        assert not folder.clean_start
        log = committed(folder.open_log("orders", 0, LogConfig(), now_ms=NOW_MS))
        assert log.log_end_offset > acknowledged
        records = all_records(log)
        offset = 0
        for position, header in iter_batches(records):
            verify_batch(records, header, position)
            assert header.base_offset == offset
            offset = header.next_offset
        assert offset == log.log_end_offset
        folder.close(clean=False)
    assert acknowledged >= 2 * (10 + 75 + 200) - 1
