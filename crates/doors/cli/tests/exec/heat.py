"""Implicit steps of the heat equation on a square by petsc4py, which says the type of its numbers first. It kills itself before
step -kill_at."""

import os
import signal
import sys

import petsc4py

petsc4py.init(sys.argv)

from petsc4py import PETSc

PETSc.Sys.Print(PETSc.ScalarType.__name__)
options = PETSc.Options()
n, kill_at = options.getInt("n", 40), options.getInt("kill_at", -1)
A = PETSc.Mat().createAIJ([n * n, n * n], nnz=5)
for row in range(*A.getOwnershipRange()):
    A[row, row] = 1 + 4e4
    for other in [row - n, row + n, *([row - 1] if row % n else []), *([row + 1] if (row + 1) % n else [])]:
        if 0 <= other < n * n:
            A[row, other] = -1e4
A.assemble()
u, x = A.createVecs()
u.set(0.0)
ksp = PETSc.KSP().create()
ksp.setOperators(A)
ksp.setFromOptions()
for step in range(options.getInt("steps", 12)):
    if step == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    u.shift(1.0)
    ksp.solve(u, x)
    x.copy(u)
    PETSc.Sys.Print(f"{step} {ksp.its} {u.norm():.15e}")
