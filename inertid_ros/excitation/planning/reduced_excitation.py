"""Reduced excitation: leave out what cannot be excited until the rest can be excited well (C 4.5.2, b.1-b.4).

The source leaves out one combination of parameters at a time and optimises again. The criterion falls as fewer count,
so the largest number that can be brought below the bound is found by bisection, and every motion on the way says at
once for how many it is good enough already.
"""

from collections.abc import Callable
from dataclasses import replace

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.criteria.criterion import Criterion

from .descent import Candidate, along

Improve = Callable[[int, Candidate], Candidate]
"""Improve a candidate for so many combinations."""


def reduced(criterion: Criterion, best: Candidate, bound: float, improve: Improve) -> tuple[int, Candidate]:
    """The largest number of combinations of which the criterion can be brought to at most ``bound``, and the motion.

    Parameters
    ----------
    best : Candidate
        Motion optimised for all.

    Raises
    ------
    ExcitationError
        Not even one can.
    """
    if best.value <= bound:
        return criterion.optimality.kept or criterion.count, best
    low, found = good_for(criterion, best, bound), best
    high = (criterion.optimality.kept or criterion.count) - 1
    while low < high:
        middle = (low + high + 1) // 2
        candidate = improve(middle, found)
        if candidate.value <= bound:
            low, found = max(middle, min(good_for(criterion, candidate, bound), high)), candidate
        else:
            high = middle - 1
    if low == 0:
        raise ExcitationError(
            f"excitation.criterion_bound {bound:g} cannot be reached for a single combination of parameters; raise it"
        )
    value = criterion.keeping(low).optimality.value(_eigenvalues(criterion, found))
    return low, replace(found, value=value)


def good_for(criterion: Criterion, candidate: Candidate, bound: float) -> int:
    """Largest number of combinations for which a motion keeps the bound."""
    values = _eigenvalues(criterion, candidate)
    kept = (n for n in range(len(values), 0, -1) if criterion.keeping(n).optimality.value(values) <= bound)
    return next(kept, 0)


def _eigenvalues(criterion: Criterion, candidate: Candidate) -> Array:
    return criterion.evaluate(along(criterion, candidate.plan)).eigenvalues
