"""Arguments of a wrong type or out of range, as the one exception of the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ._native import Error


@contextmanager
def named(what: str) -> Iterator[None]:
    """Errors that Python and NumPy raise while they convert an argument become `Error`, with the argument's name.

    Only conversions belong inside: what a program's own function raises is the program's.
    """
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        causes: list[str] = []
        cause: BaseException | None = error
        while cause is not None and len(causes) < 8:
            causes.append(str(cause))
            cause = cause.__cause__
        raise Error(f"{what}: {': '.join(causes)}") from error
