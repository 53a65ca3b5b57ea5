"""Which quota is a client's, and who shares it.

Covers: broker/quotas/_entities.py.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.broker.quotas import QuotaEntity, QuotaKey, QuotaTable, entity_of
from kohort.protocol import KafkaError

RATE = QuotaKey.PRODUCER_BYTE_RATE

#: Most special first, as in the table of Kafka's documentation.
PRECEDENCE = [
    (("user", "alice"), ("client-id", "app")),
    (("user", "alice"), ("client-id", None)),
    (("user", "alice"),),
    (("user", None), ("client-id", "app")),
    (("user", None), ("client-id", None)),
    (("user", None),),
    (("client-id", "app"),),
    (("client-id", None),),
]


def table(*entities: QuotaEntity) -> QuotaTable:
    return QuotaTable({entity: {RATE: float(number)} for number, entity in enumerate(entities, start=1)})


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_most_special_quota_counts(first: int) -> None:
    entities = [entity_of(parts) for parts in PRECEDENCE[first:]]
    found = table(*entities).find(RATE, "alice", "app")
    assert found is not None
    assert (found.entity, found.limit) == (entities[0], 1.0)
    kinds = dict(PRECEDENCE[first])
    assert found.user == ("alice" if "user" in kinds else None)
    assert found.client_id == ("app" if "client-id" in kinds else None)


def test_each_kind_of_quota_is_looked_up_by_itself() -> None:
    special, general = entity_of([("user", "alice")]), entity_of([("client-id", None)])
    known = QuotaTable(
        {special: {QuotaKey.CONSUMER_BYTE_RATE: 5.0}, general: {RATE: 7.0, QuotaKey.CONSUMER_BYTE_RATE: 9.0}}
    )
    producing, consuming = (
        known.find(RATE, "alice", "x"),
        known.find(QuotaKey.CONSUMER_BYTE_RATE, "alice", "x"),
    )
    assert producing is not None
    assert producing.limit == 7.0
    assert consuming is not None
    assert consuming.limit == 5.0


def test_others_have_no_quota() -> None:
    known = table(entity_of([("user", "alice")]), entity_of([("client-id", "app")]))
    assert known.find(RATE, "bob", "other") is None


def test_removing_the_last_value_removes_the_entity() -> None:
    known, entity = QuotaTable(), entity_of([("user", "alice")])
    known.change(entity, {RATE: 5.0, QuotaKey.REQUEST_PERCENTAGE: 1.5})
    known.change(entity, {RATE: None})
    assert known.values == {entity: {QuotaKey.REQUEST_PERCENTAGE: 1.5}}
    known.change(entity, {QuotaKey.REQUEST_PERCENTAGE: None, RATE: None})
    assert known.values == {}


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ([], "empty"),
        ([("group", "g")], "'group'"),
        ([("user", "a"), ("user", "b")], "twice"),
        ([("user", "")], "1 to"),
    ],
)
def test_what_is_no_entity_is_refused(parts: list[tuple[str, str | None]], complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint):
        entity_of(parts)


names = st.one_of(st.none(), st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()))
entities = st.one_of(
    st.tuples(st.tuples(st.just("user"), names)),
    st.tuples(st.tuples(st.just("client-id"), names)),
    st.tuples(st.tuples(st.just("client-id"), names), st.tuples(st.just("user"), names)),
).map(entity_of)
values = st.dictionaries(st.sampled_from(list(QuotaKey)), st.floats(0.001, 1e12), min_size=1)


@settings(max_examples=40)
@given(st.dictionaries(entities, values, max_size=8))
def test_a_table_is_the_same_after_it_was_stored(content: dict[QuotaEntity, dict[QuotaKey, float]]) -> None:
    stored = json.loads(json.dumps(QuotaTable(content).to_stored()))
    assert QuotaTable.parse(stored).values == content


@settings(max_examples=40)
@given(st.lists(entities, max_size=8), st.text(max_size=5), st.text(max_size=5))
def test_what_is_found_is_the_first_of_the_eight_places(
    known: list[QuotaEntity], user: str, client_id: str
) -> None:
    held = table(*known)
    found = held.find(RATE, user, client_id)
    matching = [entity for entity in held.values if _covers(entity, user, client_id)]
    assert (found is None) == (not matching)
    if found is not None:
        assert found.entity == min(matching, key=_rank)


def _covers(entity: QuotaEntity, user: str, client_id: str) -> bool:
    actual = {"user": user, "client-id": client_id}
    return all(name is None or name == actual[kind] for kind, name in entity.parts)


def _rank(entity: QuotaEntity) -> int:
    shown = tuple((kind, None if name is None else "x") for kind, name in entity.parts)
    order = [tuple((k, None if n is None else "x") for k, n in parts) for parts in PRECEDENCE]
    return order.index(shown)
