#!/usr/bin/env python3
"""What `recoup exec` costs a program, and what a kill costs below it.

    scripts/exec-cost.py --recoup target/release/recoup

The time loop of examples/exec/heat.c runs in turns: as it is, with the library preloaded that saves
nothing (--share 0), and with the log of `recoup exec`. The table has the medians of the processor
time of all processes, and the ratios of runs of one turn; the last is the log's own, as starting
costs both alike. Then the loop of 200 long solves is killed before step 150, and the processor time
until it is back there is divided by that of the plain run until then. The exit code is 1 if an
output differs from that of the plain run.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOLVER = "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-8"
# What a solve takes on a core of some 3 GHz, and the options of the loop.
LOOPS = {"60 ms": f"-n 200 -steps 60 {SOLVER}", "4 ms": f"-n 60 -steps 200 {SOLVER}"}
LONG = f"-n 200 -steps 200 {SOLVER}"
KILL_AT = 150
KILLED = (0, -9, 137)


def run(words, folder):
    """Runs to the end: seconds of processors, output, and the line recoup ends with."""
    before = os.times()
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    lines = ended.stderr.splitlines()
    if "exec" in words and not (ended.returncode in KILLED and lines):
        sys.exit(f"code {ended.returncode} of {words}: {ended.stderr}")
    if any("nothing is saved" in line for line in lines):
        sys.exit("\n".join(lines))
    return used, ended.stdout, lines[-1] if lines else ""


def below(recoup, *more):
    return [str(recoup), "exec", "--dir", "log", *more, "--"]


def loop(program, options, args, folder):
    """Ratios of a loop below each way to the plain one, in turns."""
    ways = {"plain": [], "nothing saved": below(args.recoup, "--share", "0"), "log": below(args.recoup)}
    seconds = {way: [] for way in ways}
    expected, is_same = None, True
    for _ in range(args.rounds):
        for way, words in ways.items():
            used, output, _ = run([*words, str(program), *options.split()], folder)
            seconds[way].append(used)
            expected = output if expected is None else expected
            is_same &= output == expected
    told = [f"{statistics.median(seconds['plain']):10.2f} s"]
    for way, rival in [("nothing saved", "plain"), ("log", "plain"), ("log", "nothing saved")]:
        ratios = sorted(mine / theirs for mine, theirs in zip(seconds[way], seconds[rival]))
        told.append(f"{statistics.median(ratios):8.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
    return told, is_same


def killed(program, args, folder):
    """Processor time until the killed loop is back where it died: plain, below exec, and if all is as before."""
    plain = [str(program), *LONG.split()]
    expected = run(plain, folder)[1]
    until = ["-kill_at", str(KILL_AT)]
    again = run([*plain, *until], folder)[0]
    saved = below(args.recoup, "--share", "1")
    run([*saved, *plain, *until], folder)
    back = run([*saved, *plain, *until], folder)[0]
    _, output, said = run([*saved, *plain], folder)
    return again, back, output == expected and f"{KILL_AT} answered" in said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recoup", type=Path, default=ROOT / "target/release/recoup", help="the program")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each loop")
    args = parser.parse_args()
    args.recoup = args.recoup.resolve()
    if not args.recoup.exists():
        parser.error(f"there is no {args.recoup}: cargo build -p recoup-cli, or --recoup PROGRAM")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "PETSc"], capture_output=True, text=True)
    if flags.returncode != 0:
        print("SKIPPED: pkg-config knows no PETSc")
        return 0
    with tempfile.TemporaryDirectory(prefix="exec-cost-") as work:
        program = Path(work) / "heat"
        source = ROOT / "examples/exec/heat.c"
        subprocess.run(["mpicc", "-O2", source, "-o", program, *flags.stdout.split()], check=True)
        # The engine is compiled before anything is timed.
        run([*below(args.recoup), str(program), "-n", "10", "-steps", "1"], work)
        print("solves of  steps alone     nothing saved              log                        log / nothing saved", flush=True)
        is_right = True
        for name, options in LOOPS.items():
            told, is_same = loop(program, options, args, work)
            print(f"{name:9}", *told, "" if is_same else "THE OUTPUT DIFFERS", flush=True)
            is_right &= is_same
        again, back, is_same = killed(program, args, work)
        print(f"killed before step {KILL_AT} of 200, and back there: {back:.2f} s of processors; "
              f"run again {again:.2f} s: {again / back:.0f} times", "" if is_same else "THE OUTPUT DIFFERS")
    return 0 if is_right and is_same else 1


if __name__ == "__main__":
    sys.exit(main())
