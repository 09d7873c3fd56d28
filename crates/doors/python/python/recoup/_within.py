"""Versions of x within a call that takes long, and the resume of one that was killed in there."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._calls import Call, Calls

if TYPE_CHECKING:
    from ._session import Session


class Versions:
    """The versions of all calls: each call that takes long has a run of its own, named by its number."""

    def __init__(self, calls: Calls, dir: str, after: float, interval: str) -> None:
        self.calls, self.dir, self.after, self.interval = calls, Path(dir).resolve(), after, interval
        self._left = {number for number, _ in self._runs()}
        """Calls of which an earlier start has left versions."""

    def _runs(self) -> list[tuple[int, Path]]:
        found = [(re.fullmatch(r"scipy-(\d+)", path.name), path) for path in self.dir.iterdir()]
        return [(int(name[1]), path) for name, path in found if name]

    def remove_before(self, number: int) -> None:
        """Removes the versions of calls that ended before this one."""
        for other, path in self._runs():
            if other < number:
                shutil.rmtree(path, ignore_errors=True)

    def solve(self, real: Callable[..., Any], call: Call, given: dict[str, Any]) -> Any:
        """Solves; from the newest version of this call if that is nearer than the program's own x0."""
        number = self.calls.number - 1
        if number in self._left:
            self._left.discard(number)
            x = self.calls.guarded(f"call {number} is not resumed", lambda: self._nearer(number, call, given["x0"]))
            if x is not None:
                answer = self._watched(real, call, given | {"x0": x})
                if answer[1] == 0:
                    self.calls.count("resumed")
                    return answer
        return self._watched(real, call, given)

    def _nearer(self, number: int, call: Call, own: Any) -> Any:
        from ._directory import Directory

        versions = reversed(Directory(self.dir, f"scipy-{number}").versions)
        whole = next((version for version in versions if not version.verify()), None)
        if whole is None or isinstance(own, str):
            return None
        x = whole.arrays(["x"])["x"]
        reached = call.measure(np.zeros(call.b.size) if own is None else np.ravel(own))["residual"]
        return x if call.measure(x)["residual"] < reached else None

    def _watched(self, real: Callable[..., Any], call: Call, given: dict[str, Any]) -> Any:
        watch = _Watch(self, call, given["callback"])
        given = given | {"callback": watch}
        if "callback_type" in given:
            given["callback_type"] = "x"
        try:
            return real(**given)
        finally:
            watch.close()


class _Watch:
    """The callback of a call: it looks at the clock, and saves versions once the call has taken long."""

    def __init__(self, versions: Versions, call: Call, callback: Callable[[Any], Any] | None) -> None:
        self._versions, self._call, self._callback = versions, call, callback
        self._number = versions.calls.number - 1
        self._begin = time.perf_counter() + versions.after
        self._session: Session | None = None
        self._is_over = False
        self._iteration, self._norm = 0, 0.0

    def __call__(self, x: Any) -> None:
        if not self._is_over and (self._session is not None or time.perf_counter() >= self._begin):
            self._guarded(lambda: self._save(x))
        if self._callback is not None:
            self._callback(x)

    def _guarded(self, body: Callable[[], None]) -> None:
        def done() -> bool:
            body()
            return True

        self._is_over |= not self._versions.calls.guarded(f"no versions within call {self._number}", done)

    def _save(self, x: Any) -> None:
        self._iteration += 1
        is_first = self._session is None
        session = self._open(x) if self._session is None else self._session
        session.protect("x", x, role="iterate")
        if is_first or session.due(self._iteration, self._norm):
            self._norm = self._call.measure(x)["residual"]
            session.save(self._iteration, self._norm)

    def _open(self, x: Any) -> Session:
        from ._session import Session

        self._versions.remove_before(self._number)
        interval = self._versions.interval
        session = Session(self._versions.dir, name=f"scipy-{self._number}", scheme="lossless", interval=interval)
        self._session = session
        # A line says it, and a warning might be an error of the program.
        session._has_warned = True
        session.protect("x", x.copy(), role="iterate")
        restored = session.restore()
        self._iteration += restored.iteration if restored else 0
        return session

    def close(self) -> None:
        """Finishes the versions taken."""
        if self._session is not None:
            self._guarded(self._session.close)
