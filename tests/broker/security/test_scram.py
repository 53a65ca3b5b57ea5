"""SCRAM: who knows the password is let in, and nobody by any other message."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker.security import _scram
from kohort.broker.security._errors import LoginFailedError
from kohort.broker.security._scram import ScramExchange
from kohort.broker.security._scram_users import HASHES, ScramCredential, ScramUsers
from tests.broker.security.scram_client import ScramClient

MECHANISM = "SCRAM-SHA-256"


@pytest.fixture(scope="module")
def users() -> ScramUsers:
    known = ScramUsers()
    known.add_missing("alice=secret,b=2Cc=d")
    known.replace(
        {
            **known.copy(),
            (MECHANISM, "a,=b"): ScramCredential.of_password(MECHANISM, "gehe1m", 5_000),
        }
    )
    return known


@pytest.mark.parametrize("mechanism", HASHES)
async def test_who_knows_the_password_is_let_in_and_sees_that_the_broker_knows_it(
    users: ScramUsers, mechanism: str
) -> None:
    exchange, client = ScramExchange(mechanism, users), ScramClient(mechanism, "alice", "secret")
    assert client.knows(await exchange.step(client.last(await exchange.step(client.first()))))
    assert (exchange.done, exchange.user) == (True, "alice")


async def test_the_example_of_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    users = ScramUsers()
    users.replace({(MECHANISM, "user"): ScramCredential.of_salted(MECHANISM, salt, salted, 4096)})
    monkeypatch.setattr(_scram, "_make_nonce", lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    exchange = ScramExchange(MECHANISM, users)
    first = await exchange.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    last = await exchange.step(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert last == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("header", ["y,,", "n,a=alice,", "y,a=alice,"])
async def test_a_client_may_name_itself_twice_and_know_of_channel_binding(
    users: ScramUsers, header: str
) -> None:
    exchange = ScramExchange(MECHANISM, users)
    client = ScramClient(MECHANISM, "alice", "secret", header=header)
    assert (exchange.done, exchange.user, exchange.expires_ms) == (False, "", None)
    assert client.knows(await exchange.step(client.last(await exchange.step(client.first()))))
    assert (exchange.done, exchange.user) == (True, "alice")


async def test_nonces_of_the_broker_are_long_and_never_the_same(users: ScramUsers) -> None:
    client = ScramClient(MECHANISM, "alice", "secret", nonce="x")
    answers = [await ScramExchange(MECHANISM, users).step(client.first()) for _ in range(20)]
    nonces = {answer.split(b",")[0].removeprefix(b"r=x") for answer in answers}
    assert len(nonces) == 20
    assert all(len(base64.b64decode(nonce)) >= 24 for nonce in nonces)


@pytest.mark.parametrize("wrong", ["c", "r"])
async def test_binding_and_nonce_are_looked_at_each(users: ScramUsers, wrong: str) -> None:
    """The proof is right for what is sent."""
    exchange = ScramExchange(MECHANISM, users)
    client = ScramClient(MECHANISM, "alice", "secret", header="n,,")
    answer = await exchange.step(client.first())
    if wrong == "c":
        client._header = "y,,"
        last = client.last(answer)
    else:
        nonce = answer.split(b",")[0]
        last = client.last(answer.replace(nonce, nonce + b"x"))
    with pytest.raises(LoginFailedError, match="not a message of this mechanism"):
        await exchange.step(last)
    assert not exchange.done


async def test_names_with_commas_and_equals_signs(users: ScramUsers) -> None:
    client = ScramClient(MECHANISM, "a=2C=3Db", "gehe1m")
    exchange = ScramExchange(MECHANISM, users)
    assert client.knows(await exchange.step(client.last(await exchange.step(client.first()))))
    assert exchange.user == "a,=b"


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "secret"), ("nobody", "")])
async def test_a_wrong_password_and_a_user_that_is_not_there_look_the_same(
    users: ScramUsers, user: str, password: str
) -> None:
    exchange, client = ScramExchange(MECHANISM, users), ScramClient(MECHANISM, user, password)
    answer = await exchange.step(client.first())
    with pytest.raises(LoginFailedError, match="the user name or the password is not right"):
        await exchange.step(client.last(answer))
    assert not exchange.done
    again = await ScramExchange(MECHANISM, users).step(client.first())
    assert answer.split(b",")[1:] == again.split(b",")[1:], "the salt of a user stays the same"


async def test_the_key_of_nobody_opens_nothing(users: ScramUsers) -> None:
    """The stand-in for a user that is not there has a key of zeros; nobody may prove it."""
    exchange, client = ScramExchange(MECHANISM, users), ScramClient(MECHANISM, "nobody", "x")
    answer = (await exchange.step(client.first())).decode()
    nonce = answer.split(",")[0]
    signed = f"n=nobody,{client.first().decode().split(',')[3]},{answer},c=biws,{nonce}".encode()
    proof = base64.b64encode(hmac.digest(bytes(32), signed, "sha256")).decode()
    with pytest.raises(LoginFailedError):
        await exchange.step(f"c=biws,{nonce},p={proof}".encode())


async def test_a_replayed_exchange_is_refused(users: ScramUsers) -> None:
    exchange, client = ScramExchange(MECHANISM, users), ScramClient(MECHANISM, "alice", "secret")
    first = client.first()
    last = client.last(await exchange.step(first))
    await exchange.step(last)
    replayed = ScramExchange(MECHANISM, users)
    await replayed.step(first)
    with pytest.raises(LoginFailedError):
        await replayed.step(last)
    assert not replayed.done


async def test_an_exchange_that_is_done_takes_no_more(users: ScramUsers) -> None:
    exchange, client = ScramExchange(MECHANISM, users), ScramClient(MECHANISM, "alice", "secret")
    last = client.last(await exchange.step(client.first()))
    await exchange.step(last)
    with pytest.raises(LoginFailedError):
        await exchange.step(last)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("p=tls-unique,,n=alice,r=x", "channel binding is not offered"),
        ("n,a=bob,n=alice,r=x", "one user cannot speak for another"),
        ("n,a=bob,n=alice,r=x", "SCRAM-SHA-256: one user cannot speak for another"),
        ("n,b=alice,n=alice,r=x", "one user cannot speak for another"),
        ("n,alice,n=alice,r=x", "one user cannot speak for another"),
        ("n,,n=alice,r=x,tokenauth=true", "delegation tokens are not offered"),
        ("n,,m=alice,r=x", "not a message"),
        ("n,,n=alice,s=x", "not a message"),
        ("n,,n==2,r=x", "not a message"),
        ("n,,n==,r=x", "not a message"),
        ("n,,n=alice,r=", "not a message"),
        ("n,,n=,r=x", "not a message"),
        ("n,,n=a=b,r=x", "not a message"),
        ("n,,r=x,n=alice", "not a message"),
        ("n,,n=alice", "not a message"),
        ("", "not a message"),
    ],
)
async def test_a_first_message_that_is_none_is_refused(users: ScramUsers, message: str, said: str) -> None:
    with pytest.raises(LoginFailedError, match=said):
        await ScramExchange(MECHANISM, users).step(message.encode())


@pytest.mark.parametrize(
    ("part", "other"),
    [(b"c=biws", b"c=eSws"), (b"r=", b"r=x"), (b",p=", b",q="), (b",p=", b",p=!"), (b",p=", b",p=AAAA")],
)
async def test_a_last_message_with_another_part_is_refused(
    users: ScramUsers, part: bytes, other: bytes
) -> None:
    exchange, client = ScramExchange(MECHANISM, users), ScramClient(MECHANISM, "alice", "secret")
    last = client.last(await exchange.step(client.first()))
    with pytest.raises(LoginFailedError):
        await exchange.step(last.replace(part, other, 1))
    assert not exchange.done


@pytest.mark.parametrize("last", ["c=biws,p=AAAA", "c=biws", "", ",p=", "p=AAAA", "c=biws,,p=AAAA"])
async def test_a_last_message_without_all_its_parts_is_refused(users: ScramUsers, last: str) -> None:
    exchange = ScramExchange(MECHANISM, users)
    await exchange.step(b"n,,n=alice,r=abc")
    with pytest.raises(LoginFailedError, match="not a message of this mechanism"):
        await exchange.step(last.encode())
    assert not exchange.done


@given(st.lists(st.binary(max_size=80), max_size=3))
async def test_bytes_of_any_kind_let_nobody_in(users: ScramUsers, messages: list[bytes]) -> None:
    exchange = ScramExchange(MECHANISM, users)
    for message in messages:
        try:
            await exchange.step(message)
        except LoginFailedError:
            break
    assert not exchange.done
