"""Many right-hand sides in one block, and many systems in one run: saved, killed and restored."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import recoup
import recoup.scipy

SIDE = 24
N = SIDE * SIDE
COLUMNS = 3
RTOL = 1e-8
THETA = 0.5


def laplacian(dtype="float64"):
    phase = np.exp(0.3j) if np.dtype(dtype).kind == "c" else 1.0
    line = sp.diags([-np.conj(phase), 2.0, -phase], [-1, 0, 1], shape=(SIDE, SIDE))
    eye = sp.identity(SIDE)
    return (sp.kron(line, eye) + sp.kron(eye, line)).tocsr().astype(dtype)


def right_hand_sides(a):
    """Columns that converge at different times: x is known but for 1e-7 of it, not at all, and tiny."""
    rng = np.random.default_rng(9)
    b = np.asfortranarray(rng.standard_normal((N, COLUMNS)).astype(a.dtype))
    if a.dtype.kind == "c":
        b += 1j * rng.standard_normal((N, COLUMNS))
    b[:, 2] *= 1e-6
    return b


class BlockCg:
    """CG on each column, all advanced together; a column that has converged stays as it is."""

    def __init__(self, a, b):
        self.a, self.b = a, b
        self.x = np.zeros_like(b, order="F")
        self.x[:, 0] = sp.linalg.spsolve(a.tocsc(), b[:, 0]) * (1 + 1e-7)
        self.restart()

    def restart(self):
        self.r = np.asfortranarray(self.b - self.a @ self.x)
        self.p = self.r.copy(order="F")

    def norms(self):
        return np.linalg.norm(self.r, axis=0)

    def running(self):
        return np.flatnonzero(self.norms() > RTOL * np.linalg.norm(self.b, axis=0))

    def step(self):
        for j in self.running():
            x, r, p = self.x[:, j], self.r[:, j], self.p[:, j]
            q = self.a @ p
            rho = np.vdot(r, r).real
            alpha = rho / np.vdot(p, q).real
            x += alpha * p
            r -= alpha * q
            p *= np.vdot(r, r).real / rho
            p += r

    def protect(self, session):
        session.protect_block("x", self.x)
        session.protect_block("p", self.p, role="direction")
        session.protect_block("r", self.r, role="recomputed")


def drive(solver, session, first, last):
    for k in range(first + 1, last + 1):
        if solver.running().size == 0:
            return k - 1
        solver.step()
        session.step(k, solver.norms())
    return last


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_an_exact_block_goes_on_bit_for_bit(tmp_path, dtype):
    a = laplacian(dtype)
    b = right_hand_sides(a)
    alone, solver, again = BlockCg(a, b), BlockCg(a, b), BlockCg(a, b)
    while alone.running().size:
        alone.step()
    with recoup.Session(tmp_path, A=a, b=b, scheme="exact", interval="5it", rtol=RTOL) as session:
        solver.protect(session)
        drive(solver, session, 0, 23)
    with recoup.Session(tmp_path, A=a, b=b, scheme="exact", interval="5it", rtol=RTOL) as session:
        again.protect(session)
        restored = session.restore()
        assert restored.version == restored.iteration == 20 and restored.system is None
        drive(again, session, 20, 10_000)
    assert again.x.tobytes() == alone.x.tobytes()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_each_lossy_column_keeps_its_own_bound(tmp_path, dtype):
    a = laplacian(dtype)
    b = right_hand_sides(a)
    solver = BlockCg(a, b)
    choices = dict(A=a, b=b, scheme="lossy", theta=THETA, interval="5it", rtol=RTOL, codec="qb")
    with recoup.Session(tmp_path, **choices) as session:
        solver.protect(session)
        drive(solver, session, 0, 20)
    before = solver.norms()
    again = BlockCg(a, b)
    with recoup.Session(tmp_path, **choices) as session:
        again.protect(session)
        assert session.restore().version == 20
    assert again.x.tobytes() != solver.x.tobytes(), "the version is lossy"
    after = np.linalg.norm(b - a @ again.x, axis=0)
    # The recurrence's residual and the true one differ by rounding, far below 1e-6 of it.
    assert np.all(after <= (1 + THETA) * (1 + 1e-6) * before), (after, before)
    # The column that had converged meets the tolerance, as it did.
    assert before[0] <= RTOL * np.linalg.norm(b[:, 0]) and after[0] <= RTOL * np.linalg.norm(b[:, 0])
    latest = recoup.open(tmp_path).latest
    assert latest.column_norms == list(before)
    assert np.allclose(latest.verified_column_norms, after, rtol=1e-6)
    error = {v.name: v.achieved_error for v in latest.variables}
    assert 0 < error["x.2"] < 1e-4 * error["x.1"] and error["x.0"] < 1e-4 * error["x.1"]


def test_blocks_are_refused_with_what_to_do(tmp_path):
    a = laplacian()
    b = right_hand_sides(a)
    with recoup.Session(tmp_path, A=a, b=b, scheme="lossy", interval="1it") as session:
        with pytest.raises(recoup.Error, match="array x is not in Fortran order.*numpy.asfortranarray"):
            session.protect_block("x", np.zeros((N, COLUMNS)))
        with pytest.raises(recoup.Error, match="two axes"):
            session.protect_block("x", np.zeros(N))
        session.protect_block("x", np.zeros((N, COLUMNS), order="F"))
        with pytest.raises(recoup.Error, match="residual norms: 3 expected, one of each column, 1 found"):
            session.step(1, 1.0)
        session.step(1, np.linalg.norm(b, axis=0))
    with recoup.Session(tmp_path, A=a, b=b[:, :2], scheme="lossy") as session:
        session.protect_block("x", np.zeros((N, 2), order="F"))
        with pytest.raises(recoup.Error, match="another right-hand side"):
            session.restore()


STEPS = 4

HEAT = """
import os, signal, sys
import numpy as np, scipy.sparse as sp
import recoup, recoup.scipy
from test_many import STEPS, first_state, matrix

def heat(dir, scheme, life):
    u = first_state()
    with recoup.Session(dir, systems=True, scheme=scheme, interval="3it", rtol=1e-10, keep=3) as session:
        session.protect("u", u)
        restored = session.restore_state()
        for step in range(restored.system if restored else 0, STEPS):
            a, b = matrix(step), u.copy()
            session.begin_system(step, a, b)
            cb = session.scipy_callback(x0=b)
            if cb.restored: print("system", step, "from iteration", cb.iteration)
            def callback(x):
                nonlocal life
                cb(x)
                life -= 1
                if life == 0:
                    session.wait()
                    os.kill(os.getpid(), signal.SIGKILL)
            x, info = sp.linalg.cg(a, b, x0=cb.x0, M=cb.M, callback=callback, rtol=1e-10)
            assert info == 0
            u[:] = x
    np.save(dir + "/u.npy", u)

heat(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


def matrix(step):
    return sp.eye_array(N) + (1.0 + step) * laplacian()


def first_state():
    return np.random.default_rng(4).standard_normal(N)


@pytest.mark.parametrize("scheme", ["exact", "lossy"])
def test_a_time_loop_that_is_killed_goes_on_at_its_system(tmp_path, scheme):
    script = tmp_path / "heat.py"
    script.write_text(HEAT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}

    def run(dir, life):
        command = [sys.executable, str(script), str(dir), scheme, str(life)]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    undisturbed = run(whole, -1)
    assert undisturbed.returncode == 0, undisturbed.stderr
    assert run(killed, 50).returncode == -signal.SIGKILL
    latest = recoup.open(killed).latest
    assert latest.system == 1 and latest.iteration > 50 - 5
    resumed = run(killed, -1)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.startswith("system 1 from iteration "), resumed.stdout
    u, expected = np.load(killed / "u.npy"), np.load(whole / "u.npy")
    # Each step solves (I + c A) u' = u to ||r|| <= 1e-10 ||u|| in both runs, and ||(I + c A)^-1|| <= 1.
    assert np.linalg.norm(u - expected) <= 2e-10 * STEPS * np.linalg.norm(first_state())


def test_an_exact_time_loop_continues_bit_for_bit(tmp_path):
    """With CG of the program's own, all of whose vectors are protected."""

    def run(dir, life):
        u, x, r, p = first_state(), np.zeros(N), np.zeros(N), np.zeros(N)
        with recoup.Session(dir, systems=True, scheme="exact", interval="3it", keep=3) as session:
            session.protect("u", u)
            for name, vector, role in [("x", x, "iterate"), ("p", p, "direction"), ("r", r, "recomputed")]:
                session.protect(name, vector, role=role)
            restored = session.restore_state()
            first = restored.system if restored else 0
            for step in range(first, STEPS):
                a, b = matrix(step), u.copy()
                session.begin_system(step, a, b)
                x[:], r[:] = u, b - a @ u
                p[:] = r
                back = session.restore()
                assert back is None or (step == first and back.system == step)
                k = back.iteration if back else 0
                while np.linalg.norm(r) > 1e-10 * np.linalg.norm(b):
                    if life == 0:
                        return None
                    life -= 1
                    q, rho = a @ p, r @ r
                    alpha = rho / (p @ q)
                    x += alpha * p
                    r -= alpha * q
                    p *= (r @ r) / rho
                    p += r
                    k += 1
                    session.step(k, np.linalg.norm(r))
                u[:] = x
        return u

    expected = run(tmp_path / "whole", -1)
    for life in (2, 17, 40, 83):
        dir = tmp_path / str(life)
        assert run(dir, life) is None
        assert run(dir, -1).tobytes() == expected.tobytes(), life


def test_a_version_of_another_system_is_refused(tmp_path):
    u, x = first_state(), np.zeros(N)

    def opened(session):
        session.protect("u", u)
        session.protect("x", x, role="iterate")
        return session

    with opened(recoup.Session(tmp_path, systems=True, scheme="lossless")) as session:
        with pytest.raises(recoup.Error, match="systems|A and b"):
            recoup.Session(tmp_path / "none", scheme="auto")
        session.begin_system(5, matrix(5), u)
        session.save(1, 0.5)
    with opened(recoup.Session(tmp_path, systems=True, scheme="lossless")) as session:
        session.begin_system(0, matrix(0), u)
        with pytest.raises(recoup.Error, match="version 1 of run solve belongs to system 5, the run is at system 0: .*continue at system 5"):
            session.restore()
        with pytest.raises(recoup.Error, match="system 0 begun after system 0"):
            session.begin_system(0, matrix(0), u)
