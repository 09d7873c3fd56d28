"""Diffusion in a square, by the solver that FiPy's documentation names for symmetric matrices."""

from fipy import CellVariable, DiffusionTerm, Grid2D, TransientTerm
from fipy.solvers import LinearPCGSolver

mesh = Grid2D(nx=60, ny=60)
phi = CellVariable(mesh=mesh, value=0.0)
phi.constrain(1.0, mesh.facesLeft)
phi.constrain(0.0, mesh.facesRight)
equation = TransientTerm() == DiffusionTerm(coeff=1.0)
for step in range(20):
    equation.solve(var=phi, dt=50.0, solver=LinearPCGSolver(tolerance=1e-10))
    print(step, float((phi.value**2).sum()).hex(), float(phi.value.max()).hex(), flush=True)
