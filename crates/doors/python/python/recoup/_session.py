"""Sessions: protect, step, restore."""

from __future__ import annotations

import atexit
import logging
import os
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from . import _native
from ._directory import Directory
from ._errors import BoundToProcess, RecoupWarning, UsageError, UsageTypeError, named, needed
from ._native import InUseError, LoggedDecision, Outcome, Restored
from ._operator import lent_system, matrix, pairs
from ._quantity import Duration, Size, seconds, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .scipy import Callback

class CudaArray(Protocol):
    """An array on a CUDA device."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class DLPackArray(Protocol):
    """An array that gives its values by DLPack."""

    def __dlpack__(self, *, stream: int | None = ...) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


Scheme = Literal["auto", "none", "traditional", "exact", "lossless", "lossy"]
Role = Literal["iterate", "direction", "dynamic", "recomputed"]

Norms = float | npt.NDArray[np.float64]
"""A residual norm, or those of the columns of a block."""

_open: weakref.WeakSet[Session] = weakref.WeakSet()

_log = logging.getLogger("recoup")
_log.addHandler(logging.NullHandler())


class Session(BoundToProcess):
    """The checkpoints of one run, from protected arrays to a directory and back.

    ::

        with recoup.Session("own-checkpoints", A=A, b=b, scheme="lossy", interval="20it") as session:
            session.protect("x", x, role="iterate")
            restored = session.restore()                # None on the first start
            k = restored.version if restored else 0
            while not converged:
                ...                                     # one iteration: x in place
                k += 1
                session.step(k, residual_norm)          # decides, and saves behind the solver

    A save blocks the solver for a copy of the arrays only; encoding, verification and writing run on a thread of the
    library. A version counts once all of it is on disk. If the process is killed before, only that version is lost.

    Parameters
    ----------
    dir: directory of the versions, made if missing. One process writes there at a time.
    name: the run inside it: letters, digits, `_`, `.` and `-`.
    A, b: the problem A x = b; with a b of two axes A X = B, one right-hand side in each column: see `protect_block`. Every bound that follows the residual needs it, and so does the default of lossy versions.
        With it, versions of another problem are refused: see same_operator. A is a SciPy sparse matrix or array (copied,
        multiplied without the interpreter), a dense square array, a SciPy LinearOperator, or a function y = A(x). The
        latter two are called from the library's thread while the solver works: pass ``synchronous=True`` if they must
        not be.
    scheme: what is saved. ``auto`` decides from measured costs, the interval too if none is given, and needs A and b. ``lossy`` holds the
        iterate, and protected directions, under a bound that follows the residual. ``lossless``, ``traditional`` and
        ``exact`` hold all dynamic arrays bit for bit; ``none`` saves nothing. When None: ``lossless`` without A and b;
        with them ``lossy`` if an interval is given, else ``auto``.
    interval: a duration (seconds, a timedelta or ``"10min"``), or iterations (``"20it"``), or ``"auto"``: optimal for the
        measured cost and the MTTI. ``"auto"`` when None.
    mtti: mean time to interrupt of the job: a duration, as ``86400`` or ``"12h"``.
    bound: ``verified`` (the decoded iterate's residual is measured: at most (1 + theta) times the residual),
        ``statistical``, ``guaranteed``, ``corrected``, ``theorem3``, or ``absolute:V``, ``range:V``, ``pointwise:V``.
    theta: allowed relative growth of the residual by a lossy version; the method's when None (0.5 for CG), and ``auto``
        may vary it then.
    delta: allowed error of a lossy direction in the energy norm, relative to the direction; 0.05 when None, and
        ``auto`` may vary it then.
    resume: what lossy versions hold enough for: ``deflated`` (iterate and directions), ``restarted`` (iterate only), or
        ``recurrence``: iterate and directions with errors so small, compared with ``rtol``, that a CG continues with them.
    codec: codec of lossy versions: ``qb``, ``zfp``, ``pco`` ...; chosen by measured speed and ratio when None.
    lossless_codec: codec of the others: ``zstd`` when None.
    keep: versions kept, and with each those it is coded against.
    max_bytes: fewer versions are kept if they take more bytes than this (``500_000_000``, ``"2GiB"``). The newest, and those it is coded against, are
        always kept. The version being written comes on top.
    key_every: one version of this number stands alone, the others may be coded against the one before.
    increments: which versions of arrays saved exactly hold only what changed since the version before: ``off`` (none),
        ``hash`` (all, found by hashes of 64 KiB, or by `touch`) or ``auto`` (where that pays).
    threads: threads that work while the solver waits, in the copy of a save, a restore and a synchronous save; cores of this
        process divided by the ranks when None. The bytes do not depend on it.
    rtol: the solver's tolerance on the relative residual, from which ``auto`` predicts the remaining work.
    synchronous: each save waits until its version counts.
    same_operator: all solves of this run have the same A and b, and `restore` refuses versions of others. A sparse or
        dense A is recognised by its entries, any other by two products with fixed vectors, up to rounding. When False, an
        iterate of another problem is a first guess: see `Restored.guess`.
    systems: the run solves many systems, one after the other, each given to `begin_system`.
    bandwidth: writes and reads no faster than this, bytes per second (``100e6``, ``"100M"``).
    method: the method that computes x (``cg``, ``gmres``, ``jacobi`` or another of `recoup run`). It sets the default of
        theta, the content of lossy versions and the extra iterations to expect; those of CG when None.
    tiers: the places of versions, fastest first: ``"memory,pfs"`` keeps them in memory that outlives the process, and
        drains some to the directory (``pfs``); ``"memory"`` writes no directory. A killed program that opens the same
        directory and name again continues from memory. `close` frees the memory of a solve that has converged.
    memory_dir: the directory of that memory; ``/dev/shm`` when None.
    pfs_every: one version of this number goes to the directory; chosen by the MTTI and the measured times when None.
    drain: the way it gets there. In the background, one at a time: ``skip`` leaves out a version that finds the one before
        on its way, ``wait`` waits for it. Or before the version counts: ``off``. ``skip`` when None.
    time_limit: the time this process has, from now on, as ``"2h"``: see `should_stop`. The end that
        ``SLURM_JOB_END_TIME`` or ``RECOUP_JOB_END`` give, in Unix seconds, is heeded in any case.

    progress: shows iterations, the residual norm and the version taken last as a bar of tqdm, which has to be installed.

    Raises `InUseError` if the directory is in use, by this process too, `Error` if it is not ours or not writable, and
    `UsageError` for values out of range.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str],
        *,
        name: str = "solve",
        A: Any = None,
        b: npt.ArrayLike | None = None,
        scheme: Scheme | None = None,
        interval: Duration | None = None,
        mtti: Duration = 86_400.0,
        bound: str = "verified",
        theta: float | None = None,
        delta: float | None = None,
        resume: Literal["deflated", "restarted", "recurrence"] | None = None,
        codec: str | None = None,
        lossless_codec: str | None = None,
        keep: int = 2,
        max_bytes: Size | None = None,
        key_every: int = 10,
        increments: str = "auto",
        threads: int | None = None,
        rtol: float = 1e-6,
        synchronous: bool = False,
        bandwidth: float | str | None = None,
        same_operator: bool = True,
        systems: bool = False,
        method: str | None = None,
        tiers: str | None = None,
        memory_dir: str | os.PathLike[str] | None = None,
        pfs_every: int | Literal["auto"] | None = None,
        drain: Literal["skip", "wait", "off"] | None = None,
        time_limit: Duration | None = None,
        progress: bool = False,
    ) -> None:
        if (A is None) != (b is None):
            raise UsageError("A and b come together: give both or none")
        options = {
            "name": name,
            "scheme": scheme,
            "interval": words(interval),
            "mtti": words(mtti),
            "bound": bound,
            "theta": theta,
            "delta": delta,
            "resume": resume,
            "lossy_codec": codec,
            "lossless_codec": lossless_codec,
            "keep": words(keep),
            "max_bytes": words(max_bytes),
            "key_every": words(key_every),
            "increments": increments,
            "threads": words(threads),
            "rtol": rtol,
            "synchronous": synchronous,
            "same_operator": same_operator,
            "systems": systems,
            "bandwidth": words(bandwidth),
            "method": method,
            "tiers": tiers,
            "memory_dir": memory_dir,
            "pfs_every": words(pfs_every),
            "drain": drain,
        }
        system, A = None, matrix(A)
        if b is not None:
            system = lent_system(A, b)
        self.A, self.b = A, b
        self._rhs_norm = None if b is None else float(np.linalg.norm(b))
        self._save_seconds: list[float] = []
        bar = _progress_bar() if progress else None
        with named("session", {"dir": dir, **options}):
            self._end = _native.JobEnd(words(time_limit))
            self._place = f"run {name} in {os.fspath(dir)}"
            self._files = (os.path.realpath(dir), name)
            with _own_named(self._files):
                self._native = _native.Session(os.fspath(dir), options, system)
        self._progress = bar(desc=name, unit="it") if bar else None
        self._outcomes: list[Outcome] = []
        # The last version taken, where that one is not saved.
        self._unsaved: Outcome | None = None
        self._has_warned = False
        # Something was restored, or saved without that.
        self._is_begun = False
        self._version: int | None = None
        self._arrays: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        self._process = os.getpid()
        _open.add(self)

    def protect(
        self,
        name: str,
        array: npt.NDArray[Any] | CudaArray | DLPackArray,
        role: Role = "dynamic",
        *,
        spare: bool = False,
        default: bool = False,
        formerly: str | None = None,
    ) -> None:
        """Lends an array to the session, in place: `step` copies from it, `restore` writes to it.

        The array is float64, float32, complex128, complex64, int64 or uint8, contiguous in C order; up to three axes
        count as a grid, which codecs use. A complex number is saved as its two parts, and a bound holds for each. The
        session keeps a reference.

        Once something was restored or saved, a name may be protected again, with an array of the same role and type: it
        takes the place of the one before. Until then, and for another role or type, a second array under one name is an
        `Error`.

        An array on a CUDA device (one with ``__cuda_array_interface__`` or ``__dlpack__``: CuPy, PyTorch, Numba) stays
        there: a save copies it within the device, once all work of the device's primary context is done. A tensor taken
        by DLPack is given back when its name is protected again, and at `close`. Arrays that are read-only are refused,
        because `restore` could not write to them; those of JAX never change, so protect a copy that does. Arrays on the
        host that are not NumPy's are refused, too: protect ``numpy.from_dlpack(array)``.

        Parameters
        ----------
        name: letters, digits, `_`, `.` and `-`.
        role: ``iterate``, the vector the solver improves, real or complex, which lossy versions hold under a bound;
            ``direction``, the search direction that came with it; ``dynamic``, saved bit for bit in every version
            (counters, RNG state, fields); ``recomputed``, as dynamic but not in lossy versions.
        spare: a variable only while versions hold it: it comes into use when a version with it is restored.
        default: versions may lack this array, which was added since: `restore` then leaves its values as they are, and
            `Restored.defaults` names it.
        formerly: the former name of this array, under which versions hold it that lack it.
        """
        with named(f"array {name}"):
            self._lend(name, array, role, spare)
            self._native.changed(name, default, formerly)

    def _lend(self, name: str, array: Any, role: Role, spare: bool, block: Any = None, column: int | None = None) -> None:
        owner = array if block is None else block
        if not self._is_begun and self._arrays.get(name, owner) is not owner:
            raise UsageError(f"array {name} is protected already: give the second array a name of its own")
        if isinstance(array, (list, tuple, int, float)):
            what = f"a {type(array).__name__} cannot be lent in place: protect a NumPy array, as of numpy.array"
            raise UsageTypeError(f"array {name}: {what}")
        real = pairs(array)
        numbers = 1 if real is array else 2
        self._native.protect(name, real, role, spare, numbers, column)
        self._arrays[name], self._numbers[name] = owner, numbers

    def dropped(self, name: str) -> None:
        """Declares that versions may hold an array that the program has no more. Nothing is restored from it. Without
        this, a restore logs that it was left out."""
        with named("dropped"):
            self._native.dropped(name)

    def protect_block(self, name: str, array: npt.NDArray[Any], role: Role = "iterate") -> None:
        """Lends the columns of an n x k array to the session, in place, as `protect` does with one array: column j as
        ``name.j``. Each column of a lossy version has a bound of its own, held to its own residual, and `restore` brings
        back all of them or none.

        The columns lie together: the array is in Fortran order, as ``numpy.asfortranarray`` makes it. One in C order is
        refused.
        """
        with named(f"array {name}"):
            if np.ndim(array) != 2 or not isinstance(array, np.ndarray):
                raise UsageError(f"array {name} is no NumPy array of two axes, rows and columns")
            if not array.flags.f_contiguous:
                what = "its columns do not lie together: protect numpy.asfortranarray of it"
                raise UsageError(f"array {name} is not in Fortran order, {what}")
            for j in range(array.shape[1]):
                self._lend(f"{name}.{j}", array[:, j], role, False, array, j)

    def begin_system(self, index: int, A: Any, b: npt.ArrayLike) -> None:
        """Begins the next system of a run that solves many, one after the other: a time step, say. Every version says to
        which system it belongs, and is restored into no other. Iterations count from 0 in each. Intervals and costs continue.

        A program that is started again calls `restore_state` first, which brings back what A and b are made from and says
        at which system to continue; then `begin_system`, and `restore`.

        Parameters
        ----------
        index: number of the system, above that of the system before.
        """
        A = matrix(A)
        system = lent_system(A, b)
        with named("begin_system"):
            self._native.begin_system(index, system)
        self.A, self.b = A, b

    def restore_state(self) -> Restored | None:
        """Overwrites the protected arrays of role ``dynamic`` alone, from the newest version that holds them whole, of
        whichever system: see `Restored.system`. Before the first `begin_system`."""
        with named("restore_state"):
            return self._restore(state_only=True)

    def track(self, name: str) -> None:
        """Declares that the program announces every write to a protected array from now on, with `touch`. A write that
        is not announced may be missing from versions."""
        with named("track"):
            self._native.track(name)

    def touch(self, name: str, start: int = 0, stop: int | None = None) -> None:
        """Announces that elements `start` to `stop` (in C order, the last not included) of a tracked array were written,
        or will be before the next save. Without `stop`, to the end."""
        with named("touch"):
            numbers = self._numbers.get(name, 1)
            self._native.touch(name, numbers * start, None if stop is None else numbers * stop)

    def step(self, iteration: int, residual_norm: Norms) -> int | None:
        """Decides after an iteration whether to save, and saves. Returns the version taken, or None.

        Raises `Error` if an iterate that is to be saved holds NaN or infinity, with its place; for a norm that does; and
        for an iteration below the one before, unless `restore` went back. A time loop that counts from 1 in each step is a
        run with ``systems=True``.

        Parameters
        ----------
        iteration: iterations completed since the start of the solve; the versions are numbered by it.
        residual_norm: ||r|| as the method knows it; of a block an array, one for each column.
        """
        self._begin()
        with named("step"):
            norms = _norms(residual_norm)
            version = self._native.step(iteration, norms)
        self._show(iteration, norms, version)
        self._observe()
        return version

    def _show(self, iteration: int, norms: list[float], version: int | None = None) -> None:
        """Moves the progress bar."""
        if self._progress is not None:
            self._progress.update(iteration - self._progress.n)
            if version is not None:
                self._version = version
            norm = max(norms, default=0.0)
            relative = {"relative": f"{norm / self._rhs_norm:.1e}"} if self._rhs_norm else {}
            self._progress.set_postfix(residual=f"{norm:.1e}", **relative, version=self._version)

    def due(self, iteration: int, residual_norm: Norms) -> bool:
        """As `step`, but only decides. If True, make the arrays of the version ready, and `save` now or after the next
        iteration. For solvers whose direction is the difference of two iterates."""
        self._begin()
        with named("due"):
            norms = _norms(residual_norm)
            is_due = self._native.due(iteration, norms)
        self._show(iteration, norms)
        self._observe()
        return is_due

    def save(self, iteration: int, residual_norm: Norms) -> int:
        """Saves now, as `due` decided last; else by the session's scheme, ``auto`` being lossy. Returns the version taken.

        Raises `Error` if an iterate holds NaN or infinity, with its place.
        """
        self._begin()
        with named("save"):
            norms = _norms(residual_norm)
            version = self._native.save(iteration, norms)
        self._show(iteration, norms, version)
        self._observe()
        return version

    def restore(self) -> Restored | None:
        """Overwrites the protected arrays from the newest version that is whole; None when there is no version.

        Raises `Error` if there are versions but none is whole, and if they belong to another problem or do not hold the
        protected arrays; no array has been touched then.
        """
        return self._restore()

    def _restore(self, state_only: bool = False) -> Restored | None:
        self._is_begun = True
        restored = self._native.restore(state_only)
        self._observe()
        # The run continues from what is there.
        self._unsaved = None
        if restored is not None:
            _log.info("%s: restored version %d", self._place, restored.version)
        return restored

    def start_anew(self) -> None:
        """Puts all versions aside, to start from the beginning if none is usable."""
        self._is_begun = True
        self._native.start_over()

    def _begin(self) -> None:
        """Warns, before anything is saved, of versions that nobody asked for."""
        if self._is_begun:
            return
        newest = self._native.newest_version()
        self._is_begun = True
        if newest is not None:
            what = f"{self._place} has versions up to {newest}, and restore() was not called: a later start takes the newest"
            _log.warning(what)
            warnings.warn(f"{what} of all. start_anew() puts them aside", RecoupWarning, stacklevel=3)

    def _observe(self) -> None:
        """Takes the outcomes there are, and tells of those that are not saved."""
        for outcome in self._native.outcomes():
            self._enter(outcome)

    def _enter(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)
        if outcome.state == "saved":
            self._unsaved = None
            _log.debug("%s: version %d is saved", self._place, outcome.version)
            self._save_seconds.append(outcome.blocking_seconds + outcome.encode_seconds + outcome.verify_seconds + outcome.write_seconds)
            self._end.saved(self._save_seconds)
            return
        self._unsaved = outcome
        what = f"{self._place}: {_not_saved(outcome)}"
        _log.error(what)
        if not self._has_warned:
            self._has_warned = True
            more = "the program continues; outcomes() and the log have the others, if more follow"
            warnings.warn(f"{what} ({more})", RecoupWarning, stacklevel=4)

    @property
    def healthy(self) -> bool:
        """Whether the version taken last is saved, as far as is known by now: False from a save that failed on, until one
        succeeds or a version is restored. Does not wait."""
        if not self.closed:
            self._observe()
        return self._unsaved is None

    def wait(self, timeout: Duration | None = None) -> bool:
        """Waits until every version taken counts or has failed, for ``timeout`` at most if that is given. Returns
        whether it is so: if not, the versions are made on, and can be waited for again. The first one that fails is a
        `RecoupWarning`, all are logged."""
        with named("timeout"):
            limit = seconds("timeout", timeout)
        is_done = self._native.wait(limit)
        self._observe()
        return is_done

    @property
    def time_left(self) -> float | None:
        """Seconds to the end of the job or of `time_limit`; None if no end is known."""
        return self._end.left()

    def should_stop(self) -> bool:
        """Whether it is time for the last version: after the next call there may be no time for it. Asked after each
        iteration; then `save`, leave the ``with``, and end, with code 75 say, by which the job's script knows that it is to
        submit itself again. The time kept free follows from those of the saves so far; in a batch system it is at least a
        minute. Draining memory tiers to the directory is not counted."""
        if not self.closed:
            self._observe()
        return self._end.is_time_to_stop()

    @property
    def outstanding(self) -> int:
        """Number of versions taken that neither count nor have failed yet. Does not wait."""
        return self._native.outstanding()

    def outcomes(self) -> list[Outcome]:
        """Returns the outcomes of the saves since the last call, oldest first. A version that could not be written is an
        outcome, not an error: the solver continues, and the version before it is untouched. After `close`, these are the
        outcomes that were not asked for before."""
        if not self.closed:
            self._observe()
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    @property
    def decisions(self) -> list[LoggedDecision]:
        """The decisions that changed something, oldest first."""
        return self._native.decisions()

    @property
    def iteration_seconds(self) -> float:
        """Mean time of one iteration so far, saves not counted."""
        return self._native.iteration_seconds()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self not in _open

    def close(self, converged: bool | None = None) -> None:
        """Finishes the versions taken, and releases the directory and the arrays.

        Raises `Error` if the version taken last is not saved. At the end of a ``with`` block that an exception leaves, that
        exception continues instead.

        With memory tiers, the directory then gets the newest version of a solve that has converged, and memory is freed.
        Raises `Error` if it cannot get it; memory then stays as it is. With ``tiers="memory"`` no version is left. The
        memory of any other solve stays, for a later start.

        Parameters
        ----------
        converged: whether the solve has converged, by the program's own test. When None, what a solver of `recoup.scipy`
            or a KSP said after the last `step`; else whether its residual norm was above 0 and at most ``rtol ||b||``,
            which is never asked in a run with ``systems``.
        """
        if self.closed:
            return
        if self._progress is not None:
            self._progress.close()
        outcomes = self._native.close(converged)
        _open.discard(self)
        self._arrays.clear()
        for outcome in outcomes:
            self._enter(outcome)
        if self._unsaved is not None:
            message = f"{self._place} ends without its last state: {_not_saved(self._unsaved)}"
            raise _native.error_of(self._unsaved, message)

    def scipy_callback(
        self,
        A: Any = None,
        b: npt.ArrayLike | None = None,
        *,
        method: Literal["cg", "gmres", "bicgstab", "minres", "lgmres"] = "cg",
        x0: npt.ArrayLike | None = None,
        M: Any = None,
        restart: int = 20,
    ) -> Callback:
        """Returns a callback for SciPy's solvers that restores first and then saves; see `recoup.scipy.Callback`.

        A and b are the session's own when left out.
        """
        from .scipy import Callback

        A, b = (self.A if A is None else A), (self.b if b is None else b)
        return Callback(self, A, b, method=method, x0=x0, M=M, restart=restart)

    def __repr__(self) -> str:
        arrays = ", ".join(self._arrays) or "no arrays"
        return f"<recoup.Session of {self._place}: {'closed' if self.closed else f'open, protects {arrays}'}>"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the residual norms of the versions in the directory: see `Directory.plot`."""
        return Directory(*self._files).plot(ax)

    def _repr_html_(self) -> str:
        shown = f"<p>{escape(repr(self))}</p>"
        try:
            return shown + Directory(*self._files)._repr_html_()
        except _native.Error:
            return f"{shown}<p>no version is in the directory yet</p>"

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except _native.Error:
            if kind is None:
                raise


def _not_saved(outcome: Outcome) -> str:
    return f"version {outcome.version} is not saved: {outcome.message or outcome.state}"


@contextmanager
def _own_named(files: tuple[str, str]) -> Iterator[None]:
    """Names a session of this very process where that one is why the directory is in use."""
    try:
        yield
    except InUseError as error:
        own = next((other for other in _open if other._files == files and other._process == os.getpid()), None)
        if own is None:
            raise
        what = f"{own._place} is in use by a session of this process that is not closed"
        named_error = InUseError(f"{what}: close() it first, or open sessions in a with block, which closes them")
        named_error.kind = error.kind
        raise named_error from error


def _progress_bar() -> Any:
    with needed("tqdm", "progress=True"):
        from tqdm.auto import tqdm
    return tqdm


def _norms(residual_norm: Norms) -> list[float]:
    return [float(norm) for norm in np.atleast_1d(residual_norm)]


@atexit.register
def _close_all() -> None:
    """Finishes all sessions before the interpreter ends, which an operator written in Python needs."""
    failed: Exception | None = None
    for session in list(_open):
        # A process that was forked leaves its parent's sessions to the parent.
        if session._process == os.getpid():
            try:
                session.close()
            except _native.Error as error:
                failed = error
    if failed is not None:
        raise failed
