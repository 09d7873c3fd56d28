"""The versioned memory: whole versions of NumPy arrays in one file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from . import _native
from ._directory import as_html
from ._errors import BoundToProcess, NoVersionError, NotFoundError, NotHeldError, UsageError, UsageTypeError, named
from ._native import MemoryVersion
from ._quantity import Duration, Size, words


class Memory(BoundToProcess):
    """NumPy arrays that a program computes on in place, and versions of them in one file.

    ::

        with recoup.Memory.open("/dev/shm/heat.memory") as memory:
            heat = memory.array("heat", np.zeros(1_000_000))
            restored = memory.restore()                # None on the first start
            for step in range(restored.step + 1 if restored else 0, 100):
                heat[9000 * step : 9000 * (step + 1)] = step
                memory.commit_if_due(step)             # often enough for the failures expected
            memory.commit(100)

    A commit copies the blocks that have changed, and then makes the version count at once: it appears whole or not at all,
    whenever the process is killed. Versions share the blocks that did not change. All arrays are in one version together.

    Arrays are of float64, float32, int64, int32, uint64, uint32 or uint8, contiguous in C order and writable. A memory is
    used by one thread at a time, and not in a forked process. Any number of processes may read the file meanwhile:
    ``Memory.open(path, read_only=True)``.
    """

    def __init__(self, path: str | os.PathLike[str], native: _native.Memory | None = None) -> None:
        if native is None:
            raise UsageTypeError(f"Memory({path!r}) opens no file: call Memory.open({path!r})")
        self._path = os.fspath(path)
        self._native = native
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._closed = False

    @overload
    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: Literal[False] = False,
        keep: int = 2,
        block_bytes: Size = 65536,
        medium: Literal["auto", "file", "map"] = "auto",
        policy: str = "auto",
        mtti: Duration | None = None,
    ) -> Memory: ...

    @overload
    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: Literal[True]) -> MemoryReader: ...

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        keep: int = 2,
        block_bytes: Size = 65536,
        medium: Literal["auto", "file", "map"] = "auto",
        policy: str = "auto",
        mtti: Duration | None = None,
    ) -> Memory | MemoryReader:
        """Opens the file of a memory, and makes it if there is none.

        Parameters
        ----------
        path: the file. In ``/dev/shm`` versions outlive the process, on a disk also a loss of power.
        read_only: returns a `MemoryReader`, which takes no lock. The other parameters are the writer's.
        keep: versions that are kept.
        block_bytes: size of a block of a new file: a power of two from 512 to 16 MiB.
        medium: ``map``, ``file`` (positioned writes), or the faster one for the file system.
        policy: when `commit_if_due` commits. ``auto`` takes the interval that costs least time, from the measured cost of
            commits and ``mtti``; ``young`` and ``daly`` take those of their authors. ``greedy`` computes for as long as a
            commit takes, whatever the failure rate. A duration (``30s``, ``10min``) is an interval.
        mtti: mean time to interrupt of the job, in seconds or as ``"12h"``; a day when None.

        Raises `Error` for a file that another writer has open, and for one that is no memory or has no root that holds.
        """
        with named("memory"):
            if read_only:
                return MemoryReader(path)
            options = {
                "keep": keep,
                "block_bytes": words(block_bytes),
                "medium": medium,
                "policy": policy,
                "mtti": words(mtti),
            }
            place = os.fspath(path)
        with named("memory", options):
            return cls(path, _native.Memory(place, options))

    def array(self, name: str, values: npt.NDArray[Any], *, marked: bool = False) -> npt.NDArray[Any]:
        """Adds an array under a name, and returns it: the program continues to compute on it in place.

        Each commit compares the array with the version before, which reads that version. With ``marked=True`` a commit
        stores what `touch` has named: faster, but what was written and not named may be missing from the next version.

        Raises `Error` for an array of another type, one that is not contiguous in C order, and one that is read-only; and
        for a second array under one name.
        """
        with named("array"):
            if self._arrays.get(name, values) is not values:
                raise UsageError(f"there is an array {name} already: give the second one a name of its own")
            if not isinstance(values, np.ndarray) or not values.flags.c_contiguous:
                raise UsageTypeError(f"array {name} is not a NumPy array that is contiguous in C order")
            self._native.add(name, values, marked)
        self._arrays[name] = values
        return values

    def touch(self, name: str, start: int | None = None, stop: int | None = None) -> None:
        """Marks rows of an array that were written, or will be before the next commit: all of them, or those of
        ``array[start:stop]``."""
        with named("touch"):
            array = self._arrays.get(name)
            if array is None:
                raise NotHeldError(f"there is no array {name}: there are {', '.join(self._arrays) or 'none'}")
            if array.ndim == 0:
                self._native.touch(name, 0, array.nbytes)
                return
            first, last, _ = slice(start, stop).indices(array.shape[0])
            row_bytes = array.nbytes // max(array.shape[0], 1)
            if first < last:
                self._native.touch(name, first * row_bytes, last * row_bytes)

    def commit(self, step: int) -> int:
        """Makes a version of all arrays, and returns its number when it is durable. ``step`` is the program's own number
        of it.

        Raises `Error` for a file that was removed or replaced since it was opened: no restart would find the version.
        """
        with named("commit"):
            return self._native.commit(step, self._named(), False)

    def commit_if_due(self, step: int) -> int | None:
        """Commits if the policy says that a version is due. Returns its number, or None.

        The policy knows the time since the last version. It knows what a commit would cost now from the marks and the
        commits before, without reading any values. `decision` has the reasons.
        """
        with named("commit"):
            return self._native.commit(step, self._named(), True)

    def restore(self, number: int | None = None) -> MemoryVersion | None:
        """Fills the arrays with a version: all of them or none. Without a number it takes the newest version that is
        whole, and returns None, with nothing done, if there is no version at all.

        Raises `Error` for a version that lacks an array, one whose arrays have another type or length, and for damage.
        """
        with named("restore"):
            return self._native.restore(number, self._named())

    def view(self, number: int | None = None) -> MemoryView:
        """Looks at a version, by default the newest one. Its blocks are kept as long as the view lives, even when the version
        is retired.

        Raises `Error` if there is no such version.
        """
        with named("view"):
            if number is None:
                versions = self.versions
                if not versions:
                    raise NoVersionError("there is no version yet")
                number = versions[-1].number
            shapes = {name: array.shape for name, array in self._arrays.items()}
            return MemoryView(self._native.view(number), shapes)

    @property
    def versions(self) -> list[MemoryVersion]:
        """The versions that can be read, the oldest first."""
        return self._native.versions()

    @property
    def findings(self) -> list[str]:
        """Damage that was met since the file was opened, in words."""
        return self._native.findings()

    @property
    def decision(self) -> str | None:
        """The last answer of the policy, with its reasons. None before the first."""
        return self._native.decision()

    @property
    def cost(self) -> float:
        """The seconds that a commit is expected to take now."""
        return self._native.cost(self._named())

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def close(self) -> None:
        """Closes the file. Its lock ends when all views of this memory are gone, too. What was written since the last
        commit is in no version."""
        if not self._closed:
            self._native.close()
            self._closed = True

    def _named(self) -> list[tuple[str, npt.NDArray[Any]]]:
        return list(self._arrays.items())

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({self._path!r}{', closed' if self._closed else ''})"


class MemoryReader:
    """The versions of a memory whose program may continue: ``Memory.open(path, read_only=True)``.

    It sees whole versions only, takes no lock, and the program does not wait for it. A version that the program retires
    while it is read is an `Error`: ask for the newest one again. A program that keeps more versions leaves more time.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        if not os.path.exists(self._path):
            raise NotFoundError(f"{self._path}: open the file: there is none")
        self._native = _native.MemoryReader(self._path)

    def __reduce__(self) -> tuple[type[MemoryReader], tuple[str]]:
        return MemoryReader, (self._path,)

    def view(self, number: int | None = None) -> MemoryView:
        """Looks at a version, by default the newest one.

        Raises `Error` if there is no such version, or no longer.
        """
        with named("view"):
            view = self._native.view(number)
        if view is None:
            raise NoVersionError(f"{self._path}: there is no version yet")
        return MemoryView(view, {})

    @property
    def versions(self) -> list[MemoryVersion]:
        """The versions that are kept now, the oldest first."""
        return self._native.versions()[0]

    @property
    def findings(self) -> list[str]:
        """Damage to roots, lists and tables, in words; `MemoryView.verify` reads the blocks."""
        return self._native.versions()[1]

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    def __repr__(self) -> str:
        return f"MemoryReader({self._path!r})"


class MemoryView(BoundToProcess):
    """A version as read-only NumPy arrays, by their names: ``view["heat"]``.

    Every block is checked when an array is asked for. In the program that wrote it, an array has the shape it has there;
    otherwise it is flat. The views of a `Memory` are not copied where its file is stored in memory (``/dev/shm``): the arrays are
    the blocks of the file, and keep them.
    """

    def __init__(self, native: _native.MemoryView, shapes: dict[str, tuple[int, ...]]) -> None:
        self._native = native
        self._version = native.version()
        self._shapes = shapes

    @property
    def version(self) -> MemoryVersion:
        """What the version holds."""
        return self._version

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        found = self._version.arrays.get(name)
        if found is None:
            known = ", ".join(self._version.arrays)
            raise NotHeldError(f"version {self._version.number} has no array {name}: it has {known or 'none'}")
        dtype, length = found
        mapped = self._native.mapped(name)
        if mapped is None:
            values = np.empty(length, dtype)
            self._native.read(name, values)
        else:
            values = np.asarray(mapped)
        shape = self._shapes.get(name)
        if shape is not None and int(np.prod(shape)) == length:
            values = values.reshape(shape)
        values.flags.writeable = False
        return values

    def verify(self) -> list[str]:
        """Reads and checks every block, and returns all damage, one line each."""
        return self._native.verify()

    def __iter__(self) -> Iterator[str]:
        return iter(self._version.arrays)

    def __len__(self) -> int:
        return len(self._version.arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._version.arrays

    def __repr__(self) -> str:
        return f"MemoryView({self._version!r})"
