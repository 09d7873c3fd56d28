"""Programs of other packages below `python -m recoup.run`, killed from outside: part of the long tests.

`scripts/bootstrap.sh long` makes their environment, .venv-packages. The examples of FiPy and sfepy are theirs. Those in
the folder `packages` call the solvers of scikit-fem, FiPy and pyamg as the documentation of these does.
"""

import functools
import os
import random
import re
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import recoup
from conftest import ROOT

pytestmark = pytest.mark.long

PACKAGES = ROOT / ".venv-packages"
OWN = Path(__file__).parent / "packages"
SFEPY = next(PACKAGES.glob("lib/python3*/site-packages/sfepy"), PACKAGES) / "examples/diffusion"
PROGRAMS = {
    "scikit-fem": [OWN / "skfem_heat.py"],
    "fipy": [OWN / "fipy_diffusion.py"],
    "fipy cavity": [next(PACKAGES.glob("fipy-*/examples"), PACKAGES) / "flow/stokesCavity.py"],
    "sfepy": [PACKAGES / "bin/sfepy-run", SFEPY / "time_poisson.py"],
    "sfepy materials": [PACKAGES / "bin/sfepy-run", SFEPY / "time_heat_equation_multi_material.py"],
    "pyamg": [OWN / "pyamg_heat.py"],
}
ENTRY = struct.Struct("<8s4Q2I")
"""The head of a log's entry, as io/FORMAT.md has it."""
HEADER_BYTES = 64
SECONDS_MAX = 1800
"""For a program that hangs: of those here, each ends within a minute on a core of its own."""


class Run:
    """A program in a folder of its own."""

    def __init__(self, name):
        self._folder = tempfile.TemporaryDirectory(prefix="recoup-packages-")
        self.folder, self._words = Path(self._folder.name), PROGRAMS[name]
        (self.folder / "site").mkdir()
        (self.folder / "site/recoup").symlink_to(Path(recoup.__file__).parent)
        (self.folder / "returns").write_text("\n" * 10)
        self.log = self.folder / "log/calls/scipy-1-0.log"

    def start(self, *options):
        """Starts the program; below recoup.run if options are given."""
        python = PACKAGES / "bin/python"
        assert python.exists(), "scripts/bootstrap.sh long makes .venv-packages"
        environment = {"PYTHONPATH": "site", "FIPY_SOLVERS": "scipy", "FIPY_VIEWER": "dummy", "MPLBACKEND": "agg"}
        ours = ["-m", "recoup.run", "--dir", "log", "--share", "1", *options] if options else []
        with (self.folder / "returns").open() as returns, (self.folder / "printed").open("w") as printed:
            return subprocess.Popen(
                [python, *ours, *self._words],
                cwd=self.folder,
                env=os.environ | environment,
                stdin=returns,
                stdout=printed,
                stderr=subprocess.PIPE,
                text=True,
            )

    def finish(self, *options):
        """Runs to the end. Returns what recoup counted."""
        process = self.start(*options)
        try:
            _, errors = process.communicate(timeout=SECONDS_MAX)
        finally:
            process.kill()  # where it has not ended
        assert process.returncode == 0, errors
        counts = re.search(r"recoup: (\d+) calls: (\d+) answered from the log, 0 resumed within", errors)
        assert bool(counts) == bool(options), errors
        return [int(each) for each in counts.groups()] if counts else []

    def kill_at(self, log_bytes):
        """Runs until the log has this size, and kills it there. Where it was faster than the kill, it begins again."""
        deadline = time.monotonic() + SECONDS_MAX
        code = 0
        while code == 0:
            process = self.start("--explain")
            while process.poll() is None and time.monotonic() < deadline:
                if self.log.exists() and self.log.stat().st_size >= log_bytes:
                    break
                time.sleep(0.001)
            process.kill()
            _, errors = process.communicate()
            code = process.returncode
        assert code == -9, errors

    def output(self):
        """Returns what the program printed, without times, and the files it wrote."""
        printed = re.sub(r"[\d.]+ (\[s\]|s|seconds)$", "", (self.folder / "printed").read_text(), flags=re.MULTILINE)
        # sfepy lists its materials from a set, in another order in each process.
        printed = re.sub(r"(?m)(^sfepy:     \w+\n)+", lambda names: "".join(sorted(names[0].splitlines(True))), printed)
        return [printed, *((path.name, path.read_bytes()) for path in sorted(self.folder.glob("*.vtk")))]

    def entries(self):
        """Returns the number of each whole entry of the log, and where it begins."""
        log, found, at = self.log.read_bytes(), {}, 0
        while at + HEADER_BYTES <= len(log):
            _, number, _, rows, _, row_bytes, facts_bytes = ENTRY.unpack_from(log, at)
            begin, at = at, at + HEADER_BYTES + facts_bytes + rows * row_bytes
            if at <= len(log):
                found[number] = begin
        return found


@functools.cache
def undisturbed(name):
    """What the program gives without recoup, and the calls and the size of the log of a run that is not killed."""
    run = Run(name)
    run.finish()
    plain = run.output()
    calls, answered = run.finish("--keep")
    assert (run.output(), answered) == (plain, 0) and calls > 10
    return plain, calls, run.log.stat().st_size


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_a_package_that_is_killed_prints_what_it_would_have_printed(name, seed):
    """Seed 0 kills at half of the log; each other seed kills the program twice."""
    plain, calls, log_bytes = undisturbed(name)
    draw = random.Random(f"{name} {seed}")
    shares = sorted(draw.uniform(0.05, 0.75) for _ in range(2)) if seed else [0.5]
    run = Run(name)
    for share in shares:
        run.kill_at(share * log_bytes)
    saved = len(run.entries())
    counted, answered = run.finish("--explain")
    print(f"{name}, seed {seed}: killed at {shares}, {answered} of {saved} saved calls answered, {counted} calls")
    assert run.output() == plain
    assert 0 < answered == saved and counted > answered
    assert not run.log.exists(), "the log of a finished program is removed"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_damaged_log_costs_a_program_of_a_package_calls_and_no_digit(name):
    plain, _, log_bytes = undisturbed(name)
    run = Run(name)
    run.kill_at(log_bytes / 2)
    entries = run.entries()
    damaged = bytearray(run.log.read_bytes())
    # Facts, which all entries have, follow the header.
    damaged[random.Random(name).choice(list(entries.values())) + HEADER_BYTES + 5] ^= 1
    run.log.write_bytes(damaged)
    _, answered = run.finish("--explain")
    assert run.output() == plain and 0 < answered == len(entries) - 1
