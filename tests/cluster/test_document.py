"""Documents in a store that is shared: read, replaced, and read again when somebody else replaced them.

Covers: protocol/json_values.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from kohort.cluster import ConflictError, Delete, Document, StateFileError
from kohort.testing.memory_store import MemoryHome


class Owner:
    """Knows what the document says."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.knows: list[Any] = []
        self.read()
        document.follow(self.read)

    def read(self) -> None:
        self.knows.append(self.document.load(lambda content: content["rules"]))


async def test_every_owner_has_what_one_has_saved() -> None:
    home = MemoryHome()
    first, second = (Owner(home.open().document("acls")) for _ in range(2))
    await first.document.save({"rules": 1})
    await second.document.save({"rules": 2})
    assert (first.knows, second.knows) == ([None, 2], [None, 1])
    await second.document.save({"rules": 3})
    assert (first.knows, second.knows) == ([None, 2, 3], [None, 1])


async def test_what_was_refused_or_has_failed_leaves_an_owner_with_what_is_there() -> None:
    home = MemoryHome()
    stores = home.open(), home.open()
    first, second = (Owner(store.document("acls")) for store in stores)
    await first.document.save({"rules": 1})
    stores[1].suspend()
    await first.document.save({"rules": 2})
    with pytest.raises(ConnectionError):
        await second.document.save({"rules": 3})
    assert second.knows == [None, 1]
    stores[1].resume()
    assert second.knows == [None, 1, 2]
    await second.document.save({"rules": 4})
    assert first.knows == [None, 4]


async def test_one_that_somebody_removes_is_as_it_was_and_written_whole_by_the_next_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = MemoryHome()
    first, second = (Owner(home.open().document("acls")) for _ in range(2))
    await first.document.save({"rules": 1})
    await home.open().commit(Delete("/kafka-acl"))
    assert (first.knows, second.knows) == ([None], [None, 1])
    assert caplog.text.count("the entry /kafka-acl is lost") == 2
    await second.document.save({"rules": 2})
    assert (first.knows, second.knows) == ([None, 2], [None, 1])


async def test_an_old_version_is_not_replaced() -> None:
    home = MemoryHome()
    known, unknown = home.open().document("acls"), home.open().document("acls")
    for each in (known, unknown):
        assert each.load(dict) is None
    await known.save({"rules": 1})
    with pytest.raises(ConflictError):
        await unknown.save({"rules": 2})


async def test_what_cannot_be_read_is_not_in_force(caplog: pytest.LogCaptureFixture) -> None:
    home = MemoryHome()
    writer, reader = home.open().document("acls"), Owner(home.open().document("acls"))
    writer.load(dict)
    await writer.save({"rule": 1})
    assert reader.knows == [None]
    assert "what was changed is not in force: the entry /kafka-acl of the metadata store" in caplog.text
    with pytest.raises(StateFileError, match="/kafka-acl"):
        reader.read()
    await writer.save({"rules": 1})
    assert reader.knows == [None, 1]
