"""In which order a shard gives out replies."""

from __future__ import annotations

from kohort.coordinator.engine.effects import Reply, Request
from kohort.protocol import ApiKey, RequestContext
from tests.coordinator.driver import World


def test_replies_that_somebody_waits_for_come_first_in_their_order_and_only_in_their_step() -> None:
    shard = World().shard

    def reply(body: str, *, awaited: bool = False) -> None:
        shard.reply(Request(ApiKey.HEARTBEAT, 4, None, RequestContext("c"), None, awaited), body)

    def replied() -> list[str]:
        return [effect.body for effect in shard.take_effects() if isinstance(effect, Reply)]

    reply("a")
    reply("b", awaited=True)
    reply("c")
    reply("d", awaited=True)
    assert replied() == ["b", "d", "a", "c"]
    reply("e")
    reply("f", awaited=True)
    assert replied() == ["f", "e"]
