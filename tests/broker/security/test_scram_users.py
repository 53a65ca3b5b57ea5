"""The store of SCRAM credentials: durable, and without a password in it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from kohort.broker import SettingsError
from kohort.broker.security._scram_users import MIN_ITERATIONS, ScramCredential, ScramUsers
from kohort.cluster import FolderStore, StateFileError


def opened(folder: Path) -> ScramUsers:
    users = ScramUsers()
    users.open(FolderStore(folder).document("scram-users"))
    return users


def test_credentials_are_salted_iterated_and_outlive_the_broker(tmp_path: Path) -> None:
    opened(tmp_path).add_missing("alice=gehe1m")
    (path,) = tmp_path.iterdir()
    assert "gehe1m" not in path.read_text()
    kept = opened(tmp_path)
    for mechanism, size in (("SCRAM-SHA-256", 32), ("SCRAM-SHA-512", 64)):
        credential = kept.get(mechanism, "alice")
        assert credential is not None
        assert credential.iterations >= MIN_ITERATIONS
        assert len(credential.salt) >= 16
        assert (len(credential.stored_key), len(credential.server_key)) == (size, size)
    assert "gehe1m" not in repr(kept)


def test_users_that_are_known_are_not_made_again(tmp_path: Path) -> None:
    users = opened(tmp_path)
    users.add_missing("alice=one")
    before = users.copy()
    users.add_missing("alice=two,bob=three")
    assert users.get("SCRAM-SHA-256", "alice") == before["SCRAM-SHA-256", "alice"]
    assert [user for user, _, _ in users.all()] == ["alice", "alice", "bob", "bob"]


def test_two_users_with_one_password_have_nothing_in_common() -> None:
    one, two = (ScramCredential.of_password("SCRAM-SHA-256", "same") for _ in range(2))
    assert one.salt != two.salt
    assert one.stored_key != two.stored_key


def test_a_credential_shows_no_key() -> None:
    shown = repr(ScramCredential(4096, b"salt", b"stored", b"server"))
    assert "salt" not in shown
    assert "stored" not in shown
    assert "server" not in shown


@pytest.mark.parametrize("text", ["alice", "=x", "alice="])
def test_users_that_are_none_are_refused_without_telling_the_password(text: str) -> None:
    with pytest.raises(SettingsError, match=r"\(hidden\) is not allowed") as caught:
        ScramUsers().add_missing(f"bob=gehe1m,{text}")
    assert "gehe1m" not in str(caught.value)


@pytest.mark.parametrize("change", ["SCRAM-MD5", "4096", "!"])
def test_a_store_that_was_changed_by_hand_is_refused(tmp_path: Path, change: str) -> None:
    opened(tmp_path).add_missing("alice=gehe1m")
    (path,) = tmp_path.iterdir()
    text = path.read_text()
    wrong = {
        "SCRAM-MD5": ("SCRAM-SHA-256", "SCRAM-MD5"),
        "4096": ("4096", "1"),
        "!": ('"salt": "', '"salt": "!'),
    }
    path.write_text(text.replace(*wrong[change]))
    with pytest.raises(StateFileError, match=r"kohort-scram-users\.json cannot be read .*nobody can log in"):
        opened(tmp_path)


def credential(iterations: int, salt: bytes) -> ScramCredential:
    return ScramCredential.of_salted("SCRAM-SHA-256", salt, b"salted", iterations)


def test_who_is_not_there_has_a_salt_that_outlives_the_broker(tmp_path: Path) -> None:
    opened(tmp_path).add_missing("alice=gehe1m")
    first, second = (opened(tmp_path).stand_in("SCRAM-SHA-256", "bob") for _ in range(2))
    assert first == second
    assert first != opened(tmp_path).stand_in("SCRAM-SHA-256", "carol")


def test_a_store_of_an_older_kohort_keeps_its_users_and_gets_a_secret(tmp_path: Path) -> None:
    opened(tmp_path).add_missing("alice=gehe1m")
    (path,) = tmp_path.iterdir()
    content = json.loads(path.read_text())
    del content["secret"]
    path.write_text(json.dumps(content))
    users = opened(tmp_path)
    users.add_missing("")
    assert users.get("SCRAM-SHA-256", "alice") is not None
    assert opened(tmp_path).stand_in("SCRAM-SHA-256", "bob") == users.stand_in("SCRAM-SHA-256", "bob")


def test_who_is_not_there_looks_like_those_who_are() -> None:
    """Iterations, and length and letters of the salt: of two kinds of clients, one three times as many."""
    users = ScramUsers()
    made = {
        ("SCRAM-SHA-256", f"java{number}"): credential(8_192, b"1ab2c3d4e5f6g7h8i9j0k1l2m3")
        for number in range(75)
    }
    made |= {("SCRAM-SHA-256", f"ours{number}"): credential(4_096, bytes([255]) * 32) for number in range(25)}
    users.replace(made)
    drawn = [users.stand_in("SCRAM-SHA-256", f"nobody{number}") for number in range(1_000)]
    shapes = Counter((one.iterations, len(one.salt), one.salt.isalnum()) for one in drawn)
    assert shapes.keys() == {(8_192, 26, True), (4_096, 32, False)}
    assert 600 < shapes[8_192, 26, True] < 900
    assert len({one.salt for one in drawn}) == len(drawn)


def test_a_user_that_comes_or_goes_changes_nobody_elses_stand_in() -> None:
    users = ScramUsers()
    made = {("SCRAM-SHA-256", f"user{number}"): credential(8_192, b"x" * 20) for number in range(100)}
    users.replace(made)
    before = [users.stand_in("SCRAM-SHA-256", f"nobody{number}") for number in range(300)]
    users.replace(made | {("SCRAM-SHA-256", "new"): credential(4_096, bytes([255]) * 32)})
    after = [users.stand_in("SCRAM-SHA-256", f"nobody{number}") for number in range(300)]
    assert sum(one != other for one, other in zip(before, after, strict=True)) < 20


def test_before_there_is_a_user_nobody_looks_like_those_that_would_be_made() -> None:
    users = ScramUsers()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        stand_in = users.stand_in(mechanism, "nobody")
        made = ScramCredential.of_password(mechanism, "x")
        assert (stand_in.iterations, len(stand_in.salt)) == (made.iterations, len(made.salt)) == (4_096, 32)
        assert not stand_in.salt.isascii()
        assert len(stand_in.stored_key) == len(stand_in.server_key) == len(made.stored_key)


def test_users_are_told_sorted_by_name_and_then_by_mechanism() -> None:
    users = ScramUsers()
    for text in ("b=x", "c=x", "a=x"):
        users.add_in_memory(text)
    assert [(user, mechanism) for user, mechanism, _ in users.all()] == [
        (user, mechanism) for user in "abc" for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]


def test_mechanisms_of_a_user_are_told_in_one_order() -> None:
    users = ScramUsers()
    names = ("SCRAM-SHA-512", "SCRAM-SHA-256")
    users.replace({(name, "a"): ScramCredential.of_password(name, "x") for name in names})
    assert [mechanism for _, mechanism, _ in users.all()] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]


def test_users_in_memory_are_not_written(tmp_path: Path) -> None:
    users = opened(tmp_path)
    users.add_in_memory("alice=x")
    assert users.get("SCRAM-SHA-512", "alice") is not None
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_written_only_for_new_users(tmp_path: Path) -> None:
    users = opened(tmp_path)
    users.add_missing("")
    assert list(tmp_path.iterdir()) == [], "nobody is there"
    users.add_missing("alice=x")
    (path,) = tmp_path.iterdir()
    path.unlink()
    users.add_missing("alice=y")
    assert list(tmp_path.iterdir()) == []
    again = opened(tmp_path)
    again.add_missing("alice=x,,bob=y=z")
    assert {user for user, _, _ in opened(tmp_path).all()} == {"alice", "bob"}


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('"secret": "', '"secret": "!', "Only base64 data is allowed"),
        ("SCRAM-SHA-256", "SCRAM-MD5", "SCRAM-MD5 with 4096 iterations is not known"),
        ("4096", "4095", "SCRAM-SHA-256 with 4095 iterations is not known"),
    ],
)
def test_a_store_that_cannot_be_read_says_why(tmp_path: Path, before: str, after: str, why: str) -> None:
    opened(tmp_path).add_missing("alice=x")
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(StateFileError, match=why):
        opened(tmp_path)


def test_a_secret_that_was_kept_once_is_kept_for_good(tmp_path: Path) -> None:
    users = opened(tmp_path)
    users.add_missing("alice=x")
    (path,) = tmp_path.iterdir()
    before = path.stat().st_ino
    users.add_missing("")
    opened(tmp_path).add_missing("alice=y")
    assert path.stat().st_ino == before, "it was not written again"
