"""The exception and the warning of the package, arguments that become the former, and lines for people."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from ._native import Error


class UsageError(Error, ValueError):
    """An argument or a call that does not fit: its ``kind`` is ``refused``."""


class UsageTypeError(UsageError, TypeError):
    """An argument of another type than expected."""


class NotHeldError(UsageError, LookupError):
    """There is no array, state or version of that name or number."""


class NoVersionError(NotHeldError):
    """There is no version of that iteration, or none at all."""


class NotFoundError(UsageError, FileNotFoundError):
    """There is no such directory."""


class RecoupWarning(UserWarning):
    """Something that costs no run now and may cost its versions: a save that failed, or versions that were not asked for."""


class BoundToProcess:
    """An object whose threads and files belong to this process: it has no copy."""

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise UsageTypeError(
            f"a {kind} cannot be pickled or copied, because its threads and files belong to this process: "
            f"make a {kind} where it is needed"
        )


_FIELD = re.compile(r"failed to extract field \w+\.(\w+)")
_NOTE = re.compile(r"while processing '(\w+)'")
_EXPECTED = [
    (re.compile(r"'(.+)' object is not an instance of 'str'"), "a text"),
    (re.compile(r"'(.+)' object is not an instance of 'bool'"), "True or False"),
    (re.compile(r"'(.+)' object is not an instance of 'ndarray'"), "a NumPy array"),
    (re.compile(r"'(.+)' object cannot be interpreted as an integer"), "a whole number"),
    (re.compile(r"'(.+)' object is not iterable"), "several values"),
    (re.compile(r"can't convert negative int.*|int too big.*|out of range integral.*"), "a whole number, 0 or more and not too large"),
    (re.compile(r"type not understood"), "a matrix or a LinearOperator"),
    (re.compile(r"must be real number, not (.+)"), "a number"),
    (re.compile(r"float\(\) argument must be a string or a real number, not '(.+)'"), "a number"),
    (re.compile(r"expected str, bytes or os.PathLike object, not (.+)"), "a path"),
]
"""What the conversions of Python say of a value of another type, and the words for what is expected."""


def _conversion(what: str, causes: list[str], notes: list[str], given: Mapping[str, Any]) -> str:
    """Returns a line that names the argument, what is expected and what was given."""
    field = _FIELD.fullmatch(causes[0])
    argument = next((note[1] for note in map(_NOTE.fullmatch, notes) if note), None)
    for pattern, expected in _EXPECTED:
        found = pattern.fullmatch(causes[-1])
        if found and field:
            return f"{what}: {field[1].removeprefix('lossy_')} is {given.get(field[1])!r}, expected {expected}"
        if found:
            of_type = f", given a '{found[1]}'" if found.groups() else ""
            return f"{what}: {f'{argument}: ' if argument else ''}expected {expected}{of_type}"
    return f"{what}: {': '.join(causes)}"


@contextmanager
def named(what: str, given: Mapping[str, Any] = {}) -> Iterator[None]:
    """Turns errors of Python and NumPy in the conversion of an argument into `UsageError`, with the name of the argument
    and, of the arguments in ``given``, its value.

    Only conversions belong inside: an exception of the program's own function is the program's.
    """
    try:
        yield
    except Error:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        causes: list[str] = []
        cause: BaseException | None = error
        while cause is not None and len(causes) < 8:
            causes.append(str(cause))
            cause = cause.__cause__
        kind = UsageTypeError if isinstance(error, TypeError) else UsageError
        raise kind(_conversion(what, causes, getattr(error, "__notes__", []), given)) from error


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
