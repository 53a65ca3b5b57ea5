"""Any sequence of appends, flushes, deletions, compactions, stops, crashes and disk errors, beside a dict."""

from __future__ import annotations

import errno

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kohort.log import LogConfig
from kohort.testing.faults import SimulatedCrash
from tests.log.model import KILLED, Model, Survival

CONFIGS = [
    LogConfig(segment_bytes=300, index_interval_bytes=100, retention_bytes=700, file_delete_delay_ms=0),
    LogConfig(segment_bytes=500, index_interval_bytes=0, flush_messages=4, retention_ms=4_000),
    LogConfig(segment_bytes=300, cleanup_policy="compact", min_cleanable_dirty_ratio=0.0),
    LogConfig(
        segment_bytes=400, cleanup_policy="compact,delete", retention_bytes=900, min_cleanable_dirty_ratio=0.2
    ),
]

KEYS = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), min_size=1, max_size=4)
SEEDS = st.integers(-1, 1 << 20)
SURVIVALS = st.one_of(
    st.just(KILLED), st.builds(Survival, seed=SEEDS, again=st.one_of(st.none(), st.integers(1, 12)))
)


class Machine(RuleBasedStateMachine):
    """The log on its disk. A machine that was told to stop somewhere does so in one of the next steps."""

    model: Model
    survival = KILLED

    @initialize(config=st.sampled_from(CONFIGS), page_bytes=st.sampled_from([32, 64, 4096]))
    def begin(self, config: LogConfig, page_bytes: int) -> None:
        self.model = Model(config, page_bytes=page_bytes)

    @rule(keys=KEYS, value_bytes=st.integers(0, 25))
    def append(self, keys: list[bytes], value_bytes: int) -> None:
        self.model.now_ms += 500
        self._take("append", keys, value_bytes)

    @rule()
    def flush(self) -> None:
        self._take("flush")

    @rule()
    def checkpoint(self) -> None:
        self._take("checkpoint")

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        log = self.model.log
        self._take(
            "delete_records", int(log.log_start_offset + share * (self.model.end - log.log_start_offset))
        )

    @rule()
    def retain(self) -> None:
        self._take("retain")

    @precondition(lambda self: self.model.config.compacts)
    @rule()
    def compact(self) -> None:
        self._take("compact")

    @rule()
    def close(self) -> None:
        self._take("close")

    @rule(survival=SURVIVALS)
    def crash(self, survival: Survival) -> None:
        self._crash(survival)

    @rule(number=st.integers(1, 25), byte=st.one_of(st.none(), st.integers(0, 150)), survival=SURVIVALS)
    def stop_at(self, number: int, byte: int | None, survival: Survival) -> None:
        self.model.fs.heal()
        self.model.fs.crash_at(number, byte=byte)
        self.survival = survival

    @rule(number=st.integers(1, 12), error=st.sampled_from([errno.ENOSPC, errno.EIO]), sticky=st.booleans())
    def fail_at(self, number: int, error: int, sticky: bool) -> None:
        self.model.fs.heal()
        self.model.fs.fail_at(number, error, sticky=sticky)

    @rule(room=st.one_of(st.none(), st.integers(0, 600)))
    def resize(self, room: int | None) -> None:
        self.model.fs.capacity_bytes = None if room is None else self.model.fs.used_bytes + room

    @invariant()
    def everything_is_there(self) -> None:
        if not self.model.fs.crashed:
            self.model.check()

    def _take(self, step: str, *arguments: object) -> None:
        """A step that may fail; a log that has gone offline is opened anew, from what is on the disk."""
        fs = self.model.fs
        before = len(fs.failed)
        try:
            getattr(self.model, step)(*arguments)
        except SimulatedCrash:
            self._crash(self.survival)
            return
        if self.model.log.offline:
            lost = any(operation.kind in ("sync", "sync_dir") for operation in fs.failed[before:])
            self._crash(Survival(seed=len(fs.operations)) if lost else KILLED)

    def _crash(self, survival: Survival) -> None:
        self.model.fs.heal()
        self.model.fs.capacity_bytes = None
        self.model.crash(survival)
        self.model.fs.heal()


Machine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLog = Machine.TestCase
