"""Tapes of adjoint programs, and schedules where memory and disk are too small for all states.

* `Tape` keeps the states of a forward pass and gives them back in reverse.
* `schedule` plans which states are stored and which are computed again; `choose` picks a schedule by measured numbers.
* `run` carries a schedule out, one of `schedule` or of the package checkpoint_schedules, with tapes as storage.

`recoup.pyadjoint` keeps the checkpoints of pyadjoint on a tape.
"""

from __future__ import annotations

from ._adjoint import run
from ._schedule import Advance, End, Level, Plan, Read, Reverse, Schedule, Take, Write, choose, schedule
from ._tape import Tape

__all__ = [
    "Advance",
    "End",
    "Level",
    "Plan",
    "Read",
    "Reverse",
    "Schedule",
    "Take",
    "Tape",
    "Write",
    "choose",
    "run",
    "schedule",
]
