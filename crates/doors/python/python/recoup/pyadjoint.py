"""Checkpoints of pyadjoint on a tape.

pyadjoint asks each of its types for checkpoints, and tells packages when one belongs on disk. `TapeStorage` is such a
package: a type hands the values of its checkpoints to it, and gets them back::

    class Field(numpy.ndarray, pyadjoint.OverloadedType):
        def _ad_create_checkpoint(self):
            return storage.store(self)

        def _ad_restore_at_checkpoint(self, checkpoint):
            return storage.load(checkpoint).view(Field)

    tape = pyadjoint.get_working_tape()
    storage = recoup.pyadjoint.TapeStorage(recoup.Tape(host=1 << 30, spill="/scratch/tape"))
    storage.attach(tape)
    tape.enable_checkpointing(HRevolve(steps, 10, 100))     # of checkpoint_schedules: what is for the disk goes to the tape

pyadjoint is imported with this module, and by nothing else of the package.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
from pyadjoint.tape import TapePackageData

from ._tape import Tape

__all__ = ["StoredCheckpoint", "TapeStorage"]


class StoredCheckpoint:
    """A checkpoint that is stored on a tape. Its state leaves the tape when nothing refers to it any more."""

    def __init__(self, step: int, gone: deque[int]) -> None:
        self._step, self._gone = step, gone

    def __del__(self) -> None:
        # The tape may be at work in another thread: the next call of the storage drops the state.
        self._gone.append(self._step)


class TapeStorage(TapePackageData):
    """The checkpoints of a tape of pyadjoint, on a tape of recoup.

    Parameters
    ----------
    tape: the tape. Other states on it stay as they are.
    everything: takes all checkpoints, those that a schedule keeps in memory and those of a program without a schedule.
        If False, it takes those that a schedule wants on disk, and `store` makes copies of the others.
    """

    def __init__(self, tape: Tape, *, everything: bool = False) -> None:
        self._tape = tape
        self._everything = everything
        self._is_on = everything
        self._gone: deque[int] = deque()
        self._next = max(tape.steps, default=-1) + 1

    def attach(self, tape: Any) -> None:
        """Makes a tape of pyadjoint tell this storage what belongs on disk. Call it before ``enable_checkpointing``."""
        tape._package_data["recoup"] = self

    def store(self, values: npt.ArrayLike) -> StoredCheckpoint | npt.NDArray[Any]:
        """Stores the values of a checkpoint, for ``_ad_create_checkpoint``: on the tape, or as a copy in memory."""
        self._drop_gone()
        if not self._is_on:
            return np.array(values)
        step, self._next = self._next, self._next + 1
        self._tape.push(step, np.asarray(values))
        return StoredCheckpoint(step, self._gone)

    def load(self, checkpoint: StoredCheckpoint | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns the values of a checkpoint, for ``_ad_restore_at_checkpoint``."""
        self._drop_gone()
        if not isinstance(checkpoint, StoredCheckpoint):
            return checkpoint
        return self._tape.peek(checkpoint._step)

    def _drop_gone(self) -> None:
        while self._gone:
            self._tape.forget(self._gone.popleft())

    def clear(self) -> None:
        """Drops what nothing refers to. pyadjoint calls it when its tape is cleared."""
        self._drop_gone()

    def reset(self) -> None:
        """Drops what nothing refers to. pyadjoint calls it before it takes the forward steps again."""
        self._drop_gone()

    def checkpoint(self) -> None:
        """Returns nothing: each checkpoint knows its place."""

    def restore_from_checkpoint(self, state: None) -> None:
        """Does nothing: each checkpoint knows its place."""

    def copy(self) -> TapeStorage:
        """Returns itself: a copy of pyadjoint's tape refers to the same checkpoints."""
        return self

    def continue_checkpointing(self) -> None:
        """Takes the checkpoints that come. pyadjoint calls it where its schedule wants them on disk."""
        self._is_on = True

    def pause_checkpointing(self) -> None:
        """Leaves the checkpoints that come in memory."""
        self._is_on = self._everything
