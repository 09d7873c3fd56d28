"""The native half of the package. The Python half is what programs use."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, final, overload

import numpy.typing as npt

from ._operator import Lent, Vector

__version__: str

class Error(Exception):
    """An error of recoup: names what failed, what was expected and what was found."""

    kind: str
    """What can be done about it: ``disk_full``, ``read_only``, ``codec``, ``rank_lost`` and others; see the README."""

class DiskFullError(Error):
    """The disk, a quota or the limit on a file's size is used up."""

class ReadOnlyError(Error):
    """The file system is read-only, or the user may not write there."""

class InUseError(Error):
    """Another process uses the directory or the file."""

class StorageError(Error):
    """The device or the operating system refused a call for another reason."""

class DamagedError(Error):
    """Bytes are not as they were written, or no version is whole."""

class CodecError(Error):
    """A codec failed."""

class RankLostError(Error):
    """A rank is lost, or the communicator failed."""

class CallbackError(Error):
    """A function of the program failed."""

class OutOfMemoryError(Error):
    """Memory of the host or of a device is used up."""

class DeviceError(Error):
    """A device is lost, or refused a call."""

class InternalError(Error):
    """A thread of the library panicked, or the library made another mistake."""

def error_of(outcome: Outcome, message: str) -> Error:
    """Makes the error of a version that is not saved."""

@final
class Outcome:
    """The end of a save. Times in seconds, sizes in bytes."""

    @property
    def version(self) -> int:
        """The version, whether it counts or not."""
    @property
    def state(self) -> str:
        """``saved``, ``failed``, ``suspicious`` or ``aborted``; only a saved version counts."""
    @property
    def message(self) -> str | None:
        """The reason that it does not count."""
    @property
    def kind(self) -> str | None:
        """The kind of the error that cost the version, as `Error.kind`."""
    @property
    def scheme(self) -> str | None:
        """The scheme of a saved version."""
    @property
    def codec(self) -> str | None:
        """Codec of the iterate, or of everything when lossless."""
    @property
    def bound(self) -> str | None:
        """Error bound of the iterate."""
    @property
    def achieved_error(self) -> float:
        """Largest error of the iterate."""
    @property
    def raw_bytes(self) -> int:
        """Bytes before encoding."""
    @property
    def payload_bytes(self) -> int:
        """Bytes written."""
    @property
    def true_residual_norm(self) -> float | None:
        """||b - A x|| of the saved iterate, if it was computed."""
    @property
    def verified_residual_norm(self) -> float | None:
        """||b - A x'|| of the decoded iterate, if it was computed."""
    @property
    def tries(self) -> int:
        """Encodings tried until that was small enough."""
    @property
    def blocking_seconds(self) -> float:
        """Seconds that the solver waited."""
    @property
    def encode_seconds(self) -> float:
        """Seconds of encoding, in the background."""
    @property
    def verify_seconds(self) -> float:
        """Seconds of products with the operator, in the background."""
    @property
    def write_seconds(self) -> float:
        """Seconds of writing, in the background."""

@final
class Restored:
    """A version that was restored."""

    @property
    def version(self) -> int:
        """The version."""
    @property
    def iteration(self) -> int:
        """The iteration to continue from: the version, counted from the start of its system."""
    @property
    def system(self) -> int | None:
        """The system it belongs to, where the run solves many."""
    @property
    def scheme(self) -> str:
        """The scheme it was saved under."""
    @property
    def resume(self) -> str:
        """The most faithful resume it holds enough for: restarted, deflated, traditional or exact."""
    @property
    def residual_norm(self) -> float:
        """||r|| as the method knew it."""
    @property
    def verified_residual_norm(self) -> float | None:
        """||b - A x'|| of the restored iterate, if it was computed."""
    @property
    def seconds(self) -> float:
        """Seconds that the restore took."""
    @property
    def guess(self) -> tuple[float, float] | None:
        """For a version of another problem, the residual norms in this one of its iterate and of the one protected.
        Its iterate was restored if its norm is not above the other."""
    @property
    def defaults(self) -> list[str]:
        """Names of the arrays that it lacks, which keep the program's values: see `Session.protect`."""
    @property
    def skipped(self) -> list[tuple[int, list[str]]]:
        """Newer versions that were not whole, and what is wrong with each."""

@final
class LoggedDecision:
    """A line of the decision log."""

    @property
    def iteration(self) -> int:
        """The iteration it was taken at."""
    @property
    def scheme(self) -> str:
        """Scheme of versions from now on."""
    @property
    def codec(self) -> str:
        """Codec of versions from now on."""
    @property
    def interval_seconds(self) -> float:
        """The interval in force."""
    @property
    def why(self) -> str:
        """The reasons, in numbers."""

@final
class Variable:
    """One variable of one rank of a version."""

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def rank(self) -> int:
        """The rank that owns it."""
    @property
    def role(self) -> str:
        """Role in the solver: iterate, direction, dynamic, recomputed or static."""
    @property
    def dtype(self) -> str:
        """NumPy type of its values."""
    @property
    def len(self) -> int:
        """Values on this rank."""
    @property
    def codec(self) -> str:
        """Codec of its first frame."""
    @property
    def bound(self) -> str:
        """Error bound of its first frame."""
    @property
    def achieved_error(self) -> float:
        """Largest error of its values."""
    @property
    def payload_bytes(self) -> int:
        """Bytes of its payloads."""

@final
class Version:
    """One version. Where the manifest is damaged, all but `iteration`, `damage` and `verify` raise `Error`."""

    @property
    def iteration(self) -> int:
        """The iteration it was taken at: its number."""
    @property
    def damage(self) -> str | None:
        """Why the manifest cannot be read."""
    @property
    def scheme(self) -> str:
        """The scheme it was saved under."""
    @property
    def resume(self) -> str:
        """The most faithful resume it holds enough for."""
    @property
    def rule(self) -> str:
        """The rule behind the bound of the iterate."""
    @property
    def ranks(self) -> int:
        """Ranks that wrote it."""
    @property
    def residual_norm(self) -> float:
        """||r|| as the method knew it."""
    @property
    def rhs_norm(self) -> float:
        """||b||."""
    @property
    def column_norms(self) -> list[float]:
        """||r|| of each column of a block, as its method knew it; else empty."""
    @property
    def verified_column_norms(self) -> list[float | None]:
        """||b - A x'|| of what is restored of each column of a block, if it was computed."""
    @property
    def system(self) -> int | None:
        """The system it belongs to, where the run solves many."""
    @property
    def true_residual_norm(self) -> float | None:
        """||b - A x|| of the saved iterate, if it was computed."""
    @property
    def verified_residual_norm(self) -> float | None:
        """||b - A x'|| of what is restored, where it was computed."""
    @property
    def tries(self) -> int:
        """Encodings tried until the verified residual was small enough."""
    @property
    def bound(self) -> str:
        """Error bound of the iterate: lossless, absolute:V or pointwise:V."""
    @property
    def achieved_error(self) -> float:
        """Largest error of the iterate."""
    @property
    def raw_bytes(self) -> int:
        """Bytes of all values."""
    @property
    def payload_bytes(self) -> int:
        """Bytes of all payloads."""
    @property
    def ratio(self) -> float:
        """Raw bytes over encoded bytes."""
    @property
    def parents(self) -> list[int]:
        """Versions it is coded against."""
    @property
    def variables(self) -> list[Variable]:
        """Its variables, those of each rank by themselves."""
    def arrays(self, names: Sequence[str] | None = None) -> dict[str, npt.NDArray[Any]]:
        """The variables decoded, those of all ranks joined in the order of their rows; only these names where given.

        Raises `Error` that names every damaged frame.
        """
    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """One variable decoded."""
    def keys(self) -> list[str]:
        """The names of its variables, in the order they were saved: ``dict(version)`` decodes them all."""
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object) -> bool: ...
    def verify(self) -> list[str]:
        """Everything that is not as it was written, or does not decode: one line each; empty when whole."""

@final
class Directory:
    def __new__(cls, path: str, name: str | None) -> Directory: ...
    @property
    def path(self) -> Path: ...
    @property
    def name(self) -> str: ...
    def versions(self) -> list[Version]: ...
    def set_aside(self) -> list[str]: ...

@final
class JobEnd:
    def __new__(cls, limit: str | None = None) -> JobEnd: ...
    def left(self) -> float | None: ...
    def saved(self, save_seconds: list[float]) -> None: ...
    def is_time_to_stop(self) -> bool: ...

@final
class Session:
    def __new__(cls, dir: str, options: dict[str, Any], system: tuple[Lent, Vector, int] | None) -> Session: ...
    def protect(
        self, name: str, array: Any, role: str, spare: bool, unknowns: int, column: int | None = None
    ) -> None: ...
    def changed(self, name: str, default: bool, formerly: str | None) -> None: ...
    def dropped(self, name: str) -> None: ...
    def begin_system(self, index: int, system: tuple[Lent, Vector, int]) -> None: ...
    def track(self, name: str) -> None: ...
    def touch(self, name: str, start: int, stop: int | None) -> None: ...
    def use_spares(self, names: list[str]) -> None: ...
    def used(self) -> list[str]: ...
    def step(self, iteration: int, norms: list[float]) -> int | None: ...
    def set_method(self, name: str) -> None: ...
    def due(self, iteration: int, norms: list[float]) -> bool: ...
    def save(self, iteration: int, norms: list[float]) -> int: ...
    def restore(self, state_only: bool = False) -> Restored | None: ...
    def start_over(self) -> None: ...
    def wait(self, timeout: float | None = None) -> bool: ...
    def newest_version(self) -> int | None: ...
    def outstanding(self) -> int: ...
    def outcomes(self) -> list[Outcome]: ...
    def decisions(self) -> list[LoggedDecision]: ...
    def iteration_seconds(self) -> float: ...
    def solved(self, has_converged: bool) -> None: ...
    def close(self, converged: bool | None = None) -> list[Outcome]: ...

def interval(mtti: float, ckpt: float) -> tuple[float, float, float]: ...
def overhead(mtti: float, ckpt: float, recover: float, extra_seconds: float) -> float: ...
def max_extra_iterations(mtti: float, ckpt_traditional: float, ckpt_lossy: float, t_iter: float) -> float: ...
def stationary(iterations: float, spectral_radius: float, error_bound: float) -> tuple[float, float]: ...
def decide(job: dict[str, float | None]) -> dict[str, Any]: ...
def simulate(job: dict[str, float | None], trials: int, seed: int) -> dict[str, dict[str, Any]]: ...

@final
class Tape:
    def __new__(cls, options: dict[str, Any]) -> Tape: ...
    def push(self, step: int, array: npt.NDArray[Any], dims: list[int]) -> None: ...
    def pop(self, out: npt.NDArray[Any]) -> int: ...
    def peek(self, step: int, out: npt.NDArray[Any]) -> None: ...
    def push_device(self, step: int, array: Any, grid: list[int] | None) -> list[int]: ...
    def pop_device(self, out: Any) -> int: ...
    def peek_device(self, step: int, out: Any) -> None: ...
    def next_step(self) -> int | None: ...
    def shape(self, step: int) -> tuple[str, list[int]]: ...
    def forget(self, step: int) -> None: ...
    def announce(self, steps: list[int]) -> None: ...
    def turn(self) -> None: ...
    def save(self) -> None: ...
    def steps(self) -> list[int]: ...
    def len(self) -> int: ...
    def contains(self, step: int) -> bool: ...
    def damaged(self) -> list[tuple[Path, str]]: ...
    def counts(self) -> dict[str, int]: ...
    def waited(self) -> tuple[float, float]: ...
    def close(self) -> None: ...

@final
class Memory:
    def __new__(cls, path: str, options: dict[str, Any]) -> Memory: ...
    def add(self, name: str, array: npt.NDArray[Any], is_marked: bool) -> None: ...
    def touch(self, name: str, start: int, end: int) -> None: ...
    @overload
    def commit(self, step: int, arrays: list[tuple[str, npt.NDArray[Any]]], only_if_due: Literal[False]) -> int: ...
    @overload
    def commit(self, step: int, arrays: list[tuple[str, npt.NDArray[Any]]], only_if_due: bool) -> int | None: ...
    def restore(self, number: int | None, arrays: list[tuple[str, npt.NDArray[Any]]]) -> MemoryVersion | None: ...
    def versions(self) -> list[MemoryVersion]: ...
    def view(self, number: int) -> MemoryView: ...
    def findings(self) -> list[str]: ...
    def decision(self) -> str | None: ...
    def cost(self, arrays: list[tuple[str, npt.NDArray[Any]]]) -> float: ...
    def close(self) -> None: ...

@final
class MemoryReader:
    def __new__(cls, path: str) -> MemoryReader: ...
    def versions(self) -> tuple[list[MemoryVersion], list[str]]: ...
    def view(self, number: int | None) -> MemoryView | None: ...

@final
class MemoryVersion:
    """A version of a memory."""

    @property
    def number(self) -> int:
        """Its number: 1 for the first of the file, one more for each commit."""
    @property
    def step(self) -> int:
        """The program's own number of it."""
    @property
    def bytes(self) -> int:
        """Bytes of all values."""
    @property
    def arrays(self) -> dict[str, tuple[str, int]]:
        """NumPy type and number of values of each array, by its name."""

@final
class MemoryView:
    def version(self) -> MemoryVersion: ...
    def mapped(self, name: str) -> MappedValues | None: ...
    def read(self, name: str, out: npt.NDArray[Any]) -> None: ...
    def verify(self) -> list[str]: ...

@final
class MappedValues:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class Actions:
    def __iter__(self) -> Actions: ...
    def __next__(self) -> tuple[str, int, int, str]: ...

def seconds_of(name: str, text: str) -> float: ...
def bytes_of(name: str, text: str) -> int: ...
def actions(schedule: dict[str, Any]) -> Actions: ...
def tally(schedule: dict[str, Any]) -> dict[str, int]: ...
def choose(problem: dict[str, Any]) -> dict[str, Any]: ...

@final
class CallLog:
    """The log of finished calls of one job, and its directory."""

    def __new__(cls, dir: str, stream: str, bytes_max: int) -> CallLog: ...
    def find(self, number: int) -> tuple[bytes, bytes] | None: ...
    def put(self, number: int, facts: bytes, values: bytes, row_bytes: int) -> bool: ...
    def clear(self) -> None: ...
