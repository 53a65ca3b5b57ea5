"""Tokens for Amazon MSK: who signs them, and what is missing where there is none."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from kohort.client import AuthenticationError
from kohort.client.msk_iam import token


@pytest.fixture(autouse=True)
def signer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The signer's one function, as version 1.0.2 has it."""
    made = ModuleType("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    made.__dict__["generate_auth_token"] = lambda region: (f"token of {region}", 1_700_000_900_000)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", ModuleType("aws_msk_iam_sasl_signer"))
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    return made


def test_the_signer_makes_the_token_for_the_region_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert token() == "token of eu-west-1"
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert token() == "token of eu-central-1"


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, signer: ModuleType) -> None:
    monkeypatch.setitem(sys.modules, signer.__name__, None)
    with pytest.raises(AuthenticationError, match="pip install aws-msk-iam-sasl-signer-python"):
        token()
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(AuthenticationError, match="set AWS_REGION"):
        token()
