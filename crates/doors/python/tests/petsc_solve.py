"""A program that solves with petsc4py through a session; killed at an iteration where one is given.

petsc_solve.py DIR N TYPE [KILL_AT [ones]]: prints one JSON object. DIR "-" solves without a session; b is random, or ones.
"""

import json
import os
import signal
import sys

import petsc4py

petsc4py.init([])

import numpy as np
import recoup
from petsc4py import PETSc


def laplacian(n):
    """The 7-point Laplacian on n^3 points; with turning phases, and Hermitian, in a PETSc of complex numbers."""
    turn = np.exp(0.3j) if np.dtype(PETSc.ScalarType).kind == "c" else 1.0
    matrix = PETSc.Mat().createAIJ([n**3, n**3], nnz=7, comm=PETSc.COMM_SELF)
    for row in range(n**3):
        at = (row % n, row // n % n, row // n**2)
        matrix[row, row] = 6.0
        for axis, step in enumerate((1, n, n * n)):
            if at[axis] > 0:
                matrix[row, row - step] = -turn
            if at[axis] < n - 1:
                matrix[row, row + step] = -np.conj(turn)
    matrix.assemble()
    return matrix


def main(directory, n, kind, kill_at=0, rhs="random"):
    a = laplacian(int(n))
    x, b = a.createVecs()
    rng = np.random.default_rng(7)
    b.setArray(rng.standard_normal(b.getSize()).astype(PETSc.ScalarType))
    if np.dtype(PETSc.ScalarType).kind == "c":
        b.setArray(b.getArray() + 1j * rng.standard_normal(b.getSize()))
    if rhs == "ones":
        b.set(1.0)
    ksp = PETSc.KSP().create(comm=PETSc.COMM_SELF)
    ksp.setType(kind)
    ksp.setOperators(a)
    ksp.getPC().setType("jacobi")
    ksp.setTolerances(rtol=1e-8, max_it=10000)
    report = dict(base=0, restored=None)
    if directory == "-":
        ksp.solve(b, x)
    else:
        with recoup.attach(ksp, b, x, directory, scheme="lossy", interval="8it") as attached:
            report.update(base=attached.base, restored=attached.restored and attached.restored.resume)

            def kill(ksp, its, norm):
                if 0 < int(kill_at) == its:
                    attached.session.wait()
                    os.kill(os.getpid(), signal.SIGKILL)

            ksp.setMonitor(kill)
            ksp.solve(b, x)
    r = b.getArray() - (a * x).getArray()
    report.update(reason=ksp.getConvergedReason(), iterations=report["base"] + ksp.getIterationNumber())
    report["relative_residual"] = np.linalg.norm(r) / b.norm()
    print(json.dumps(report))


main(*sys.argv[1:])
