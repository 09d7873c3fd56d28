"""The exception and the warning of the package, arguments that become the former, and lines for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ._native import Error


class UsageError(Error, ValueError):
    """An argument or a call that does not fit: its ``kind`` is ``refused``."""


class UsageTypeError(UsageError, TypeError):
    """An argument of another type than expected."""


class NoVersionError(UsageError, LookupError):
    """There is no version of that iteration, or none at all."""


class NotFoundError(UsageError, FileNotFoundError):
    """There is no such directory."""


class RecoupWarning(UserWarning):
    """Something that costs no run now and may cost its versions: a save that failed, or versions that were not asked for."""


@contextmanager
def named(what: str) -> Iterator[None]:
    """Turns errors of Python and NumPy in the conversion of an argument into `UsageError`, with the name of the argument,
    and errors of the library of kind ``refused``, too.

    Only conversions belong inside: an exception of the program's own function is the program's.
    """
    try:
        yield
    except Error as error:
        if type(error) is Error and error.kind == "refused":
            raise UsageError(*error.args) from error.__cause__
        raise
    except (TypeError, ValueError, OverflowError) as error:
        causes: list[str] = []
        cause: BaseException | None = error
        while cause is not None and len(causes) < 8:
            causes.append(str(cause))
            cause = cause.__cause__
        kind = UsageTypeError if isinstance(error, TypeError) else UsageError
        raise kind(f"{what}: {': '.join(causes)}") from error


@contextmanager
def needed(package: str, what: str) -> Iterator[None]:
    """Says in an `UsageError` which package is missing, where one is that is needed for this call only."""
    try:
        yield
    except ImportError as error:
        raise UsageError(f"{what} needs {package}: pip install {package}") from error


def tell(line: str) -> None:
    """Prints a line for people. A lost terminal is no failure of the program."""
    try:
        print(f"recoup: {line}", file=sys.__stderr__, flush=True)
    except (OSError, ValueError):
        pass
