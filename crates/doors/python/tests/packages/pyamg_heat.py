"""Heat in a square: pyamg's hierarchy preconditions SciPy's CG and GMRES, cycles alone, and solves with its own CG."""

import numpy as np
import pyamg
from scipy.sparse import eye_array
from scipy.sparse.linalg import cg, gmres

A = (eye_array(3600) + 50 * pyamg.gallery.poisson((60, 60), format="csr")).tocsr()
# The aggregation estimates spectral radii from random vectors.
np.random.seed(0)
hierarchies = [
    pyamg.smoothed_aggregation_solver(A),
    pyamg.ruge_stuben_solver(A, max_coarse=100, coarse_solver="splu"),
]
u = np.linspace(0, 1, 3600)
for step in range(24):
    hierarchy = hierarchies[step % 2]
    ways = [
        lambda: cg(A, u, M=hierarchy.aspreconditioner(), rtol=1e-10)[0],
        lambda: gmres(A, u, M=hierarchy.aspreconditioner(), rtol=1e-10)[0],
        lambda: hierarchy.solve(u, tol=1e-10, accel=cg),
        lambda: hierarchy.solve(u, tol=1e-10),
        lambda: hierarchy.solve(u, tol=1e-10, accel="cg"),
    ]
    u = ways[step % 5]()
    print(step, np.linalg.norm(u).hex(), u.sum().hex(), flush=True)
