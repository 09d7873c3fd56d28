"""Finished calls of solvers: numbered, kept in a log, and given back once their x was tested.

Promises: no x is given back that was not tested against the A and b at hand, by one product; what fails here costs the
log and never the call. Must not know SciPy's solvers.
"""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import tell
from ._native import CallLog, Error

SOLVE_MULTIPLE = 10
"""A call is kept if its solve took this many times its save at least."""
COST_REMEMBERED = 0.95
"""Of what a save is thought to cost, at each call that is not kept for it."""
HEARD_MAX = 20_000
"""Calls of one callback."""
SAME = 1e-11
"""Relative difference of numbers that tell one problem from another."""
SLACK = 1e-6
"""Of a residual that was measured in another order of sums."""


@lru_cache(maxsize=1)
def probe(n: int) -> npt.NDArray[np.float64]:
    """A vector that other vectors are told apart by."""
    return np.cos(np.arange(n))


@dataclass
class Call:
    """A call whose answer can be tested."""

    solver: str
    multiply: Callable[[Any], Any]
    b: npt.NDArray[Any]
    kind: list[Any]
    """Shapes and types of A and b, and options that choose another answer."""
    tolerances: tuple[float, ...] = ()
    answer: Callable[[npt.NDArray[Any], int], Any] = lambda x, info: x
    parts: Callable[[Any], tuple[Any, int]] = lambda answer: (answer, 0)
    """The x and the info of an answer: what `answer` makes one of."""
    callback: Callable[[Any], Any] | None = None
    """The program's, which gets norms, or an iterate that it never looks at."""
    heard: list[float | None] = field(default_factory=list)
    """What it got: norms, or None for an iterate."""
    place: int = 0
    """Its number in the log."""

    def call_back(self, x: Any) -> Any:
        """Calls the program's callback, and notes that."""
        if len(self.heard) <= HEARD_MAX:
            self.heard.append(None if isinstance(x, np.ndarray) else float(x))
        return self.callback(x) if self.callback else None

    def call_back_again(self, heard: list[float | None], x: Any) -> None:
        """Calls the program's callback with what it got in the first run."""
        if self.callback is not None:
            for each in heard:
                self.callback(x if each is None else np.float64(each))

    def measure(self, x: Any) -> dict[str, Any]:
        """Measures A x, b and the residual: one product."""
        with np.errstate(all="ignore"):
            product = np.asarray(self.multiply(x))
            b = self.b.reshape(product.shape)
            z = probe(product.size)
            size = np.sqrt(product.size)
            along = [complex(np.vdot(z, each)) / size for each in (b, product)]
            return {
                "norms": [float(np.linalg.norm(each)) for each in (b, product)],
                "along": [part for each in along for part in (each.real, each.imag)],
                "residual": float(np.linalg.norm(b - product)),
            }

    def is_answered_by(self, kept: dict[str, Any], x: Any) -> bool:
        """Whether a kept x is as good for the A and b at hand as it was, and these are those it was kept for."""
        if [kept["solver"], kept["kind"]] != [self.solver, self.kind] or (self.callback and kept["heard"] is None):
            return False
        if not all(was <= now for was, now in zip(kept["tolerances"], self.tolerances, strict=True)):
            return False
        now = self.measure(x)
        norm_b, norm_product = now["norms"]
        sizes = [norm_b, norm_product, norm_b, norm_b, norm_product, norm_product]
        pairs = zip(kept["norms"] + kept["along"], now["norms"] + now["along"], sizes, strict=True)
        allowed = kept["residual"] * (1 + SLACK) + 64 * np.finfo(float).eps * norm_b
        return all(abs(was - is_now) <= SAME * size for was, is_now, size in pairs) and now["residual"] <= allowed


class Calls:
    """The calls of a program, from its first to its last."""

    def __init__(self, log: CallLog, share: float, explains: bool) -> None:
        self._log, self._share, self._explains = log, share, explains
        self._process, self._thread = os.getpid(), threading.get_ident()
        self._is_open = False
        self._is_full = self._has_failed = False
        self._cost = self._budget = 0.0
        self.number = 0
        self._n_of_kind: Counter[int] = Counter()
        self._counts = dict.fromkeys(("replayed", "resumed", "kept", "left", "callbacks"), 0)

    def leave(self) -> None:
        """Gives the log up, in a child of the program: its calls are its own."""
        self.__dict__.pop("_log", None)

    def begins(self, caller: str) -> bool:
        """Whether a call from this module is one of the program: made by its first thread, and by no other call."""
        is_ours = threading.get_ident() == self._thread and os.getpid() == self._process
        return is_ours and not self._is_open and caller.partition(".")[0] != "scipy"

    def run(self, name: str, describe: Callable[[], Call | str], solve: Callable[[Call | None], Any]) -> Any:
        """Answers the call from the log, or solves. `describe` gives a call, or the reason why it cannot be kept."""
        number, self._is_open = self.number, True
        self.number += 1
        try:
            untested = f"call {number} is not saved"
            call = self.guarded(untested, describe)
            if isinstance(call, Call):
                self._place(call)
            if isinstance(call, Call) and (kept := self.guarded(untested, lambda: self._find(call))):
                call.call_back_again(kept[0]["heard"], kept[1][0])
                self._counts["replayed"] += 1
                self._explain(number, name, "answered from the log")
                return call.answer(*kept[1])
            start, resumed = time.perf_counter(), self._counts["resumed"]
            answer = solve(call if isinstance(call, Call) else None)
            seconds = time.perf_counter() - start
            fate = call
            if not isinstance(call, str):
                fate = self.guarded(untested, lambda: self._keep(call, answer, seconds))
            how = "resumed from a version" if self._counts["resumed"] > resumed else "solved"
            self._explain(number, name, f"{how}, {fate or 'not saved'}")
            return answer
        finally:
            self._is_open = False

    def count(self, what: str) -> None:
        """Counts a call as one of its kind."""
        self._counts[what] += 1

    def guarded(self, what: str, body: Callable[[], Any]) -> Any:
        """Says once what is lost where recoup fails, which is no failure of the program."""
        try:
            return body()
        except Exception as error:
            if not self._has_failed:
                tell(f"{what}: {error or type(error).__name__}")
            self._has_failed = True
            return None

    def _place(self, call: Call) -> None:
        """Numbers a call among those of its solver and kind. One of another kind that is made only where an earlier
        call was solved, or only where it was answered, moves no number."""
        kind = zlib.crc32(json.dumps([call.solver, call.kind]).encode()) >> 1
        call.place = kind << 32 | self._n_of_kind[kind]
        self._n_of_kind[kind] += 1

    def _find(self, call: Call) -> tuple[dict[str, Any], tuple[Any, int]] | None:
        found = self._log.find(call.place)
        if found is None:
            return None
        try:
            kept = json.loads(found[0])
            kind, shape, order = kept["x"]
            x = np.frombuffer(found[1], kind).reshape(shape).copy(order)
            if not call.is_answered_by(kept, x):
                return None
        except (KeyError, TypeError, ValueError):
            return None
        return kept, (x, kept["info"])

    def _keep(self, call: Call | None, answer: Any, seconds: float) -> str:
        """Keeps the call if that costs little beside its solve, and beside all solves so far."""
        if call is None or self._is_full:
            return "not saved"
        x, info = call.parts(answer)
        if info != 0:
            return "not converged"
        if type(x) is not np.ndarray or x.dtype.char not in "fdFD" or np.may_share_memory(x, call.b):
            return "not saved"
        self._budget += self._share * seconds
        if self._share < 1 and (seconds < SOLVE_MULTIPLE * self._cost or self._budget < self._cost):
            self._cost *= COST_REMEMBERED
            self._counts["left"] += 1
            return "too short to save"
        self._budget -= self._cost
        start = time.perf_counter()
        is_kept = self._put(call, x, info)
        self._cost = time.perf_counter() - start
        return "saved" if is_kept else "not saved"

    def _put(self, call: Call, x: npt.NDArray[Any], info: int) -> bool:
        facts: dict[str, Any] = {"solver": call.solver, "kind": call.kind, "tolerances": call.tolerances, "info": int(info)}
        facts |= call.measure(x) | {"heard": call.heard if call.callback else None}
        order = "C" if x.flags.c_contiguous or not x.flags.f_contiguous else "F"
        facts["x"] = [x.dtype.str, x.shape, order]
        if not np.isfinite(facts["residual"]) or len(call.heard) > HEARD_MAX:
            return False
        try:
            self._is_full = not self._log.put(call.place, json.dumps(facts).encode(), x.tobytes(), x.itemsize)
            why = "the log has the size it may have"
        except Error as error:
            self._is_full, why = True, str(error)
        if self._is_full:
            tell(f"nothing more is saved: {why}")
        self._counts["kept"] += not self._is_full
        return not self._is_full

    def _explain(self, number: int, name: str, what: str) -> None:
        if self._explains:
            tell(f"call {number}, {name}: {what}")

    def summary(self) -> str:
        """Says what became of all calls."""
        if self.number == 0:
            return "no call was caught: the program called no solver of scipy.sparse.linalg"
        counts = self._counts
        line = f"{self.number} calls: {counts['replayed']} answered from the log, {counts['resumed']} resumed within"
        line += f", {counts['kept']} saved, {counts['left']} too short to save"
        if counts["callbacks"]:
            line += f", {counts['callbacks']} solved for their callbacks (--skip-callbacks answers them without)"
        return line
