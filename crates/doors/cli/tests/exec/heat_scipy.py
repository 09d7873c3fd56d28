"""Implicit steps of the heat equation on a square by SciPy. It kills itself in product KILL_AT, and leaves the number of
products in the file KILL_FILE, or 0 when it kills itself."""

import os
import signal
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

n, n_products, kill_at, file = 40, 0, int(os.environ.get("KILL_AT", -1)), Path(os.environ.get("KILL_FILE", os.devnull))
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
matrix = (sp.eye_array(n * n) + 1e4 * (sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line))).tocsr()


def product(x):
    global n_products
    n_products += 1
    if n_products == kill_at:
        file.write_text("0\n")
        os.kill(os.getpid(), signal.SIGKILL)
    return matrix @ x


A = LinearOperator(matrix.shape, product, dtype=float)
u = np.zeros(n * n)
for step in range(12):
    u, info = cg(A, u + 1.0, rtol=1e-8)
    print(f"{step} {info} {np.linalg.norm(u):.15e}")
file.write_text(f"{n_products}\n")
