"""Checkpoints inside a petsc4py KSP.

::

    with recoup.attach(ksp, b, x, "petsc-checkpoints", scheme="lossy", interval="20it"):
        ksp.solve(b, x)

One rank, real or complex doubles. The caller imports petsc4py, not this module.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import numpy as np

from ._deflation import DIRECTIONS_MAX, Deflation, Vector
from ._errors import UsageError
from ._native import Error, Restored
from ._operator import Rows
from ._session import Session

_SPARES = [f"w{k}" for k in range(DIRECTIONS_MAX)]


def attach(ksp: Any, b: Any, x: Any, dir: str | os.PathLike[str], *, restart: int = 30, **options: Any) -> Attached:
    """Restores ``x`` if there is a version, tells the KSP to start from it, and saves from inside ``ksp.solve(b, x)``.

    The operators must be set. Take the context manager, or call `Attached.detach` after the solve.

    For KSP type ``cg`` a version also holds the direction x_k - x_(k-1), and a resume keeps the directions of all
    recoveries A-orthogonal to those that follow, by a preconditioner around the KSP's own. ``gmres`` and its kin save at
    ends of cycles of ``restart`` iterations. All others are restarted from the iterate alone.

    Parameters
    ----------
    ksp, b, x: the KSP, the right-hand side and the vector the solution goes to; one rank.
    dir, options: as for `recoup.Session`, without A and b. An operator that is no AIJ matrix of real numbers is multiplied by the KSP's
        own ``Mat.mult``, and ``synchronous`` is then on, because PETSc serves one thread.
    """
    return Attached(ksp, b, x, dir, restart=restart, **options)


class Attached:
    """A KSP with a session.

    Attributes
    ----------
    session: the session.
    restored: the version that was restored, or None.
    base: iterations done before this process: ``base + ksp.its`` are done in all.
    """

    def __init__(
        self, ksp: Any, b: Any, x: Any, dir: str | os.PathLike[str], *, restart: int = 30, **options: Any
    ) -> None:
        if ksp.getComm().getSize() != 1:
            raise UsageError(f"attach serves KSPs of one rank, this one has {ksp.getComm().getSize()}")
        self._ksp, self._matrix = ksp, ksp.getOperators()[0]
        kind = str(ksp.getType())
        self._is_cg = kind == "cg"
        self._cycle = restart if "gmres" in kind else 1
        # Richardson's iteration is stationary, as Jacobi's is: both bear more of a lossy version than CG does.
        method = "gmres" if "gmres" in kind else "jacobi" if kind == "richardson" else None
        options.setdefault("method", method)
        rhs = np.array(b.getArray(readonly=True))
        rhs = rhs.astype(np.complex128 if rhs.dtype.kind == "c" else np.float64, copy=False)
        self._in, self._out = b.duplicate(), b.duplicate()
        operator: Any = None if rhs.dtype.kind == "c" else self._by_rows(rhs.size)
        if operator is None:
            operator, options["synchronous"] = self._multiply, True
        self.session = Session(dir, A=operator, b=rhs, **options)
        self._x: Vector = np.array(x.getArray(readonly=True), dtype=rhs.dtype)
        self._p = np.zeros(rhs.size if self._is_cg else 0, rhs.dtype)
        self._inner: Any = None
        self._is_due = self._has_begun = False
        self.restored: Restored | None = self._restore(rhs)
        # Versions are numbered on from one of another problem, whose iterations are none of this solve's.
        self._offset = self.restored.iteration if self.restored and self.restored.guess else 0
        self.base = self.restored.iteration - self._offset if self.restored else 0
        if self.restored:
            x.setArray(self._x)
            ksp.setInitialGuessNonzero(True)
        ksp.setMonitor(self._monitor)

    def _by_rows(self, rows: int) -> Any:
        """Returns the arrays of an AIJ matrix, or None."""
        if "aij" not in str(self._matrix.getType()):
            return None
        return Rows(rows, *self._matrix.getValuesCSR())

    def _multiply(self, x: Vector) -> Vector:
        self._in.setArray(x)
        self._matrix.mult(self._in, self._out)
        return np.array(self._out.getArray(readonly=True))

    def _restore(self, rhs: Vector) -> Restored | None:
        session = self.session
        session.protect("x", self._x, role="iterate")
        if not self._is_cg:
            return session.restore()
        spares = [np.zeros(rhs.size, rhs.dtype) for _ in _SPARES]
        for name, array in [("p", self._p), *zip(_SPARES, spares)]:
            session.protect(name, array, role="direction", spare=True)
        restored = session.restore()
        used = session._native.used() if restored else []
        directions = [w for name, w in zip(_SPARES, spares) if name in used] + ([self._p] if "p" in used else [])
        names = ["p"]
        if directions:
            deflation = Deflation(self._multiply, directions)
            deflation.correct(self._x, rhs - self._multiply(self._x))
            for name, spare, w in zip(_SPARES, spares, deflation.w):
                spare[:] = w
                names.append(name)
            self._deflate(deflation)
        session._native.use_spares(names)
        return restored

    def _deflate(self, deflation: Deflation) -> None:
        """Puts the deflation around the KSP's preconditioner."""
        self._inner = self._ksp.getPC()
        outer = type(self._inner)().create(comm=self._ksp.getComm())
        outer.setType("python")
        outer.setPythonContext(_Deflated(self._ksp, self._inner, deflation))
        matrices = self._ksp.getOperators()
        self._inner.setOperators(*matrices)
        self._ksp.setPC(outer)
        self._ksp.setOperators(*matrices)

    def _monitor(self, ksp: Any, its: int, norm: float) -> None:
        self._has_begun = True
        # PETSc ends a solve by itself whose norm is no number.
        if its == 0 or not np.isfinite(norm):
            return
        iteration = self._offset + self.base + its
        if self._is_due and self._is_cg:
            self._read(ksp)
            np.subtract(self._x, self._p, out=self._p)
            self.session.save(iteration, norm)
            self._is_due = False
            return
        self._is_due = self._is_due or self.session.due(iteration, norm)
        if not self._is_due:
            return
        if self._is_cg:
            self._read(ksp)
            self._p[:] = self._x
        elif its % self._cycle == 0:
            self._read(ksp)
            self.session.save(iteration, norm)
            self._is_due = False

    def _read(self, ksp: Any) -> None:
        ksp.buildSolution(self._out)
        self._x[:] = self._out.getArray(readonly=True)

    def detach(self) -> None:
        """Gives the KSP its own preconditioner back, takes its monitors away, and closes the session."""
        if self.session.closed:
            return
        self._ksp.cancelMonitor()
        if self._inner is not None:
            self._ksp.setPC(self._inner)
        if self._has_begun:
            self.session._native.solved(self._ksp.getConvergedReason() > 0)
        self.session.close()

    def __enter__(self) -> Attached:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.detach()
        except Error:
            if kind is None:
                raise


class _Deflated:
    """PETSc's interface of a preconditioner in Python."""

    def __init__(self, ksp: Any, inner: Any, deflation: Deflation) -> None:
        self._ksp, self._inner, self._deflation = ksp, inner, deflation

    def setUp(self, pc: Any) -> None:
        self._inner.setUp()

    def apply(self, pc: Any, r: Any, z: Any) -> None:
        # Of b PETSc takes the norm that tolerances relate to.
        if r.handle == self._ksp.getRhs().handle:
            self._inner.apply(r, z)
            return
        across = r.duplicate()

        def precondition(values: Vector) -> Vector:
            across.setArray(values)
            self._inner.apply(across, z)
            preconditioned: Vector = z.getArray(readonly=True)
            return preconditioned

        z.setArray(self._deflation.apply(r.getArray(readonly=True), precondition))
        across.destroy()
