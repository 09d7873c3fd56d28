"""Intervals, schemes and overheads, before anything runs. Times in seconds, overheads as fractions of productive time.

The formulas are those of Young (doi 10.1145/361147.361115), Daly (doi 10.1016/j.future.2004.11.016), and Tao, Di, Liang,
Chen and Cappello (doi 10.1145/3208040.3208050).
"""

from __future__ import annotations

from . import _native
from ._errors import named
from ._native import Decision, Simulated

__all__ = [
    "Decision",
    "Simulated",
    "daly",
    "decide",
    "exact",
    "max_extra_iterations",
    "overhead",
    "simulate",
    "stationary_extra_iterations",
    "young",
]


def young(mtti: float, ckpt: float) -> float:
    """Young's interval between two checkpoints, seconds: sqrt(2 ckpt mtti).

    ``mtti``: mean time to interrupt; ``ckpt``: time of one checkpoint, seconds.
    """
    with named("interval"):
        return _native.interval(mtti, ckpt)[0]


def daly(mtti: float, ckpt: float) -> float:
    """Daly's higher-order interval, seconds."""
    with named("interval"):
        return _native.interval(mtti, ckpt)[1]


def exact(mtti: float, ckpt: float) -> float:
    """The interval of least expected time for exponential failures, seconds (by Lambert's W)."""
    with named("interval"):
        return _native.interval(mtti, ckpt)[2]


def overhead(
    mtti: float, ckpt: float, *, recover: float | None = None, extra_iterations: float = 0.0, t_iter: float = 0.0
) -> float:
    """What checkpoints, lost work and recoveries cost at Young's interval, over the productive time; inf where no progress
    is made.

    ``recover``: time of one recovery, ``ckpt`` when None; ``extra_iterations``: those a lossy recovery costs, of ``t_iter``
    seconds each.
    """
    with named("overhead"):
        return _native.overhead(mtti, ckpt, ckpt if recover is None else recover, extra_iterations * t_iter)


def max_extra_iterations(mtti: float, ckpt_traditional: float, ckpt_lossy: float, t_iter: float) -> float:
    """Extra iterations per recovery up to which lossy checkpoints pay (Theorem 1 of the paper)."""
    with named("max_extra_iterations"):
        return _native.max_extra_iterations(mtti, ckpt_traditional, ckpt_lossy, t_iter)


def stationary_extra_iterations(iterations: float, spectral_radius: float, error_bound: float) -> tuple[float, float]:
    """Extra iterations of a stationary method restarted from a lossy iterate (Theorem 2): of a mean restart, of the last.

    The paper's formula; it assumes that the error falls by the spectral radius in every iteration.
    """
    with named("stationary"):
        return _native.stationary(iterations, spectral_radius, error_bound)


def decide(
    *,
    mtti: float,
    t_iter: float,
    iterations: float,
    ckpt_traditional: float,
    ckpt_lossless: float | None = None,
    ckpt_lossy: float | None = None,
    extra_iterations: float = 0.0,
) -> Decision:
    """Which scheme to save with, how often, and why in numbers. A recovery takes what its checkpoint takes."""
    job = _job(mtti, t_iter, iterations, ckpt_traditional, ckpt_lossless, ckpt_lossy, extra_iterations)
    with named("decide"):
        return _native.decide(job)


def simulate(
    *,
    mtti: float,
    t_iter: float,
    iterations: float,
    ckpt_traditional: float,
    ckpt_lossless: float | None = None,
    ckpt_lossy: float | None = None,
    extra_iterations: float = 0.0,
    trials: int = 1000,
    seed: int = 1,
) -> dict[str, Simulated]:
    """The same question put to a simulation: each scheme through ``trials`` runs; a seed repeats exactly."""
    job = _job(mtti, t_iter, iterations, ckpt_traditional, ckpt_lossless, ckpt_lossy, extra_iterations)
    with named("simulate"):
        return _native.simulate(job, trials, seed)


def _job(
    mtti: float,
    t_iter: float,
    iterations: float,
    ckpt_traditional: float,
    ckpt_lossless: float | None,
    ckpt_lossy: float | None,
    extra_iterations: float,
) -> dict[str, float | None]:
    return {
        "mtti": mtti,
        "t_iter": t_iter,
        "iterations": iterations,
        "ckpt_traditional": ckpt_traditional,
        "ckpt_lossless": ckpt_lossless,
        "ckpt_lossy": ckpt_lossy,
        "extra_iterations": extra_iterations,
    }
