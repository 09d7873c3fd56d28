# Implicit steps of the heat equation by finite elements, in dolfinx, which numbers its rows on its own. It prints the norm of
# each step, and kills itself before step -kill_at.
import os
import signal
import sys

import petsc4py

petsc4py.init(sys.argv)
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from petsc4py import PETSc

kill_at = PETSc.Options().getInt("kill_at", -1)
domain = mesh.create_unit_square(MPI.COMM_WORLD, 40, 40)
space = fem.FunctionSpace(domain, ("Lagrange", 1))
u, v, before = ufl.TrialFunction(space), ufl.TestFunction(space), fem.Function(space)
x = ufl.SpatialCoordinate(domain)
before.interpolate(lambda x: x[0] * (1 - x[0]) + 2 * x[1])
A = fem.petsc.assemble_matrix(fem.form(u * v * ufl.dx + 0.1 * ufl.dot(ufl.grad(u), ufl.grad(v)) * ufl.dx))
A.assemble()
right = fem.form(before * v * ufl.dx + x[0] * v * ufl.dx)
ksp = PETSc.KSP().create(domain.comm)
ksp.setOperators(A)
ksp.setFromOptions()
for step in range(12):
    if step == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    b = fem.petsc.assemble_vector(right)
    b.ghostUpdate(addv=PETSc.InsertMode.ADD, mode=PETSc.ScatterMode.REVERSE)
    ksp.solve(b, before.vector)
    before.x.scatter_forward()
    PETSc.Sys.Print(f"{step} {before.vector.norm():.15e}")
