"""A as the native half takes it: the arrays of a sparse matrix, or a function that multiplies."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._errors import UsageError, UsageTypeError, named

Vector = npt.NDArray[np.float64]
Field = npt.NDArray[np.float64] | npt.NDArray[np.complex128]
"""A vector of real or complex numbers."""
Lent = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], Vector] | tuple[int, Callable[[Vector], Vector]]


class Rows(NamedTuple):
    """A sparse matrix by rows: columns ascend in each row."""

    n: int
    starts: npt.NDArray[Any]
    columns: npt.NDArray[Any]
    values: npt.NDArray[Any]


def matrix(A: Any) -> Any:
    """Returns a list of rows as an array; anything else as it is."""
    if not isinstance(A, (list, tuple)) or isinstance(A, Rows):
        return A
    with named("A"):
        return np.asarray(A, np.complex128 if np.iscomplexobj(A) else np.float64)


def lent_system(A: Any, b: npt.ArrayLike) -> tuple[Lent, Vector, int]:
    """Returns A, b and the number of its columns, in real numbers: of a b with two axes one column after the other. A
    complex system has twice as many: real and imaginary part in turn."""
    columns = 1
    if np.ndim(b) == 2:
        columns = np.shape(b)[1]
        if columns == 0:
            raise UsageError("b has no columns")
        b = np.asarray(b).ravel(order="F")
    if not (is_complex(A) or is_complex(b)):
        rhs = doubles("b", b)
        return lent_operator(A, rhs.size // columns), rhs, columns
    field = numbers("b", b, complex_too=True).astype(np.complex128)
    n = field.size // columns
    shape = tuple(getattr(A, "shape", (n, n)))
    if shape != (n, n):
        raise UsageError(f"A is {' x '.join(map(str, shape))}, expected {n} x {n} for b")
    multiply = multiplier(A)

    def product(x: Vector) -> Vector:
        y = numbers("A x", multiply(x.view(np.complex128)), complex_too=True)
        return pairs(y.astype(np.complex128, copy=False))

    return (2 * n, product), pairs(field), columns


def lent_operator(A: Any, rows: int) -> Lent:
    """Returns the arrays of a sparse or dense matrix by rows; otherwise the number of rows and a function."""
    if isinstance(A, Rows):
        return _arrays(A.starts, A.columns, A.values)
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(A):
        return _by_rows(A, rows)
    if isinstance(A, np.ndarray) and A.ndim == 2:
        return _dense_by_rows(A, rows)
    shape = tuple(getattr(A, "shape", (rows, rows)))
    if shape != (rows, rows):
        raise UsageError(f"A is {' x '.join(map(str, shape))}, expected {rows} x {rows} for b")
    return rows, _product(A)


def _by_rows(A: Any, rows: int) -> Lent:
    if A.shape != (rows, rows):
        raise UsageError(f"A is {A.shape[0]} x {A.shape[1]}, expected {rows} x {rows} for b")
    if np.dtype(A.dtype).kind not in "fiu":
        raise UsageError(f"A is of type {A.dtype}, expected real numbers")
    matrix = A.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return _arrays(matrix.indptr, matrix.indices, matrix.data)


def _arrays(starts: npt.ArrayLike, columns: npt.ArrayLike, values: npt.ArrayLike) -> Lent:
    with named("A"):
        return (
            np.ascontiguousarray(starts, dtype=np.int64),
            np.ascontiguousarray(columns, dtype=np.uint32),
            doubles("A", values),
        )


def _dense_by_rows(A: npt.NDArray[Any], rows: int) -> Lent:
    if A.shape != (rows, rows):
        raise UsageError(f"A is {A.shape[0]} x {A.shape[1]}, expected {rows} x {rows} for b")
    indptr = np.arange(0, rows * rows + 1, max(rows, 1), dtype=np.int64)
    return _arrays(indptr, np.tile(np.arange(rows, dtype=np.uint32), rows), A)


def _product(A: Any) -> Callable[[Vector], Vector]:
    multiply = multiplier(A)
    return lambda x: doubles("A x", multiply(x))


def multiplier(A: Any) -> Callable[[Any], Any]:
    """Returns the function that multiplies with a matrix, an operator or a function."""
    if hasattr(A, "matvec"):
        return A.matvec  # type: ignore[no-any-return]
    if hasattr(A, "__matmul__"):
        return lambda x: A @ x
    if callable(A):
        return A  # type: ignore[no-any-return]
    raise UsageTypeError(f"A is a {type(A).__name__}: expected a matrix, a LinearOperator or a function")


def is_complex(values: Any) -> bool:
    """Returns whether an array, a matrix or an operator is one of complex numbers."""
    dtype = getattr(values, "dtype", None)
    if dtype is not None:
        return np.dtype(dtype).kind == "c"
    return isinstance(values, (list, tuple)) and not isinstance(values, Rows) and np.iscomplexobj(values)


def doubles(name: str, values: Any) -> Vector:
    """Returns the values as a contiguous vector of doubles; refuses complex ones."""
    return numbers(name, values, complex_too=False).astype(np.float64, copy=False)


def numbers(name: str, values: Any, *, complex_too: bool) -> Field:
    """Returns the values as a contiguous vector of doubles, or of complex ones where these are allowed."""
    with named(name):
        if not np.iscomplexobj(values):
            return np.ascontiguousarray(values, dtype=np.float64).ravel()
        if complex_too:
            return np.ascontiguousarray(values, dtype=np.complex128).ravel()
        raise UsageError(f"{name} is complex, expected real numbers")


def pairs(values: Any) -> Any:
    """Returns a view of complex numbers as real ones, twice as many in the last axis; anything else as it is."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "c" or not values.flags.c_contiguous:
        return values
    return np.atleast_1d(values).view(values.real.dtype)
