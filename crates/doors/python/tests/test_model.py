"""The model's numbers, those of the published evaluation."""

import math

import pytest
import recoup
from recoup import model


def test_intervals_and_overheads_are_the_published_ones():
    assert model.young(4 * 3600, 18) == 720
    assert model.daly(4 * 3600, 18) == pytest.approx(720, rel=0.05)
    assert model.exact(4 * 3600, 18) == pytest.approx(model.daly(4 * 3600, 18), rel=0.01)
    assert model.overhead(3600, 120) == pytest.approx(0.4115, abs=5e-5)
    assert model.overhead(3600, 2400) == math.inf


def test_theorems_give_their_examples():
    assert model.max_extra_iterations(3600, 120, 25, 1.2) == pytest.approx(500.2, abs=0.05)
    low, high = model.stationary_extra_iterations(3941, 0.99998, 1e-4)
    assert low == pytest.approx(5.20, abs=0.005) and high == pytest.approx(5.41, abs=0.005)


def test_decision_is_the_cheapest_and_the_simulation_agrees():
    job = dict(mtti=3600, t_iter=1.2, iterations=5875, ckpt_traditional=120, ckpt_lossy=25, extra_iterations=20)
    decision = model.decide(**job)
    assert decision.scheme == "lossy" == min(decision.expected_overhead, key=decision.expected_overhead.get)
    assert decision.expected_overhead["traditional"] == pytest.approx(0.3259, abs=5e-5)
    assert decision.max_extra_iterations == pytest.approx(500.2, abs=0.05)
    found = model.simulate(**job, trials=300)
    assert found["lossy"].overhead < found["traditional"].overhead
    assert found["lossy"].overhead == model.simulate(**job, trials=300)["lossy"].overhead
    assert abs(found["lossy"].overhead - found["lossy"].expected_overhead) < 2 * found["lossy"].half_width


def test_numbers_out_of_range_are_named():
    for call, message in [
        (lambda: model.young(0, 1), "mtti is 0"),
        (lambda: model.overhead(1, math.nan), "ckpt is NaN"),
        (lambda: model.stationary_extra_iterations(1, 1.5, 1), "below 1"),
        (lambda: model.simulate(mtti=1, t_iter=1, iterations=1, ckpt_traditional=1, trials=1), "trials is 1"),
    ]:
        with pytest.raises(recoup.Error, match=message):
            call()
