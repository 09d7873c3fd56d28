"""The snippets of the documentation run as they stand, page by page; those for petsc4py are run by test_petsc."""

import ast
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, snippets

PAGES = [
    "docs/embed.md",
    "crates/doors/python/README.md",
    "docs/adjoints.md",
    "docs/memory.md",
    "docs/start/python.md",
    "docs/start/own-cg.md",
    "docs/start/adjoints.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [snippet for snippet in snippets(page) if "petsc4py" not in snippet]
    assert found
    names = {}
    for snippet in found:
        exec(compile(snippet, page, "exec"), names)


def test_program_of_the_page_on_pip_is_killed_and_resumes(tmp_path):
    page = (ROOT / "docs/install/pip.md").read_text()
    (block,) = re.findall(r"^```sh\n(cat > solve.py.*?)^```", page, re.MULTILINE | re.DOTALL)
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["sh", "-eu", "-c", block]
    printed = subprocess.run(shell, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    starts = re.findall(r"starts at iteration (\d+)", printed.stdout)
    assert starts[-1] == "20" and "killed" in printed.stdout and "converged after" in printed.stdout, printed


@pytest.mark.parametrize("pages", [PAGES, PAGES[::-1]])
def test_pages_run_one_after_the_other_in_one_directory(pages, tmp_path, monkeypatch):
    """The first examples of the two pages wrote versions of different problems to one directory, and the second was refused."""
    monkeypatch.chdir(tmp_path)
    for page in pages:
        names = {}
        for snippet in snippets(page):
            if "petsc4py" not in snippet:
                exec(compile(snippet, page, "exec"), names)


def test_notebook_runs_to_its_picture(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("matplotlib")
    notebook = nbformat.read(ROOT / "docs/start/tutorial.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are stripped before a commit"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    printed = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = {kind for output in printed for kind in output.get("data", {})}
    assert {"image/png", "text/html"} <= shown, shown
    (counts,) = re.findall(r"(\d+) iterations, interrupted; resumed from (\d+); (\d+) more", str(printed))
    # As in the tutorial for Python: 63 iterations undisturbed, and the restart saves 15 of them at least.
    assert counts[:2] == ("33", "30") and int(counts[2]) < 63 - 15, counts


def test_every_public_attribute_has_a_docstring():
    import recoup
    import recoup.pyadjoint
    import recoup.scipy

    missing, seen = [], 0
    for module in (recoup, recoup.model, recoup.scipy, recoup.petsc, recoup.tape, recoup.pyadjoint):
        for public, cls in vars(module).items():
            if public.startswith("_") or not isinstance(cls, type) or not cls.__module__.startswith("recoup"):
                continue
            for name in vars(cls):
                if not name.startswith("_"):
                    seen += 1
                    if not (getattr(cls, name).__doc__ or "").strip():
                        missing.append(f"{cls.__name__}.{name}")
    assert seen > 60 and not missing, missing


def aliases_with_docstrings():
    """Names of types whose docstring stands below their assignment, as `Literal` cannot have one."""
    names = set()
    for path in (ROOT / "crates/doors/python/python/recoup").glob("*.py"):
        body = ast.parse(path.read_text()).body
        for alias, below in zip(body, body[1:], strict=False):
            has_docstring = isinstance(below, ast.Expr) and isinstance(getattr(below.value, "value", None), str)
            if isinstance(alias, ast.Assign) and has_docstring:
                names.update(target.id for target in alias.targets if isinstance(target, ast.Name))
    return names


def test_public_names_have_docstrings():
    import recoup
    import recoup.pyadjoint
    import recoup.scipy

    for module in (recoup, recoup.model, recoup.scipy, recoup.tape, recoup.pyadjoint):
        for name in getattr(module, "__all__", ["Callback", "cg", "gmres"]):
            is_documented = getattr(module, name).__doc__ or name in aliases_with_docstrings()
            assert name.startswith("__") or is_documented, name
    stub = (ROOT / "crates/doors/python/python/recoup/_native.pyi").read_text()
    for name in re.findall(r"^(?:class|def) (\w+)", stub, re.MULTILINE):
        assert hasattr(recoup._native, name), name
