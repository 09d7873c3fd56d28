"""Sessions on arrays of one's own: what is saved comes back, and what is wrong is said."""

import multiprocessing
import subprocess
import sys
import threading

import numpy as np
import pytest
import recoup
import scipy.sparse.linalg as spla


def saved(session):
    session.wait()
    outcomes = session.outcomes()
    assert [o.state for o in outcomes] == ["saved"] * len(outcomes), outcomes
    return outcomes


def test_every_type_comes_back_bit_for_bit_and_in_place(tmp_path):
    rng = np.random.default_rng(1)
    fields = {
        "u": rng.standard_normal((4, 5, 6)),
        "v": rng.standard_normal(1000).astype(np.float32),
        "k": np.array([-3, 1 << 60]),
        "rng": rng.integers(0, 255, 77, dtype=np.uint8),
    }
    before = {name: array.copy() for name, array in fields.items()}
    with recoup.Session(tmp_path, scheme="exact", interval="1it") as session:
        for name, array in fields.items():
            session.protect(name, array)
        assert session.restore() is None
        assert session.step(1, 1.0) == 1
        saved(session)
        for array in fields.values():
            array[...] = 0
        assert session.restore().version == 1
    for name, array in fields.items():
        assert array.tobytes() == before[name].tobytes(), name
    arrays = recoup.open(tmp_path).latest.arrays()
    assert arrays["u"].shape == (4, 5, 6) and np.array_equal(arrays["u"], before["u"])


def test_lossy_iterate_keeps_the_residual_within_theta(tmp_path, problem):
    a, b = problem
    x, _ = spla.cg(a, b, rtol=1e-3)
    norm = np.linalg.norm(b - a @ x)
    with recoup.Session(tmp_path, A=a, b=b, scheme="lossy", interval="1it", theta=0.5) as session:
        session.protect("x", x, role="iterate")
        session.step(40, norm)
        outcome = saved(session)[0]
    version = recoup.open(tmp_path)[40]
    decoded = version.arrays()["x"]
    found = np.linalg.norm(b - a @ decoded)
    # The worker sums in another order: n eps of rounding.
    assert found <= 1.5 * norm * (1 + b.size * np.finfo(float).eps)
    assert found == pytest.approx(version.verified_residual_norm, rel=b.size * np.finfo(float).eps)
    assert 0 < version.achieved_error == outcome.achieved_error <= float(version.bound.split(":")[1])
    assert np.abs(decoded - x).max() == version.achieved_error
    assert version.payload_bytes < version.raw_bytes == x.nbytes


@pytest.mark.parametrize("synchronous", [False, True])
def test_operator_in_python_is_applied_without_deadlock(tmp_path, problem, synchronous):
    a, b = problem
    threads = set()

    def multiply(x):
        threads.add(threading.get_ident())
        return a @ x

    x, _ = spla.cg(a, b, rtol=1e-2)
    for operator in (multiply, spla.aslinearoperator(a)):
        with recoup.Session(
            tmp_path, A=operator, b=b, scheme="lossy", interval="1it", synchronous=synchronous
        ) as session:
            session.protect("x", x, role="iterate")
            session.start_anew()
            for k in range(1, 6):
                session.step(k, 1.0)
            assert len(saved(session)) == 5
    assert len(threads) >= 2


def reads(directory, expected):
    assert np.array_equal(recoup.open(directory).latest.arrays()["x"], expected)


def test_threads_change_no_bit_and_a_forked_process_has_its_own(tmp_path):
    before = np.cumsum(np.random.default_rng(2).standard_normal(300_000))
    restored = []
    for threads in (1, 3):
        choices = {"scheme": "lossy", "codec": "qb", "bound": "absolute:1e-4", "interval": "1it", "synchronous": True}
        with recoup.Session(tmp_path / str(threads), threads=threads, **choices) as session:
            x = before.copy()
            session.protect("x", x, role="iterate")
            session.step(1, 1.0)
            saved(session)
            assert session.restore().version == 1
            restored.append(x)
    assert np.array_equal(restored[0], restored[1])
    assert 0 < np.abs(restored[0] - before).max() <= 1e-4
    reads(tmp_path / "3", restored[0])
    child = multiprocessing.get_context("fork").Process(target=reads, args=(tmp_path / "3", restored[0]))
    child.start()
    child.join(60)
    assert child.exitcode == 0


def test_operator_that_raises_costs_the_version_and_is_quoted(tmp_path, problem):
    a, b = problem
    is_broken = False

    def multiply(x):
        if is_broken:
            raise ValueError("the mesh is gone")
        return a @ x

    x = np.ones(b.size)
    with recoup.Session(tmp_path, A=multiply, b=b, scheme="lossy", interval="1it") as session:
        session.protect("x", x, role="iterate")
        session.step(1, 1.0)
        saved(session)
        is_broken = True
        session.step(2, 1.0)
        session.wait()
        (outcome,) = session.outcomes()
        assert outcome.state == "failed" and "the mesh is gone" in outcome.message
        assert session.restore().version == 1


def test_process_that_ends_without_closing_finishes_its_version(tmp_path):
    script = (
        "import sys, numpy, recoup\n"
        "x = numpy.arange(200000.0)\n"
        "s = recoup.Session(sys.argv[1], A=lambda v: 2 * v, b=2 * x + 1, scheme='lossy', interval='1it')\n"
        "s.protect('x', x, role='iterate')\n"
        "s.step(1, 1.0)\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True, timeout=120)
    assert [v.iteration for v in recoup.open(tmp_path)] == [1]


def test_versions_of_another_problem_are_refused(tmp_path, problem):
    a, b = problem
    x = np.zeros(b.size)
    for rhs, expected in ((b, None), (b + 1, "another problem")):
        with recoup.Session(tmp_path, A=a, b=rhs, scheme="lossless", interval="1it") as session:
            session.protect("x", x, role="iterate")
            if expected:
                with pytest.raises(recoup.Error, match=expected):
                    session.restore()
            else:
                session.step(1, 1.0)


def test_threads_in_one_session_are_an_error_not_a_wait(tmp_path):
    entered, leave = threading.Event(), threading.Event()

    def multiply(x):
        if is_slow:
            entered.set()
            leave.wait(60)
        return x

    is_slow = False
    x = np.ones(5000)
    with recoup.Session(tmp_path, A=multiply, b=x, scheme="lossy", interval="1it") as session:
        session.protect("x", x, role="iterate")
        is_slow = True
        session.step(1, 1.0)
        waiting = threading.Thread(target=session.wait)
        waiting.start()
        assert entered.wait(60)
        while True:
            try:
                session.outcomes()
            except recoup.Error as error:
                assert "in use by another thread" in str(error)
                break
        leave.set()
        waiting.join(60)
        assert not waiting.is_alive()


def test_wrong_arguments_are_named(tmp_path, problem):
    a, b = problem
    refused = [
        (dict(scheme="lossier"), "scheme lossier"),
        (dict(scheme="lossy", interval="often"), "interval often"),
        (dict(interval="20it"), "scheme auto chooses"),
        (dict(mtti=-1.0), "mtti is -1"),
        (dict(bound="absolute:-1"), "error bound -1"),
        (dict(codec="gzip"), "gzip"),
        (dict(A=a), "A and b come together"),
        (dict(A=a, b=b[1:]), "expected 1727 x 1727"),
        (dict(name="a/b"), "run name"),
    ]
    for options, message in refused:
        with pytest.raises(recoup.Error, match=message):
            recoup.Session(tmp_path, **options)
    with recoup.Session(tmp_path, scheme="lossy", interval="1it") as session:
        for array, message in [
            (np.ones((4, 4)).T[:, :2], "not contiguous"),
            (np.ones(3, dtype=np.int16), "int16"),
            (np.ones(3, dtype=np.float32), "needs float64"),
        ]:
            with pytest.raises(recoup.Error, match=message):
                session.protect("x", array, role="iterate")
        with pytest.raises(recoup.Error, match="role solution"):
            session.protect("x", np.ones(3), role="solution")
        with pytest.raises(recoup.Error, match="in use"):
            recoup.Session(tmp_path)
        session.protect("x", np.ones(3), role="iterate")
        session.step(1, 1.0)
        session.wait()
        assert "needs the operator" in session.outcomes()[0].message
    with pytest.raises(recoup.Error, match="closed"):
        session.step(2, 1.0)


def test_decisions_say_why(tmp_path, problem):
    a, b = problem
    x = np.random.default_rng(3).standard_normal(b.size)
    with recoup.Session(tmp_path, A=a, b=b, scheme="lossless", interval="2it") as session:
        session.protect("x", x, role="iterate")
        assert [session.step(k, 1.0) for k in range(1, 6)] == [None, 2, None, 4, None]
        assert "lossless every 2 iterations, as asked" in session.decisions[0].why
