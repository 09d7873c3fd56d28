"""The tape: states of a forward pass, given back in reverse."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from . import _native
from ._directory import as_html
from ._errors import BoundToProcess, UsageError, UsageTypeError, named, needed
from ._quantity import Size, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._session import CudaArray, DLPackArray

    State = npt.ArrayLike | CudaArray | DLPackArray

_open: weakref.WeakSet[Tape] = weakref.WeakSet()

_DEVICE_INTERFACE = "__cuda_array_interface__"
_DLPACK_CUDA = (2, 13)
"""Kinds of memory that DLPack counts to CUDA devices: their own, and managed."""


class Tape(BoundToProcess):
    """States of a forward pass, given back in reverse or in any order that is announced.

    ::

        with recoup.Tape(host=4 << 30, spill="/scratch/tape") as tape:
            for step in range(n):
                tape.push(step, u)                      # returns when u is copied
                u = forward(step, u)
            while tape:
                step, u = tape.pop(out=u)               # the newest first
                adjoint = reverse(step, u, adjoint)

    Memory, the codec and the directory work behind the program: states leave a full memory for the directory while the
    program computes, and are fetched before they are popped. A state is given back whole, or its pop is an error.

    States are arrays of float64, float32, int64 or uint8, of any shape, each of its own. Arrays on a CUDA device (CuPy,
    PyTorch, Numba: ``__cuda_array_interface__`` or DLPack) are copied within the device where the tape has memory there
    (``device``), and fetched otherwise. Several arrays of a program make one state as views of one array. A tape is used
    by one thread at a time, and not in a forked process.

    Parameters
    ----------
    device: bytes of memory for states on the first CUDA device, above memory of the host. A codec then works on states as
        they leave the device, each alone; states that never leave it come back bit for bit.
    host: bytes of memory for states, a number or a text such as ``"32GiB"``. The tape takes them as it needs them, not at once.
    spill: directory that states are written to behind the program, oldest first; made if missing. One tape uses it at a
        time. A state that is popped takes its file with it. What has reached the directory stays there when the program
        ends or is killed, and ``reopen=True`` continues with it; `save` waits until it has all states.
    spill_bytes: most bytes of the directory; all of its file system when None.
    codec: ``qb``, ``zfp``, ``pco``, ``zstd``. States are coded behind the program, and decoded ahead of it. Raw when None.
    bound: largest error of each value of a coded state: ``absolute:V``, ``range:V`` (V times the range of the state) or
        ``pointwise:V`` (V times the value). Every bit comes back when None. A range needs no knowledge of units.
    key_every: one state of this number is coded alone, each other against the one before: smaller, where states change
        little. The way back takes memory for as many decoded states, and pops go in reverse only. Not with ``device``.
    grid: shape of the grid that each state lies on, where the arrays do not say it (a flat array of a 3-D field). Codecs
        use it. States of up to three axes are their own grid.
    threads: threads that code one state.
    reopen: continues with the states that an earlier run has left in ``spill``.
    clear: removes the states that an earlier run has left in ``spill``. Without either they are an error.
    pages: ``huge`` or ``small`` pages of memory.
    """

    def __init__(
        self,
        *,
        device: Size = 0,
        host: Size = 0,
        spill: str | os.PathLike[str] | None = None,
        spill_bytes: Size | None = None,
        codec: str | None = None,
        bound: str | None = None,
        key_every: int = 1,
        grid: Sequence[int] | None = None,
        threads: int = 1,
        reopen: bool = False,
        clear: bool = False,
        pages: Literal["huge", "small"] = "huge",
    ) -> None:
        self._shapes: dict[int, tuple[int, ...]] = {}
        with named("tape"):
            self._grid = None if grid is None else _extents(tuple(grid))
            options = {
                "device": words(device),
                "host": words(host),
                "spill": None if spill is None else os.fspath(spill),
                "spill_bytes": words(spill_bytes),
                "codec": codec,
                "bound": bound,
                "key_every": key_every,
                "grid": self._grid,
                "threads": threads,
                "reopen": reopen,
                "clear": clear,
                "pages": pages,
            }
        with named("tape", options):
            self._native = _native.Tape(options)
        self._process = os.getpid()
        _open.add(self)

    def push(self, step: int, state: State) -> None:
        """Pushes the state of a step: any whole number from 0 that is not on the tape. Returns when the state is copied.

        With a codec, the error of a push may be raised by a later call. A state that was refused is not on the tape.

        Raises `Error` for a step that is on the tape, a state of another type or grid, and a tape that is full.
        """
        with named("push"):
            if _is_on_device(state):
                shape = tuple(self._native.push_device(step, state, self._grid))
            else:
                host = np.asarray(state)
                shape = host.shape
                self._native.push(step, np.ascontiguousarray(host), self._grid or _extents(shape))
        self._shapes[step] = shape

    def pop(self, out: Any = None) -> tuple[int, npt.NDArray[Any]]:
        """Takes the next state off the tape: as announced, else the newest. Returns its step and the state.

        ``out``, an array of the state's type and number of values, contiguous and writable, is overwritten and returned;
        without it each pop makes an array. A state that was pushed by an earlier run (``reopen``) has its extents, up to
        three without leading ones of length 1; of more axes, it is flat.

        Raises `Error` for an empty tape, an array that does not fit, and a damaged file. The state is still on the tape.
        """
        step = self._native.next_step()
        if step is None:
            raise UsageError("the tape is empty: all states were popped")
        if _is_on_device(out):
            step, popped = self._native.pop_device(out), out
        else:
            popped = self._room(step, out)
            step = self._native.pop(popped)
        self._shapes.pop(step, None)
        return step, popped

    def peek(self, step: int, out: Any = None) -> npt.NDArray[Any]:
        """Returns the state of a step, which stays on the tape. ``out`` as for `pop`."""
        with named("step"):
            if _is_on_device(out):
                self._native.peek_device(step, out)
                return out
            target = self._room(step, out)
            self._native.peek(step, target)
        return target

    def forget(self, step: int) -> None:
        """Drops the state of a step unread."""
        with named("step"):
            self._native.forget(step)
        self._shapes.pop(step, None)

    def announce(self, steps: Iterable[int]) -> None:
        """Announces the next pops, so that they are fetched in this order. States that are not named follow in reverse.

        Raises `Error` where states are coded against each other (``key_every``): they leave in reverse.
        """
        with named("steps"):
            self._native.announce(list(steps))

    def turn(self) -> None:
        """Begins to fetch the states that are popped next, before the first pop. Call it when the last state is pushed."""
        self._native.turn()

    def save(self) -> None:
        """Waits until the spill directory has all states, and makes them durable: they outlive the process and a loss of
        power. The tape continues.

        Raises `Error` for a tape without a directory.
        """
        self._native.save()

    @property
    def steps(self) -> list[int]:
        """The steps on the tape, in the order of their pushes."""
        return self._native.steps()

    @property
    def damaged(self) -> list[tuple[str, str]]:
        """Files that ``reopen`` found damaged, each with the finding. They stay where they are."""
        return [(str(path), reason) for path, reason in self._native.damaged()]

    def report(self) -> dict[str, float]:
        """The account: ``n_pushed``, ``n_popped``, ``raw_bytes`` of all states pushed, ``stored_bytes`` of those on the tape
        now, and the seconds that the program waited: ``push_seconds``, ``pop_seconds``."""
        push_seconds, pop_seconds = self._native.waited()
        return {**self._native.counts(), "push_seconds": push_seconds, "pop_seconds": pop_seconds}

    def __len__(self) -> int:
        return self._native.len()

    def __contains__(self, step: object) -> bool:
        return isinstance(step, (int, np.integer)) and step >= 0 and self._native.contains(int(step))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the bytes of the states on the tape: as they were pushed, and as they are stored.

        Parameters
        ----------
        ax: the axes to draw on; new ones when None.
        """
        with needed("matplotlib", "plot"):
            from matplotlib import pyplot
        report = self.report()
        axes = pyplot.subplots()[1] if ax is None else ax
        axes.barh(["stored now", "pushed in all"], [report["stored_bytes"] / 2**20, report["raw_bytes"] / 2**20])
        axes.set(xlabel="MiB", title=f"{len(self)} states on the tape")
        return axes

    def _repr_html_(self) -> str:
        rows = [] if self.closed else [self.report()]
        return as_html(repr(self), _REPORT, rows)

    def __repr__(self) -> str:
        return "Tape(closed)" if self.closed else f"Tape({len(self)} state{'' if len(self) == 1 else 's'})"

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self not in _open

    def close(self) -> None:
        """Ends the tape. States that the spill directory has stay there, and others go: call `save` before to keep all.

        Raises `Error` that names the file of a popped state if the system does not remove it.
        """
        if not self.closed:
            self._shapes.clear()
            _open.discard(self)
            self._native.close()

    def __enter__(self) -> Tape:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _room(self, step: int, out: Any) -> npt.NDArray[Any]:
        """An array of the host for a state: ``out`` itself, or a new one."""
        if out is not None:
            if not isinstance(out, np.ndarray) or not out.flags.c_contiguous:
                raise UsageTypeError("array out is not a NumPy array that is contiguous in C order")
            return out
        dtype, dims = self._native.shape(step)
        return np.empty(self._shapes.get(step, _shape(dims)), dtype)


_REPORT = ["n_pushed", "n_popped", "raw_bytes", "stored_bytes", "push_seconds", "pop_seconds"]


def _is_on_device(array: Any) -> bool:
    if isinstance(array, np.ndarray):
        return False
    if hasattr(array, _DEVICE_INTERFACE):
        return True
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] in _DLPACK_CUDA


def _extents(shape: tuple[int, ...]) -> list[int]:
    """Extents of a grid in C order, the fastest first; of more than three axes, their product."""
    extents = list(reversed(shape)) if len(shape) <= 3 else [int(np.prod(shape))]
    return extents + [1] * (3 - len(extents))


def _shape(dims: Sequence[int]) -> tuple[int, ...]:
    """The shape of extents, without leading axes of length 1."""
    shape = list(reversed(dims))
    while len(shape) > 1 and shape[0] == 1:
        shape.pop(0)
    return tuple(shape)


@atexit.register
def _close_all() -> None:
    """Ends all tapes before the interpreter ends, while their threads can still be waited for."""
    for tape in list(_open):
        # A process that was forked leaves its parent's tapes to the parent.
        if tape._process == os.getpid():
            tape.close()
