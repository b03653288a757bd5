"""Parameters over time: trend and change points of estimates, by random-effects regression."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array

from .random_effects import Coefficient, Regression, Series

FEWEST = 5  # estimates for a trend
_EDGE = 2  # estimates on either side of a change point, at least
_YEAR = 365.25  # days


@dataclass(frozen=True)
class ChangePoint:
    """A step of a parameter.

    Attributes
    ----------
    index : int
        First estimate after it.
    first_day, last_day : float
        Between which dates it happened.
    step : Coefficient
        By how much.
    p_value : float
        Of no change anywhere, with all places that were tried counted.
    """

    index: int
    first_day: float
    last_day: float
    step: Coefficient
    p_value: float


@dataclass(frozen=True)
class Drift:
    """Trend and change points of a series.

    Attributes
    ----------
    trend : Coefficient
        Per year.
    level : Coefficient
        In the middle of the time, half of all steps included.
    scatter : float
        Standard deviation between recordings beside their errors.
    changes : tuple of ChangePoint
        In order of time.
    """

    series: Series
    trend: Coefficient
    level: Coefficient
    scatter: float
    changes: tuple[ChangePoint, ...]


def drift(series: Series, level: float = 0.01, most_changes: int = 5) -> Drift:
    """Trend over the whole time, and steps beside it where they are significant.

    Steps are found one after another, each the best of all places; its p-value is multiplied by their number
    (Bonferroni), so that a series without a step shows one with a probability of at most ``level``. Between two steps,
    and before the first and after the last one, lie at least two estimates.

    Parameters
    ----------
    level : float
        Of the test for a further step.

    Raises
    ------
    ValueError
        There are fewer than :data:`FEWEST` estimates, or all are of one date.
    """
    k = len(series.days)
    if k < FEWEST or series.days[-1] <= series.days[0]:
        raise ValueError(f"{series.name}: {k} estimates show no trend")
    years = (series.days - (series.days[0] + series.days[-1]) / 2) / _YEAR
    columns = np.column_stack([np.ones(k), years])
    found: list[tuple[int, float]] = []
    while len(found) < most_changes and k - columns.shape[1] - 1 >= 2:
        places = _places(series.days, [place for place, _ in found])
        if not len(places):
            break
        steps = _steps(k, places)
        p_values = len(places) * Regression(series, columns).p_values_of(steps)
        best = int(np.argmin(p_values))
        if p_values[best] > level:
            break
        found.append((int(places[best]), float(p_values[best])))
        columns = np.column_stack([columns, steps[:, best]])
    regression = Regression(series, columns)
    middle, trend, *sizes = regression.coefficients()
    changes = [
        ChangePoint(place, float(series.days[place - 1]), float(series.days[place]), size, p_value)
        for (place, p_value), size in zip(found, sizes, strict=True)
    ]
    ordered = tuple(sorted(changes, key=lambda change: change.index))
    return Drift(series, trend, middle, regression.scatter, ordered)


def scatter_about_mean(series: Series) -> float:
    """Standard deviation between recordings beside their errors, drift included; zero of fewer than two."""
    return Regression(series, np.ones((len(series.days), 1))).scatter if len(series.days) > 1 else 0.0


def _places(days: Array, taken: list[int]) -> np.ndarray:
    """Indices before which a step may be: at another date than the one before, and away from steps and ends."""
    inside = [place for place in range(_EDGE, len(days) - _EDGE + 1) if days[place] > days[place - 1]]
    return np.array([place for place in inside if all(abs(place - other) >= _EDGE for other in taken)], dtype=int)


def _steps(count: int, places: np.ndarray) -> Array:
    """``(k, c)`` columns that rise by one at each place, of mean zero between before and after."""
    return np.where(np.arange(count)[:, None] >= places, 0.5, -0.5)
