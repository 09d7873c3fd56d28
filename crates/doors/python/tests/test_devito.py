"""A gradient of Devito, whose wavefields rest on a tape. Compiles kernels: part of the long tests."""

import numpy as np
import pytest

import recoup

pytestmark = pytest.mark.long

POINTS, STEPS, DT = 61, 120, 0.001


class Acoustics:
    """An acoustic wave in a square of two layers, with a border that absorbs; the gradient by the squared slowness."""

    def __init__(self):
        from devito import Function, Grid

        self.grid = Grid(shape=(POINTS, POINTS), extent=(600.0, 600.0), dtype=np.float64)
        self.m = Function(name="m", grid=self.grid, space_order=4)
        self.m.data[:] = np.where(np.arange(POINTS) > POINTS // 2, 1 / 2500.0**2, 1 / 2000.0**2)
        self.damp = Function(name="damp", grid=self.grid)
        border = np.minimum(np.arange(POINTS), np.arange(POINTS)[::-1])
        border = np.clip((10 - border) / 10.0, 0, None) ** 2
        self.damp.data[:] = 1e-4 * (border[:, None] + border[None, :])

    def points(self, name, coordinates):
        from devito import SparseTimeFunction

        coordinates = np.array(coordinates)
        return SparseTimeFunction(
            name=name, grid=self.grid, npoint=len(coordinates), nt=STEPS, coordinates=coordinates
        )

    def receivers(self, name):
        return self.points(name, [[x, 60.0] for x in np.linspace(20, 580, 20)])

    def forward(self, saved):
        """The forward operator, its wavefield and what the receivers record."""
        from devito import Eq, Operator, TimeFunction, solve

        u = TimeFunction(name="u", grid=self.grid, time_order=2, space_order=4, save=STEPS if saved else None)
        wave = Eq(u.forward, solve(self.m * u.dt2 - u.laplace + self.damp * u.dt, u.forward))
        source, received = self.points("source", [[300.0, 40.0]]), self.receivers("received")
        phase = (np.pi * 25 * (np.arange(STEPS) * DT - 0.04)) ** 2
        source.data[:, 0] = (1 - 2 * phase) * np.exp(-phase)
        dt = self.grid.stepping_dim.spacing
        inject = source.inject(field=u.forward, expr=source * dt**2 / self.m)
        return Operator([wave] + inject + received.interpolate(expr=u)), u, received

    def reverse(self, u, received):
        """The reverse operator, the gradient, and the sum of the values that it multiplies `u` by."""
        from devito import Abs, Eq, Function, Operator, TimeFunction, solve

        v = TimeFunction(name="v", grid=self.grid, time_order=2, space_order=4)
        gradient, weight = Function(name="gradient", grid=self.grid), Function(name="weight", grid=self.grid)
        wave = Eq(v.backward, solve(self.m * v.dt2 - v.laplace + self.damp * v.dt.T, v.backward))
        residual = self.receivers("residual")
        residual.data[:] = received
        dt = self.grid.stepping_dim.spacing
        inject = residual.inject(field=v.backward, expr=residual * dt**2 / self.m)
        sums = [Eq(gradient, gradient - u * v.dt2), Eq(weight, weight + Abs(v.dt2))]
        return Operator([wave] + inject + sums), gradient, weight


@pytest.fixture(scope="module")
def devito():
    """Devito without the compiler's liberties in arithmetic, which differ from kernel to kernel."""
    import devito

    devito.configuration["log-level"] = "WARNING"
    devito.configuration["safe-math"] = True
    return devito


@pytest.fixture(scope="module")
def own(devito):
    """What the receivers record, the gradient and the largest value, with all wavefields saved by Devito."""
    model = Acoustics()
    forward, u, received = model.forward(saved=True)
    forward.apply(time_m=1, time_M=STEPS - 2, dt=DT)
    reverse, gradient, _ = model.reverse(u, received.data)
    reverse.apply(time_m=1, time_M=STEPS - 2, dt=DT)
    gradient = np.array(gradient.data)
    assert np.abs(gradient).max() > 0 and np.isfinite(gradient).all()
    return np.array(received.data), gradient, np.abs(u.data).max()


def gradient_through(devito, tape):
    """What the receivers record, the gradient and the weights, step by step with wavefields on a tape."""
    model = Acoustics()
    forward, u, received = model.forward(saved=False)
    for step in range(1, STEPS - 1):
        tape.push(step, np.asarray(u.data[step % 3]))
        forward.apply(time_m=step, time_M=step, dt=DT)
    tape.turn()
    wavefield = devito.Function(name="wavefield", grid=model.grid)
    reverse, gradient, weight = model.reverse(wavefield, received.data)
    while tape:
        step, wavefield.data[:] = tape.pop()
        reverse.apply(time_m=step, time_M=step, dt=DT)
    return np.array(received.data), np.array(gradient.data), np.array(weight.data)


@pytest.mark.parametrize("options", [{}, {"codec": "qb"}, {"codec": "qb", "key_every": 8}])
def test_gradient_of_wavefields_on_a_tape_has_the_bits_of_devito(devito, own, options, tmp_path):
    with recoup.Tape(host=10 * 8 * POINTS**2, spill=tmp_path, **options) as tape:
        received, gradient, _ = gradient_through(devito, tape)
    assert received.tobytes() == own[0].tobytes()
    assert gradient.tobytes() == own[1].tobytes()


def test_gradient_of_wavefields_under_a_bound_is_as_near_as_the_bound_says(devito, own):
    bound = 1e-5
    with recoup.Tape(host=8 << 20, codec="qb", bound=f"absolute:{bound}") as tape:
        received, gradient, weight = gradient_through(devito, tape)
    assert received.tobytes() == own[0].tobytes(), "the forward pass does not read the tape"
    # Each value of a wavefield is off by the bound at most, and is multiplied by a value; the weight is the sum of these.
    # Each step rounds a product and a sum, in both gradients, to eps of what the largest wavefield would give.
    rounding = 4 * STEPS * np.finfo(np.float64).eps * own[2]
    difference = np.abs(gradient - own[1])
    assert 0 < difference.max() and (difference <= (bound + rounding) * weight).all()
