"""The tape: states come back whole, in reverse, through memory, directory, codec, kill and reopen."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import recoup


def field(step, shape=(6, 5, 4)):
    """A field that changes smoothly with the step."""
    grid = np.indices(shape).sum(axis=0)
    return np.sin(0.1 * grid + 0.05 * step) * np.cos(0.02 * grid)


def test_states_come_back_in_reverse_with_their_types_and_shapes(tmp_path):
    shapes = [(), (0,), (7,), (3, 4), (1, 5), (2, 3, 4), (2, 1, 3, 2)]
    types = [np.float64, np.float32, np.int64, np.uint8]
    states = [np.arange(np.prod(shape)).reshape(shape).astype(dtype) for dtype in types for shape in shapes]
    for options in ({"host": 1 << 20}, {"spill": tmp_path}, {"host": 1000, "spill": tmp_path}):
        with recoup.Tape(**options) as tape:
            for step, state in enumerate(states):
                tape.push(step, state)
            assert tape.steps == list(range(len(states)))
            for expected in reversed(range(len(states))):
                step, state = tape.pop()
                assert step == expected
                assert (state.shape, state.dtype) == (states[step].shape, states[step].dtype)
                assert state.tobytes() == states[step].tobytes()
            assert not tape


def test_random_program_gets_what_it_pushed(tmp_path):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        options = {"host": int(rng.integers(20_000, 200_000)), "spill": tmp_path / str(seed)}
        if seed % 2:
            options |= {"codec": "qb"}
        expected = {}
        with recoup.Tape(**options) as tape:
            for step in range(60):
                kind = rng.integers(6)
                some = int(rng.choice(list(expected))) if expected else None
                if kind < 3 or some is None:
                    expected[step] = rng.standard_normal(rng.integers(1, 30, size=rng.integers(1, 4)))
                    tape.push(step, expected[step])
                elif kind == 3:
                    assert np.array_equal(tape.peek(some), expected[some]), (seed, step)
                elif kind == 4:
                    tape.forget(some)
                    del expected[some]
                else:
                    tape.announce([some])
                    popped, state = tape.pop(out=np.empty_like(expected[some]))
                    assert popped == some and np.array_equal(state, expected.pop(some)), (seed, step)
                assert tape.steps == sorted(expected) and len(tape) == len(expected)
                assert all((step in tape) == (step in expected) for step in range(60))


def test_a_tape_says_how_much_it_holds_and_takes_bytes_as_reports_write_them():
    with recoup.Tape(host="64.00 KiB") as tape:
        for step, expected in enumerate(["Tape(0 states)", "Tape(1 state)", "Tape(2 states)"]):
            assert repr(tape) == expected
            tape.push(step, [1.0])
        while tape:
            tape.pop()


def test_pop_writes_to_the_array_it_is_given():
    with recoup.Tape(host=1 << 20) as tape:
        tape.push(3, field(3))
        tape.push(4, field(4))
        out = np.empty((6, 5, 4))
        step, state = tape.pop(out=out)
        assert step == 4 and state is out and np.array_equal(out, field(4))
        assert tape.peek(3, out=out) is out and np.array_equal(out, field(3))


def test_views_and_other_sequences_are_pushed_as_their_values():
    with recoup.Tape(host=1 << 20) as tape:
        tape.push(0, field(0)[::2, :, 1])
        tape.push(1, field(1).T)
        tape.push(2, [1.5, 2.5])
        assert np.array_equal(tape.pop()[1], [1.5, 2.5])
        assert np.array_equal(tape.pop()[1], field(1).T)
        assert np.array_equal(tape.pop()[1], field(0)[::2, :, 1])


@pytest.mark.parametrize("key_every", [1, 4])
@pytest.mark.parametrize("bound", ["absolute:1e-4", "range:1e-4"])
def test_coded_states_keep_their_bound_and_take_less_room(bound, key_every):
    with recoup.Tape(host=8 << 20, codec="qb", bound=bound, key_every=key_every) as tape:
        for step in range(12):
            tape.push(step, field(step, (20, 20, 20)))
        tape.turn()
        tape.steps  # waits for the codec
        report = tape.report()
        assert report["n_pushed"] == 12 and 3 * report["stored_bytes"] < report["raw_bytes"] == 12 * 8 * 8000
        while tape:
            step, state = tape.pop()
            expected = field(step, (20, 20, 20))
            allowed = 1e-4 if bound.startswith("absolute") else 1e-4 * np.ptp(expected)
            assert state.shape == expected.shape and np.abs(state - expected).max() <= allowed
        report = tape.report()
        assert report["n_popped"] == 12 and report["stored_bytes"] == 0
        assert report["push_seconds"] > 0.0 and report["pop_seconds"] > 0.0


def test_grid_of_flat_states_is_used_by_the_codec():
    stored = {}
    for grid in (None, (20, 20, 20)):
        with recoup.Tape(host=8 << 20, codec="zfp", bound="absolute:1e-6", grid=grid) as tape:
            tape.push(0, field(0, (20, 20, 20)).ravel())
            tape.steps
            stored[grid] = tape.report()["stored_bytes"]
            assert tape.pop()[1].shape == (8000,)
            if grid:
                with pytest.raises(recoup.Error, match="the grid of the tape has 8000 values, the state 5"):
                    tape.push(1, np.zeros(5))
    assert stored[20, 20, 20] < stored[None]


FORWARD = """
import os, signal, sys
import numpy as np
import recoup
tape = recoup.Tape(host=4 * 960, spill=sys.argv[1], reopen=True, codec=sys.argv[2] or None)
begin = max(tape.steps, default=-1) + 1
print(begin, flush=True)
for step in range(begin, 30):
    tape.push(step, np.full((6, 5, 4), float(step)))
    if step == int(sys.argv[3]):
        tape.save()
        os.kill(os.getpid(), signal.SIGKILL)
tape.save()
# Not closed: the end of the program is enough.
"""


@pytest.mark.parametrize("codec", ["", "qb"])
def test_killed_forward_pass_goes_on_from_the_directory(tmp_path, codec):
    def run(kill_at):
        command = [sys.executable, "-c", FORWARD, str(tmp_path), codec, str(kill_at)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    for kill_at, begin in ((4, 0), (17, 5)):
        killed = run(kill_at)
        assert killed.returncode == -signal.SIGKILL and killed.stdout == f"{begin}\n", killed.stderr
    ended = run(-1)
    assert ended.returncode == 0 and ended.stdout == "18\n", ended.stderr
    with recoup.Tape(host=1 << 20, spill=tmp_path, reopen=True, codec=codec or None) as tape:
        for expected in reversed(range(30)):
            step, state = tape.pop()
            assert step == expected and np.array_equal(state, np.full((6, 5, 4), float(step)))
    assert list(tmp_path.iterdir()) == []


def test_reopened_states_have_their_extents_of_up_to_three_axes(tmp_path):
    shapes = {(4, 5): (4, 5), (1, 5): (5,), (2, 1, 3): (2, 1, 3), (1, 1, 1): (1,), (2, 1, 3, 2): (12,), (): (1,)}
    with recoup.Tape(spill=tmp_path) as tape:
        for step, shape in enumerate(shapes):
            tape.push(step, np.full(shape, step, np.float32))
    with recoup.Tape(spill=tmp_path, reopen=True) as tape:
        for shape in reversed(shapes.values()):
            step, state = tape.pop()
            assert state.shape == shape and state.dtype == np.float32 and (state == step).all()


def test_states_of_an_earlier_run_are_refused_reopened_or_cleared(tmp_path):
    with recoup.Tape(spill=tmp_path) as tape:
        tape.push(0, field(0))
    with pytest.raises(recoup.Error, match="1 states of an earlier run are there; reopen the tape"):
        recoup.Tape(spill=tmp_path)
    assert recoup.Tape(spill=tmp_path, clear=True).steps == []


def test_damaged_files_are_named_and_never_given_out(tmp_path):
    with recoup.Tape(spill=tmp_path) as tape:
        for step in range(3):
            tape.push(step, field(step))
    cut, flipped, _ = sorted(tmp_path.iterdir())
    cut.write_bytes(cut.read_bytes()[:-1])
    content = bytearray(flipped.read_bytes())
    content[200] ^= 1
    flipped.write_bytes(content)
    with recoup.Tape(spill=tmp_path, reopen=True) as tape:
        [(path, reason)] = tape.damaged
        assert path == str(cut) and "where 1104 were written" in reason, reason
        assert tape.steps == [1, 2]
        assert tape.pop()[0] == 2
        for read in (tape.pop, lambda: tape.peek(1)):
            with pytest.raises(recoup.Error, match="checksum .* expected, .* found"):
                read()
        assert tape.steps == [1]


def test_wrong_arguments_are_one_exception_that_names_them(tmp_path):
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    with recoup.Tape(host=4000, spill=tmp_path / "a", codec="qb", key_every=2) as tape:
        tape.push(5, np.zeros(3))
        tape.push(6, np.zeros(3))
        cases = {
            "step 5 is on the tape already": lambda: tape.push(5, np.zeros(3)),
            "push: step: expected a whole number, 0 or more": lambda: tape.push(-1, np.zeros(3)),
            "push: .*'str'": lambda: tape.push("a", np.zeros(3)),
            "of type complex128, expected float64, float32, int64 or uint8": lambda: tape.push(7, np.zeros(3, complex)),
            "of type object": lambda: tape.push(7, [None]),
            "step 7 is not on the tape": lambda: tape.peek(7),
            "step 8 is not on the tape": lambda: tape.forget(8),
            "states coded against each other leave in reverse": lambda: tape.announce([5]),
            "3 values of type f64 are on the tape, room for 4 of type f64": lambda: tape.pop(out=np.zeros(4)),
            "3 values of type f64 are on the tape, room for 3 of type f32": lambda: tape.pop(out=np.zeros(3, np.float32)),
            "not a NumPy array that is contiguous": lambda: tape.pop(out=np.zeros(6)[::2]),
            "not a NumPy array": lambda: tape.pop(out=[0.0] * 3),
            "array out: ": lambda: tape.pop(out=read_only),
            "a tape needs room": recoup.Tape,
            "host is 4X: expected bytes": lambda: recoup.Tape(host="4X"),
            "spill_bytes, reopen and clear belong to a directory": lambda: recoup.Tape(host=100, reopen=True),
            "reopen keeps .* clear removes": lambda: recoup.Tape(spill=tmp_path / "b", reopen=True, clear=True),
            "unknown codec lz9": lambda: recoup.Tape(host=100, codec="lz9"),
            "a bound needs a codec": lambda: recoup.Tape(host=100, bound="absolute:1"),
            "key_every needs a codec": lambda: recoup.Tape(host=100, key_every=3),
            "key_every is 0": lambda: recoup.Tape(host=100, key_every=0),
            "codec zstd loses nothing": lambda: recoup.Tape(host=100, codec="zstd", bound="absolute:1"),
            "bound verified follows a residual": lambda: recoup.Tape(host=100, codec="qb", bound="verified"),
            "pages tiny: expected huge or small": lambda: recoup.Tape(host=100, pages="tiny"),
            "has a tape there": lambda: recoup.Tape(spill=tmp_path / "a"),
        }
        for words, call in cases.items():
            with pytest.raises(recoup.Error, match=words):
                call()
        assert tape.pop()[0] == 6 and tape.pop()[0] == 5
        with pytest.raises(recoup.Error, match="the tape is empty"):
            tape.pop()
    with pytest.raises(recoup.Error, match="the tape is closed"):
        tape.push(0, np.zeros(3))
    with recoup.Tape(host=1000) as tape:
        with pytest.raises(recoup.Error, match="without a spill directory cannot be saved"):
            tape.save()
        with pytest.raises(recoup.Error, match="step 0"):
            tape.push(0, np.zeros(1000))
        assert not tape


def test_calls_that_work_let_other_threads_run():
    """With a switch interval of minutes, another thread runs only while a call has let the interpreter go."""
    before = sys.getswitchinterval()
    is_over, rounds = threading.Event(), 0

    def count():
        nonlocal rounds
        while not is_over.is_set():
            rounds += 1
            time.sleep(0)

    counting = threading.Thread(target=count)
    state, out = np.zeros(1 << 20), np.empty(1 << 20)
    with recoup.Tape(host=64 << 20, pages="small") as tape:
        sys.setswitchinterval(600.0)
        try:
            counting.start()
            for call in (lambda step: tape.push(step, state), lambda step: tape.peek(step, out=out)):
                begun = rounds
                for step in range(7):
                    call(step)
                assert rounds > begun
        finally:
            is_over.set()
            sys.setswitchinterval(before)
            counting.join()


def test_tape_of_the_parent_is_an_error_in_a_forked_process(tmp_path):
    tape = recoup.Tape(host=1 << 20, spill=tmp_path, codec="qb")
    tape.push(0, field(0))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            tape.push(1, field(1))
        except recoup.Error as error:
            code = 0 if "was forked from it" in str(error) else 2
        del tape
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tape.steps == [0] and np.array_equal(tape.pop()[1], field(0))
    tape.close()


def test_tape_that_is_dropped_leaves_its_states_to_the_next(tmp_path):
    def push():
        tape = recoup.Tape(host=1 << 20, spill=tmp_path)
        tape.push(0, field(0))
        tape.save()

    push()
    assert [path.suffix for path in Path(tmp_path).iterdir()] == [".state"]
    with recoup.Tape(spill=tmp_path, reopen=True) as tape:
        assert np.array_equal(tape.pop()[1], field(0))
