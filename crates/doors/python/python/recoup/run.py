"""Runs a program that uses SciPy so that a kill costs little of it.

::

    python -m recoup.run --dir ckpt script.py arguments
    python -m recoup.run --dir ckpt -m module arguments

The same line starts the program and starts it again. Finished calls of `scipy.sparse.linalg` are then answered from the
log in ``ckpt``, once their x was tested against the A and b at hand. docs/start/exec.md has more.
"""

from __future__ import annotations

import argparse
import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import tell
from ._native import CallLog, Error
from ._program import run

if TYPE_CHECKING:
    from ._calls import Calls

SOLVERS = "scipy.sparse.linalg"
LOG_BYTES_MAX = 8 << 30

HELP = """examples:
  python -m recoup.run --dir ckpt script.py arguments
  python -m recoup.run --dir ckpt -m module arguments

The same line starts the program and starts it again after a kill. Finished calls of cg,
gmres, spsolve, splu and the like are then answered from the log in DIR, once the kept x
was tested against A and b at hand. The log is removed when the program ends with 0.

The exit code is that of the program."""


def _number(text: str, expected: str) -> float:
    """Reads a number from 0 on."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value >= 0.0:
        return value
    raise argparse.ArgumentTypeError(f"{text}: expected {expected}")


def _duration(text: str, expected: str = "seconds, or a duration such as 10s or 1min") -> float:
    try:
        return _native.seconds_of("", text)
    except Error:
        return _number(text, expected)


def _interval(text: str) -> str:
    if text != "auto" and not re.fullmatch("0*[1-9][0-9]*it", text):
        _duration(text, "auto, iterations such as 50it, or a duration such as 1min")
    return text


def _share(text: str) -> float:
    return _number(text, "a number from 0 to 1")


OPTIONS: dict[str, dict[str, Any]] = {
    "--dir": {"required": True, "help": "directory of the log, made if missing"},
    "--after": {"type": _duration, "default": 10.0, "metavar": "TIME", "help": "save versions within a call that takes longer than this (10s)"},
    "--interval": {"type": _interval, "default": "auto", "help": "between these versions: as 1min, 50it, or auto, which is the default"},
    "--share": {"type": _share, "default": 0.01, "help": "share of the time of all calls that saving them may take (0.01); 1 saves every call"},
    "--skip-callbacks": {"action": "store_true", "help": "answer calls that have a callback too, without calling it"},
    "--keep": {"action": "store_true", "help": "keep the log when the program ends with 0"},
    "--explain": {"action": "store_true", "help": "print a line for every call"},
    "-m": {"dest": "is_module", "action": "store_true", "help": "run a module instead of a file"},
    "program": {"nargs": argparse.REMAINDER, "help": "the program and its arguments"},
}


def options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line: options, then the program and its own."""
    parser = argparse.ArgumentParser(
        prog="python -m recoup.run",
        description="Runs a program that uses SciPy, and answers finished solves from a log after a kill.",
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, option in OPTIONS.items():
        parser.add_argument(name, **option)
    found = parser.parse_args(words)
    if not found.program:
        parser.error("a program is missing: script.py, or -m module")
    return found


class Catcher(importlib.abc.MetaPathFinder):
    """Catches the solvers when the program imports them. Before that nothing is imported, not even NumPy."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self._log: CallLog | None = CallLog(given.dir, "scipy", LOG_BYTES_MAX)
        self._calls: Calls | None = None
        self._is_finding = False
        self.is_done = False
        atexit.register(self._finish)
        # A child would hold the directory beyond its parent's end.
        os.register_at_fork(after_in_child=self._leave)

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Finds SciPy's solvers as they are found without this finder."""
        if name != SOLVERS or self._is_finding or self._log is None:
            return None
        self._is_finding = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_finding = False
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                self.catch(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def catch(self, module: ModuleType) -> None:
        """Replaces the solvers."""
        given = self._given
        try:
            from ._calls import Calls
            from ._caught import catch
            from ._within import Versions

            if self._log is not None and self._calls is None:
                calls = Calls(self._log, given.share, given.explain)
                catch(module, calls, Versions(calls, given.dir, given.after, given.interval), given.skip_callbacks)
                self._calls = calls
        except Exception as error:
            tell(f"nothing is saved: {error or type(error).__name__}")

    def _leave(self) -> None:
        self._log = None
        if self._calls is not None:
            self._calls.leave()

    def _finish(self) -> None:
        """Reports, and removes the log of a program that has ended with 0."""
        if self._log is None:
            return
        if self.is_done and not self._given.keep:
            self._log.clear()
        tell(self._calls.summary() if self._calls else "no call was caught: the program imported no scipy.sparse.linalg")


def main() -> None:
    """Runs the program of the command line."""
    given = options()
    catcher = None
    try:
        catcher = Catcher(given)
    except Error as error:
        tell(f"nothing is saved: {error}")
    if catcher is not None:
        sys.meta_path.insert(0, catcher)
        if SOLVERS in sys.modules:
            catcher.catch(sys.modules[SOLVERS])
    code: Any = 1
    try:
        run(given.program, given.is_module)
        code = None
    except SystemExit as end:
        code = end.code
        raise
    finally:
        if catcher is not None:
            catcher.is_done = code in (None, 0)


if __name__ == "__main__":
    main()
