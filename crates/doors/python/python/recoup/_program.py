"""Runs a program as the interpreter does: its arguments, its module `__main__`, its tracebacks and its exit code."""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import runpy
import sys
import zipfile
from types import ModuleType, TracebackType

CAUGHT = {os.path.join(os.path.dirname(__file__), name) for name in ("_blind.py", "_calls.py", "_caught.py", "_within.py")}
"""Files whose frames stand between the program and SciPy."""


def run(program: list[str], is_module: bool) -> None:
    """Runs a file, a folder or archive with a `__main__`, or a module. What it raises is left to the interpreter."""
    try:
        if is_module:
            sys.argv = ["-m", *program[1:]]
            _begin_main()
            runpy._run_module_as_main(program[0])  # type: ignore[attr-defined]
        else:
            sys.argv = program
            _run_path(program[0])
    except SystemExit:
        raise
    except BaseException as error:
        _show_as_python_does(error)
        raise


def _begin_main() -> ModuleType:
    module = ModuleType("__main__")
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    module.__annotations__ = {}
    sys.modules["__main__"] = module
    return module


def _run_path(path: str) -> None:
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        _put_first(path)
        _begin_main()
        runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
        return
    full = os.path.abspath(path)
    try:
        with open(full, "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {full!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        sys.exit(2)
    _put_first(os.path.dirname(os.path.realpath(full)))
    module = _begin_main()
    module.__file__, module.__cached__ = full, None  # type: ignore[attr-defined]
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", full)
    exec(compile(source, full, "exec", dont_inherit=True), module.__dict__)


def _put_first(folder: str) -> None:
    """Puts the program's folder where `python -m` has put the current one."""
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path[0] = folder


def _show_as_python_does(error: BaseException) -> None:
    """Has the interpreter show the program's frames alone, by whichever hook the program has set."""
    hook = sys.excepthook

    def shown(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        sys.excepthook = hook
        for each in _chain(value):
            each.__traceback__ = _without_ours(each.__traceback__)
        hook(kind, value, value.__traceback__)

    sys.excepthook = shown


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Drops the frames before the program, and those between it and SciPy."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    files = [frame.tb_frame.f_code.co_filename for frame in frames]
    first = max((at + 1 for at, file in enumerate(files) if file == __file__), default=0)
    kept = [frame for frame, file in list(zip(frames, files))[first:] if file not in CAUGHT]
    following: TracebackType | None = None
    for frame in reversed(kept):
        frame.tb_next = following
        following = frame
    return following
