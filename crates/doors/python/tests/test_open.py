"""Directories as NumPy arrays."""

import copy
import json
import pickle
import subprocess
from datetime import timedelta

import numpy as np
import pytest
import recoup


def run(program, arguments, cwd):
    done = subprocess.run([program, *arguments.split(), "--json"], cwd=cwd, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_versions_of_the_program_open_as_what_it_exports(program, tmp_path):
    report = run(
        program,
        "run --poisson3d 16 --rhs-kind random --method cg --rtol 1e-8 --scheme lossy --interval 7it --key-every 3 "
        "--keep 3 --dir d --failures none --no-save-last",
        tmp_path,
    )
    directory = recoup.open(tmp_path / "d")
    assert report["checkpoints"] > 3 and len(directory) >= 3
    inspected = {v["version"]: v for v in run(program, "inspect d", tmp_path)["runs"][0]["versions"]}
    has_chains = False
    for version in directory:
        has_chains |= bool(version.parents)
        said = inspected[version.iteration]
        run(program, f"export d --version {version.iteration} --to x.npy", tmp_path)
        expected = np.load(tmp_path / "x.npy")
        found = version.arrays(["x"])["x"]
        assert found.shape == expected.shape and found.tobytes() == expected.tobytes()
        assert (version.scheme, version.resume, version.rule) == ("lossy", said["resume"], said["rule"])
        assert version.verified_residual_norm == said["verified_residual_norm"]
        assert version.variables[0].achieved_error == version.achieved_error > 0
        assert (version.payload_bytes, version.parents) == (said["payload_bytes"], said["parents"])
        assert version.verify() == []
    assert has_chains


def test_damage_is_named_and_costs_that_version_only(tmp_path):
    x = np.random.default_rng(5).standard_normal(50_000)
    saved = {}
    with recoup.Session(tmp_path, scheme="lossless", interval="1it") as session:
        session.protect("x", x, role="iterate")
        for k in (1, 2):
            x += 1.0  # a version of what was saved before holds nothing to be damaged
            saved[k] = x.tobytes()
            session.step(k, 1.0)
            session.wait()
    (newest,) = tmp_path.glob("solve/v*2/rank-*.h5")
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    directory = recoup.open(tmp_path)
    damage = directory.verify()
    assert list(damage) == [2] and "frame x/0 of rank 0" in damage[2][0]
    with pytest.raises(recoup.Error, match="frame x/0 of rank 0"):
        directory.latest.arrays()
    assert directory[1].arrays()["x"].tobytes() == saved[1]
    with recoup.Session(tmp_path, scheme="lossless", interval="1it") as session:
        session.protect("x", x, role="iterate")
        restored = session.restore()
        assert restored.version == 1
        assert restored.skipped[0][0] == 2 and "frame x/0" in restored.skipped[0][1][0]
    assert directory.set_aside and [v.iteration for v in directory] == [1]


def test_damaged_manifest_is_a_version_that_says_so(tmp_path):
    with recoup.Session(tmp_path, scheme="lossless", interval="1it") as session:
        session.protect("x", np.ones(10), role="iterate")
        session.step(1, 1.0)
    (manifest,) = tmp_path.glob("solve/v*/manifest.json")
    manifest.write_bytes(manifest.read_bytes().replace(b'"ranks"', b'"rants"'))
    version = recoup.open(tmp_path).latest
    assert "manifest" in version.damage and len(version.verify()) == 1
    with pytest.raises(recoup.Error, match="manifest"):
        version.arrays()


def test_versions_are_found_by_iteration_and_by_place(tmp_path):
    x = np.ones(10)
    with recoup.Session(tmp_path, scheme="lossless", interval="1it", keep=3) as session:
        session.protect("x", x, role="iterate")
        for k in (2, 4, 6):
            x[:] = k
            session.step(k, 1.0 / k)
            session.wait()
    versions = recoup.open(tmp_path)
    found = [versions[0], versions[4], versions[-1], *versions[1:]]
    assert [version.iteration for version in found] == [2, 4, 6, 4, 6]
    assert versions[4]["x"].tolist() == [4.0] * 10
    assert [row["residual_norm"] for row in versions.to_dict()] == [1 / 2, 1 / 4, 1 / 6]
    assert versions._repr_html_().count("<tr>") == 4
    for wrong in (-4, 1, 9):
        with pytest.raises(recoup.NoVersionError, match="there are 2, 4, 6"):
            versions[wrong]
    with pytest.raises(TypeError, match="version"):
        versions["x"]


def test_errors_are_those_of_python_too(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere") as missing:
        recoup.open(tmp_path / "nowhere")
    assert isinstance(missing.value, recoup.UsageError)
    with pytest.raises(ValueError, match="keep is -1"):
        recoup.Session(tmp_path, keep=-1)
    wrong = {
        "session: scheme is 3, expected a text": lambda: recoup.Session(tmp_path, scheme=3),
        "session: theta is 'a', expected a number": lambda: recoup.Session(tmp_path, theta="a"),
        "session: systems is 'no', expected True or False": lambda: recoup.Session(tmp_path, systems="no"),
        "session: memory_dir is 3, expected a path": lambda: recoup.Session(tmp_path, memory_dir=3),
        "A is a str: expected a matrix": lambda: recoup.Session(tmp_path, A="matrix", b=[1.0]),
        "directory: expected a path, given a 'int'": lambda: recoup.open(5),
        "schedule: steps is 'a', expected a whole number": lambda: recoup.tape.schedule("revolve", "a", memory=3),
        "disk_seconds is 3, expected two durations": lambda: recoup.tape.schedule("revolve", 5, memory=2, disk_seconds=3),
        "interval: .*expected a number, given a 'list'": lambda: recoup.model.young([1], 18),
        "run: forward is 3, expected a function": lambda: recoup.tape.run([], 3, print, [0.0], memory=recoup.Tape(host=64)),
    }
    for words, call in wrong.items():
        with pytest.raises(TypeError, match=words) as error:
            call()
        assert isinstance(error.value, recoup.UsageError)


def test_an_array_a_state_or_a_version_that_is_not_there_is_a_lookup_error(tmp_path):
    with recoup.Session(tmp_path / "d", scheme="exact", interval="1it") as session, recoup.Tape(host=64) as tape:
        session.protect("x", np.ones(3))
        session.restore()
        session.step(1, 1.0)
        assert session.wait("1min") and session.wait(timedelta(seconds=1))
        with recoup.Memory.open(tmp_path / "m") as memory:
            memory.array("u", np.zeros(3))
            memory.commit(1)
            version = recoup.open(tmp_path / "d").latest
            for missing in (
                lambda: version["y"],
                lambda: session.touch("y"),
                lambda: tape.peek(9),
                lambda: memory.view()["y"],
                lambda: memory.restore(9),
                lambda: memory.touch("y"),
            ):
                with pytest.raises(LookupError) as error:
                    missing()
                assert isinstance(error.value, recoup.NotHeldError)
        for wrong in (lambda: version[3], lambda: version.arrays("x"), lambda: session.protect("y", [1.0, 2.0])):
            with pytest.raises(recoup.UsageTypeError):
                wrong()


def test_what_a_notebook_shows_and_what_is_pickled(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    with recoup.Session(tmp_path, scheme="exact", interval="1it", synchronous=True) as session:
        assert session._repr_html_().count("<tr>") == 1
        session.protect("x", np.ones(3))
        session.restore()
        session.step(1, 1.0)
        directory = pickle.loads(pickle.dumps(recoup.open(tmp_path)))
        assert pickle.loads(pickle.dumps(directory.latest))["x"].tolist() == [1.0] * 3
        for shown in (session, directory):
            assert shown._repr_html_().count("<tr>") == 2
            assert shown.plot().lines[0].get_ydata().tolist() == [1.0]
        with pytest.raises(recoup.UsageTypeError, match="a Session cannot be pickled or copied"):
            copy.copy(session)
    with recoup.Tape(host="1KiB") as tape:
        tape.push(0, [1.0, 2.0])
        assert tape._repr_html_().count("<tr>") == 2
        assert [bar.get_width() * 2**20 for bar in tape.plot().patches] == [tape.report()["stored_bytes"], 16]
    plan = recoup.tape.schedule("revolve", 9, memory=3, forward_seconds="2s", disk_seconds=("1s", timedelta(seconds=2)))
    assert plan == pickle.loads(pickle.dumps(plan)) and plan.disk_seconds == (1.0, 2.0)
    assert max(plan.plot().lines[0].get_ydata()) == 9 and "<table>" in plan._repr_html_()
    chosen = recoup.tape.choose(9, state_bytes="1MiB", memory_bytes="4MiB", forward_seconds="1s", reverse_seconds=1.0)
    assert chosen.why in chosen._repr_html_() and pickle.loads(pickle.dumps(chosen)) == chosen
    assert max(chosen.plot().lines[0].get_ydata()) == 9


def test_version_is_a_mapping_of_its_arrays_and_a_folder_of_a_run_is_named(tmp_path):
    """`"x" in version` and `list(version)` asked for an array named 0."""
    with recoup.Session(tmp_path, name="heat", scheme="exact", interval="1it", synchronous=True) as session:
        session.protect("x", np.ones(3), role="iterate")
        session.protect("k", np.zeros(1, np.int64))
        session.step(1, 1.0)
    version = recoup.open(tmp_path).latest
    assert list(version) == version.keys() == ["x", "k"] and len(version) == 2 and version
    assert "x" in version and "y" not in version and 0 not in version
    assert {name: array.size for name, array in dict(version).items()} == {"x": 3, "k": 1}
    with pytest.raises(recoup.UsageError, match="is the folder of run heat: expected .*, with name=\"heat\""):
        recoup.open(tmp_path / "heat")


def test_session_of_this_process_that_is_open_is_named_as_such(tmp_path):
    with recoup.Session(tmp_path) as session:
        assert "open" in repr(session)
        with pytest.raises(recoup.InUseError, match="session of this process that is not closed") as error:
            recoup.Session(tmp_path)
        assert error.value.kind == "in_use"
    assert "closed" in repr(session)
    recoup.Session(tmp_path).close()


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(recoup.Error, match="no versions of any run"):
        recoup.open(tmp_path)
    for name in ("one", "two"):
        with recoup.Session(tmp_path, name=name, scheme="lossless", interval="1it") as session:
            session.protect("x", np.ones(10), role="iterate")
            session.step(1, 1.0)
    with pytest.raises(recoup.Error, match="several runs"):
        recoup.open(tmp_path)
    with pytest.raises(recoup.Error, match="no run three: it holds one, two"):
        recoup.open(tmp_path, "three")
    directory = recoup.open(tmp_path, "two")
    with pytest.raises(recoup.Error, match="there is no version 9: there are 1"):
        directory[9]
    with pytest.raises(recoup.Error, match="version 1 does not hold y"):
        directory.latest.arrays(["y"])
