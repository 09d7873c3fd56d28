"""Versioned memory: versions of arrays come back whole, after kills, beside readers, at the time a policy chooses."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import recoup

TYPES = [np.float64, np.float32, np.int64, np.int32, np.uint64, np.uint32, np.uint8]


def open_small(path, **options):
    return recoup.Memory.open(path, **{"block_bytes": 512, **options})


def test_arrays_of_every_type_come_back_in_their_shapes(tmp_path):
    arrays = {np.dtype(kind).name: np.arange(60).astype(kind).reshape(3, 4, 5) for kind in TYPES}
    arrays["scalar"] = np.array(2.5)
    arrays["empty"] = np.zeros((0, 3))
    with open_small(tmp_path / "m") as memory:
        for name, values in arrays.items():
            assert memory.array(name, values.copy()).shape == values.shape
        assert memory.restore() is None
        assert memory.commit(7) == 1
    with open_small(tmp_path / "m") as memory:
        found = {name: memory.array(name, np.zeros_like(values)) for name, values in arrays.items()}
        version = memory.restore()
        assert (version.number, version.step) == (1, 7)
        assert version.arrays["int32"] == ("int32", 60) and version.bytes == sum(a.nbytes for a in arrays.values())
        for name, values in arrays.items():
            assert found[name].tobytes() == values.tobytes(), name
            view = memory.view()[name]
            assert view.shape == values.shape and view.dtype == values.dtype and np.array_equal(view, values)


def test_changes_are_found_by_comparison_or_by_marks(tmp_path):
    with open_small(tmp_path / "m", keep=3) as memory:
        compared = memory.array("compared", np.zeros((100, 10)))
        marked = memory.array("marked", np.zeros((100, 10)), marked=True)
        memory.commit(0)
        compared[7] = 1.0
        marked[7] = 1.0
        memory.touch("marked", 7, 8)
        marked[99] = 5.0                               # in another block, and not marked
        memory.commit(1)
        view = memory.view()
        assert np.array_equal(view["compared"], compared)
        assert view["marked"][7, 0] == 1.0 and view["marked"][99, 0] == 0.0
        memory.touch("marked", -1)
        memory.commit(2)
        assert np.array_equal(memory.view()["marked"], marked)
        assert [version.step for version in memory.versions] == [0, 1, 2]
        assert memory.restore(1).step == 0 and not compared.any() and not marked.any()


def test_views_are_read_only_and_keep_their_version(tmp_path):
    memory = open_small(tmp_path / "m", keep=1)
    state = memory.array("state", np.arange(1000.0))
    memory.commit(0)
    view = memory.view()
    for step in range(1, 5):
        state += 1.0
        memory.commit(step)
    assert [version.number for version in memory.versions] == [5]
    values = view["state"]
    assert np.array_equal(values, np.arange(1000.0)) and view.verify() == []
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 1.0
    assert list(view) == ["state"] and len(view) == 1 and "state" in view and "other" not in view
    with pytest.raises(recoup.Error, match="version 1 has no array other: it has state"):
        view["other"]
    memory.close()


def test_views_in_memory_are_not_copied_and_outlive_everything_else():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        memory = recoup.Memory.open(Path(folder) / "m", keep=1, block_bytes=4096)
        states = {kind: memory.array(np.dtype(kind).name, np.arange(5000).astype(kind)) for kind in TYPES}
        memory.commit(0)
        # Blocks of the next version lie apart in the file.
        for state in states.values():
            state[::1024] += 1
        memory.commit(1)
        expected = {kind: state.copy() for kind, state in states.items()}
        view = memory.view()
        mapped = {kind: view[np.dtype(kind).name] for kind in TYPES}
        assert all(not array.flags.writeable and not array.flags.owndata for array in mapped.values())
        assert view["float64"].ctypes.data != mapped[np.float64].ctypes.data     # each is a map of its own
        del view
        for step in range(2, 6):
            for state in states.values():
                state[:] = step
            memory.commit(step)
        memory.close()
        for kind, array in mapped.items():
            assert array.dtype == kind and np.array_equal(array, expected[kind])
        with pytest.raises(recoup.Error, match="another writer has the file open"):
            recoup.Memory.open(Path(folder) / "m")
        del mapped, array
        recoup.Memory.open(Path(folder) / "m").close()


def test_what_cannot_be_done_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "m"
    with open_small(path) as memory:
        state = memory.array("state", np.zeros(100))
        memory.commit(0)
        cases = [
            (lambda: open_small(path), "another writer has the file open"),
            (lambda: recoup.Memory(path), r"opens no file: call Memory.open\("),
            (lambda: memory.array("a", np.zeros(3, np.complex128)), "array a is of type complex128, expected float64"),
            (lambda: memory.array("a", np.zeros((4, 4)).T), "array a is not a NumPy array that is contiguous"),
            (lambda: memory.array("a", [1.0]), "array a is not a NumPy array"),
            (lambda: memory.array("state", np.zeros(100)), "there is an array state already"),
            (lambda: memory.touch("b"), "there is no array b"),
            (lambda: memory.view(9), "version 9 is not kept"),
            (lambda: memory.restore(9), "version 9 is not kept"),
            (lambda: memory.commit(-1), "commit: "),
            (lambda: recoup.Memory.open(tmp_path / "n", keep=0), "keep is 0, expected 1 or more"),
            (lambda: recoup.Memory.open(tmp_path / "n", block_bytes=1000), "a power of two"),
            (lambda: recoup.Memory.open(tmp_path / "n", policy="soon"), "policy soon: expected auto, greedy"),
            (lambda: recoup.Memory.open(tmp_path / "n", mtti=-1.0), "mtti is -1"),
            (lambda: recoup.Memory.open(tmp_path / "n", medium="tape"), "medium tape: expected auto, file or map"),
            (lambda: recoup.Memory.open(tmp_path / "n", read_only=True), "open the file"),
        ]
        for call, message in cases:
            with pytest.raises(recoup.Error, match=message):
                call()
        frozen = np.zeros(3)
        frozen.flags.writeable = False
        with pytest.raises(recoup.Error):
            memory.array("frozen", frozen)
        state[:] = 3.0
    with open_small(path) as memory:
        memory.array("state", np.zeros(50))
        with pytest.raises(recoup.Error, match="array state: 400 bytes, in version 1 it has 800"):
            memory.restore()
    with pytest.raises(recoup.Error, match="the memory is closed"):
        memory.commit(1)


def test_damage_is_named_and_the_version_before_is_restored(tmp_path):
    path = tmp_path / "m"
    with open_small(path) as memory:
        state = memory.array("state", np.full(100, 1.5))
        memory.commit(0)
        state[0] = 2.75
        memory.commit(1)
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(2.75).tobytes())] ^= 1
    path.write_bytes(content)
    reader = recoup.Memory.open(path, read_only=True)
    assert reader.findings == [] and "version 2, state, block 0: checksum" in reader.view().verify()[0]
    with pytest.raises(recoup.Error, match="version 2, state, block 0: checksum"):
        reader.view()["state"]
    with open_small(path) as memory:
        state = memory.array("state", np.zeros(100))
        assert memory.restore().step == 0 and np.array_equal(state, np.full(100, 1.5))
        assert "version 2, state, block 0: checksum" in memory.findings[0]


def test_policy_decides_when_to_commit(tmp_path):
    with open_small(tmp_path / "m", policy="auto", mtti=1e9) as memory:
        memory.array("state", np.zeros(1000))
        assert memory.decision is None and memory.cost > 0.0
        assert memory.commit_if_due(0) is None and memory.versions == []
        assert memory.decision.startswith("not due: ") and "a failure every 1.000e9 s" in memory.decision
    with open_small(tmp_path / "n", policy="1us") as memory:
        state = memory.array("state", np.zeros(1000))
        for step in range(3):
            time.sleep(0.001)
            state[step] = 1.0
            assert memory.commit_if_due(step) == step + 1
        assert memory.decision.startswith("due: ")


WRITER = """
import sys
import numpy as np
import recoup

memory = recoup.Memory.open(sys.argv[1], keep=64, block_bytes=4096)
one = memory.array("one", np.zeros(20_000))
two = memory.array("two", np.zeros(5_000, np.int64))
restored = memory.restore()
step = restored.step if restored else 0
assert (one == step).all() and (two == step).all()
print("ready", flush=True)
while True:
    step += 1
    one[:] = step
    two[:] = step
    memory.commit(step)
    if len(sys.argv) > 2:
        print(step, flush=True)
"""


def writer(path, *arguments):
    command = [sys.executable, "-c", WRITER, str(path), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def test_reader_sees_whole_versions_while_another_process_commits(tmp_path):
    process = writer(tmp_path / "m")
    try:
        reader = recoup.Memory.open(tmp_path / "m", read_only=True)
        steps, retired = [], 0
        deadline = time.monotonic() + 60
        while len(steps) < 30 and time.monotonic() < deadline:
            try:
                view = reader.view()
                one, two = view["one"], view["two"]
            except recoup.Error as error:
                # The first version may not be there yet, and any may be retired meanwhile.
                assert "retired" in str(error) or "no version" in str(error), error
                retired += 1
                continue
            step = view.version.step
            assert (one == step).all() and (two == step).all(), f"a mixture in version {view.version}"
            if not steps or step > steps[-1]:
                steps.append(step)
        assert len(steps) == 30, (steps, retired)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_killed_writer_loses_no_version_that_it_has_reported(tmp_path):
    rng = np.random.default_rng(3)
    reported = 0
    for _ in range(4):
        process = writer(tmp_path / "m", "report")
        for _ in range(int(rng.integers(3, 15))):
            reported = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        for line in process.stdout:
            reported = int(line) if line.endswith("\n") else reported
        newest = recoup.Memory.open(tmp_path / "m", read_only=True).view()
        assert newest.version.step >= reported
        assert (newest["one"] == newest.version.step).all() and (newest["two"] == newest.version.step).all()


def test_forked_process_is_refused(tmp_path):
    with open_small(tmp_path / "m") as memory:
        memory.array("state", np.zeros(3))
        child = os.fork()
        if child == 0:
            try:
                memory.commit(1)
            except recoup.Error as error:
                os._exit(0 if "was forked from it" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert memory.commit(1) == 1


def test_commit_to_a_file_that_was_removed_is_an_error_that_names_it(tmp_path):
    """Commits continued into a file that nobody could open any more."""
    path = tmp_path / "m"
    with recoup.Memory.open(path) as memory:
        state = memory.array("state", np.zeros(100))
        memory.commit(1)
        path.unlink()
        state += 1.0
        for commit in (memory.commit, memory.commit_if_due):
            with pytest.raises(recoup.Error, match=f"{path}: the file was removed or replaced"):
                for _ in range(2):
                    commit(2)
                    memory.commit(2)
