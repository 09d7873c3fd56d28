"""Arrays on a device, the double of one: saved from there, and restored to there after SIGKILL."""

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT


@functools.cache
def built(target):
    """The double of the driver, built as crates/cuda/double/src/double.rs does for Rust's tests."""
    manifest = ROOT / "crates/cuda/double/driver/Cargo.toml"
    build = ["cargo", "build", "--quiet", "--locked", "--lib", "--manifest-path", manifest, "--target-dir", target]
    subprocess.run(build, check=True)
    return target / "debug/libcuda_double.so"


@pytest.fixture
def run(tmp_path, program):
    """Runs a script where the double of the driver is the driver."""
    double = built(program.parent.parent / "cuda-double")
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver/libcuda.so").symlink_to(double)
    env = os.environ | {"LD_LIBRARY_PATH": str(tmp_path / "driver")}

    def run(script, directory, *arguments):
        command = [sys.executable, Path(__file__).with_name(script), tmp_path / directory, *map(str, arguments)]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)

    return run


@pytest.mark.parametrize("door", ["interface", "dlpack", "old-dlpack"])
def test_killed_solve_gets_back_the_bits_of_its_device_arrays(run, door):
    undisturbed = run("device_solve.py", "undisturbed", door, -1)
    assert undisturbed.returncode == 0, undisturbed.stderr
    killed = run("device_solve.py", "killed", door, 27)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = run("device_solve.py", "killed", door, -1)
    assert resumed.returncode == 0, resumed.stderr
    first, *rest = resumed.stdout.splitlines()
    assert first == "restored 20"
    assert rest == undisturbed.stdout.splitlines()[1:]


def refusals(run, door):
    refused = run("device_refusals.py", "refused", door)
    assert refused.returncode == 0, refused.stderr
    return dict(line.split(": ", 1) for line in refused.stdout.splitlines())


TYPES = "expected float64, float32, int64 or uint8"


def test_arrays_that_cannot_be_saved_from_a_device_are_refused_by_name(run):
    expected = {
        "complex": f"array x is of type c16, {TYPES}",
        "strided": "array x is not contiguous in C order: protect a copy of it",
        "read-only": "array x is read-only: restore could not write to it",
        "too long": "72 bytes expected",
        "longer than memory": "more than memory has",
        "on the host": "no CUDA driver of this process knows its memory",
    }
    lines = refusals(run, "interface")
    assert lines.keys() == expected.keys(), lines
    for name, words in expected.items():
        assert words in lines[name], lines[name]


def test_refused_tensors_are_named_and_given_back_once(run):
    expected = {
        "complex": f"array x is of type complex128, {TYPES}|1",
        "lanes": f"array x is of type float32 in lanes of 4, {TYPES}|1",
        "unknown type": f"array x is of type number 99, {TYPES}|1",
        "strided": "array x is not contiguous in C order: protect a copy of it|1",
        "old and strided": "array x is not contiguous in C order: protect a copy of it|1",
        "read-only": "array x is read-only: restore could not write to it|1",
        "copy": "array x gave a copy of its values: restore could not write to the array|1",
        "too long": "192 bytes expected",
        "longer than memory": "more than memory has|1",
        "negative extent": "array x has the extents [-4, 6]|1",
        "of the host": "array x is in memory of the host: protect numpy.from_dlpack of it|0",
        "pinned": "array x is in memory of the host: protect numpy.from_dlpack of it|0",
        "of another maker": "array x is on a device of DLPack's kind 10, expected CUDA (2): protect a copy on the host|0",
        "of a later protocol": "array x: DLPack of version 1 expected, version 2 found|1",
        "on the host": "no CUDA driver of this process knows its memory|1",
        "with a gradient": "tensors that require gradient: use tensor.detach()|0",
        "used": "array x: __dlpack__ gave no new tensor|0",
    }
    lines = refusals(run, "dlpack")
    assert lines.keys() == expected.keys(), lines
    for name, words in expected.items():
        assert words in lines[name], lines[name]
    assert lines["too long"].endswith("|1"), lines["too long"]


def test_tensor_is_held_while_it_is_protected_and_given_back_once(run):
    owners = run("dlpack_owners.py", "owners")
    assert owners.returncode == 0, owners.stderr
    assert owners.stdout.splitlines() == [
        "protected 0 [(1, (1, 0), False)]",
        "replaced 1 0 [(1,)]",
        "restored [-1.0, 1.0, 2.0, 3.0, 4.0, 5.0] 0 0",
        "closed 1 1 1",
        "dropped 1",
    ]


@pytest.mark.parametrize("door", ["interface", "dlpack"])
@pytest.mark.parametrize("room", ["host", "device", "coded"])
def test_states_of_a_device_come_back_from_a_tape(run, room, door):
    ended = run("device_tape.py", "tape", door, room)
    assert ended.returncode == 0, ended.stderr
    refused, left = ended.stdout.splitlines()
    assert refused == "step 0: 24 values of type f64 are on the tape, room for 23 of type f64 was given"
    assert left == "[0]", "a state that was refused stays on the tape"
