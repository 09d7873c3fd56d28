#!/usr/bin/env python3
"""What `recoup exec` costs a program, and what a kill costs below it.

    scripts/exec-cost.py --recoup target/release/recoup

The time loop of examples/exec/heat.c runs in turns: as it is, with the library alone preloaded,
below `recoup exec` that saves nothing (--share 0), and with its log. The table has the processor
time of a solve, and the ratios of the processor time of all processes to that of the plain run of
the same turn, which has the ways in any order: medians and quartiles. On a busy machine, `chrt -r 1`
in front has it undisturbed. Then the loop of 200 long solves is killed before step 150, and the
processor time until it is back there is divided by that of the plain run until then. Last, the
memory of the log, and of versions within a call: the peak of the process above one that saves
nothing, in vectors. The exit code is 1 if an output differs from that of the plain run.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOLVER = "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-8"
# Unknowns along a side, and steps.
LOOPS = [(180, 60), (70, 200)]
LONG = f"-n 200 -steps 200 {SOLVER}"
LARGE_SIDE = 1000
LARGE = f"-n {LARGE_SIDE} -steps 2 -pc_type jacobi -ksp_rtol 0.2 -ksp_type"
PEAK = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""
KILL_AT = 150
KILLED = (0, -9, 137)


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(words, folder, preloaded=None):
    """Runs to the end: seconds of processors, output, and the line recoup ends with."""
    before = children_seconds()
    variables = {**os.environ, "LD_PRELOAD": preloaded} if preloaded else None
    ended = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True)
    used = children_seconds() - before
    lines = ended.stderr.splitlines()
    if "exec" in words and not (ended.returncode in KILLED and lines):
        sys.exit(f"code {ended.returncode} of {words}: {ended.stderr}")
    if any("nothing is saved" in line for line in lines):
        sys.exit("\n".join(lines))
    return used, ended.stdout, lines[-1] if lines else ""


def below(recoup, *more):
    return [str(recoup), "exec", "--dir", "log", *more, "--"]


def loop(program, n, steps, args, folder):
    """The time of a solve, and the ratios of a loop in each way to the plain one, in turns."""
    words = [str(program), "-n", str(n), "-steps", str(steps), *SOLVER.split()]
    library = run([*below(args.recoup), "printenv", "LD_PRELOAD"], folder)[1].strip()
    nothing, log = [*below(args.recoup, "--share", "0"), *words], [*below(args.recoup), *words]
    ways = [(words, None), (words, library), (nothing, None), (log, None)]
    seconds = [[] for _ in ways]
    outputs = set()
    for _ in range(args.rounds):
        for way in random.sample(range(len(ways)), len(ways)):
            used, output, _ = run(ways[way][0], folder, ways[way][1])
            seconds[way].append(used)
            outputs.add(output)
    start = run([*words, "-steps", "0"], folder)[0]
    plain = seconds[0]
    told = [f"{1e3 * (statistics.median(plain) - start) / steps:5.1f} ms {steps:9}  "]
    for mine in seconds[1:]:
        low, middle, high = statistics.quantiles((one / other for one, other in zip(mine, plain)), n=4)
        told.append(f"{middle:8.3f} ({low:.3f} to {high:.3f})")
    return told, len(outputs) == 1


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


def vectors(program, method, args, folder):
    """Memory of the log, and of the log and versions within a call, in vectors."""
    words = [str(program), *LARGE.split(), method]
    without = ["--after", "1h"]
    ways = [["--share", "0", *without], ["--share", "1", *without], ["--after", "0", "--options", "interval=10it"]]
    measured = [[sys.executable, "-c", PEAK, *below(args.recoup, *way), *words] for way in ways]
    nothing, *peaks = (int(subprocess.check_output(run, cwd=folder)) for run in measured)
    return [1024 * (peak - nothing) / (8 * LARGE_SIDE**2) for peak in peaks]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recoup", type=Path, default=ROOT / "target/release/recoup", help="the program")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each loop")
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
        print("a solve      solves      library alone              nothing saved              log", flush=True)
        is_right = True
        for n, steps in LOOPS:
            told, is_same = loop(program, n, steps, args, work)
            print(*told, "" if is_same else "THE OUTPUT DIFFERS", flush=True)
            is_right &= is_same
        again, back, is_same = killed(program, args, work)
        print(f"killed before step {KILL_AT} of 200, and back there: {back:.2f} s of processors; "
              f"run again {again:.2f} s: {again / back:.0f} times", "" if is_same else "THE OUTPUT DIFFERS")
        for method in ("cg", "bcgs", "gmres"):
            log, versions = vectors(program, method, args, work)
            print(f"memory beside {method}: the log {log:.1f} vectors, with versions {versions:.1f}", flush=True)
    return 0 if is_right and is_same else 1


if __name__ == "__main__":
    sys.exit(main())
