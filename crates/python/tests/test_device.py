"""Arrays on a device, the double of one: saved from there, and restored to there after SIGKILL."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("device_solve.py")


@pytest.fixture
def solve(tmp_path, program):
    """Runs the script where the double of the driver is the driver."""
    double = program.parent / "deps/librecoup_cuda_double.so"
    assert double.exists(), f"{double} is built with the tests of the workspace"
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver/libcuda.so").symlink_to(double)
    env = os.environ | {"LD_LIBRARY_PATH": str(tmp_path / "driver")}

    def run(directory, kill_after):
        command = [sys.executable, SCRIPT, tmp_path / directory, str(kill_after)]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)

    return run


def test_killed_solve_gets_back_the_bits_of_its_device_arrays(solve):
    undisturbed = solve("undisturbed", -1)
    assert undisturbed.returncode == 0, undisturbed.stderr
    killed = solve("killed", 27)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = solve("killed", -1)
    assert resumed.returncode == 0, resumed.stderr
    first, *rest = resumed.stdout.splitlines()
    assert first == "restored 20"
    assert rest == undisturbed.stdout.splitlines()[1:]


def test_arrays_that_cannot_be_saved_from_a_device_are_refused_by_name(solve):
    refused = solve("refused", 0)
    assert refused.returncode == 0, refused.stderr
    expected = {
        "complex": "array x is of type c16, expected float64, float32, int64 or uint8",
        "strided": "array x is not contiguous in C order: protect a copy of it",
        "read-only": "array x is read-only: restore could not write to it",
        "too long": "72 bytes expected",
        "on the host": "no CUDA driver of this process knows its memory",
    }
    lines = dict(line.split(": ", 1) for line in refused.stdout.splitlines())
    assert lines.keys() == expected.keys(), refused.stdout
    for name, words in expected.items():
        assert words in lines[name], lines[name]
