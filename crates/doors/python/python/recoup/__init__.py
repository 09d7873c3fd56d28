"""Checkpoints for iterative solvers, with errors that the solver can repair.

Five doors:

* `Session` protects the arrays of your own solver, decides when and how to save them, saves in the background, and
  restores them. `recoup.scipy` does this for SciPy's solvers, `attach` for a petsc4py KSP.
* `open` shows the versions of a directory as NumPy arrays, with their bounds, residuals and damage.
* `recoup.model` plans intervals and schemes for a given machine, before anything runs.
* `Tape` keeps the states of a forward pass for its adjoint; `recoup.tape` has schedules for programs that are larger.
* `Memory` keeps whole versions of NumPy arrays in one file, and shows them to other programs.

All times are seconds, all sizes bytes, all norms 2-norms. Every error is `Error` or a
subclass for its kind, with the message of the library. What costs versions and no run is a `RecoupWarning`, and is logged
under ``recoup``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._directory import Directory, open
from ._errors import NotFoundError, NotHeldError, NoVersionError, RecoupWarning, UsageError, UsageTypeError
from ._native import (
    CallbackError,
    CodecError,
    DamagedError,
    DeviceError,
    DiskFullError,
    Error,
    InUseError,
    InternalError,
    LoggedDecision,
    MemoryVersion,
    OutOfMemoryError,
    Outcome,
    RankLostError,
    ReadOnlyError,
    Restored,
    StorageError,
    Variable,
    Version,
    __version__,
)

if TYPE_CHECKING:
    from . import model, tape
    from ._memory import Memory, MemoryReader, MemoryView
    from ._session import Session
    from ._tape import Tape
    from .petsc import attach

# What needs NumPy is imported when it is asked for: `recoup.run` leaves that moment to its program.
_HOMES = {
    "Memory": "_memory",
    "MemoryReader": "_memory",
    "MemoryView": "_memory",
    "Session": "_session",
    "Tape": "_tape",
    "attach": "petsc",
}


def __getattr__(name: str) -> Any:
    if name in ("model", "petsc", "tape"):
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "import_module"})


__all__ = [
    "CallbackError",
    "CodecError",
    "DamagedError",
    "DeviceError",
    "Directory",
    "DiskFullError",
    "Error",
    "InUseError",
    "InternalError",
    "LoggedDecision",
    "Memory",
    "MemoryReader",
    "MemoryVersion",
    "MemoryView",
    "NoVersionError",
    "NotFoundError",
    "NotHeldError",
    "OutOfMemoryError",
    "Outcome",
    "RankLostError",
    "ReadOnlyError",
    "RecoupWarning",
    "Restored",
    "Session",
    "StorageError",
    "Tape",
    "UsageError",
    "UsageTypeError",
    "Variable",
    "Version",
    "__version__",
    "attach",
    "model",
    "open",
    "tape",
]
