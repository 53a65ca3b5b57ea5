"""Tokens for IAM access control of Amazon MSK, by aws-msk-iam-sasl-signer-python.

``sasl_oauth_token_provider="kohort.client.msk_iam:token"`` takes them in each process.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

from .errors import AuthenticationError

_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")


def token() -> str:
    """Sign a token with the AWS credentials of this process, for the region that ``AWS_REGION`` or
    ``AWS_DEFAULT_REGION`` names. Raises AuthenticationError without region or signer, and the errors of
    the signer.
    """
    region = next(filter(None, map(os.environ.get, _REGIONS)), None)
    if region is None:
        raise AuthenticationError("Amazon MSK", f"no region: set {_REGIONS[0]}")
    try:
        signer = import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    except ImportError as error:
        raise AuthenticationError(
            "Amazon MSK", "no signer: pip install aws-msk-iam-sasl-signer-python"
        ) from error
    made: str = signer.generate_auth_token(region)[0]
    return made
