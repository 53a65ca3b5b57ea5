"""Base class of tables that pydantic checks whenever one is created. This module imports pydantic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from ._table import Scope, settings_of


class SettingsModel(BaseModel):
    """Immutable settings. ``repr`` and errors hide sensitive values."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True
    )
    SCOPE: ClassVar[Scope]

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        known = settings_of(type(self))
        return (
            (name, value) for name, value in super().__repr_args__() if not known[str(name)].row.sensitive
        )
