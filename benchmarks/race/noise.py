"""Step times as a shared machine gives them: correlated over hundreds of steps, with spikes and with drift.

``shared`` imitates what was measured over 9,000 steps of one configuration (coefficient of variation 0.47, lag-1
autocorrelation 0.65, still 0.27 at lag 100, medians of 250 steps varying by 0.22); the others are single troubles in
a form that is worse than usual.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Generator = np.random.Generator


@dataclass(frozen=True)
class Noise:
    """A way in which step times vary; ``draw(rng, steps)`` gives step times around 1, shape (steps,)."""

    name: str
    draw: Callable[[Generator, int], FloatArray]


def autoregressive(rng: Generator, steps: int, memory: float) -> FloatArray:
    """Draw a series with variance 1 whose autocorrelation falls by e every ``memory`` steps."""
    from scipy import signal  # takes a second, which nobody who asks for the names needs

    phi = np.exp(-1 / memory)
    shocks = rng.standard_normal(steps) * np.sqrt(1 - phi**2)
    shocks[0] /= np.sqrt(1 - phi**2)
    return np.asarray(signal.lfilter([1.0], [1.0, -phi], shocks))


def _shared(rng: Generator, steps: int) -> FloatArray:
    smooth = 0.22 * autoregressive(rng, steps, 1000) + 0.28 * autoregressive(rng, steps, 70)
    spikes = np.where(rng.random(steps) < 0.012, rng.uniform(1, 4, steps), 1.0)
    return np.exp(smooth + 0.12 * rng.standard_normal(steps)) * spikes


def _correlated(rng: Generator, steps: int) -> FloatArray:
    return np.exp(0.3 * autoregressive(rng, steps, 1 / -np.log(0.95)))


def _drifting(rng: Generator, steps: int) -> FloatArray:
    trend = np.linspace(0, rng.normal(0, 1), steps)
    return np.exp(trend + np.cumsum(rng.normal(0, 0.02, steps)) + 0.1 * rng.standard_normal(steps))


def _heavy(rng: Generator, steps: int) -> FloatArray:
    return np.exp(0.15 * autoregressive(rng, steps, 50)) * (0.8 + 0.2 * (1 + rng.pareto(1.5, steps)))


def _quiet(rng: Generator, steps: int) -> FloatArray:
    return np.exp(0.03 * autoregressive(rng, steps, 100) + 0.05 * rng.standard_normal(steps))


NOISES = (
    Noise("quiet", _quiet),
    Noise("shared", _shared),
    Noise("correlated", _correlated),
    Noise("drifting", _drifting),
    Noise("heavy", _heavy),
)


def describe(times: FloatArray) -> dict[str, float]:
    """Return the numbers by which a series of step times is compared with the measured one."""
    centered = times - times.mean()
    variance = float((centered**2).mean())
    medians = np.median(times[: times.size // 250 * 250].reshape(-1, 250), axis=1)

    def correlation(lag: int) -> float:
        return float((centered[lag:] * centered[:-lag]).mean()) / variance

    return {
        "cv": variance**0.5 / float(times.mean()),
        "lag1": correlation(1),
        "lag100": correlation(100),
        "cv_of_medians": float(medians.std() / medians.mean()),
    }
