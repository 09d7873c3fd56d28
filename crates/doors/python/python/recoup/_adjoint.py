"""Adjoint programs carried out by a schedule, with tapes as storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import UsageError, UsageTypeError
from ._schedule import Advance, End, Level, Read, Reverse, Take, Write
from ._tape import Tape

Array = npt.NDArray[Any]


def run(
    schedule: Iterable[Any],
    forward: Callable[[int, Array], Array],
    reverse: Callable[[int, Any], None],
    state: npt.ArrayLike,
    *,
    memory: Tape,
    disk: Tape | None = None,
    record: Callable[[int, Array], tuple[Array, Any]] | None = None,
    turn: Callable[[Array], None] | None = None,
    steps: int | None = None,
) -> None:
    """Carries out a schedule: takes forward steps, stores and reads states, and takes each reverse step once, last first.

    ::

        def forward(step, u): return u + dt * rate(u)
        def turn(u): adjoint[:] = u - measured          # once, with the state after the last step
        def reverse(step, u): adjoint[:] += dt * rate_transposed(u, adjoint)

        with recoup.Tape(host=1 << 30) as tape:
            recoup.tape.run(recoup.tape.schedule("revolve", n, memory=20), forward, reverse, u0, memory=tape, turn=turn)

    Parameters
    ----------
    schedule: of `recoup.tape.schedule`, or of the package checkpoint_schedules (PyPI), up to the end of its first reverse.
    forward: returns the state after a step: a new array, or the given one, changed in place.
    reverse: takes the reverse of a step. It is given the state that the step begins with, or what `record` has returned.
    state: the state that step 0 begins with. It is not changed.
    memory, disk: tapes for the states of each level. Without ``disk`` one tape takes both, and moves states by itself.
    record: takes a step as ``forward`` does and returns the state after it and data for its reverse. An array is stored on a
        tape where the data of several steps is kept; anything else stays in memory. Without ``record`` the reverse takes
        the state that its step begins with, and no forward step is taken for it.
    turn: called once, with the state after the last step, before the first reverse.
    steps: forward steps, where the schedule was not told.

    Raises `Error` for a schedule that asks for what is not there. States that other steps have pushed stay on the tapes.
    """
    for name, tape in {"memory": memory, "disk": disk}.items():
        if not isinstance(tape, Tape) and (name, tape) != ("disk", None):
            raise UsageTypeError(f"run: {name} is {tape!r}, expected a recoup.Tape")
    for name, function in {"forward": forward, "reverse": reverse}.items():
        if not callable(function):
            raise UsageTypeError(f"run: {name} is {function!r}, expected a function")
    program = _Program(forward, reverse, record, turn, np.array(state), memory, disk)
    try:
        for action in schedule:
            if program.perform(action, schedule, steps):
                break
    finally:
        program.forget()


class _Places:
    """The states that a run has stored on one tape."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.levels: dict[int, set[Level]] = {}
        """Levels of the schedule that hold the state of a step. A tape keeps it once."""
        self.data: set[int] = set()
        """Steps of which the data for the reverse is stored, in place of the state."""

    def put(self, step: int, level: Level, values: Array, is_data: bool) -> None:
        if step in self.levels and (step in self.data) != is_data:
            raise UsageError(f"step {step}: its state and the data of its reverse cannot be stored on one tape: give two")
        if step not in self.levels:
            self.tape.push(step, values)
        self.levels.setdefault(step, set()).add(level)
        if is_data:
            self.data.add(step)

    def get(self, step: int, level: Level, is_kept: bool) -> tuple[Array, bool]:
        """The values, and whether they are data for the reverse."""
        levels = self.levels.get(step, set())
        if level not in levels:
            raise UsageError(f"step {step} is not stored in {level}: the schedule reads what it has not written")
        is_data = step in self.data
        if is_kept or len(levels) > 1:
            if not is_kept:
                levels.remove(level)
            return self.tape.peek(step), is_data
        values = self._take(step)
        del self.levels[step]
        self.data.discard(step)
        return values, is_data

    def _take(self, step: int) -> Array:
        if self.tape._native.next_step() == step:
            return self.tape.pop()[1]
        values = self.tape.peek(step)
        self.tape.forget(step)
        return values

    def forget(self) -> None:
        for step in sorted(self.levels, reverse=True):
            if step in self.tape:
                self.tape.forget(step)
        self.levels.clear()


class _Program:
    """A forward program and its reverse, and what they have at hand."""

    def __init__(
        self,
        forward: Callable[[int, Array], Array],
        reverse: Callable[[int, Any], None],
        record: Callable[[int, Array], tuple[Array, Any]] | None,
        turn: Callable[[Array], None] | None,
        state: Array,
        memory: Tape,
        disk: Tape | None,
    ) -> None:
        self._forward, self._reverse, self._record, self._turn = forward, reverse, record, turn
        self._state = state
        self._at = 0
        self._is_behind = False
        """The state is that of the step before, which was recorded and whose forward step nothing has needed yet."""
        self._data: dict[int, Any] = {}
        self._left: int | None = None
        """Steps that are still to be reversed, once the first was."""
        places = _Places(memory)
        self._places = {"memory": places, "disk": places if disk is None or disk is memory else _Places(disk)}

    def perform(self, action: Any, schedule: Any, steps: int | None) -> bool:
        """Carries out an action of either package. Returns whether it ends the run."""
        match action:
            case Advance(start, stop, record):
                self._advance(start, stop, range(stop - 1, stop) if record else range(0))
            case Write(step, level):
                self._write(step, level)
            case Read(step, level):
                self._read(step, level, is_kept=True)
            case Take(step, level):
                self._read(step, level, is_kept=False)
            case Reverse(step):
                self._reverse_steps(step + 1, step)
            case End():
                return True
            case _:
                return self._perform_foreign(action, schedule, steps)
        return False

    def _perform_foreign(self, action: Any, schedule: Any, steps: int | None) -> bool:
        """Carries out an action of checkpoint_schedules, known by its name: the package need not be here."""
        name = type(action).__name__
        if name == "Forward":
            self._advance_foreign(action, schedule, steps)
        elif name == "Reverse":
            self._reverse_steps(action.n1, action.n0)
        elif name in ("Copy", "Move"):
            source, target = _level(action.from_storage), _level(action.to_storage)
            if source is None:
                raise UsageError(f"{action}: expected a place where states are stored")
            self._read(action.n, source, is_kept=name == "Copy", target=target, is_used=_is_work(action.to_storage))
        elif name not in ("EndForward", "EndReverse"):
            raise UsageError(f"{action!r} is no action of a schedule of recoup or checkpoint_schedules")
        return name == "EndReverse"

    def _advance_foreign(self, action: Any, schedule: Any, steps: int | None) -> None:
        start, stop, level = action.n0, action.n1, _level(action.storage)
        known = schedule.max_n if schedule.max_n is not None else steps
        if known is None:
            raise UsageError("the schedule does not know the number of steps: give steps")
        if action.write_ics:
            if level is None:
                raise UsageError(f"{action}: expected a place where states are stored")
            self._write(start, level)
        stop = min(stop, known)
        self._advance(start, stop, range(start, stop) if action.write_adj_deps else range(0), level)
        if schedule.max_n is None and stop == known:
            schedule.finalize(known)

    def _advance(self, start: int, stop: int, recorded: range, level: Level | None = None) -> None:
        """Takes steps. The data of recorded ones stays at hand, or goes to a level."""
        if start != self._at:
            raise UsageError(f"step {start} cannot be taken: the program has the state of step {self._at}")
        for step in range(start, stop):
            self._catch_up()
            data: Any = None
            if step not in recorded:
                self._state = self._forward(step, self._state)
            elif self._record is None:
                data, self._is_behind = self._state, True
            else:
                self._state, data = self._record(step, self._state)
            self._at = step + 1
            if step in recorded and level is None:
                self._make_room()
                self._data[step] = data
            elif step in recorded:
                self._places[level].put(step, level, data, is_data=True)

    def _make_room(self) -> None:
        """Moves the data of a step before to the tape: that of one step is at hand at a time, if it is an array."""
        for step in [step for step, data in self._data.items() if isinstance(data, np.ndarray)]:
            self._places["memory"].put(step, "memory", self._data.pop(step), is_data=True)

    def _catch_up(self) -> None:
        """Takes the step that was recorded without being taken. Its data is the state, so a copy is changed."""
        if self._is_behind:
            self._state = self._forward(self._at - 1, self._state.copy())
            self._is_behind = False

    def _write(self, step: int, level: Level) -> None:
        if step != self._at:
            raise UsageError(f"step {step} cannot be stored: the program has the state of step {self._at}")
        self._catch_up()
        self._places[level].put(step, level, self._state, is_data=False)

    def _read(
        self, step: int, level: Level, *, is_kept: bool, target: Level | None = None, is_used: bool = True
    ) -> None:
        values, is_data = self._places[level].get(step, level, is_kept)
        if target is not None:
            self._places[target].put(step, target, values, is_data)
        elif is_used and is_data:
            self._data[step] = values
        elif is_used:
            self._state, self._at, self._is_behind = values, step, False

    def _reverse_steps(self, stop: int, start: int) -> None:
        if self._left is None:
            self._catch_up()
            if self._turn is not None:
                self._turn(self._state)
            self._left = stop
        for step in range(stop - 1, start - 1, -1):
            if step + 1 != self._left:
                raise UsageError(f"step {step} cannot be reversed: step {self._left - 1} is next")
            self._reverse(step, self._data_of(step))
            self._left = step

    def _data_of(self, step: int) -> Any:
        if step in self._data:
            return self._data.pop(step)
        if step not in self._places["memory"].data:
            raise UsageError(f"step {step} cannot be reversed: its forward data was not kept")
        return self._places["memory"].get(step, "memory", is_kept=False)[0]

    def forget(self) -> None:
        """Drops what the run has left on the tapes: states of schedules that allow another reverse, or of a run that
        failed."""
        for places in self._places.values():
            places.forget()


def _level(storage: Any) -> Level | None:
    """The level of a place of checkpoint_schedules, if it is one."""
    return {"RAM": "memory", "DISK": "disk"}.get(storage.name)  # type: ignore[return-value]


def _is_work(storage: Any) -> bool:
    return storage.name == "WORK"
