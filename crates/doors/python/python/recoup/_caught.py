"""SciPy's solvers of sparse systems, caught: what each call solves, and how its answer is tested.

Promises: a call that cannot be answered whole, with all that it does beside x, is SciPy's own.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._blind import is_blind
from ._calls import Call, Calls, probe
from ._within import Versions

ITERATIVE = ("cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "minres", "qmr", "gcrotmk", "tfqmr")
IN_AND_OUT = {"outer_v": None, "CU": None, "show": False, "check": False}
"""Arguments by which a solver gives more than x, and their values that ask for nothing."""


def catch(module: ModuleType, calls: Calls, versions: Versions, skip_callbacks: bool) -> None:
    """Replaces the solvers of `scipy.sparse.linalg`."""
    for name in ITERATIVE:
        if hasattr(module, name):
            setattr(module, name, _Iterative(name, getattr(module, name), calls, versions, skip_callbacks).caught())
    module.spsolve = _spsolve(module.spsolve, calls)  # type: ignore[attr-defined]
    module.splu = _factors(module.splu, calls, lambda made: made.solve, lambda factors: factors)  # type: ignore[attr-defined]
    make = module.factorized
    module.factorized = _factors(make, calls, lambda made: made, lambda factors: factors.solve)  # type: ignore[attr-defined]


def _caller() -> str:
    """The module that has called the solver."""
    return str(sys._getframe(2).f_globals.get("__name__", ""))


def _given(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by their names; None where SciPy is to refuse them."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    return bound.arguments


def _kind(A: Any, b: Any) -> list[Any]:
    """What tells problems apart before a product does; as JSON gives it back."""
    return [list(A.shape), str(A.dtype), getattr(A, "nnz", None), list(b.shape), str(b.dtype)]


class _Iterative:
    """An iterative solver."""

    def __init__(self, name: str, real: Callable[..., Any], calls: Calls, versions: Versions, skips: bool) -> None:
        self._name, self._real, self._calls = name, real, calls
        self._versions, self._skips = versions, skips
        self._signature = inspect.signature(real)

    def caught(self) -> Callable[..., Any]:
        """The function that takes the place of the solver."""

        @functools.wraps(self._real)
        def solve(*args: Any, **kwargs: Any) -> Any:
            given = _given(self._signature, args, kwargs) if self._calls.begins(_caller()) else None
            if given is None:
                return self._real(*args, **kwargs)
            return self._calls.run(self._name, lambda: self._describe(given), lambda call: self._solve(call, given))

        return solve

    def _takes_norms(self, given: dict[str, Any]) -> bool:
        """Whether the callback gets norms, which can be kept for it, and no iterates."""
        return self._name == "gmres" and given["callback"] is not None and given["callback_type"] != "x"

    def _describe(self, given: dict[str, Any]) -> Call | str:
        if any(given.get(name) not in (nothing, None) for name, nothing in IN_AND_OUT.items()):
            return "not saved: it gives more than x"
        callback = None if self._skips else given["callback"]
        if callback is not None and not self._takes_norms(given) and not is_blind(callback):
            self._calls.count("callbacks")
            return "not saved: it has a callback"
        A = sp.linalg.aslinearoperator(given["A"])
        b, shift = np.asarray(given["b"]), given.get("shift", 0.0)
        return Call(
            solver=self._name,
            multiply=A.matvec if shift == 0 else lambda x: A.matvec(x) - shift * x,
            b=b,
            kind=[*_kind(given["A"] if hasattr(given["A"], "dtype") else A, b), given.get("callback_type")],
            tolerances=(float(given["rtol"]), float(given.get("atol", 0.0))),
            answer=lambda x, info: (x, info),
            parts=lambda answer: answer,
            callback=callback,
        )

    def _solve(self, call: Call | None, given: dict[str, Any]) -> Any:
        if call is not None and call.callback is not None:
            given = given | {"callback": call.call_back}
        if call is None or self._takes_norms(given):
            return self._real(**given)
        return self._versions.solve(self._real, call, given)


def _spsolve(real: Callable[..., Any], calls: Calls) -> Callable[..., Any]:
    signature = inspect.signature(real)

    @functools.wraps(real)
    def spsolve(*args: Any, **kwargs: Any) -> Any:
        given = _given(signature, args, kwargs) if calls.begins(_caller()) else None
        if given is None:
            return real(*args, **kwargs)
        A, b = given["A"], given["b"]

        def describe() -> Call | str:
            if not sp.issparse(A) or sp.issparse(b):
                return "not saved: A is not sparse, or b is"
            rhs = np.asarray(b)
            return Call("spsolve", lambda x: A @ x, rhs, _kind(A, rhs))

        return calls.run("spsolve", describe, lambda call: real(*args, **kwargs))

    return spsolve


class Factors:
    """Stands for the factors of a matrix, which are made when an answer needs them."""

    def __init__(self, A: Any, make: Callable[[Any], Any], solver: Callable[[Any], Any], calls: Calls) -> None:
        self._A, self._make, self._solver, self._calls = A, make, solver, calls
        self._made: Any = None

    def made(self) -> Any:
        """The object that SciPy makes."""
        if self._made is None:
            self._made = self._make(self._A)
        return self._made

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return sp.linalg.SuperLU  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made(), name)

    def __repr__(self) -> str:
        return repr(self.made())

    def solve(self, rhs: Any, *args: Any, **kwargs: Any) -> Any:
        """Solves, or gives back the kept x."""

        def solve(call: Call | None = None) -> Any:
            return self._solver(self.made())(rhs, *args, **kwargs)

        def describe() -> Call | str:
            trans = args[0] if args else kwargs.get("trans", "N")
            A = {"N": lambda: self._A, "T": lambda: self._A.T, "H": lambda: self._A.conj().T}[trans]()
            b = np.asarray(rhs)
            return Call("solve", lambda x: A @ x, b, [*_kind(self._A, b), trans])

        return self._calls.run("solve", describe, solve) if self._calls.begins(_caller()) else solve()


def _factors(
    make: Callable[..., Any], calls: Calls, solver: Callable[[Any], Any], given_out: Callable[[Factors], Any]
) -> Callable[..., Any]:
    """Catches a function that factorizes. What is kept of a call says that A has factors."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def factorize(*args: Any, **kwargs: Any) -> Any:
        given = _given(signature, args, kwargs) if calls.begins(_caller()) else None
        if given is None or not sp.issparse(given["A"]):
            return make(*args, **kwargs)
        # The program may write to its own A.
        own = given.pop("A").copy()
        factors = Factors(own, lambda A: make(A, **given), solver, calls)

        def describe() -> Call:
            z = probe(own.shape[0])
            kind = [*_kind(own, z), repr(sorted(given.items()))]
            answer = given_out(factors)
            return Call("splu", lambda nothing: own @ z, z, kind, (), lambda x, info: answer, lambda made: (z[:0], 0))

        def solve(call: Call | None) -> Any:
            factors.made()
            return given_out(factors)

        return calls.run(make.__name__, describe, solve)

    return factorize
