"""Quantities: numbers in the unit of their argument, or words such as ``"12h"`` and ``"64MiB"``."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar, overload

from . import _native

Duration = float | str | timedelta
"""Seconds, a text such as ``"12h"``, ``"30min"`` or ``"250ms"``, or a timedelta."""

Other = TypeVar("Other")

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


@overload
def seconds(name: str, value: str | timedelta) -> float: ...


@overload
def seconds(name: str, value: Other) -> Other: ...


def seconds(name: str, value: object) -> object:
    """Returns a duration in seconds; anything else than a text or a timedelta as it is."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    return _native.seconds_of(name, value) if isinstance(value, str) else value


@overload
def size(name: str, value: str) -> int: ...


@overload
def size(name: str, value: Other) -> Other: ...


def size(name: str, value: object) -> object:
    """Returns a size in bytes; anything else than a text as it is."""
    return _native.bytes_of(name, value) if isinstance(value, str) else value
