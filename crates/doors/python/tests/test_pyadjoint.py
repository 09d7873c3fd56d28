"""pyadjoint keeps its checkpoints on a tape: each bit of its gradient is that of keeping them in memory."""

import gc

import checkpoint_schedules as cs
import numpy as np
import pyadjoint
import pytest

import recoup
import recoup.pyadjoint

STEPS, POINTS = 17, 600


class Field(pyadjoint.OverloadedType, np.ndarray):
    """An array whose checkpoints go to a storage."""

    storage = None

    def __array_finalize__(self, source):
        pyadjoint.OverloadedType.__init__(self)

    @classmethod
    def of(cls, values):
        return np.array(values).view(cls)

    @classmethod
    def _ad_init_object(cls, values):
        return cls.of(values)

    def _ad_create_checkpoint(self):
        return Field.of(self) if Field.storage is None else Field.storage.store(self)

    def _ad_restore_at_checkpoint(self, checkpoint):
        return checkpoint if Field.storage is None else Field.storage.load(checkpoint).view(Field)

    def _ad_convert_riesz(self, value, riesz_map=None):
        return Field.of(value)

    def _ad_init_zero(self, dual=False):
        return Field.of(np.zeros_like(self))


class DiffusionStep(pyadjoint.Block):
    """A step of a field that diffuses, with a source that depends on it and on a rate that never changes."""

    def __init__(self, u, rate):
        super().__init__()
        self.add_dependency(u)
        self.add_dependency(rate)

    @classmethod
    def taken(cls, u, rate):
        block = cls(u, rate)
        out = block.recompute_component([u, rate], None, 0, None)
        pyadjoint.get_working_tape().add_block(block)
        block.add_output(out.create_block_variable())
        return out

    def recompute_component(self, inputs, block_variable, idx, prepared):
        u, rate = (np.asarray(values) for values in inputs)
        return Field.of(u + 0.1 * (np.roll(u, 1) + np.roll(u, -1) - 2 * u) + 0.01 * rate * np.sin(u))

    def evaluate_adj_component(self, inputs, adj_inputs, block_variable, idx, prepared=None):
        (u, rate), a = (np.asarray(values) for values in inputs), np.asarray(adj_inputs[0])
        if idx == 1:
            return Field.of(0.01 * np.sin(u) * a)
        return Field.of(a + 0.1 * (np.roll(a, -1) + np.roll(a, 1) - 2 * a) + 0.01 * rate * np.cos(u) * a)


class Distance(pyadjoint.Block):
    """Half the square of the distance of a field from another."""

    wanted = np.cos(np.arange(float(POINTS)))

    def __init__(self, u):
        super().__init__()
        self.add_dependency(u)

    @classmethod
    def of(cls, u):
        block = cls(u)
        out = block.recompute_component([u], None, 0, None)
        pyadjoint.get_working_tape().add_block(block)
        block.add_output(out.create_block_variable())
        return out

    def recompute_component(self, inputs, block_variable, idx, prepared):
        return pyadjoint.AdjFloat(0.5 * np.sum((np.asarray(inputs[0]) - self.wanted) ** 2))

    def evaluate_adj_component(self, inputs, adj_inputs, block_variable, idx, prepared=None):
        return Field.of(adj_inputs[0] * (np.asarray(inputs[0]) - self.wanted))


def gradients(schedule=None, storage=None):
    """The gradients for two first fields, one after the other on the same tape."""
    adjoint_tape = pyadjoint.Tape()
    pyadjoint.set_working_tape(adjoint_tape)
    pyadjoint.continue_annotation()
    Field.storage = storage
    if storage is not None:
        storage.attach(adjoint_tape)
    if schedule is not None:
        adjoint_tape.enable_checkpointing(schedule)
    first, rate = Field.of(np.sin(np.arange(float(POINTS)))), Field.of(np.linspace(0.0, 1.0, POINTS))
    u = first
    for _ in adjoint_tape.timestepper(iter(range(STEPS))):
        u = DiffusionStep.taken(u, rate)
    functional = Distance.of(u)
    reduced = pyadjoint.ReducedFunctional(functional, [pyadjoint.Control(first), pyadjoint.Control(rate)])
    found = [np.array(gradient) for gradient in reduced.derivative()]
    if schedule is None or not schedule.is_exhausted:
        reduced([Field.of(np.sin(1.5 * np.arange(float(POINTS)))), rate])
        found += [np.array(gradient) for gradient in reduced.derivative()]
    pyadjoint.pause_annotation()
    Field.storage = None
    return found


def same_bits(found, expected):
    return all(a.tobytes() == b.tobytes() for a, b in zip(found, expected)) and len(found) > 0


@pytest.fixture(scope="module")
def expected():
    found = gradients()
    assert len(found) == 4 and all(np.abs(gradient).max() > 1e-3 for gradient in found)
    return found


SCHEDULES = {
    "none": lambda: None,
    "SingleMemory": cs.SingleMemoryStorageSchedule,
    "SingleDisk": cs.SingleDiskStorageSchedule,
    "SingleDisk, moved": lambda: cs.SingleDiskStorageSchedule(move_data=True),
    "Revolve": lambda: cs.Revolve(STEPS, 3),
    "Multistage": lambda: cs.MultistageCheckpointSchedule(STEPS, 2, 2),
    "HRevolve": lambda: cs.HRevolve(STEPS, 2, 2),
    "Mixed": lambda: cs.MixedCheckpointSchedule(STEPS, 4),
}


@pytest.mark.filterwarnings("ignore:Numba not available")
@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_gradient_with_checkpoints_on_a_tape_has_the_bits_of_keeping_them_in_memory(
    name, everything, tmp_path, expected
):
    with recoup.Tape(host=40_000, spill=tmp_path) as one:
        one.push(0, np.zeros(3))  # of another part of the program
        storage = recoup.pyadjoint.TapeStorage(one, everything=everything)
        schedule = SCHEDULES[name]()
        is_used = everything or (schedule is not None and schedule.uses_storage_type(cs.StorageType.DISK))
        found = gradients(schedule, storage)
        assert same_bits(found, expected)
        assert (one.report()["n_pushed"] > 1) == is_used
        del found
        pyadjoint.set_working_tape(pyadjoint.Tape())
        gc.collect()
        storage.clear()
        assert one.steps == [0], "what nothing refers to has left the tape"
        assert np.array_equal(one.pop()[1], np.zeros(3))


def test_checkpoints_under_a_bound_give_a_gradient_that_is_near(expected):
    with recoup.Tape(host=1 << 20, codec="qb", bound="absolute:1e-6") as one:
        found = gradients(None, recoup.pyadjoint.TapeStorage(one, everything=True))
    # The last state, and each slope by 0.01 of it, are off by 1e-6 at most; adjoints are below 4, and grow by 1.01 a step.
    for near, exact in zip(found[:2], expected[:2]):
        assert 0 < np.abs(near - exact).max() <= 1.01**STEPS * (1 + STEPS * 0.01 * 4) * 1e-6
