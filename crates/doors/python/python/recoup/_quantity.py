"""Quantities: numbers in the unit of their argument, or words such as ``"12h"`` and ``"64MiB"``."""

from __future__ import annotations

from datetime import timedelta
from typing import overload

Duration = float | str | timedelta
"""Seconds, a text such as ``"12h"``, ``"30min"`` or ``"250ms"``, or a timedelta."""

Size = int | str
"""Bytes, or a text such as ``"64MiB"`` or ``"78.8G"``."""


@overload
def words(value: float | str | timedelta) -> str: ...


@overload
def words(value: float | str | timedelta | None) -> str | None: ...


def words(value: float | str | timedelta | None) -> str | None:
    """Returns a quantity in the words that the library reads."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    return None if value is None else str(value)
