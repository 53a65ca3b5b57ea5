"""InitProducerId: ids for idempotent producers, never the same twice; no transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.wire import Wire


def ask(wire: Wire, version: int = 5, transactional_id: str | None = None, **fields: Any) -> Any:
    return wire.call(
        ApiKey.INIT_PRODUCER_ID,
        version,
        transactional_id=transactional_id,
        transaction_timeout_ms=1_000,
        **fields,
    )


@pytest.mark.parametrize("version", range(6))
def test_each_producer_gets_an_id_of_its_own(wire: Wire, version: int) -> None:
    first, second = ask(wire, version), ask(wire, version)
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert second.producer_id > first.producer_id >= 0


def test_an_id_is_not_given_again_after_a_restart(tmp_path: Path) -> None:
    given = []
    for _ in range(3):
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            given += [ask(wire).producer_id for _ in range(2)]
    assert len(set(given)) == len(given)


def test_an_empty_transactional_id_is_refused(wire: Wire) -> None:
    answer = ask(wire, transactional_id="")
    assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_REQUEST, -1)
