"""JSON values, for the code that reads and writes documents."""

from __future__ import annotations

from typing import Any, TypeAlias

#: Anything that JSON can express. Who reads a document checks or converts what is in it.
Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Json]
