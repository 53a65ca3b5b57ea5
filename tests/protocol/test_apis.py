"""The table of APIs against the classes behind it."""

from __future__ import annotations

import pytest

from kohort.protocol import (
    APIS,
    Api,
    ApiKey,
    UnsupportedVersionError,
    api_for,
    request_type,
    response_type,
)
from tests.messages import MESSAGES


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_each_row_agrees_with_the_schema_of_its_messages(api: Api) -> None:
    for side, made in (("Request", request_type(api.key)), ("Response", response_type(api.key))):
        _, message = MESSAGES[f"{api.name}{side}"]
        assert api.key == message.key == made.API_KEY
        for version in range(api.min_version, api.max_version + 1):
            assert version in message.versions
            assert (version in message.flexible) == api.flexible(version)


def test_every_number_has_a_row() -> None:
    assert set(APIS) == set(ApiKey)


def test_a_version_out_of_range_is_named_with_what_is_spoken() -> None:
    with pytest.raises(UnsupportedVersionError, match="Heartbeat v5 is not spoken here: v0 to v4 are"):
        api_for(ApiKey.HEARTBEAT).require(5)


def test_an_unknown_number_is_named() -> None:
    with pytest.raises(UnsupportedVersionError, match="unknown API number 999"):
        api_for(999)
