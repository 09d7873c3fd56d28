"""petsc4py's KSP, killed and resumed, in the Python that has petsc4py: often the distribution's, which is another one."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import recoup
from conftest import snippets

SOLVE = Path(__file__).with_name("petsc_solve.py")


def python_with_petsc4py():
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([python, "-c", "import petsc4py.PETSc"], check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return None


@pytest.fixture(scope="module")
def python():
    found = python_with_petsc4py()
    if found is None:
        pytest.skip("no Python here has petsc4py (Debian: python3-petsc4py)")
    return found


def complex_packages():
    """Where petsc4py over a PETSc of complex numbers is, as the distribution has it beside that of real ones."""
    folders = "usr/lib/petscdir/*/*-complex/lib/python3/dist-packages"
    return next((str(found) for found in Path("/").glob(folders) if (found / "petsc4py").is_dir()), None)


@pytest.fixture
def run(python, tmp_path):
    """Runs a script; the package, of one ABI for all Pythons, is all it sees of this environment."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path/recoup").symlink_to(Path(recoup.__file__).parent)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "path")}

    def run(script, *arguments, expect=0, packages=None):
        paths = [environment["PYTHONPATH"], *([packages] if packages else [])]
        more = {**environment, "PYTHONPATH": os.pathsep.join(paths)}
        command = [python, script, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, timeout=300, env=more, cwd=tmp_path)
        assert done.returncode == expect, done.stderr.decode()
        return json.loads(done.stdout) if expect == 0 else None

    return run


@pytest.fixture
def solve(run):
    """Runs the solver."""
    return lambda *arguments, expect=0: run(SOLVE, *arguments, expect=expect)


def test_ksp_cg_killed_at_a_third_resumes_with_few_iterations_more(solve):
    undisturbed = solve("-", 24, "cg")
    attached = solve("whole", 24, "cg")
    assert attached["iterations"] == undisturbed["iterations"]
    kill_at = undisturbed["iterations"] // 3
    solve("d", 24, "cg", kill_at, expect=-signal.SIGKILL)
    resumed = solve("d", 24, "cg")
    assert 0 < resumed["base"] <= kill_at and resumed["restored"] == "deflated" and resumed["reason"] > 0
    print(f"cg: undisturbed {undisturbed}, killed at {kill_at}: {resumed}")
    # The KSP stops on the preconditioned norm; D is 6 I, so the true one is the same.
    assert resumed["relative_residual"] <= 1.01e-8
    assert resumed["iterations"] <= 1.06 * undisturbed["iterations"] + 1


def test_tolerance_of_a_resumed_ksp_is_relative_to_b_as_the_program_preconditions_it(solve):
    """A long direction of the first iterations made the norm of b under the deflation larger."""
    solve("d", 24, "cg", 9, "ones", expect=-signal.SIGKILL)
    resumed = solve("d", 24, "cg", 0, "ones")
    assert resumed["base"] > 0 and resumed["restored"] == "deflated" and resumed["reason"] > 0
    assert resumed["relative_residual"] <= 1.01e-8


@pytest.mark.parametrize("kind, n", [("cg", 24), ("gmres", 16)])
def test_complex_ksp_that_was_killed_resumes(run, kind, n):
    packages = complex_packages()
    if packages is None:
        pytest.skip("no petsc4py of complex numbers here (Debian: python3-petsc4py-complex)")

    def solve(*arguments, expect=0):
        return run(SOLVE, *arguments, expect=expect, packages=packages)

    undisturbed = solve("-", n, kind)
    kill_at = undisturbed["iterations"] // 3 if kind == "cg" else max(undisturbed["iterations"] // 2, 35)
    solve("d", n, kind, kill_at, expect=-signal.SIGKILL)
    resumed = solve("d", n, kind)
    print(f"complex {kind}: undisturbed {undisturbed}, killed at {kill_at}: {resumed}")
    assert 0 < resumed["base"] <= kill_at and resumed["reason"] > 0
    assert resumed["relative_residual"] <= 1.01e-8
    # As the real ones: cg continues with its direction, gmres repeats a cycle at most.
    more = 30 if kind == "gmres" else 0.06 * undisturbed["iterations"] + 1
    assert resumed["iterations"] <= undisturbed["iterations"] + more


def test_ksp_gmres_resumes_from_an_end_of_cycle(solve):
    undisturbed = solve("-", 16, "gmres")
    kill_at = max(undisturbed["iterations"] // 2, 35)
    solve("d", 16, "gmres", kill_at, expect=-signal.SIGKILL)
    resumed = solve("d", 16, "gmres")
    print(f"gmres: undisturbed {undisturbed}, killed at {kill_at}: {resumed}")
    assert resumed["base"] % 30 == 0 and 0 < resumed["base"] <= kill_at and resumed["reason"] > 0
    assert resumed["relative_residual"] <= 1.01e-8
    # A cycle at most, as theta 0.5 lets the residual grow by a half.
    assert resumed["iterations"] <= undisturbed["iterations"] + 30


def test_snippet_of_the_page_runs_and_resumes(run, tmp_path):
    (snippet,) = [snippet for snippet in snippets("crates/doors/python/README.md") if "petsc4py" in snippet]
    (tmp_path / "snippet.py").write_text(snippet)
    first, again = run(tmp_path / "snippet.py"), run(tmp_path / "snippet.py")
    # The second run begins at a version of the first, near its end.
    assert 5 < first <= again <= first + 5
