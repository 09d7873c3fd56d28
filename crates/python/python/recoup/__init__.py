"""Checkpoints for iterative solvers that forget only what the solver can win back.

Three doors:

* `Session` protects the arrays of a solver of your own, decides when and how to save them, saves behind the solver, and
  brings them back. `recoup.scipy` has it for SciPy's solvers, `attach` for a petsc4py KSP.
* `open` shows the versions of a directory as NumPy arrays, with their bounds, residuals and damage.
* `recoup.model` plans intervals and schemes for a machine one does not own yet.

All times are seconds, all sizes bytes, all norms 2-norms. Every error is `Error`, with the library's words.
"""

from . import model
from ._directory import Directory, open
from ._native import Error, LoggedDecision, Outcome, Restored, Variable, Version, __version__
from ._session import Session
from .petsc import attach

__all__ = [
    "Directory",
    "Error",
    "LoggedDecision",
    "Outcome",
    "Restored",
    "Session",
    "Variable",
    "Version",
    "__version__",
    "attach",
    "model",
    "open",
]
