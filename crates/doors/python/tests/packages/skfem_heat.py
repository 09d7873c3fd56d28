"""Heat in a square, as the documentation of scikit-fem solves with `solver_iter_pcg`."""

import numpy as np
from skfem import Basis, ElementTriP1, MeshTri, condense, solve, solver_iter_pcg
from skfem.models.poisson import laplace, mass

mesh = MeshTri().refined(5)
basis = Basis(mesh, ElementTriP1())
K, M = laplace.assemble(basis), mass.assemble(basis)
dt = 1e-3
u = basis.project(lambda x: np.sin(np.pi * x[0]) * x[1] * (1 - x[1]))
for step in range(40):
    u = solve(*condense(M + dt * K, M @ u, D=mesh.boundary_nodes()), solver=solver_iter_pcg(rtol=1e-10))
    print(step, np.linalg.norm(u).hex(), u.sum().hex(), flush=True)
