"""The exception and the warning of the package, arguments that become the former, and lines for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ._native import Error


class RecoupWarning(UserWarning):
    """Something that costs no run now and may cost its versions: a save that failed, or versions that were not asked for."""


@contextmanager
def named(what: str) -> Iterator[None]:
    """Turns errors of Python and NumPy in the conversion of an argument into `Error`, with the name of the argument.

    Only conversions belong inside: an exception of the program's own function is the program's.
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


def tell(line: str) -> None:
    """Prints a line for people. A lost terminal is no failure of the program."""
    try:
        print(f"recoup: {line}", file=sys.__stderr__, flush=True)
    except (OSError, ValueError):
        pass
