"""The snippets of the documentation run as they stand, page by page; those for petsc4py are run by test_petsc."""

import re

import pytest
from conftest import ROOT, snippets

PAGES = ["README.md", "crates/python/README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [snippet for snippet in snippets(page) if "petsc4py" not in snippet]
    assert found
    names = {}
    for snippet in found:
        exec(compile(snippet, page, "exec"), names)


def test_public_names_have_docstrings():
    import recoup
    import recoup.scipy

    for module in (recoup, recoup.model, recoup.scipy):
        for name in getattr(module, "__all__", ["Callback", "cg", "gmres"]):
            thing = getattr(module, name)
            assert name.startswith("__") or thing.__doc__, name
    stub = (ROOT / "crates/python/python/recoup/_native.pyi").read_text()
    for name in re.findall(r"^(?:class|def) (\w+)", stub, re.MULTILINE):
        assert hasattr(recoup._native, name), name
