"""Intervals, schemes and overheads, before anything runs. Times in seconds, overheads as fractions of productive time.

The formulas are those of Young (doi 10.1145/361147.361115), Daly (doi 10.1016/j.future.2004.11.016), and Tao, Di, Liang,
Chen and Cappello (doi 10.1145/3208040.3208050).
"""

from __future__ import annotations

from dataclasses import dataclass

from . import _native
from ._errors import named
from ._quantity import Duration, seconds

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


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True)
class Decision:
    """Which scheme to save with, how often, and why."""

    scheme: str
    """The scheme that costs least."""
    interval_seconds: float
    """The interval to save at."""
    expected_overhead: dict[str, float]
    """Scheme -> overhead as a fraction of the productive time."""
    max_extra_iterations: float | None
    """Extra iterations per recovery up to which lossy pays (Theorem 1)."""
    why: str
    """The reasons, in numbers."""


@dataclass(frozen=True)
class Simulated:
    """The result of simulating one scheme."""

    interval_seconds: float
    """The interval simulated."""
    expected_overhead: float
    """By the formula."""
    overhead: float
    """Mean over the trials."""
    half_width: float
    """Half the 95 % confidence interval of it."""
    failures_mean: float
    """Failures of a trial, on average."""
    checkpoints_mean: float
    """Checkpoints of a trial, on average."""
    unfinished: int
    """Trials that made no progress and were given up."""


def young(mtti: Duration, ckpt: Duration) -> float:
    """Young's interval between two checkpoints, seconds: sqrt(2 ckpt mtti).

    ``mtti``: mean time to interrupt; ``ckpt``: time of one checkpoint, seconds.
    """
    with named("interval"):
        return _native.interval(*_times(mtti=mtti, ckpt=ckpt))[0]


def daly(mtti: Duration, ckpt: Duration) -> float:
    """Daly's higher-order interval, seconds."""
    with named("interval"):
        return _native.interval(*_times(mtti=mtti, ckpt=ckpt))[1]


def exact(mtti: Duration, ckpt: Duration) -> float:
    """The interval of least expected time for exponential failures, seconds (by Lambert's W)."""
    with named("interval"):
        return _native.interval(*_times(mtti=mtti, ckpt=ckpt))[2]


def overhead(
    mtti: Duration, ckpt: Duration, *, recover: Duration | None = None, extra_iterations: float = 0.0, t_iter: Duration = 0.0
) -> float:
    """What checkpoints, lost work and recoveries cost at Young's interval, over the productive time; inf where no progress
    is made.

    ``recover``: time of one recovery, ``ckpt`` when None; ``extra_iterations``: those a lossy recovery costs, of ``t_iter``
    seconds each.
    """
    with named("overhead"):
        times = _times(mtti=mtti, ckpt=ckpt, recover=ckpt if recover is None else recover)
        return _native.overhead(*times, extra_iterations * seconds("t_iter", t_iter))


def max_extra_iterations(mtti: Duration, ckpt_traditional: Duration, ckpt_lossy: Duration, t_iter: Duration) -> float:
    """Extra iterations per recovery up to which lossy checkpoints pay (Theorem 1 of the paper)."""
    with named("max_extra_iterations"):
        return _native.max_extra_iterations(
            *_times(mtti=mtti, ckpt_traditional=ckpt_traditional, ckpt_lossy=ckpt_lossy, t_iter=t_iter)
        )


def stationary_extra_iterations(iterations: float, spectral_radius: float, error_bound: float) -> tuple[float, float]:
    """Extra iterations of a stationary method restarted from a lossy iterate (Theorem 2): of a mean restart, of the last.

    The paper's formula; it assumes that the error falls by the spectral radius in every iteration.
    """
    with named("stationary"):
        return _native.stationary(iterations, spectral_radius, error_bound)


def decide(
    *,
    mtti: Duration,
    t_iter: Duration,
    iterations: float,
    ckpt_traditional: Duration,
    ckpt_lossless: Duration | None = None,
    ckpt_lossy: Duration | None = None,
    extra_iterations: float = 0.0,
) -> Decision:
    """Which scheme to save with, how often, and why in numbers. A recovery takes what its checkpoint takes."""
    job = _job(mtti, t_iter, iterations, ckpt_traditional, ckpt_lossless, ckpt_lossy, extra_iterations)
    with named("decide", job):
        return Decision(**_native.decide(job))


def simulate(
    *,
    mtti: Duration,
    t_iter: Duration,
    iterations: float,
    ckpt_traditional: Duration,
    ckpt_lossless: Duration | None = None,
    ckpt_lossy: Duration | None = None,
    extra_iterations: float = 0.0,
    trials: int = 1000,
    seed: int = 1,
) -> dict[str, Simulated]:
    """The same question put to a simulation: each scheme through ``trials`` runs; a seed repeats exactly."""
    job = _job(mtti, t_iter, iterations, ckpt_traditional, ckpt_lossless, ckpt_lossy, extra_iterations)
    with named("simulate", job):
        return {scheme: Simulated(**found) for scheme, found in _native.simulate(job, trials, seed).items()}


def _times(**times: Duration) -> list[float]:
    """Durations in seconds."""
    return [seconds(name, value) for name, value in times.items()]


def _job(
    mtti: Duration,
    t_iter: Duration,
    iterations: float,
    ckpt_traditional: Duration,
    ckpt_lossless: Duration | None,
    ckpt_lossy: Duration | None,
    extra_iterations: float,
) -> dict[str, float | None]:
    return {
        "mtti": seconds("mtti", mtti),
        "t_iter": seconds("t_iter", t_iter),
        "iterations": iterations,
        "ckpt_traditional": seconds("ckpt_traditional", ckpt_traditional),
        "ckpt_lossless": seconds("ckpt_lossless", ckpt_lossless),
        "ckpt_lossy": seconds("ckpt_lossy", ckpt_lossy),
        "extra_iterations": extra_iterations,
    }
