"""Schedules of adjoint computations: which states are kept, where, and which are computed again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union

from . import _native
from ._directory import as_html
from ._errors import UsageError, UsageTypeError, named, needed
from ._quantity import Duration, Size, seconds, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Level = Literal["memory", "disk"]
"""Where a schedule keeps a state."""
Kind = Literal["store-all", "revolve", "multistage", "disk-revolve", "h-revolve"]


class Advance(NamedTuple):
    """Takes the forward steps ``start``, .. ``stop - 1``. With ``record``, the forward data of the last of them is kept for
    its reverse."""

    start: int
    stop: int
    record: bool


class Write(NamedTuple):
    """Stores the state of ``step``, which the program has."""

    step: int
    level: Level


class Read(NamedTuple):
    """Gives the program the state of ``step``, and keeps it stored."""

    step: int
    level: Level


class Take(NamedTuple):
    """Gives the program the state of ``step``, which leaves its place."""

    step: int
    level: Level


class Reverse(NamedTuple):
    """Takes the reverse of ``step`` with the forward data that was kept."""

    step: int


class End(NamedTuple):
    """Ends the schedule: all steps are reversed, and nothing is stored any more."""


Action = Union[Advance, Write, Read, Take, Reverse, End]


@dataclass(frozen=True)
class Schedule:
    """A schedule. Iterate over it for its actions, as often as you like; they are made one by one.

    Steps are counted from 0. The state of a step is all that the forward program needs to take it.
    """

    kind: Kind
    """Its name."""
    steps: int
    """Forward steps of the program."""
    memory: int
    """States that memory holds."""
    disk: int
    """States that the disk holds."""
    forward_seconds: float
    """Seconds of a forward step."""
    memory_seconds: tuple[float, float]
    """Seconds of a write to memory, and of a read."""
    disk_seconds: tuple[float, float]
    """Seconds of a write to disk, and of a read."""

    def __iter__(self) -> Iterator[Action]:
        with named("schedule", vars(self)):
            actions = _native.actions(vars(self))
        return map(_action, actions)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the step that the program is at, action by action: forward and back, with a mark where it stores a state.

        Parameters
        ----------
        ax: the axes to draw on; new ones when None.
        """
        with needed("matplotlib", "plot"):
            from matplotlib import pyplot
        axes = pyplot.subplots()[1] if ax is None else ax
        path: list[int] = [0]
        stored: dict[Level, list[tuple[int, int]]] = {"memory": [], "disk": []}
        for action in self:
            if isinstance(action, Write):
                stored[action.level].append((len(path) - 1, action.step))
            elif not isinstance(action, End):
                path.append(action.stop if isinstance(action, Advance) else action.step)
        axes.plot(path, linewidth=1, label="step of the program")
        for (level, places), mark in zip(stored.items(), "os"):
            if places:
                axes.plot(*zip(*places), mark, markersize=3, label=f"stored in {level}")
        axes.set(xlabel="action", ylabel="step", title=f"{self.kind}, {self.steps} steps")
        axes.legend()
        return axes

    def _repr_html_(self) -> str:
        return as_html(repr(self), [*(tally := self.tally())], [tally])

    def tally(self) -> dict[str, int]:
        """Counts its work: ``forward_steps``, those that make the data for the reverse included, and ``memory_writes``,
        ``memory_reads``, ``memory_states_max``, ``disk_writes``, ``disk_reads``, ``disk_states_max``."""
        with named("schedule"):
            return _native.tally(vars(self))


@dataclass(frozen=True)
class Plan:
    """The cheapest schedule, with its predicted work and the reasons."""

    schedule: Schedule
    """The schedule, for `run`. Its seconds are those of states as they are stored."""
    coded: bool
    """Whether the states it stores are coded."""
    seconds: float
    """Predicted seconds of the whole program, forward and reverse."""
    forward_steps: int
    """Forward steps in all."""
    recomputed_steps: int
    """Forward steps beyond those of a program that stores everything."""
    memory_bytes_max: int
    """The most bytes of states in memory at a time."""
    disk_bytes_max: int
    """The most bytes of states on disk at a time."""
    why: str
    """The reasons, in sentences."""
    table: str = field(repr=False)
    """A line for each schedule that was looked at."""

    @property
    def kind(self) -> Kind:
        """Name of the schedule."""
        return self.schedule.kind

    @property
    def memory_slots(self) -> int:
        """States that memory holds."""
        return self.schedule.memory

    @property
    def disk_slots(self) -> int:
        """States that the disk holds."""
        return self.schedule.disk

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the schedule: see `Schedule.plot`."""
        return self.schedule.plot(ax)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.why)}\n\n{escape(self.table)}</pre>"


def schedule(
    kind: Kind,
    steps: int,
    *,
    memory: int = 0,
    disk: int = 0,
    forward_seconds: Duration = 1.0,
    memory_seconds: tuple[Duration, Duration] = (0.0, 0.0),
    disk_seconds: tuple[Duration, Duration] = (2.0, 2.0),
) -> Schedule:
    """Plans which states of a forward program are stored, and which are computed again.

    Each kind makes something least:

    - ``store-all``: the data of all steps, in one level; each step is taken once
    - ``revolve``: forward steps, with ``memory`` slots
    - ``multistage``: forward steps, then traffic of the disk, with ``memory`` and ``disk`` slots
    - ``disk-revolve``: seconds, with ``memory`` slots and a disk without end
    - ``h-revolve``: seconds, with ``memory`` and ``disk`` slots

    Parameters
    ----------
    steps: forward steps of the program.
    memory, disk: states that each level holds.
    forward_seconds: time of a forward step. Only the ratios of the times matter.
    memory_seconds, disk_seconds: time of a write and of a read.

    Raises `Error` for a schedule that is not possible.
    """
    times = _pair("memory_seconds", memory_seconds), _pair("disk_seconds", disk_seconds)
    planned = Schedule(kind, steps, memory, disk, seconds("forward_seconds", forward_seconds), *times)
    iter(planned)
    return planned


def _pair(name: str, values: tuple[Duration, Duration]) -> tuple[float, float]:
    """The seconds of a write and of a read, or of an encoding and of a decoding."""
    first, second = _several(name, values, "two durations, the second for the way back")
    return seconds(name, first), seconds(name, second)


def _several(name: str, values: Any, expected: str) -> tuple[Any, ...]:
    if not isinstance(values, (tuple, list)) or len(values) != len(expected.split(",")):
        raise UsageTypeError(f"{name} is {values!r}, expected {expected}")
    return tuple(values)


def _coded(coded: tuple[Size, Duration, Duration]) -> tuple[int, float, float]:
    state, encode, decode = _several("coded", coded, "the bytes of a coded state, seconds to encode it, seconds to decode it")
    return size("coded", state), *_pair("coded", (encode, decode))


def choose(
    steps: int,
    *,
    state_bytes: Size,
    memory_bytes: Size,
    forward_seconds: Duration,
    reverse_seconds: Duration,
    disk_bytes: Size = 0,
    memory_seconds: tuple[Duration, Duration] = (0.0, 0.0),
    disk_seconds: tuple[Duration, Duration] = (0.0, 0.0),
    coded: tuple[Size, Duration, Duration] | None = None,
    reverse_needs: Literal["state", "step data"] = "state",
) -> Plan:
    """Chooses between keeping all states, coding them, and computing some again, by measured numbers.

    The prediction adds all times up. It is too high where the program overlaps them, as `Tape` does.

    Parameters
    ----------
    steps: forward steps of the program.
    state_bytes: bytes of a state.
    memory_bytes, disk_bytes: room for states.
    forward_seconds, reverse_seconds: time of a step, each way.
    memory_seconds, disk_seconds: time to write a raw state, and to read it.
    coded: bytes of a coded state, seconds to encode it, seconds to decode it; nothing is coded when None.
    reverse_needs: ``state`` if the state that a step begins with is all that its reverse takes, ``step data`` if the
        forward step is taken for it.

    Raises `Error` if no schedule is possible, with the reason.
    """
    if reverse_needs not in ("state", "step data"):
        raise UsageError(f"reverse_needs {reverse_needs}: expected state or step data")
    problem = {
        "steps": steps,
        "forward_seconds": seconds("forward_seconds", forward_seconds),
        "reverse_seconds": seconds("reverse_seconds", reverse_seconds),
        "needs_step_data": reverse_needs == "step data",
        "state_bytes": size("state_bytes", state_bytes),
        "memory_bytes": size("memory_bytes", memory_bytes),
        "disk_bytes": size("disk_bytes", disk_bytes),
        "memory_seconds": _pair("memory_seconds", memory_seconds),
        "disk_seconds": _pair("disk_seconds", disk_seconds),
        "coded": None if coded is None else _coded(coded),
    }
    with named("choose", problem):
        chosen = _native.choose(problem)
    return Plan(Schedule(**chosen.pop("schedule")), **chosen)


def _action(native: tuple[str, int, int, str]) -> Action:
    name, start, stop, detail = native
    if name == "advance":
        return Advance(start, stop, detail == "record")
    if name == "reverse":
        return Reverse(start)
    if name == "end":
        return End()
    return {"write": Write, "read": Read, "take": Take}[name](start, detail)
