"""`python -m recoup.run`: programs that use SciPy, killed and started again by the same line."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
import recoup
import recoup.run
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from conftest import ROOT
from recoup._blind import is_blind
from recoup._calls import Call, Calls
from recoup._caught import catch
from recoup._native import CallLog
from recoup._within import Versions

HEAT = """
import os, signal, sys
import numpy as np, scipy.sparse as sp
from scipy.sparse.linalg import cg
n, steps = 24, 12
c, rtol, start = (float(os.environ.get(name, usual)) for name, usual in [("C", 50), ("RTOL", 1e-8), ("U0", 1)])
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
one = sp.eye_array(n)
A = (sp.eye_array(n * n) + c * (sp.kron(line, one) + sp.kron(one, line))).tocsr()
M = sp.diags_array(1 / A.diagonal())
u = start * np.random.default_rng(3).random(n * n)
for step in range(steps):
    if step == int(os.environ.get("KILL_AT", -1)):
        os.kill(os.getpid(), signal.SIGKILL)
    u, info = cg(A, u, M=M, rtol=rtol)
    print(step, info, np.linalg.norm(u).hex(), u.sum().hex(), flush=True)
"""


class Program:
    """A program of the user, and a folder to run it in."""

    def __init__(self, folder, text):
        self.folder = folder
        (folder / "program.py").write_text(textwrap.dedent(text))

    def plain(self, *arguments, **environment):
        return self._run(["program.py", *arguments], environment)

    def run(self, *arguments, options=("--share", "1"), **environment):
        return self._run(["-m", "recoup.run", "--dir", "log", *options, "program.py", *arguments], environment)

    def _run(self, words, environment):
        environment = os.environ | {name: str(value) for name, value in environment.items()}
        return subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=200
        )

    @property
    def log(self):
        return self.folder / "log"

    def killed(self, at, **environment):
        done = self.run(KILL_AT=at, **environment)
        assert done.returncode == -signal.SIGKILL, done.stderr
        return done


def said(done):
    """What recoup said, line by line."""
    return [line.removeprefix("recoup: ") for line in done.stderr.splitlines() if line.startswith("recoup: ")]


def answered(done):
    return int(re.search(r"(\d+) answered from the log", said(done)[-1])[1])


def test_wrong_options_are_told_with_the_expected_ones(capsys):
    """A wrong interval was told once a call took ten seconds."""
    given = recoup.run.options("--dir d --after 1min --share 1e-3 --interval 50it script.py".split())
    assert (given.after, given.share, given.interval) == (60.0, 1e-3, "50it")
    for words, expected in [
        ("--after often", "often: expected seconds, or a duration"),
        ("--share -1", "-1: expected a number from 0 to 1"),
        ("--interval 0it", "0it: expected auto, iterations such as 50it"),
    ]:
        with pytest.raises(SystemExit):
            recoup.run.options(["--dir", "d", *words.split(), "script.py"])
        assert expected in capsys.readouterr().err


@pytest.fixture
def heat(tmp_path):
    return Program(tmp_path, HEAT)


def test_a_loop_killed_at_half_prints_what_the_undisturbed_one_does(heat, program):
    plain = heat.plain()
    heat.killed(6)
    shown = subprocess.run([program, "status", heat.log], capture_output=True, text=True, timeout=60)
    assert "has saved 6 calls" in shown.stdout, shown
    again = heat.run()
    assert (again.returncode, again.stdout) == (0, plain.stdout)
    assert said(again) == ["12 calls: 6 answered from the log, 0 resumed within, 6 saved, 0 too short to save"]
    assert not heat.log.exists(), "the log of a finished program is removed"


@pytest.mark.parametrize("change", [{"C": 50.001}, {"U0": 1.001}, {"RTOL": 1e-9}], ids=["A", "b", "rtol"])
def test_nothing_is_answered_for_another_problem(heat, change):
    heat.killed(6)
    again = heat.run(**change)
    assert (again.returncode, again.stdout, answered(again)) == (0, heat.plain(**change).stdout, 0)


def test_a_looser_tolerance_and_rounding_in_b_are_answered(heat):
    heat.killed(6)
    assert answered(heat.run(options=("--share", "1", "--keep"), RTOL=2e-8)) == 6
    heat.killed(6)
    assert answered(heat.run(U0=1 + 1e-14)) == 6


def test_a_log_of_another_size_is_solved_again(heat):
    heat.killed(6)
    other = Program(heat.folder, HEAT.replace("n, steps = 24, 12", "n, steps = 25, 3"))
    again = other.run()
    assert (again.stdout, answered(again)) == (other.plain().stdout, 0)


class Caught:
    """The solvers as a program sees them, in this process."""

    def __init__(self, folder, **options):
        self.calls = Calls(CallLog(str(folder), "scipy", 1 << 30), 1.0, False)
        names = [name for name in spla.__all__ if callable(getattr(spla, name))]
        self.solvers = SimpleNamespace(**{name: getattr(spla, name) for name in names})
        catch(self.solvers, self.calls, Versions(self.calls, str(folder), 1e9, "auto"), options.get("skip", False))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.calls.leave()

    @property
    def counts(self):
        return self.calls.summary()


def small(seed=0, n=5, kind=float):
    draw = np.random.default_rng(seed)
    A = sp.csc_array(n * np.eye(n) + draw.random((n, n)) + (1j * draw.random((n, n)) if kind is complex else 0))
    return A, draw.random(n).astype(kind)


def test_every_damaged_byte_and_every_cut_gives_the_same_bits(tmp_path):
    A, b = small()

    def solve(solvers):
        return [solvers.bicgstab(A, b, rtol=1e-10)[0].tobytes(), solvers.spsolve(A, b).tobytes()]

    expected = solve(spla)
    with Caught(tmp_path) as caught:
        assert solve(caught.solvers) == expected
    path = tmp_path / "calls" / "scipy-1-0.log"
    whole = path.read_bytes()
    answered = 0
    for at in range(len(whole)):
        for damaged in (whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :], whole[:at]):
            path.write_bytes(damaged)
            with Caught(tmp_path) as caught:
                assert solve(caught.solvers) == expected, at
            answered += int(re.search(r"(\d+) answered", caught.counts)[1])
    # The second entry is lost with the first only where the header of the first is.
    assert len(whole) < answered < 3 * len(whole)


def first_number(folder):
    """The number of the first entry of a log."""
    return int.from_bytes((folder / "calls" / "scipy-1-0.log").read_bytes()[8:16], "little")


def test_facts_that_are_no_facts_are_no_answer(tmp_path):
    A, b = small()
    expected = spla.spsolve(A, b)
    with Caught(tmp_path) as caught:
        caught.solvers.spsolve(A, b)
    number = first_number(tmp_path)
    for facts in [b"", b"{", b"[]", b"{}", b'{"x": ["<f8", [5], "C"]}', b'{"x": ["O", [5], "C"]}', b"null", b"\xff"]:
        log = CallLog(str(tmp_path), "scipy", 1 << 30)
        log.put(number, facts, np.zeros(5).tobytes(), 8)
        del log
        with Caught(tmp_path) as caught:
            assert np.array_equal(caught.solvers.spsolve(A, b), expected) and " 0 answered" in caught.counts


def test_an_x_that_happens_to_solve_another_problem_is_no_answer(tmp_path):
    A, b = small()
    with Caught(tmp_path) as caught:
        x, info = caught.solvers.gmres(A, b, rtol=0.5, restart=1)
    other = A @ x
    assert info == 0 and np.linalg.norm(other - b) > 1e-3
    with Caught(tmp_path) as caught:
        found = caught.solvers.gmres(A, other, rtol=0.5, restart=1)[0]
        assert " 0 answered" in caught.counts and np.array_equal(found, spla.gmres(A, other, rtol=0.5, restart=1)[0])


def test_facts_that_vouch_for_another_x_are_refuted_by_its_residual(tmp_path):
    A, b = small()
    expected = spla.spsolve(A, b)
    with Caught(tmp_path) as caught:
        caught.solvers.spsolve(A, b)
    log = CallLog(str(tmp_path), "scipy", 1 << 30)
    number = first_number(tmp_path)
    facts = json.loads(log.find(number)[0])
    x = expected * (1 + 1e-6)
    facts |= Call("spsolve", lambda x: A @ x, b, []).measure(x) | {"residual": facts["residual"]}
    log.put(number, json.dumps(facts).encode(), x.tobytes(), 8)
    del log
    with Caught(tmp_path) as caught:
        assert np.array_equal(caught.solvers.spsolve(A, b), expected) and " 0 answered" in caught.counts


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("name", [*recoup._caught.ITERATIVE, "spsolve", "splu", "factorized", "block"])
def test_every_solver_is_answered_with_the_bits_and_the_info_it_had(tmp_path, name, kind):
    A, b = small(kind=kind)
    if name in ("cg", "minres"):
        A = (A + A.T.conj()).tocsc()
    if name == "minres" and kind is complex:
        pytest.skip("SciPy's MINRES is real")
    block = np.asfortranarray(np.stack([b, 2 * b + 1], axis=1))

    def solve(solvers):
        if name in ("splu", "factorized"):
            made = getattr(solvers, name)(A)
            return (made.solve if name == "splu" else made)(b), 0
        if name == "block":
            return solvers.spsolve(A, block), 0
        answer = getattr(solvers, name)(A, b)
        return answer if isinstance(answer, tuple) else (answer, 0)

    expected, info = solve(spla)
    n_calls = 2 if name in ("splu", "factorized") else 1
    for answered in (0, n_calls):
        with Caught(tmp_path) as caught:
            x, found = solve(caught.solvers)
        assert (x.tobytes("A"), x.dtype, x.shape, found) == (expected.tobytes("A"), expected.dtype, expected.shape, info)
        assert x.flags.writeable and x.flags.f_contiguous == expected.flags.f_contiguous
        assert f"{n_calls} calls: {answered} answered" in caught.counts
        x[:] = 0


def test_factors_are_made_when_an_answer_needs_them_and_of_the_matrix_they_were_asked_for(tmp_path):
    A, b = small()
    original = A.copy()

    def solve(solvers, more):
        lu = solvers.splu(A.copy())
        x = [lu.solve(b), lu.solve(b, trans="T"), lu.solve(b, "H")]
        return lu, x + [lu.solve(b + k) for k in range(more)]

    with Caught(tmp_path) as caught:
        _, first = solve(caught.solvers, 0)
    with Caught(tmp_path) as caught:
        lu, again = solve(caught.solvers, 0)
        assert lu._made is None and [x.tobytes() for x in first] == [x.tobytes() for x in again]
        assert "4 calls: 4 answered" in caught.counts
        assert isinstance(lu, spla.SuperLU) and lu.shape == (5, 5) and lu.nnz > 0 and lu._made is not None
    with Caught(tmp_path) as caught:
        _, again = solve(caught.solvers, 1)
        assert np.linalg.norm(original @ again[-1] - b) < 1e-13 and "5 calls: 4 answered" in caught.counts
    with Caught(tmp_path) as caught:
        own = A.copy()
        lu = caught.solvers.splu(own)
        own.data *= 2
        assert lu._made is None and np.linalg.norm(original @ lu.solve(b + 7) - b - 7) < 1e-13


def test_a_singular_matrix_is_refused_where_scipy_refuses_it(tmp_path):
    A = sp.csc_array(np.diag([1.0, 0.0]))
    for _ in range(2):
        with Caught(tmp_path) as caught, pytest.raises(RuntimeError, match="singular"):
            caught.solvers.splu(A)


def test_an_operator_is_tested_by_its_product_and_solves_within_a_solve_are_no_calls(tmp_path):
    A, b = small()
    products = 0

    def multiply(x):
        nonlocal products
        products += 1
        return A @ x

    def solve(solvers):
        operator = spla.LinearOperator(A.shape, matvec=multiply, dtype=float)
        M = spla.LinearOperator(A.shape, matvec=lambda r: solvers.gmres(A, r, rtol=0.1)[0], dtype=float)
        return solvers.lgmres(operator, b, M=M, rtol=1e-9)[0].tobytes()

    expected = solve(spla)
    for answered in (0, 1):
        products = 0
        with Caught(tmp_path) as caught:
            assert solve(caught.solvers) == expected and f"1 calls: {answered} answered" in caught.counts
    assert products == 1


def test_calls_that_are_made_only_where_an_earlier_one_was_answered_cost_the_later_ones_nothing(tmp_path):
    """A preconditioner factorized its coarse system when it was first applied: inside of a solve. Where that solve was
    answered, the factors were made later, by a call of their own, and no call after it had the number it was kept by:
    3 of 15 calls of a program of pyamg were answered."""
    A, b = small()

    def solve(solvers):
        made = []

        def precondition(r):
            made[:] = made or [solvers.splu(A)]
            return made[0].solve(r)

        M = spla.LinearOperator(A.shape, precondition, dtype=float)
        x = [solvers.gmres(A, b, M=M)[0], precondition(b), *(solvers.gmres(A, k * b)[0] for k in range(2, 9))]
        return [each.tobytes() for each in x]

    expected = solve(spla)
    for counts in ["8 calls: 0 answered", "10 calls: 8 answered", "10 calls: 10 answered"]:
        with Caught(tmp_path) as caught:
            assert solve(caught.solvers) == expected and counts in caught.counts, caught.counts


def test_callbacks_are_called_as_in_the_first_run(tmp_path):
    A, b = small()
    A = (A + A.T).tocsc()

    def solve(solvers, verbose=False):
        seen, count = [], 0

        def counting(x):
            nonlocal count
            count += 1
            if verbose:
                print(x)

        solvers.gmres(A, b, rtol=1e-9, callback=seen.append, callback_type="pr_norm")
        solvers.bicg(A, b, rtol=1e-9, callback=counting)
        solvers.cg(A, b, rtol=1e-9, callback=lambda x: seen.append(x.copy()))
        return [count, *(np.asarray(each).tobytes() for each in seen)]

    expected = solve(spla)
    assert expected[0] > 2
    for answered, verbose in [(0, False), (2, False), (1, True)]:
        with Caught(tmp_path) as caught:
            assert solve(caught.solvers, verbose) == expected
        looking = 1 + verbose
        assert f"3 calls: {answered} answered" in caught.counts and f", {looking} solved for their" in caught.counts
    for answered in (2, 3):
        with Caught(tmp_path, skip=True) as caught:
            seen = solve(caught.solvers)
        assert f"3 calls: {answered} answered" in caught.counts
    assert seen == [0]


def test_a_record_without_a_callback_answers_no_call_that_has_one(tmp_path):
    A, b = small()
    count = [0]

    def counting(x):
        count[0] += 1

    with Caught(tmp_path) as caught:
        caught.solvers.bicg(A, b)
    with Caught(tmp_path) as caught:
        caught.solvers.bicg(A, b, callback=counting)
        assert count[0] > 0 and " 0 answered" in caught.counts


def test_a_callback_that_may_look_is_no_blind_one():
    class Counter:
        n = 0

        def count(self, x):
            self.n += 1

        def look(self, x):
            self.x = x

        def __call__(self, x):
            self.n += 1

    def closed(flag):
        def callback(x):
            if flag:
                print(x)

        return callback

    def switched(flag):
        def callback(x):
            nonlocal flag
            if flag:
                print(x)
            flag = True

        return callback

    def loop(x):
        for k in range(3):
            if k:
                print(x)

    def inner(x):
        return lambda: x

    def variables(x):
        return locals()

    def attempt(x):
        try:
            return 1
        finally:
            print(x)

    seen = []
    blind = [Counter().count, Counter(), closed(False), lambda x: seen.append(1), lambda x: None]
    looking = [Counter().look, closed(True), closed(0), switched(False), loop, inner, variables, attempt]
    looking += [seen.append, print, lambda x: seen.append(x), lambda *x: None, None]
    assert [is_blind(each) for each in blind] == [True] * len(blind)
    assert [is_blind(each) for each in looking] == [False] * len(looking)


def test_calls_that_give_more_than_x_or_have_not_converged_are_solved(tmp_path):
    A, b = small()
    for _ in range(2):
        outer = []
        with Caught(tmp_path) as caught:
            caught.solvers.lgmres(A, b, outer_v=outer)
            assert outer and caught.solvers.cg(A, b, maxiter=1, rtol=1e-14)[1] == 1
        assert "2 calls: 0 answered from the log, 0 resumed within, 0 saved" in caught.counts


SCRIPTS = {
    "arguments": "print(sys.argv, __file__, __name__, getattr(__spec__, 'name', None), __package__, sys.path[0], sorted(globals()))",
    "error": "def f():\n    raise ValueError('x')\ntry:\n    f()\nexcept ValueError as e:\n    raise KeyError(1) from e",
    "interrupt": "raise KeyboardInterrupt",
    "exit": "sys.exit(7)",
    "text": "sys.exit('a reason')",
    "syntax": "def (",
    "hook": "sys.excepthook = lambda *a: print('hook', a[0], a[2].tb_lineno)\nraise OSError",
    "atexit": "import atexit\natexit.register(print, 'at exit')\nraise SystemExit",
    "within": "import numpy as np, scipy.sparse.linalg as s\n"
    "def product(x):\n    raise ZeroDivisionError\n"
    "s.cg(s.LinearOperator((2, 2), matvec=product, dtype=float), np.ones(2))",
    "wrong": "import scipy.sparse.linalg as s\ns.cg()",
    "caught": "class Own(Exception): pass\nimport pickle\nprint(pickle.loads(pickle.dumps(Own('a'))).__class__ is Own)",
    "early": "print('numpy' in sys.modules, 'scipy' in sys.modules)",
}


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("as_module", [False, True], ids=["file", "module"])
def test_a_program_sees_and_shows_what_it_does_under_python(tmp_path, name, as_module):
    program = Program(tmp_path, "")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "program.py").write_text(f"import sys\n{SCRIPTS[name]}\n")
    words = ["-m", "sub.program"] if as_module else ["sub/program.py"]
    plain = program._run([*words, "--dir", "its own", "-m", "x"], {})
    ours = program._run(["-m", "recoup.run", "--dir", "log", *words, "--dir", "its own", "-m", "x"], {})
    theirs = "".join(line for line in ours.stderr.splitlines(True) if not line.startswith("recoup: "))
    assert (ours.returncode, ours.stdout, theirs) == (plain.returncode, plain.stdout, plain.stderr)
    assert len(said(ours)) == 1, ours.stderr


def test_a_program_that_is_not_there_ends_as_under_python(tmp_path):
    program = Program(tmp_path, "")
    for words in (["none.py"], ["-m", "none"]):
        plain, ours = program._run(words, {}), program._run(["-m", "recoup.run", "--dir", "log", *words], {})
        assert ours.returncode == plain.returncode and plain.stderr in ours.stderr
    assert program._run(["-m", "recoup.run", "--dir", "log"], {}).returncode == 2


def test_whatever_is_missing_the_program_runs_as_without_recoup(heat):
    plain = heat.plain().stdout

    def check(what, **options):
        done = heat.run(**options)
        lines = [line for line in said(done) if " calls: " not in line]
        assert (done.returncode, done.stdout) == (0, plain) and len(lines) == 1 and what in lines[0], done.stderr

    heat.log.write_text("a file")
    check("nothing is saved: ")
    heat.log.unlink()
    held = CallLog(str(heat.log), "scipy", 1)
    check("log is in use by another process")
    held.clear()
    del held
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n"
    (heat.folder / "program.py").write_text(limited + HEAT)
    check("nothing more is saved: ")
    assert not heat.log.exists()
    check("nothing is saved: ", options=("--dir", "/proc/none"))


def test_a_child_leaves_the_log_to_its_parent_and_does_not_hold_it(tmp_path):
    program = Program(
        tmp_path,
        """
        import multiprocessing, os, signal, sys, time
        import numpy as np, scipy.sparse as sp, scipy.sparse.linalg as spla
        A, b = sp.csc_array(np.diag([1.0, 2.0, 3.0])), np.ones(3)
        def solve(k):
            return spla.spsolve(A, k * b).tolist()
        if __name__ == "__main__":
            print(solve(1), solve(2))
            if os.fork() == 0:
                for stream in (1, 2):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
                while not os.path.exists("stop"):
                    time.sleep(0.1)
                os._exit(0)
            for way in ("fork", "spawn"):
                with multiprocessing.get_context(way).Pool(2) as pool:
                    print(pool.map(solve, range(4)))
            if sys.argv[1:]:
                os.kill(os.getpid(), signal.SIGKILL)
            print(solve(3), flush=True)
        """,
    )
    try:
        assert program.run("kill").returncode == -signal.SIGKILL
        again = program.run()
        assert again.stdout == program.plain().stdout
    finally:
        (tmp_path / "stop").touch()
    assert said(again) == ["3 calls: 2 answered from the log, 0 resumed within, 1 saved, 0 too short to save"]


def test_calls_of_other_threads_and_of_scipy_itself_are_not_counted(tmp_path):
    program = Program(
        tmp_path,
        """
        import threading
        import numpy as np, scipy.sparse as sp, scipy.sparse.linalg as spla
        from scipy.integrate import solve_ivp
        A = sp.csc_array(np.diag([1.0, 2.0, 3.0]))
        solve = lambda: print(spla.spsolve(A, np.ones(3)))
        thread = threading.Thread(target=solve)
        thread.start(), thread.join(), solve()
        print(solve_ivp(lambda t, y: -A @ y, (0, 1), np.ones(3), method="BDF", jac=-A).y[:, -1])
        """,
    )
    done = program.run()
    assert done.stdout == program.plain().stdout and said(done)[-1].startswith("1 calls: ")


LONG = """
import os, signal, sys, time
import numpy as np, scipy.sparse as sp, scipy.sparse.linalg as spla
n, count = 60, 0
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
A = (sp.kron(line, sp.eye_array(n)) + sp.kron(sp.eye_array(n), line)).tocsr()
b = np.random.default_rng(3).random(n * n)
def product(x):
    global count
    count += 1
    if count == int(os.environ.get("KILL_AT", -1)):
        time.sleep(1)  # until what was saved is written
        os.kill(os.getpid(), signal.SIGKILL)
    return A @ x
first = spla.spsolve(A, b)
x, info = getattr(spla, sys.argv[1])(spla.LinearOperator(A.shape, product, product, dtype=float), b, rtol=1e-8)
print(info, np.linalg.norm(b - A @ x) <= 1e-7 * np.linalg.norm(b), count)
"""


# lgmres and gcrotmk have an iterate after each cycle, of which they need few.
@pytest.mark.parametrize("name, interval", [("cg", 10), ("gmres", 10), ("cgs", 10), ("lgmres", 1), ("gcrotmk", 1)])
def test_a_call_killed_within_resumes_from_its_newest_version(tmp_path, name, interval):
    program = Program(tmp_path, LONG)
    options = ("--share", "1", "--after", "0", "--interval", f"{interval}it")
    plain = program.plain(name).stdout.split()
    killed = program.run(name, options=options, KILL_AT=int(plain[2]) * 3 // 4)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in program.log.glob("scipy-*")] == ["scipy-1"]
    again = program.run(name, options=options)
    assert (again.returncode, again.stdout.split()[:2]) == (0, ["0", "True"])
    assert said(again) == ["2 calls: 1 answered from the log, 1 resumed within, 1 saved, 0 too short to save"]
    assert int(again.stdout.split()[2]) < int(plain[2])
    assert not program.log.exists()


def test_a_version_of_another_problem_is_no_start(tmp_path):
    program = Program(tmp_path, LONG)
    options = ("--share", "1", "--after", "0", "--interval", "10it")
    assert program.run("cg", options=options, KILL_AT=60).returncode == -signal.SIGKILL
    other = Program(tmp_path, LONG.replace("rng(3).random(n * n)", "rng(4).standard_normal(n * n)"))
    again, plain = other.run("cg", options=options), other.plain("cg")
    assert again.stdout.split()[:2] == plain.stdout.split()[:2] and " 0 resumed within" in said(again)[-1]


def test_the_page_runs_as_it_is_printed(tmp_path):
    page = (ROOT / "docs/start/scipy-run.md").read_text()
    (script,) = re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eu", "-c", script], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert said(done) == ["20 calls: 15 answered from the log, 0 resumed within, 5 saved, 0 too short to save"]
    lines = done.stdout.splitlines()
    assert lines[:15] == lines[15:30] and len(lines) == 35
