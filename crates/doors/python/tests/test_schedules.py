"""Schedules: compared with those of checkpoint_schedules, and carried out with tapes as storage."""

import checkpoint_schedules as cs
import numpy as np
import pytest

import recoup
from recoup import tape

COSTS = [(2.0, 2.0), (1.0, 5.0), (5.0, 1.0), (0.5, 0.5), (20.0, 30.0)]
"""Seconds of a write to disk and of a read; a forward step takes one second."""


def their_tally(schedule):
    """Counts the work of a schedule of checkpoint_schedules."""
    steps, writes, reads = 0, {"RAM": 0, "DISK": 0}, {"RAM": 0, "DISK": 0}
    for action in schedule:
        if isinstance(action, cs.Forward):
            steps += len(action)
            if action.write_ics:
                writes[action.storage.name] += 1
        elif isinstance(action, (cs.Copy, cs.Move)):
            reads[action.from_storage.name] += 1
        elif isinstance(action, cs.EndReverse):
            return {"forward_steps": steps, "disk_writes": writes["DISK"], "disk_reads": reads["DISK"]}
    raise AssertionError("the schedule has no end")


def seconds(tally, disk_seconds):
    write, read = disk_seconds
    return tally["forward_steps"] + write * tally["disk_writes"] + read * tally["disk_reads"]


def test_revolve_takes_as_many_forward_steps_as_that_of_checkpoint_schedules():
    for steps in (*range(1, 31), 64, 100):
        for slots in range(1, 9):
            ours = tape.schedule("revolve", steps, memory=slots).tally()
            for theirs in (cs.Revolve(steps, slots), cs.MultistageCheckpointSchedule(steps, slots, 0)):
                assert ours["forward_steps"] == their_tally(theirs)["forward_steps"], (steps, slots)
            assert ours["memory_states_max"] <= slots


def test_multistage_takes_as_many_forward_steps_and_never_more_of_the_disk():
    """Of the schedules with the fewest steps, ours takes one that stores fewer states: its traffic may be smaller."""
    for steps in (*range(2, 31), 64):
        for memory in range(4):
            for disk in range(4):
                if memory + disk:
                    ours = tape.schedule("multistage", steps, memory=memory, disk=disk).tally()
                    theirs = their_tally(cs.MultistageCheckpointSchedule(steps, memory, disk))
                    assert ours["forward_steps"] == theirs["forward_steps"], (steps, memory, disk)
                    assert seconds(ours, (1, 1)) <= seconds(theirs, (1, 1)), (steps, memory, disk)


def test_h_revolve_takes_as_many_seconds_as_that_of_checkpoint_schedules():
    """Not as many steps: where a step costs as much as the traffic that it saves, both are right."""
    for costs in COSTS:
        for steps in (*range(2, 21), 40):
            for memory in (1, 2, 4):
                for disk in (0, 1, 3):
                    ours = tape.schedule("h-revolve", steps, memory=memory, disk=disk, disk_seconds=costs).tally()
                    theirs = their_tally(cs.HRevolve(steps, memory, disk, wd=costs[0], rd=costs[1]))
                    assert seconds(ours, costs) == seconds(theirs, costs), (steps, memory, disk, costs)


def test_disk_revolve_takes_as_many_seconds_where_states_are_read_from_disk_once():
    """That of checkpoint_schedules reads each state on disk once; ours may read it again, and then is faster."""
    n_faster = 0
    for costs in COSTS:
        for steps in (*range(2, 31), 50):
            for memory in (1, 2, 4):
                ours = tape.schedule("disk-revolve", steps, memory=memory, disk_seconds=costs).tally()
                theirs = seconds(their_tally(cs.DiskRevolve(steps, memory, wd=costs[0], rd=costs[1])), costs)
                if ours["disk_reads"] == ours["disk_writes"]:
                    assert seconds(ours, costs) == theirs, (steps, memory, costs)
                else:
                    assert seconds(ours, costs) <= theirs, (steps, memory, costs)
                    n_faster += seconds(ours, costs) < theirs
    assert n_faster > 0


class Diffusion:
    """A field that diffuses at a rate that depends on it, and the gradient of its distance from another at the end."""

    def __init__(self, steps):
        self.steps, self.n_taken, self.reversed = steps, 0, []
        self.begin = np.sin(np.arange(24.0)).reshape(4, 6)
        self.wanted = np.cos(np.arange(24.0)).reshape(4, 6)
        self.adjoint = self.gradient = None

    def forward(self, step, u):
        self.n_taken += 1
        neighbours = np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1)
        return u + 0.1 * (neighbours - 2 * u) + 0.01 * np.sin(u + step)

    def forward_in_place(self, step, u):
        u[:] = self.forward(step, u)
        return u

    def record(self, step, u):
        return self.forward(step, u), np.cos(u + step)

    def turn(self, u):
        assert self.adjoint is None, "the turn comes once"
        self.adjoint = u - self.wanted

    def reverse(self, step, u):
        self.reverse_recorded(step, np.cos(u + step))

    def reverse_recorded(self, step, slope):
        self.reversed.append(step)
        a = self.adjoint
        self.adjoint = a + 0.1 * (np.roll(a, -1, axis=1) + np.roll(a, 1, axis=1) - 2 * a) + 0.01 * slope * a

    def stored_all(self):
        """The gradient of a program that stores all states in a list."""
        states = [self.begin]
        for step in range(self.steps):
            states.append(self.forward(step, states[-1]))
        self.turn(states[-1])
        for step in reversed(range(self.steps)):
            self.reverse(step, states[step])
        return self.adjoint

    def expect(self, gradient):
        assert self.reversed == list(reversed(range(self.steps)))
        assert self.adjoint.tobytes() == gradient.tobytes(), "each bit of the gradient is that of storing all states"


STEPS = 23
OURS = {
    "store-all": {},
    "revolve": {"memory": 3},
    "multistage": {"memory": 2, "disk": 2},
    "disk-revolve": {"memory": 2},
    "h-revolve": {"memory": 2, "disk": 3},
}
THEIRS = {
    "Revolve": lambda: cs.Revolve(STEPS, 3),
    "Multistage": lambda: cs.MultistageCheckpointSchedule(STEPS, 2, 2),
    "HRevolve": lambda: cs.HRevolve(STEPS, 2, 3),
    "DiskRevolve": lambda: cs.DiskRevolve(STEPS, 2),
    "PeriodicDiskRevolve": lambda: cs.PeriodicDiskRevolve(STEPS, 2),
    "Mixed": lambda: cs.MixedCheckpointSchedule(STEPS, 4),
    "TwoLevel": lambda: cs.TwoLevelCheckpointSchedule(5, 2),
    "SingleMemory": cs.SingleMemoryStorageSchedule,
    "SingleDisk": cs.SingleDiskStorageSchedule,
    "SingleDisk, moved": lambda: cs.SingleDiskStorageSchedule(move_data=True),
}
STORAGES = {
    "one tape": lambda path: [recoup.Tape(host=2000, spill=path)],
    "two tapes": lambda path: [recoup.Tape(host=1 << 16), recoup.Tape(spill=path)],
    "coded": lambda path: [recoup.Tape(host=1 << 16, codec="qb")],
}


@pytest.fixture
def gradient():
    return Diffusion(STEPS).stored_all()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kind", OURS)
def test_gradient_of_each_schedule_has_the_bits_of_storing_all(kind, storage, tmp_path, gradient):
    schedule = tape.schedule(kind, STEPS, **OURS[kind])
    planned = schedule.tally()["forward_steps"]
    tapes = STORAGES[storage](tmp_path)
    memory, disk = tapes[0], tapes[-1]
    memory.push(10_000, np.zeros(3))  # of another part of the program
    for forward, record in (("forward", False), ("forward_in_place", False), ("forward", True)):
        of = Diffusion(STEPS)
        reverse = of.reverse_recorded if record else of.reverse
        callables = {"turn": of.turn, "record": of.record if record else None}
        tape.run(schedule, getattr(of, forward), reverse, of.begin, memory=memory, disk=disk, **callables)
        of.expect(gradient)
        # A recorded step is taken for its record; without one, the last step alone is, for the turn.
        least = planned - STEPS + 1
        assert of.n_taken == (planned if record else STEPS if kind == "store-all" else least)
        assert memory.steps == [10_000]
    stored = sum(one.report()["n_pushed"] for one in tapes) - 1
    assert stored > 3 * (STEPS - 2) if kind == "store-all" else stored > 0
    for one in tapes:
        one.close()


@pytest.mark.filterwarnings("ignore:Numba not available")
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", THEIRS)
def test_gradient_of_each_schedule_of_checkpoint_schedules_has_the_bits_of_storing_all(
    name, storage, tmp_path, gradient
):
    tapes = STORAGES[storage](tmp_path)
    for record in (False, True):
        of, schedule = Diffusion(STEPS), THEIRS[name]()
        reverse = of.reverse_recorded if record else of.reverse
        callables = {"turn": of.turn, "record": of.record if record else None, "steps": STEPS}
        tape.run(schedule, of.forward, reverse, of.begin, memory=tapes[0], disk=tapes[-1], **callables)
        of.expect(gradient)
        assert tapes[0].steps == [] == tapes[-1].steps
        if record and schedule.max_n == STEPS and not name.startswith(("Single", "TwoLevel", "Mixed")):
            assert of.n_taken == their_tally(THEIRS[name]())["forward_steps"]
    for one in tapes:
        one.close()


def test_schedule_can_be_carried_out_again_and_read_as_actions():
    schedule = tape.schedule("revolve", 3, memory=1)
    expected = [
        tape.Write(0, "memory"),
        tape.Advance(0, 3, True),
        tape.Reverse(2),
        tape.Read(0, "memory"),
        tape.Advance(0, 2, True),
        tape.Reverse(1),
        tape.Take(0, "memory"),
        tape.Advance(0, 1, True),
        tape.Reverse(0),
        tape.End(),
    ]
    assert list(schedule) == expected == list(schedule)


def test_choice_is_the_cheapest_plan_with_its_reasons():
    small = {"state_bytes": 1 << 20, "memory_bytes": 64 << 20, "forward_seconds": 0.1, "reverse_seconds": 0.2}
    plan = tape.choose(1000, **small)
    assert (plan.kind, plan.coded, plan.memory_slots) == ("revolve", False, 64)
    assert plan.recomputed_steps > 0 and "computes" in plan.why and "Storing all states raw: needs" in plan.why
    # Each step that is reversed is not taken for it: its state is enough.
    assert plan.schedule.tally()["forward_steps"] - 1000 == plan.forward_steps
    coded = tape.choose(1000, **small, coded=(50_000, 0.001, 0.001))
    assert (coded.coded, coded.recomputed_steps, coded.schedule.memory_seconds) == (True, 0, (0.001, 0.001))
    assert coded.seconds < plan.seconds and coded.table.count("\n") >= 11
    assert tape.choose(10, **small).kind == "store-all"


def test_wrong_schedules_are_one_exception():
    with recoup.Tape(host=1 << 16) as one:

        def run(schedule, **options):
            of = Diffusion(3)
            tape.run(schedule, of.forward, of.reverse, of.begin, memory=one, turn=of.turn, **options)

        cases = {
            'schedule "revolver": expected store-all, revolve': lambda: tape.schedule("revolver", 3),
            "a schedule for 3 steps with 0 slots": lambda: tape.schedule("revolve", 3),
            "a schedule for 0 steps": lambda: tape.schedule("store-all", 0),
            "steps is -1, expected a whole number, 0 or more": lambda: tape.schedule("revolve", -1, memory=1),
            "write to disk is -1": lambda: tape.schedule("h-revolve", 9, memory=1, disk=1, disk_seconds=(-1, 1)),
            "a state of 0 bytes": lambda: tape.choose(
                9, state_bytes=0, memory_bytes=1, forward_seconds=1, reverse_seconds=1
            ),
            "reverse_needs all": lambda: tape.choose(
                9, state_bytes=1, memory_bytes=1, forward_seconds=1, reverse_seconds=1, reverse_needs="all"
            ),
            "give steps": lambda: run(cs.SingleMemoryStorageSchedule()),
            "step 1 is not stored in memory": lambda: run([tape.Read(1, "memory")]),
            "step 1 cannot be stored: the program has the state of step 0": lambda: run([tape.Write(1, "memory")]),
            "step 1 cannot be taken": lambda: run([tape.Advance(1, 2, False)]),
            "step 1 cannot be reversed: its forward data": lambda: run([tape.Advance(0, 2, False), tape.Reverse(1)]),
            "step 1 cannot be reversed: step 0 is next": lambda: run(
                [tape.Advance(0, 2, True), tape.Reverse(1), tape.Reverse(1)]
            ),
            "3 is no action of a schedule": lambda: run([3]),
        }
        for words, call in cases.items():
            with pytest.raises(recoup.Error, match=words):
                call()


def test_data_that_is_no_array_stays_in_memory(gradient):
    of = Diffusion(STEPS)

    def record(step, u):
        return of.forward(step, u), ("slope", np.cos(u + step))

    def reverse(step, data):
        of.reverse_recorded(step, data[1])

    with recoup.Tape(host=1 << 16) as one:
        schedule = tape.schedule("store-all", STEPS)
        tape.run(schedule, of.forward, reverse, of.begin, memory=one, record=record, turn=of.turn)
        assert one.report()["n_pushed"] == 0
    of.expect(gradient)


def test_failure_of_the_program_leaves_nothing_on_the_tapes():
    of = Diffusion(STEPS)

    def fail(step, u):
        raise RuntimeError("the solver diverged")

    with recoup.Tape(host=1 << 16) as one:
        with pytest.raises(RuntimeError, match="the solver diverged"):
            tape.run(tape.schedule("revolve", STEPS, memory=3), of.forward, fail, of.begin, memory=one)
        assert one.steps == []
