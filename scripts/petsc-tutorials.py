#!/usr/bin/env python3
"""Runs PETSc's own tutorials below `recoup exec`, undisturbed and killed at random.

    scripts/petsc-tutorials.py --recoup target/release/recoup --seeds 2

Each line of tests/exec/tutorials.txt is a program of KSP, SNES or TS and its options. It is run as
it is, then below `recoup exec`, and then once for each seed with kills: each falls on a random one
of the products, norms and saves that the undisturbed run had, and the same line starts the program
again until it ends. The output and the exit code must be those of the plain run;
after a resume within a solve, numbers may differ in their last digits. A table says what came out,
and the exit code is 1 if a pair differs. The sources are those of the PETSc that pkg-config knows,
from --source (a folder, or PETSc's archive) or from PyPI.
"""

import argparse
import concurrent.futures
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAIRS = ROOT / "crates/doors/cli/tests/exec/tutorials.txt"
FOLDERS = {"ksp": "src/ksp/ksp/tutorials", "snes": "src/snes/tutorials", "ts": "src/ts/tutorials"}
KILLS_MAX = 8
LIMIT_SECONDS = 120
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
# Lines that a resumed solve prints for its own iterations alone, and counts that it may change.
OF_ITERATIONS = re.compile(r"KSP (?:Residual|preconditioned|unpreconditioned|none)|[Ii]terations|linear its|Its")
DIGITS = 1e-3


def sources(given, work):
    """The folder of the sources of the installed PETSc."""
    if given and given.is_dir():
        return given
    if given is None:
        version = output(["pkg-config", "--modversion", "PETSc"]).strip()
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
             "--dest", work, f"petsc=={version}"], check=True)
        given = next(Path(work).glob("petsc-*.tar.gz"))
    with tarfile.open(given) as archive:
        members = [one for one in archive if "/tutorials/" in one.name and one.isfile()]
        archive.extractall(work, members, filter="data")
    return next(path for path in Path(work).glob("petsc-*") if path.is_dir())


def output(words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def build(name, folder, work):
    """Compiles a tutorial: its program, or what the compiler said."""
    kind, stem = name.split("/")
    source = next((folder / FOLDERS[kind]).glob(f"{stem}.[cF]*"), None)
    if source is None:
        return None, "no such source"
    program = Path(work) / name.replace("/", "-")
    flags = output(["pkg-config", "--cflags", "--libs", "PETSc"]).split()
    compiler = "mpicc" if source.suffix == ".c" else "mpif90"
    # PETSc's macros make long lines of Fortran's.
    lines = [] if source.suffix == ".c" else ["-ffree-line-length-none"]
    # Modules of Fortran are left in the folder that the compiler runs in.
    made = subprocess.run([compiler, "-O1", "-w", *lines, source.resolve(), "-o", program, *flags, "-lm"],
                          cwd=work, capture_output=True, text=True)
    return (program, "") if made.returncode == 0 else (None, made.stderr.strip().splitlines()[0])


def end_session(session):
    """Ends what a killed job has left."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                os.kill(int(folder.name), signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended


class Ended:
    """A run that has ended: its code (None if it took too long), output, and events."""

    def __init__(self, words, folder, more):
        environment = {
            **os.environ, "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", **more}
        start = time.monotonic()
        events = folder / "events"
        events.unlink(missing_ok=True)
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            run = subprocess.Popen(words, cwd=folder, env=environment, stdout=out, stderr=err,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                self.code = run.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                self.code = None
                run.kill()
                run.wait()
            end_session(run.pid)
            for file in (out, err):
                file.seek(0)
            self.out, self.err = out.read(), err.read()
        self.seconds = time.monotonic() - start
        # What the first rank did; 0 if it was killed.
        self.events = int(events.read_text()) if events.exists() else None
        line = [line for line in self.err.splitlines() if " calls: " in line]
        # calls, answered, resumed, guessed, saved, too short
        self.counts = [int(number) for number in re.findall(r"\d+", line[-1])] if line else [0] * 6


def difference(found, expected, is_resumed):
    """The first line that differs; none if there is no difference, or last digits after a resume."""
    mine, theirs = found.splitlines(), expected.splitlines()
    if is_resumed:
        mine, theirs = ([line for line in lines if not OF_ITERATIONS.search(line)] for lines in (mine, theirs))
    for one, other in zip(mine, theirs):
        if one != other and not (is_resumed and is_near(one, other)):
            return f"{one.strip()!r} for {other.strip()!r}"
    return None if len(mine) == len(theirs) else f"{len(mine)} lines for {len(theirs)}"


def is_near(one, other):
    # How short monitors show what is below it, without a blank at the end.
    one, other = (line.rstrip().replace("< 1.e-11", "1.e-11") for line in (one, other))
    if NUMBER.sub("", one) != NUMBER.sub("", other):
        return False
    pairs = [tuple(map(float, pair)) for pair in zip(NUMBER.findall(one), NUMBER.findall(other))]
    return all(abs(a - b) <= DIGITS * max(abs(a), abs(b), DIGITS) for a, b in pairs)


class Pair:
    """A program, its options, and how it is started."""

    def __init__(self, args, name, options, program, work):
        self.args, self.name, self.options, self.program = args, name, options, program
        self.killer = Path(work) / "kill.so"
        self.folder = Path(tempfile.mkdtemp(prefix=f"{program.name}-", dir=work))
        launch = ["mpirun", "-n", str(args.ranks)] if args.ranks > 1 else []
        self.plain = [*launch, str(program), *options]

    def below(self, *more):
        return [str(self.args.recoup), "exec", "--dir", "log", *more, "--", *self.plain]

    def run(self, words, **more):
        preloaded = {"LD_PRELOAD": str(self.killer), "KILL_FILE": "events", **more} if "exec" in words else {}
        return Ended(words, self.folder, preloaded)

    def check(self):
        """A line of the table, and whether all is as it should be."""
        plain = self.run(self.plain)
        if plain.code != 0:
            return "plain run takes too long" if plain.code is None else f"plain run fails with {plain.code}", True
        if difference(self.run(self.plain).out, plain.out, False):
            return "its output differs from run to run", True
        wrong, columns = [], {"calls": 0, "kills": 0, "answered": 0, "resumed": 0}
        whole = self.run(self.below("--share", "1"))
        columns["calls"] = whole.counts[0]
        self.compare(whole, plain, "undisturbed", wrong)
        for seed in range(self.args.first_seed, self.args.first_seed + self.args.seeds):
            self.storm(seed, whole, plain, wrong, columns)
        told = f"{plain.seconds:5.2f} s" + "".join(f" {value:8}" for value in columns.values())
        return told + "  " + ("same" if not wrong else "DIFFERS: " + "; ".join(wrong)), not wrong

    def storm(self, seed, whole, plain, wrong, columns):
        """Kills at random events until the program ends."""
        draw = random.Random(f"{self.name} {self.options} {seed}")
        # Half the seeds have versions within calls, which are resumed.
        words = ["--share", "1", "--after"]
        if seed % 2 == 0:
            words += ["1h"]
        else:
            words += ["0", "--options", draw.choice(["interval=5it scheme=auto", "interval=20it scheme=lossless"])]
        shutil.rmtree(self.folder / "log", ignore_errors=True)
        for n_kills in range(KILLS_MAX + 1):
            kill = {"KILL_AT": str(draw.randint(1, whole.events or 1)), "KILL_RANK": str(draw.randrange(self.args.ranks))}
            # Either the program is lost, or who has started it, too.
            if draw.random() < 0.5:
                kill["KILL_PARENT"] = "1"
            ended = self.run(self.below(*words), **(kill if n_kills < KILLS_MAX else {}))
            if ended.events != 0:
                break
            columns["kills"] += 1
        columns["answered"] += ended.counts[1]
        columns["resumed"] += ended.counts[2]
        # A call that an earlier start has resumed is answered with that start's digits.
        self.compare(ended, plain, f"seed {seed}", wrong, bool(seed % 2))

    def compare(self, ended, plain, what, wrong, is_resumed=False):
        differs = difference(ended.out, plain.out, is_resumed)
        if ended.code != plain.code:
            wrong.append(f"{what}: exit code {ended.code} for {plain.code}")
        elif differs:
            wrong.append(f"{what}: {differs}")
        elif ended.code == 0 and (self.folder / "log").exists():
            wrong.append(f"{what}: the log is left")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recoup", type=Path, default=ROOT / "target/release/recoup", help="the program")
    parser.add_argument("--source", type=Path, help="PETSc's sources: a folder or an archive (else from PyPI)")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=2, help="storms of kills for each pair")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", default="", help="pairs whose line has this in it")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first pairs, which an earlier run has had")
    args = parser.parse_args()
    args.recoup = args.recoup.resolve()
    if not args.recoup.exists():
        parser.error(f"there is no {args.recoup}: cargo build -p recoup-cli, or --recoup PROGRAM")
    if subprocess.run(["pkg-config", "--exists", "PETSc"]).returncode != 0:
        print("SKIPPED: pkg-config knows no PETSc")
        return 0
    lines = [line.split() for line in PAIRS.read_text().splitlines() if line.strip() and line[0] != "#" and args.only in line]
    lines = lines[args.skip:]
    with tempfile.TemporaryDirectory(prefix="petsc-tutorials-") as work:
        folder = sources(args.source, work)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", PAIRS.parent / "kill.c", "-o", Path(work) / "kill.so", "-ldl"], check=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            names = sorted({line[0] for line in lines})
            programs = dict(zip(names, pool.map(lambda name: build(name, folder, work), names)))
        print("plain run   calls    kills answered  resumed")
        n_checked = n_wrong = 0
        for name, *options in lines:
            program, said = programs[name]
            told, is_good = (f"not built: {said}", True) if program is None else Pair(args, name, options, program, work).check()
            n_checked += "same" in told or not is_good
            n_wrong += not is_good
            print(f"{told:60}  {name} {' '.join(options)}", flush=True)
        print(f"{n_checked} pairs on {args.ranks} ranks, {args.seeds} seeds each: {n_wrong} differ")
    return 1 if n_wrong or not n_checked else 0


if __name__ == "__main__":
    sys.exit(main())
