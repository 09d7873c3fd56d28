"""What the tests share: a problem with real sparsity, and the program `recoup`."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[4]


def poisson(n):
    """The 7-point Laplacian on n^3 points, and a random right-hand side."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    one = sp.eye_array(n)
    a = sp.kron(sp.kron(line, one), one) + sp.kron(sp.kron(one, line), one) + sp.kron(sp.kron(one, one), line)
    return a.tocsr(), np.random.default_rng(7).standard_normal(n**3)


@pytest.fixture
def problem():
    return poisson(12)


@pytest.fixture
def program():
    """The program, as the build left it."""
    path = Path(os.environ.get("RECOUP_PROGRAM", ROOT / "target/debug/recoup"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def snippets(page):
    """The Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
