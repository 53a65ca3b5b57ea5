"""Token providers that are slow or hang: one call at a time, in a thread that takes nothing from others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kohort.client import AuthenticationError, BrokerConnectionError
from kohort.client.sasl import Token
from kohort.client.tokens import Tokens
from tests.waiting import until


class Provider:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.calls = 0
        self.error: Exception | None = None

    def __call__(self) -> str:
        self.calls += 1
        self.go_on.wait()
        if self.error is not None:
            raise self.error
        return f"token {self.calls}"

    def extensions(self) -> dict[str, str]:
        return {"traceId": "7"}


async def test_connections_that_are_opened_together_share_one_call() -> None:
    provider = Provider()
    tokens = Tokens(provider)
    asking = [asyncio.create_task(tokens.ask("broker:9092")) for _ in range(5)]
    await until(lambda: provider.calls > 0)
    provider.go_on.set()
    assert await asyncio.gather(*asking) == [Token("token 1", {"traceId": "7"})] * 5
    assert (await tokens.ask("broker:9092")).text == "token 2"
    tokens.close()


async def test_while_a_call_hangs_there_is_no_other_and_the_error_says_since_when(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kohort.client.tokens.WAIT_S", 0.01)
    loop, later_s = asyncio.get_running_loop(), 0.0
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + later_s)
    provider = Provider()
    tokens = Tokens(provider)
    for waited in ("0", "60"):
        with pytest.raises(BrokerConnectionError, match=f"provider has not answered for {waited} s"):
            await tokens.ask("broker:9092")
        later_s += 60
    assert provider.calls == 1
    provider.go_on.set()
    tokens.close()


async def test_a_token_that_comes_when_nobody_waits_is_for_the_next_connection_while_it_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kohort.client.tokens.WAIT_S", 0.01)
    provider = Provider()
    tokens = Tokens(provider)
    for _ in range(2):
        with pytest.raises(BrokerConnectionError):
            await tokens.ask("broker:9092")
        provider.go_on.set()
        call = tokens._call
        assert call is not None
        await call
        provider.go_on.clear()
        if provider.calls == 1:
            assert (await tokens.ask("broker:9092")).text == "token 1"
    monkeypatch.setattr("kohort.client.tokens.LATE_S", -1.0)
    monkeypatch.setattr("kohort.client.tokens.WAIT_S", 30.0)
    provider.go_on.set()
    assert (await tokens.ask("broker:9092")).text == "token 3"
    tokens.close()


async def test_a_hanging_provider_takes_no_thread_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.client.tokens.WAIT_S", 0.01)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    provider = Provider()
    tokens, before = Tokens(provider), set(threading.enumerate())
    with pytest.raises(BrokerConnectionError):
        await tokens.ask("broker:9092")
    (thread,) = set(threading.enumerate()) - before
    assert await asyncio.to_thread(lambda: "runs") == "runs"
    tokens.close()
    assert thread.daemon
    provider.go_on.set()
    thread.join()


async def test_all_that_wait_get_the_error_and_the_next_connection_asks_again() -> None:
    provider = Provider()
    tokens = Tokens(provider)
    provider.error = AuthenticationError("https://tokens", "invalid_client")
    asking = [asyncio.create_task(tokens.ask("broker:9092")) for _ in range(2)]
    await until(lambda: provider.calls > 0)
    provider.go_on.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(error) for error in found] == [AuthenticationError] * 2
    provider.error = RuntimeError("no route")
    with pytest.raises(BrokerConnectionError, match=r"broker:9092: the token provider failed.*no route"):
        await tokens.ask("broker:9092")
    tokens.close()
