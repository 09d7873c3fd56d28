"""A program that solves with SciPy's CG through a session; killed at an iteration where one is given.

cg_solve.py DIR N [KILL_AT [TIERS MEMORY_DIR]]: prints one JSON object; KILL_AT 0 is never.
"""

import json
import os
import signal
import sys

import numpy as np
import recoup
import recoup.scipy
import scipy.sparse.linalg as spla
from conftest import poisson


def main(directory, n, kill_at=0, tiers=None, memory_dir=None):
    a, b = poisson(int(n))
    places = dict(tiers=tiers, memory_dir=memory_dir)
    with recoup.Session(directory, A=a, b=b, scheme="lossy", interval="8it", rtol=1e-8, mtti=60.0, **places) as session:
        cb = session.scipy_callback()
        first = cb.iteration

        def watch(xk):
            cb(xk)
            if cb.iteration == int(kill_at):
                session.wait()
                os.kill(os.getpid(), signal.SIGKILL)

        x, info = spla.cg(a, b, x0=cb.x0, M=cb.M, callback=watch, rtol=1e-8)
        report = dict(first=first, iterations=cb.iteration, info=info)
    report["relative_residual"] = np.linalg.norm(b - a @ x) / np.linalg.norm(b)
    print(json.dumps(report))


main(*sys.argv[1:])
