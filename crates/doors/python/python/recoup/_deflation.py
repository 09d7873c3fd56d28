"""Directions a method keeps A-orthogonal to all that follow, as a preconditioner.

A restarted CG forgets every direction it has searched. The one saved before the failure gives the most useful one back
(M. J. D. Powell 1977, doi 10.1007/BF01593790): the iterate is made optimal over it, and each new direction is kept
A-orthogonal to it. Written as a preconditioner, so that an unchanged CG does it: with W A-orthonormal and
P = I - A W W^H, z = P^H M P r + W W^H r (BNN of J. M. Tang, R. Nabben, C. Vuik, Y. A. Erlangga 2009,
doi 10.1007/s10915-009-9272-6). In exact arithmetic P r = r; without it, rounding along W costs up to a hundred
iterations on ill-conditioned problems. Any directions are valid, however inaccurate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[Any]

DIRECTIONS_MAX = 8
"""Directions kept at most; the oldest makes room."""

_DEPENDENT = 1e-10
"""A direction whose curvature falls below this part when the others are taken out of it adds nothing."""


class Deflation:
    """A-orthonormal directions. Two vectors each."""

    def __init__(self, multiply: Callable[[Vector], Vector], directions: Iterable[Vector]) -> None:
        self.w: list[Vector] = []
        self.products: list[Vector] = []
        for direction in directions:
            self._add(multiply, direction)

    def _add(self, multiply: Callable[[Vector], Vector], direction: Vector) -> None:
        if len(self.w) == DIRECTIONS_MAX:
            del self.w[0], self.products[0]
        w = direction.copy()
        whole = float(np.vdot(w, multiply(w)).real)
        for other, product in zip(self.w, self.products):
            w -= np.vdot(product, w) * other
        product = multiply(w)
        curvature = float(np.vdot(w, product).real)
        if np.isfinite(curvature) and curvature > max(_DEPENDENT * whole, np.finfo(np.float64).tiny):
            scale = curvature**-0.5
            self.w.append(w * scale)
            self.products.append(product * scale)

    def correct(self, x: Vector, r: Vector) -> None:
        """Makes x optimal over the directions, r being its residual: x += W W^H r."""
        for w in self.w:
            x += np.vdot(w, r) * w

    def apply(self, r: Vector, precondition: Callable[[Vector], Vector]) -> Vector:
        """z = P^H M P r + W W^H r."""
        parts = [np.vdot(w, r) for w in self.w]
        across = r.copy()
        for part, product in zip(parts, self.products):
            across -= part * product
        z = np.array(precondition(across))
        for part, w, product in zip(parts, self.w, self.products):
            z += (part - np.vdot(product, z)) * w
        return z
