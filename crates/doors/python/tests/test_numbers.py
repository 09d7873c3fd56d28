"""Complex and single-precision systems: saved, killed and restored as real ones of double precision are."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import recoup
import recoup.scipy

SIDE = 24


def laplacian(dtype):
    """Minus the Laplacian of a square, with a rotated phase between neighbours if complex: Hermitian and positive."""
    phase = np.exp(0.3j) if np.dtype(dtype).kind == "c" else 1.0
    line = sp.diags([-np.conj(phase), 2.0, -phase], [-1, 0, 1], shape=(SIDE, SIDE))
    eye = sp.identity(SIDE)
    return (sp.kron(line, eye) + sp.kron(eye, line)).tocsr().astype(dtype)


def rhs(dtype):
    rng = np.random.default_rng(5)
    b = rng.standard_normal(SIDE * SIDE).astype(dtype)
    return b + 1j * rng.standard_normal(SIDE * SIDE).astype(b.real.dtype) if b.dtype.kind == "c" else b


def norm(a, b, x):
    exact = np.promote_types(x.dtype, np.float64)
    return float(np.linalg.norm(b.astype(exact) - a.astype(exact) @ x.astype(exact)))


def solved(a, b, iterations):
    """The iterate of CG after some iterations, in the type of the system."""
    x, _ = spla.cg(a, b, x0=np.zeros_like(b), rtol=0.0, atol=0.0, maxiter=iterations)
    return np.ascontiguousarray(x.astype(b.dtype))


DTYPES = ["complex128", "complex64", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_versions_come_back_bit_for_bit(tmp_path, dtype):
    a, b = laplacian(dtype), rhs(dtype)
    x, p = solved(a, b, 20), solved(a, b, 3)
    with recoup.Session(tmp_path, A=a, b=b, scheme="exact", interval="1it") as session:
        session.protect("x", x, role="iterate")
        session.protect("p", p, role="direction")
        session.step(1, norm(a, b, x))
    back = [np.zeros_like(x), np.zeros_like(p)]
    with recoup.Session(tmp_path, A=a, b=b, scheme="exact") as session:
        session.protect("x", back[0], role="iterate")
        session.protect("p", back[1], role="direction")
        assert session.restore().version == 1
    assert back[0].tobytes() == x.tobytes() and back[1].tobytes() == p.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_lossy_versions_keep_the_residual_within_theta(tmp_path, dtype):
    a, b, theta = laplacian(dtype), rhs(dtype), 0.25
    x = solved(a, b, 30)
    before = norm(a, b, x)
    with recoup.Session(tmp_path, A=a, b=b, scheme="lossy", interval="1it", theta=theta, codec="qb") as session:
        session.protect("x", x, role="iterate")
        session.step(1, before)
    back = np.zeros_like(x)
    with recoup.Session(tmp_path, A=a, b=b, scheme="lossy") as session:
        session.protect("x", back, role="iterate")
        assert session.restore().version == 1
    assert back.tobytes() != x.tobytes(), "the version is lossy"
    # The norm is measured in double precision on both sides; a last bit may differ by the order of sums.
    assert norm(a, b, back) <= (1 + theta) * before * (1 + 1e-12)


@pytest.mark.parametrize("bound", [1e-3, 1e-6])
def test_a_bound_holds_for_each_part_of_a_complex_number(tmp_path, bound):
    a, b = laplacian("complex128"), rhs("complex128")
    x = solved(a, b, 30)
    with recoup.Session(
        tmp_path, A=a, b=b, scheme="lossy", interval="1it", bound=f"absolute:{bound}", codec="qb"
    ) as session:
        session.protect("x", x, role="iterate")
        session.step(1, norm(a, b, x))
    back = np.zeros_like(x)
    with recoup.Session(tmp_path, A=a, b=b) as session:
        session.protect("x", back, role="iterate")
        session.restore()
    assert 0 < np.abs((back - x).real).max() <= bound
    assert 0 < np.abs((back - x).imag).max() <= bound


def test_cg_of_scipy_goes_on_in_complex_numbers(tmp_path):
    a, b = laplacian("complex128"), rhs("complex128")

    class Killed(Exception):
        pass

    plain = 0

    def count(_):
        nonlocal plain
        plain += 1

    spla.cg(a, b, rtol=1e-10, callback=count)
    done = 0

    def stop(_):
        nonlocal done
        done += 1
        if done == plain // 2:
            raise Killed

    with pytest.raises(Killed), recoup.Session(tmp_path, A=a, b=b, scheme="lossy", interval="5it") as session:
        recoup.scipy.cg(a, b, session=session, rtol=1e-10, callback=stop)
    with recoup.Session(tmp_path, A=a, b=b, scheme="lossy", interval="5it") as session:
        callback = session.scipy_callback(a, b)
        assert 0 < callback.iteration < plain
        x, info = spla.cg(a, b, x0=callback.x0, M=callback.M, callback=callback, rtol=1e-10)
    assert info == 0 and x.dtype == np.complex128
    assert np.linalg.norm(b - a @ x) <= 1e-10 * np.linalg.norm(b) * (1 + 1e-6)
    # The saved direction wins back what the restart forgot: without it CG begins anew from the iterate.
    assert callback.iteration <= plain + plain // 4


def test_a_number_that_is_not_finite_is_named_by_its_part(tmp_path):
    x = np.ones(4, complex)
    x[2] = complex(1.0, np.inf)
    with recoup.Session(tmp_path, scheme="lossless", interval="1it") as session:
        session.protect("x", x, role="iterate")
        with pytest.raises(recoup.Error, match=r"x\[2\].imag is inf, expected a finite number"):
            session.step(1, 1.0)


def test_touched_complex_numbers_are_those_that_are_saved(tmp_path):
    field = np.zeros(1 << 16, complex)
    with recoup.Session(tmp_path, scheme="lossless", interval="1it", increments="hash") as session:
        session.protect("field", field)
        session.track("field")
        session.step(1, 1.0)
        session.wait()
        field[60_000:60_010] = 1 + 2j
        session.touch("field", 60_000, 60_010)
        session.step(2, 1.0)
    back = np.zeros_like(field)
    with recoup.Session(tmp_path) as session:
        session.protect("field", back)
        assert session.restore().version == 2
    assert back.tobytes() == field.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (1,), (4, 5), (5, 1), (2, 3, 4)])
def test_versions_open_as_arrays_of_the_type_and_shape_they_were_saved_from(tmp_path, dtype, shape):
    """Complex arrays came back as doubles, twice as many."""
    x = np.random.default_rng(5).standard_normal((2, *shape))
    x = (x[0] + 1j * x[1]).astype(dtype) if "complex" in dtype else x[0].astype(dtype)
    with recoup.Session(tmp_path, scheme="lossless", interval="1it") as session:
        session.protect("x", x)
        session.step(1, 1.0)
    version = recoup.open(tmp_path).latest
    found = version.arrays()["x"]
    assert (found.dtype, found.shape) == (x.dtype, shape) and found.tobytes() == x.tobytes()
    (variable,) = version.variables
    assert (variable.dtype, variable.len) == (dtype, x.size)
