"""Checkpoints inside SciPy's solvers.

::

    with recoup.Session("scipy-checkpoints", A=A, b=b, scheme="lossy", interval="20it") as session:
        x, info = recoup.scipy.cg(A, b, session=session, rtol=1e-8)

If it is started again after any end, the same program continues from the newest version that is whole. `Callback` does
the same for your own call of a solver.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from operator import index
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse.linalg as spla

from ._deflation import DIRECTIONS_MAX, Deflation, Vector
from ._errors import UsageError, UsageTypeError, named
from ._native import Restored
from ._operator import is_complex, matrix, multiplier, numbers
from ._session import Session

Method = Literal["cg", "gmres", "bicgstab", "minres", "lgmres"]

__all__ = ["Callback", "bicgstab", "cg", "gmres", "lgmres", "minres"]

_SPARES = [f"w{k}" for k in range(DIRECTIONS_MAX)]


class Callback:
    """Restores a session into ``x0`` and ``M``, then saves from inside the solver.

    ::

        cb = session.scipy_callback(A, b)
        x, info = scipy.sparse.linalg.cg(A, b, x0=cb.x0, M=cb.M, callback=cb, rtol=1e-8)

    For ``cg`` a version also holds the direction x_k - x_(k-1). A resume keeps the directions of all recoveries (eight at
    most) A-orthogonal to those that follow, through ``M``, which recovers nearly all that the restart lost: pass ``cb.M``,
    and give your own preconditioner to the callback. Each direction costs 32 bytes per row and iteration after a recovery.
    Two vectors are copied for each version, none in between. ``M`` must be a symmetric (complex: Hermitian) positive
    definite approximation of the inverse of A, as for SciPy.

    For ``gmres`` pass ``callback_type="x"``: it saves at ends of cycles, where the iterate is all there is, so a resume
    costs nothing. ``bicgstab``, ``minres`` and ``lgmres`` are restarted from the iterate alone; ``lgmres`` counts its outer
    iterations.

    Attributes
    ----------
    operator: A as a LinearOperator.
    x0: where to start: the restored iterate; the one given, or zeros, where there is no version.
    M: the preconditioner to pass on, a LinearOperator.
    iteration: iterations completed since the start of the solve, over all restarts of the program.
    restored: what came back, or None.
    """

    def __init__(
        self,
        session: Session,
        A: Any,
        b: npt.ArrayLike | None,
        *,
        method: Method = "cg",
        x0: npt.ArrayLike | None = None,
        M: Any = None,
        restart: int = 20,
    ) -> None:
        if not isinstance(session, Session):
            raise UsageTypeError(f"session is {session!r}, expected a recoup.Session")
        if A is None or b is None:
            raise UsageError("the callback needs A and b: give them to it or to the session")
        if method not in get_args(Method):
            raise UsageError(f"method {method}: expected one of {', '.join(get_args(Method))}")
        A = A if A is session.A else matrix(A)
        self._session, self._method = session, method
        with named("A"):
            self.operator = spla.aslinearoperator(A)
        wants_complex = is_complex(A) or is_complex(b) or is_complex(x0)
        self._dtype = np.dtype(np.complex128 if wants_complex else np.float64)
        self._b = self._vector("b", b)
        _check_problem(session, A, self._b, None if b is session.b else session.b)
        with named("M"):
            self._inner = None if M is None else spla.aslinearoperator(M)
        with named("restart"):
            restart = index(restart)
        if restart < 1:
            raise UsageError(f"restart is {restart}, expected a count of at least 1")
        self._stride = restart if method == "gmres" else 1
        self._x = np.zeros(self._b.size, self._dtype) if x0 is None else self._vector("x0", x0).copy()
        if self._x.size != self._b.size:
            raise UsageError(f"x0 has {self._x.size} values, expected {self._b.size} as b has")
        self._lent: npt.NDArray[Any] = self._x
        self._r: Vector | None = None
        self._norm = float(np.linalg.norm(self._b))
        self._is_due = False
        self._is_called = False
        self._deflation: Deflation | None = None
        if method == "gmres":
            session._native.set_method(method)
        session.protect("x", self._x, role="iterate")
        if method == "cg":
            self._p = np.zeros(self._b.size, self._dtype)
            session.protect("p", self._p, role="direction", spare=True)
            # Memory nobody writes to is not taken from the system.
            spares = [np.zeros(self._b.size, self._dtype) for _ in _SPARES]
            for name, spare in zip(_SPARES, spares):
                session.protect(name, spare, role="direction", spare=True)
            self._spares = spares
        self.restored: Restored | None = session.restore()
        # Versions are numbered on from one of another problem, whose iterations are none of this solve's.
        self._offset = self.restored.iteration if self.restored and self.restored.guess else 0
        self.iteration = self.restored.iteration - self._offset if self.restored else 0
        if method == "cg":
            self._resume()
        self.x0: Vector = self._x
        self.M = spla.LinearOperator(self.operator.shape, matvec=self._precondition, dtype=self._dtype)

    def _vector(self, name: str, values: npt.ArrayLike) -> Vector:
        return numbers(name, values, complex_too=True).astype(self._dtype, copy=False)

    def _resume(self) -> None:
        """Takes the restored directions up, and the iterate over them."""
        used = self._session._native.used() if self.restored else []
        directions = [w for name, w in zip(_SPARES, self._spares) if name in used]
        if "p" in used:
            directions.append(self._p)
        names = ["p"]
        if directions:
            self._deflation = Deflation(self.operator.matvec, directions)
            self._deflation.correct(self._x, self._b - self.operator.matvec(self._x))
            for name, spare, w in zip(_SPARES, self._spares, self._deflation.w):
                spare[:] = w
                names.append(name)
        self._session._native.use_spares(names)

    def _precondition(self, r: Vector) -> Vector:
        """z = M r. CG updates this r in place, so it is the residual of the iterate when it calls back."""
        self._r = r
        return self._multiply_inner(r) if self._deflation is None else self._deflation.apply(r, self._multiply_inner)

    def _multiply_inner(self, r: Vector) -> Vector:
        return r if self._inner is None else self._inner.matvec(r)

    def _residual_norm(self, x: Vector) -> float:
        """Returns the norm of the recurrence if CG shows it; otherwise the one measured last."""
        if self._method == "cg" and self._r is not None:
            return float(np.linalg.norm(self._r))
        if self._method == "gmres" or self._is_due:
            self._measure(x)
        return self._norm

    def _measure(self, x: Vector) -> float:
        self._norm = float(np.linalg.norm(self._b - self.operator.matvec(x)))
        return self._norm

    def __call__(self, xk: Vector) -> None:
        """Decides after each iteration (each cycle of GMRES) whether to save, and saves."""
        if self._method == "lgmres" and not self._is_called:
            # Its first call is before the first iteration.
            self._is_called = True
            return
        self.iteration += self._stride
        if xk is not self._lent:
            self._session.protect("x", xk, role="iterate")
            self._lent = xk
        norm, number = self._residual_norm(xk), self._offset + self.iteration
        if self._method == "gmres":
            self._session.step(number, norm)
        elif self._method != "cg":
            # They show no residual: each version costs one product.
            if self._session.due(number, norm):
                self._session.save(number, self._measure(xk))
        elif self._is_due:
            np.subtract(xk, self._p, out=self._p)
            self._session.save(number, norm)
            self._is_due = False
        elif self._session.due(number, norm):
            self._p[:] = xk
            self._is_due = True


def _check_problem(session: Session, A: Any, b: Vector, other_b: npt.ArrayLike | None) -> None:
    """Refuses a problem that is not the session's: its versions would be recognised, and measured, by another one."""
    if session.A is None:
        return
    if other_b is not None:
        theirs = numbers("b", other_b, complex_too=True)
        _compare("b", b, theirs, _rounding(b.size, b, other_b))
    if A is not session.A:
        v = np.random.default_rng(0).standard_normal(b.size)
        ours, theirs = (numbers("A x", multiplier(each)(v), complex_too=True) for each in (A, session.A))
        _compare("A", ours, theirs, _rounding(b.size, A, session.A))


def _compare(name: str, ours: Vector, theirs: Vector, rounding: float) -> None:
    do = "give this solve a session of its own, or begin_system in one that solves many systems"
    if ours.size != theirs.size:
        raise UsageError(f"{name} of this solve is not {name} of the session: {ours.size} rows, {theirs.size} there; {do}")
    apart, size = float(np.linalg.norm(ours - theirs)), float(np.linalg.norm(theirs))
    if not apart <= rounding * size:
        what = "their products with one vector" if name == "A" else "they"
        relative = apart / size if size > 0 else np.inf
        raise UsageError(f"{name} of this solve is not {name} of the session: {what} differ by {relative:.1e}; {do}")


def _rounding(n: int, *values: Any) -> float:
    """The relative difference that counts as rounding, as it does where versions are recognised by products."""
    kinds = [np.dtype(d) for d in (getattr(each, "dtype", None) for each in values) if d is not None]
    eps = max((float(np.finfo(kind).eps) for kind in kinds if kind.kind in "fc"), default=0.0)
    return 1024 * max(eps, float(np.finfo(float).eps)) * float(np.sqrt(n))


def cg(
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None = None,
    *,
    session: Session,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Vector], object] | None = None,
) -> tuple[Vector, int]:
    """`scipy.sparse.linalg.cg` that restores first and saves on the way. ``maxiter`` counts from the start of the solve.

    Returns SciPy's (x, info); ``callback`` is called after each iteration, as by SciPy. See `Callback` for the cost
    of a resume.
    """
    _check_limits(maxiter, rtol=rtol, atol=atol)
    cb = Callback(session, A, b, method="cg", x0=x0, M=M)
    left = None if maxiter is None else max(maxiter - cb.iteration, 1)
    both = _both(cb, callback)
    return _ended(session, spla.cg(cb.operator, b, x0=cb.x0, rtol=rtol, atol=atol, maxiter=left, M=cb.M, callback=both))


def gmres(
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None = None,
    *,
    session: Session,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Vector], object] | None = None,
) -> tuple[Vector, int]:
    """`scipy.sparse.linalg.gmres` that restores first and saves at ends of cycles. ``maxiter`` counts cycles from the start.

    Versions are numbered by iterations, ``restart`` to a cycle. Returns SciPy's (x, info); ``callback`` gets the iterate
    after each cycle.
    """
    _check_limits(maxiter, rtol=rtol, atol=atol)
    cb = Callback(session, A, b, method="gmres", x0=x0, M=M, restart=restart)
    left = None if maxiter is None else max(maxiter - cb.iteration // restart, 1)
    both = _both(cb, callback)
    solved = spla.gmres(
        cb.operator, b, x0=cb.x0, rtol=rtol, atol=atol, restart=restart, maxiter=left, M=cb.M, callback=both, callback_type="x"
    )
    return _ended(session, solved)


def bicgstab(
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None = None,
    *,
    session: Session,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Vector], object] | None = None,
) -> tuple[Vector, int]:
    """`scipy.sparse.linalg.bicgstab` that restores first and saves on the way. ``maxiter`` counts from the start of the
    solve.

    It is restarted from the iterate alone, and each version costs one product with A. Returns SciPy's (x, info);
    ``callback`` is called after each iteration, as by SciPy.
    """
    _check_limits(maxiter, rtol=rtol, atol=atol)
    cb = Callback(session, A, b, method="bicgstab", x0=x0, M=M)
    left = None if maxiter is None else max(maxiter - cb.iteration, 1)
    both = _both(cb, callback)
    return _ended(session, spla.bicgstab(cb.operator, b, x0=cb.x0, rtol=rtol, atol=atol, maxiter=left, M=cb.M, callback=both))


def minres(
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None = None,
    *,
    session: Session,
    rtol: float = 1e-5,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Vector], object] | None = None,
) -> tuple[Vector, int]:
    """`scipy.sparse.linalg.minres` that restores first and saves on the way. ``maxiter`` counts from the start of the solve.

    It is restarted from the iterate alone, and each version costs one product with A. SciPy's minres stops on an estimate
    of its own, so a resume may stop at another residual. Returns SciPy's (x, info); ``callback`` is called after each
    iteration, as by SciPy.
    """
    _check_limits(maxiter, rtol=rtol)
    cb = Callback(session, A, b, method="minres", x0=x0, M=M)
    left = None if maxiter is None else max(maxiter - cb.iteration, 1)
    both = _both(cb, callback)
    return _ended(session, spla.minres(cb.operator, b, x0=cb.x0, rtol=rtol, maxiter=left, M=cb.M, callback=both))


def lgmres(
    A: Any,
    b: npt.ArrayLike,
    x0: npt.ArrayLike | None = None,
    *,
    session: Session,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int = 1000,
    M: Any = None,
    callback: Callable[[Vector], object] | None = None,
    inner_m: int = 30,
    outer_k: int = 3,
) -> tuple[Vector, int]:
    """`scipy.sparse.linalg.lgmres` that restores first and saves on the way. ``maxiter`` counts outer iterations from the
    start of the solve, and so do the versions.

    It is restarted from the iterate alone, without its augmentation vectors, and each version costs one product with A.
    Returns SciPy's (x, info); ``callback`` is called before each outer iteration, as by SciPy, and at convergence: the iterate at
    ``maxiter`` is not saved.
    """
    _check_limits(maxiter, rtol=rtol, atol=atol)
    cb = Callback(session, A, b, method="lgmres", x0=x0, M=M)
    left, both = max(maxiter - cb.iteration, 1), _both(cb, callback)
    solved = spla.lgmres(
        cb.operator, b, x0=cb.x0, rtol=rtol, atol=atol, maxiter=left, M=cb.M, callback=both, inner_m=inner_m, outer_k=outer_k
    )
    return _ended(session, solved)


def __dir__() -> list[str]:
    return __all__


def _check_limits(maxiter: int | None, **tolerances: float) -> None:
    """Refuses limits that no solve reaches, which SciPy takes."""
    for name, value in tolerances.items():
        if not isinstance(value, Real):
            raise UsageTypeError(f"{name} is {value!r}, expected a number")
        if not 0 <= value < np.inf:
            raise UsageError(f"{name} is {value}, expected a number of at least 0")
    if maxiter is not None:
        with named("maxiter"):
            maxiter = index(maxiter)
        if maxiter < 1:
            raise UsageError(f"maxiter is {maxiter}, expected a count of at least 1")


def _ended(session: Session, solved: tuple[Vector, int]) -> tuple[Vector, int]:
    """Tells the session whether the solve has converged by SciPy's word: its memory is then freed when it closes."""
    session._native.solved(solved[1] == 0)
    return solved


def _both(cb: Callback, callback: Callable[[Vector], object] | None) -> Callable[[Vector], None]:
    def call(xk: Vector) -> None:
        cb(xk)
        if callback is not None:
            callback(xk)

    return call
