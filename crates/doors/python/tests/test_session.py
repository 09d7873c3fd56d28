"""Sessions on arrays of one's own: what is saved comes back, and what is wrong is said."""

import gc
import multiprocessing
import os
import resource
import select
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import recoup
import scipy.sparse.linalg as spla
from conftest import ROOT


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


def test_a_program_stops_with_a_version_before_its_time_is_over(tmp_path, monkeypatch):
    x = np.zeros(1000)
    with recoup.Session(tmp_path, scheme="exact", interval="1000it", time_limit="0.3s") as session:
        session.protect("x", x)
        session.restore()
        assert session.time_left <= 0.3
        k = 1
        while not session.should_stop():
            session.step(k, 1.0)
            k += 1
            x += 1
        session.save(k, 1.0)
    assert recoup.open(tmp_path).latest.iteration == k
    monkeypatch.setenv("RECOUP_JOB_END", "0")
    with recoup.Session(tmp_path, name="late") as session:
        assert session.time_left == 0 and session.should_stop()
    monkeypatch.delenv("RECOUP_JOB_END")
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    with recoup.Session(tmp_path, name="endless") as session:
        assert session.time_left is None and not session.should_stop()
    with pytest.raises(recoup.Error, match="time_limit is soon: expected a duration"):
        recoup.Session(tmp_path, name="wrong", time_limit="soon")


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
        assert session.wait(0) is False and session.wait(timeout=0.05) is False
        with pytest.raises(ValueError, match="timeout -1: expected seconds"):
            session.wait(-1)
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
        assert session.wait(0) is True


def test_versions_of_an_older_program_are_restored_by_declaration(tmp_path):
    """Adding one array made every old version unreadable."""
    u, gone = np.arange(5.0), np.array([3])
    with recoup.Session(tmp_path, scheme="exact", interval="1it") as session:
        session.protect("u", u)
        session.protect("gone", gone)
        session.step(1, 1.0)

    velocity, added = np.zeros(5), np.array([-1.0, -2.0])
    with recoup.Session(tmp_path, scheme="exact", interval="1it") as session:
        session.protect("velocity", velocity)
        session.protect("added", added)
        with pytest.raises(recoup.Error, match="no variable velocity; it has gone, u: .*default=True"):
            session.restore()
        session.protect("velocity", velocity, formerly="u")
        with pytest.raises(recoup.Error, match="no variable added"):
            session.restore()
        session.protect("added", added, default=True)
        session.dropped("gone")
        restored = session.restore()
        assert restored.version == 1 and restored.defaults == ["added"]
        assert velocity.tolist() == u.tolist() and added.tolist() == [-1.0, -2.0]
        session.step(2, 1.0)

    velocity[:], added[:] = 0, 0
    with recoup.Session(tmp_path, scheme="exact", interval="1it") as session:
        session.protect("velocity", velocity, formerly="u")
        session.protect("added", added, default=True)
        restored = session.restore()
        assert restored.version == 2 and restored.defaults == []
        assert velocity.tolist() == u.tolist() and added.tolist() == [-1.0, -2.0]


def option_values():
    """Options of a session, and whether they are taken, by the list that the other doors read too."""
    lines = (ROOT / "tests/data/option_values.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("line", option_values())
def test_arguments_take_and_refuse_what_the_other_doors_do(tmp_path, problem, line):
    """mtti="1h" was refused here, and an interval with the scheme auto."""
    a, b = problem
    verdict, *words = line.split()
    options = {key.replace("-", "_"): value for key, value in (word.split("=") for word in words)}
    if "pfs_bandwidth" in options:
        options["bandwidth"] = options.pop("pfs_bandwidth")
    for number in {"theta", "delta", "rtol"} & options.keys():
        options[number] = float(options[number])
    if verdict == "takes":
        recoup.Session(tmp_path, A=a, b=b, **options).close()
    else:
        with pytest.raises(recoup.Error):
            recoup.Session(tmp_path, A=a, b=b, **options)


def test_options_given_as_a_directory_are_refused(tmp_path, monkeypatch):
    """A directory of the name "x,interval=10it" was made."""
    monkeypatch.chdir(tmp_path)
    for name in ["x,interval=10it", "dir=x keep=3"]:
        with pytest.raises(recoup.Error, match="reads like an option, and options are arguments"):
            recoup.Session(name)
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_are_named(tmp_path, problem):
    a, b = problem
    refused = [
        (dict(scheme="lossier"), "scheme lossier"),
        (dict(scheme="lossy", interval="often"), "interval often"),
        (dict(scheme="auto"), "scheme auto needs A and b"),
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
            (np.ones(3, dtype=np.int64), "needs real or complex numbers"),
        ]:
            with pytest.raises(recoup.Error, match=message):
                session.protect("x", array, role="iterate")
        with pytest.raises(recoup.Error, match="role solution"):
            session.protect("x", np.ones(3), role="solution")
        with pytest.raises(recoup.Error, match="in use"):
            recoup.Session(tmp_path)
        session.protect("x", np.ones(3), role="iterate")
        session.step(1, 1.0)
        with pytest.warns(recoup.RecoupWarning, match="version 1 is not saved"):
            session.wait()
        assert "needs the operator" in session.outcomes()[0].message
        with pytest.raises(recoup.Error, match="ends without its last state: version 1 is not saved: .*needs the operator"):
            session.close()
    with pytest.raises(recoup.Error, match="closed"):
        session.step(2, 1.0)
    # Both were blamed on the operator, or on a damaged manifest, when the version was written.
    for count, message in [(0, "no variable is protected"), (1, "x has 3 numbers, and the system's vectors 1728")]:
        with pytest.raises(recoup.UsageError, match=message):
            with recoup.Session(tmp_path / str(count), A=a, b=b, scheme="lossy", interval="1it") as session:
                if count:
                    session.protect("x", np.ones(3), role="iterate")
                with pytest.raises(recoup.UsageError, match="iteration: expected a whole number, 0 or more"):
                    session.step(-1, 1.0)
                session.step(1, 1.0)


def test_interval_alone_means_what_it_means_in_c(tmp_path, problem):
    """Lossy at that interval with an operator, lossless without; neither given: decided from costs, lossless without."""
    a, b = problem
    x = spla.cg(a, b, rtol=1e-3)[0]
    for name, system, choices, scheme in [
        ("a", dict(A=a, b=b), dict(interval="2it"), "lossy"),
        ("b", {}, dict(interval="2it"), "lossless"),
        ("c", {}, {}, "lossless"),
    ]:
        with recoup.Session(tmp_path, name=name, **system, **choices) as session:
            session.protect("x", x, role="iterate")
            if choices:
                assert [session.step(k, 1.0) for k in range(1, 5)] == [None, 2, None, 4]
            else:
                session.save(1, 1.0)
            assert {outcome.scheme for outcome in saved(session)} == {scheme}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_named(tmp_path, problem, value):
    a, b = problem
    broken = b.copy()
    broken[17] = value
    for operator in (a, lambda x: a @ x):
        with pytest.raises(recoup.Error, match=r"b\[17\] is (NaN|-?inf)"):
            recoup.Session(tmp_path, A=operator, b=broken)
    x, grid = np.zeros(b.size), np.zeros((12, 12, 12))
    with recoup.Session(tmp_path, scheme="lossless", interval="1it") as session:
        session.protect("x", x, role="iterate")
        session.protect("field", np.array([value]))
        session.step(1, 1.0)
        x[1234] = value
        for call in (session.step, session.save):
            with pytest.raises(recoup.Error, match=r"x\[1234\] is (NaN|-?inf)"):
                call(2, 1.0)
        x[1234] = 0
        session.protect("x", grid, role="iterate")
        grid.flat[77] = value
        with pytest.raises(recoup.Error, match=r"x\.flat\[77\] is"):
            session.save(2, 1.0)
        assert len(saved(session)) == 1


def in_child(work):
    """Runs `work` in a forked process that has a minute to end; what it returned."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        code = 1
        try:
            os.write(write, repr(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        ready, _, _ = select.select([pipe], [], [], 60)
        if not ready:
            os.kill(child, signal.SIGKILL)
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, "the child hung or failed"
    return text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_process_gets_errors_and_never_waits(tmp_path):
    """A child has no worker: its first call waited for ever, and so did dropping the session."""
    x = np.arange(1000.0)
    session = recoup.Session(tmp_path, scheme="lossless", interval="1it")
    session.protect("x", x, role="iterate")
    session.step(1, 1.0)
    session.wait()
    calls = {
        "step": lambda: session.step(2, 1.0),
        "due": lambda: session.due(2, 1.0),
        "save": lambda: session.save(2, 1.0),
        "restore": session.restore,
        "start_anew": session.start_anew,
        "wait": session.wait,
        "outcomes": session.outcomes,
        "outstanding": lambda: session.outstanding,
        "decisions": lambda: session.decisions,
        "iteration_seconds": lambda: session.iteration_seconds,
        "protect": lambda: session.protect("y", x),
        "close": session.close,
    }

    def refused():
        nonlocal session
        named = []
        for name, call in calls.items():
            try:
                call()
            except recoup.Error as error:
                if "forked" in str(error) and str(os.getpid()) in str(error):
                    named.append(name)
        calls.clear()
        session = None
        gc.collect()
        with recoup.Session(tmp_path / "own", scheme="lossless", interval="1it") as own:
            own.protect("x", x, role="iterate")
            own.step(1, 1.0)
            own.wait()
        recoup._session._close_all()
        return named

    assert in_child(refused) == repr(list(calls))
    assert session.step(2, 1.0) == 2
    session.close()
    # The child's copy of the lock's descriptor does not hold the directory.
    with recoup.Session(tmp_path, scheme="lossless", interval="1it"):
        pass


def test_every_error_is_the_packages_own(tmp_path, problem):
    a, b = problem
    with recoup.Session(tmp_path / "versions", scheme="lossless", interval="1it") as session:
        session.protect("x", np.zeros(3), role="iterate")
        session.step(1, 1.0)
    version = recoup.open(tmp_path / "versions").latest
    session = recoup.Session(tmp_path / "d", scheme="lossless", interval="1it")
    refused = [
        lambda: recoup.Session(3),
        lambda: recoup.Session(tmp_path, name=3),
        lambda: recoup.Session(tmp_path, keep=-1),
        lambda: recoup.Session(tmp_path, keep="two"),
        lambda: recoup.Session(tmp_path, mtti="long"),
        lambda: recoup.Session(tmp_path, scheme=3),
        lambda: recoup.Session(tmp_path, threads=1.5),
        lambda: recoup.Session(tmp_path, interval=object()),
        lambda: recoup.Session(tmp_path, A=a, b="b"),
        lambda: recoup.Session(tmp_path, A=a, b=b.astype(complex)[:-1]),
        lambda: recoup.Session(tmp_path, A=np.ones((3, 3), dtype=complex), b=np.ones(2)),
        lambda: recoup.Session(tmp_path, A=lambda x: 1j * x, b=np.ones(3)),
        lambda: recoup.Session(tmp_path, A=np.full((2, 2), object()), b=np.ones(2)),
        lambda: recoup.Session(tmp_path, A=3, b=np.ones(2)),
        lambda: recoup.Session(tmp_path, A=lambda x: "y", b=np.ones(2)),
        lambda: recoup.Session(tmp_path, A=lambda x: x[:1], b=np.ones(2)),
        lambda: recoup.Session(tmp_path / "versions" / "solve" / "lock" / "below"),
        lambda: session.protect("x", [1.0, 2.0]),
        lambda: session.protect(3, np.ones(3)),
        lambda: session.protect("x", np.ones(3), role=3),
        lambda: session.step(-1, 1.0),
        lambda: session.step(1, "small"),
        lambda: session.step(1.5, 1.0),
        lambda: session.due(1, None),
        lambda: session.save("k", 1.0),
        lambda: session.scipy_callback(),
        lambda: session.scipy_callback(a, b, method="jacobi"),
        lambda: session.scipy_callback(a, b, x0=np.ones(3)),
        lambda: session.scipy_callback(a, b, restart=0, method="gmres"),
        lambda: session.scipy_callback("A", b),
        lambda: recoup.open(3),
        lambda: recoup.open(tmp_path / "nowhere"),
        lambda: recoup.open(tmp_path / "versions", 3),
        lambda: version.arrays(3),
        lambda: version.arrays("x"),
        lambda: version.arrays(["y"]),
        lambda: recoup.open(tmp_path / "versions")["newest"],
        lambda: recoup.model.young("long", 1),
        lambda: recoup.model.simulate(mtti=1, t_iter=1, iterations=1, ckpt_traditional=1, trials=-1),
        lambda: recoup.model.decide(mtti=None, t_iter=1, iterations=1, ckpt_traditional=1),
    ]
    for number, call in enumerate(refused):
        with pytest.raises(recoup.Error):
            call()
            raise AssertionError(f"number {number} is not refused")
    session.close()


def scaled(factor):
    return lambda x: factor * x


def test_operator_that_is_a_function_is_told_apart_and_rounding_is_not(tmp_path):
    x, b = np.zeros(500), np.random.default_rng(4).standard_normal(500)
    choices = dict(scheme="lossless", interval="1it")
    with recoup.Session(tmp_path, A=scaled(2.0), b=b, **choices) as session:
        session.protect("x", x, role="iterate")
        session.step(1, 1.0)
    refused = [(2.0 + 1e-6, b, "another operator"), (2.0, b + 1e-6, "another right-hand side"), (2.0, b[1:], "another size")]
    for factor, rhs, words in refused:
        with recoup.Session(tmp_path, A=scaled(factor), b=rhs, **choices) as session:
            session.protect("x", np.zeros(rhs.size), role="iterate")
            with pytest.raises(recoup.Error, match=words):
                session.restore()
    eps = np.finfo(float).eps
    with recoup.Session(tmp_path, A=scaled(2.0 + 4 * eps), b=b * (1 + eps), **choices) as session:
        session.protect("x", x, role="iterate")
        assert session.restore().version == 1


def test_iterate_of_another_problem_is_a_first_guess_where_that_is_asked_for(tmp_path):
    b = np.random.default_rng(4).standard_normal(500)
    x, count = b / 2.0, np.array([7])
    choices = dict(scheme="lossless", interval="1it", same_operator=False)
    for factor, own, is_taken in [(2.0, x, None), (2.1, np.zeros(500), True), (8.0, np.zeros(500), False)]:
        before = own.copy()
        with recoup.Session(tmp_path, A=scaled(factor), b=b, **choices) as session:
            session.protect("x", own, role="iterate")
            session.protect("count", count)
            if is_taken is None:
                session.step(1, 1.0)
                continue
            count[0] = 0
            restored = session.restore()
            assert count[0] == 7 and restored.resume == "restarted"
            assert (own.tobytes() == x.tobytes(), own.tobytes() == before.tobytes()) == (is_taken, not is_taken)
            theirs, ours = restored.guess
            assert (theirs <= ours) == is_taken
            assert np.linalg.norm(b - factor * own) == pytest.approx(min(theirs, ours), rel=1e-12)


def test_decisions_say_why(tmp_path, problem):
    a, b = problem
    x = np.random.default_rng(3).standard_normal(b.size)
    with recoup.Session(tmp_path, A=a, b=b, scheme="lossless", interval="2it") as session:
        session.protect("x", x, role="iterate")
        assert [session.step(k, 1.0) for k in range(1, 6)] == [None, 2, None, 4, None]
        assert "lossless every 2 iterations, as asked" in session.decisions[0].why


def test_tiers_that_are_none_and_options_of_none_are_refused_by_name(tmp_path):
    for options, words in [
        (dict(tiers="disk"), "tiers"),
        (dict(tiers="pfs,memory"), "last"),
        (dict(tiers="memory,partner:ring1"), "partner"),
        (dict(tiers="memory", memory_dir=tmp_path / "nowhere"), "nowhere"),
        (dict(tiers="memory", drain="never"), "drain|skip"),
        (dict(pfs_every=3), "tiers"),
    ]:
        with pytest.raises(recoup.Error, match=words):
            recoup.Session(tmp_path / "d", **options)


def in_memory(tmp_path, tiers, norm, **close):
    """Saves versions 1 and 2, the second in memory alone, and closes after a last residual norm."""
    (tmp_path / "m").mkdir(exist_ok=True)
    options = dict(tiers=tiers, memory_dir=tmp_path / "m", pfs_every=100) if tiers else {}
    session = recoup.Session(tmp_path / "d", scheme="traditional", interval="1it", **options)
    session.protect("x", np.zeros(1000), role="iterate")
    restored = session.restore()
    if norm is not None:
        session.step(1, 1.0)
        session.wait()
        session.step(2, norm)
    session.close(**close)
    return restored.iteration if restored else 0


@pytest.mark.parametrize(
    "norm, close, kept",
    [(0.0, {}, True), (0.5, {}, True), (1e-7, {}, False), (1e-7, dict(converged=False), True), (0.5, dict(converged=True), False)],
)
def test_memory_is_freed_where_a_solve_has_converged_and_the_directory_has_its_newest_version(tmp_path, norm, close, kept):
    # A norm of 0, which is none, passed for convergence: what memory had was lost.
    for tiers in ["memory", "memory,pfs"]:
        place = tmp_path / tiers
        place.mkdir()
        in_memory(place, tiers, norm, **close)
        assert in_memory(place, tiers, None) == (2 if kept or tiers != "memory" else 0)
    assert in_memory(place, None, None) == (1 if kept else 2)


def test_close_tells_that_memory_alone_has_the_newest_version_and_frees_nothing(tmp_path):
    # The directory had no room: close returned, and no version was left anywhere.
    all = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        # The values fit into a file, but not with the structure of HDF5.
        resource.setrlimit(resource.RLIMIT_FSIZE, (8500, all[1]))
        with pytest.raises(recoup.DiskFullError, match="version 2 is in memory alone; pfs: ") as told:
            in_memory(tmp_path, "memory,pfs", 1e-7)
        assert told.value.kind == "file_too_large"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, all)
    assert in_memory(tmp_path, "memory,pfs", None, converged=True) == 2
    assert in_memory(tmp_path, None, None) == 2


@pytest.mark.parametrize("tracked", [False, True])
def test_versions_hold_what_changed_and_come_back_bit_for_bit(tmp_path, tracked):
    zone = 8192
    table = np.random.default_rng(3).standard_normal(64 * zone)
    states = {}
    with recoup.Session(tmp_path, scheme="traditional", interval="1it", increments="hash", keep=9) as session:
        session.protect("table", table, role="dynamic")
        if tracked:
            session.track("table")
        for version in range(1, 5):
            table[version * zone + 3] += 1.0
            if tracked:
                session.touch("table", version * zone + 3, version * zone + 4)
            session.save(version, 1.0)
            states[version] = table.copy()
        outcomes = saved(session)
    whole = outcomes[0].payload_bytes
    assert whole == table.nbytes
    # One zone of 64, and a header and a run for each frame.
    assert all(whole / 64 < outcome.payload_bytes <= whole / 64 + 64 for outcome in outcomes[1:])
    for version in recoup.open(tmp_path).versions:
        assert np.array_equal(version.arrays()["table"], states[version.iteration])


def test_arrays_are_tracked_before_they_are_touched(tmp_path):
    with recoup.Session(tmp_path) as session:
        session.protect("x", np.zeros(9), role="dynamic")
        with pytest.raises(recoup.Error, match="x: touched, but not tracked"):
            session.touch("x", 0, 1)
        for call in (session.track, session.touch):
            with pytest.raises(recoup.Error, match="y: not protected"):
                call("y")
        session.track("x")
        session.touch("x")
        with pytest.raises(recoup.Error, match="increments often: expected off, hash or auto"):
            recoup.Session(tmp_path / "other", increments="often")


def test_counter_that_begins_again_is_an_error_that_names_systems(tmp_path):
    """A time loop that counted from 1 in each step saved nothing after the first one, without a word."""
    x = np.zeros(50)
    with recoup.Session(tmp_path, interval="2it") as session:
        session.protect("x", x)
        assert session.restore() is None
        for k in range(1, 7):
            session.step(k, 1.0 / k)
        for call in (session.step, session.due, session.save):
            with pytest.raises(recoup.Error, match="iteration 1 after iteration 6: .*`systems`"):
                call(1, 1.0)
        # What is decided of an iteration, and saved of it, is one state.
        assert session.step(6, 1.0) is None and session.save(7, 1.0) == 7
    with recoup.Session(tmp_path, interval="2it") as session:
        session.protect("x", x)
        assert session.restore().version == 7
        with pytest.raises(recoup.Error, match="iteration 1 after iteration 7"):
            session.step(1, 1.0)
        session.save(9, 1.0)
        session.step(30, 1.0)
        session.start_anew()
        assert session.step(1, 1.0) is None and session.step(2, 1.0) == 2


@pytest.mark.parametrize("norm", [np.nan, np.inf, -1.0])
def test_norm_that_is_none_is_an_error(tmp_path, norm):
    """A norm of NaN made no version due, without a word."""
    with recoup.Session(tmp_path, interval="1it") as session:
        session.protect("x", np.ones(5), role="iterate")
        for call in (session.step, session.due, session.save):
            with pytest.raises(recoup.Error, match=r"iteration 1: \|\|r\|\| is (NaN|inf|-1)"):
                call(1, norm)
        assert session.step(1, 1e9) == 1


def test_second_array_by_one_name_is_an_error_until_there_is_something_to_go_on_from(tmp_path):
    """The first array was dropped from all versions, without a word."""
    x, y = np.ones(5), np.full(5, 2.0)
    block = np.ones((5, 2), order="F")
    with recoup.Session(tmp_path, interval="1it") as session:
        session.protect("x", x, role="iterate")
        session.protect("x", x, role="iterate")
        session.protect_block("B", block, role="dynamic")
        session.protect_block("B", block, role="dynamic")
        with pytest.raises(recoup.Error, match="array x is protected already"):
            session.protect("x", y, role="iterate")
        with pytest.raises(recoup.Error, match="array B.0 is protected already"):
            session.protect_block("B", block.copy(order="F"), role="dynamic")
        session.step(1, 1.0)
        session.protect("x", y, role="iterate")
        for other, role in [(y.astype(np.float32), "iterate"), (y, "dynamic"), (y.astype(complex), "iterate")]:
            with pytest.raises(recoup.Error, match="array x was protected before with another role or type"):
                session.protect("x", other, role=role)
        session.step(2, 1.0)
    assert np.array_equal(recoup.open(tmp_path).latest.arrays(["x"])["x"], y)


def failing(tmp_path, operator_of):
    """A session whose saves fail as long as the operator raises."""
    x = np.ones(50)
    session = recoup.Session(tmp_path, A=operator_of, b=x, scheme="lossy", interval="1it", synchronous=True)
    session.protect("x", x, role="iterate")
    session.restore()
    return session


def test_saves_that_fail_are_told_once_and_logged_and_close_says_what_is_missing(tmp_path, caplog):
    """On a full disk `step`, `wait` and `close` returned as if all were well."""
    is_broken = False

    def multiply(x):
        if is_broken:
            raise ValueError("the disk is full")
        return 2.0 * x

    session = failing(tmp_path, multiply)
    session.step(1, 1.0)
    assert session.healthy
    is_broken = True
    with pytest.warns(recoup.RecoupWarning, match="version 2 is not saved: .*the disk is full") as told:
        for k in (2, 3):
            session.step(k, 1.0)
    assert len(told) == 1 and told[0].filename == __file__
    assert not session.healthy
    logged = [record.getMessage() for record in caplog.records if record.name == "recoup"]
    assert len(logged) == 2 and "version 3 is not saved" in logged[1]
    assert [(o.state, o.kind) for o in session.outcomes()] == [("saved", None)] + [("failed", "callback")] * 2
    is_broken = False
    session.step(4, 1.0)
    assert session.healthy
    is_broken = True
    session.step(5, 1.0)
    with pytest.raises(recoup.CallbackError, match="ends without its last state: version 5 is not saved"):
        session.close()
    assert session.closed and not session.healthy
    session.close()
    assert [o.state for o in session.outcomes()] == ["saved", "failed"]


@pytest.mark.filterwarnings("ignore::recoup.RecoupWarning")
def test_end_of_a_with_block_raises_for_the_last_state_unless_it_is_left_by_an_exception(tmp_path):
    is_broken = True

    def multiply(x):
        if is_broken:
            raise ValueError("the disk is full")
        return 2.0 * x

    is_broken = False
    with pytest.raises(KeyError), failing(tmp_path, multiply) as session:
        is_broken = True
        session.step(1, 1.0)
        raise KeyError
    is_broken = False
    with pytest.raises(recoup.Error, match="version 1 is not saved"), failing(tmp_path, multiply) as session:
        is_broken = True
        session.step(1, 1.0)
    is_broken = False
    # A restore goes back to what is there.
    with failing(tmp_path, multiply) as session:
        session.step(1, 1.0)
        is_broken = True
        session.step(2, 1.0)
        assert not session.healthy and session.restore().version == 1 and session.healthy


def test_start_that_forgets_to_restore_is_told_at_its_first_step(tmp_path, recwarn):
    """Such a start began beside the versions there were, and a later one took theirs."""
    x = np.ones(5)

    def opened():
        session = recoup.Session(tmp_path, interval="1it")
        session.protect("x", x)
        return session

    with opened() as session:
        session.step(4, 1.0)
    for ask in (lambda session: session.restore(), lambda session: session.start_anew()):
        with opened() as session:
            ask(session)
            session.step(5, 1.0)
    assert not [w for w in recwarn if w.category is recoup.RecoupWarning]
    with opened() as session:
        with pytest.warns(recoup.RecoupWarning, match=r"has versions up to 5, and restore\(\) was not called") as told:
            session.step(1, 1.0)
            session.step(2, 1.0)
        assert len(told) == 1 and told[0].filename == __file__
