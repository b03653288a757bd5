"""Reduced excitation: drop parameter combinations until the others can be excited well ([Lee2019]_ sec. 4.5.2).

The source drops one combination of parameters at a time and optimises again. The criterion falls as fewer count,
so the largest number that can be brought below the bound is found by bisection; every motion on the way also shows for
how many combinations it is already good enough.
"""

from collections.abc import Callable
from dataclasses import replace

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.criteria.criterion import Criterion

from .descent import Candidate, motion_samples

Improve = Callable[[int, Candidate], Candidate]
"""Optimises a candidate again with the given number of combinations in the criterion."""


def reduce_excitation(
    criterion: Criterion, best: Candidate, bound: float, improve: Improve
) -> tuple[int, Candidate]:
    """The largest number of combinations whose criterion can be brought to at most ``bound``, and the motion.

    Parameters
    ----------
    criterion : Criterion
        Of all combinations.
    best : Candidate
        Motion optimised for all of them.
    bound : float
        Of the exact criterion.
    improve : callable
        Optimises for fewer combinations.

    Raises
    ------
    ExcitationError
        The bound cannot be reached even for one combination.
    """
    if best.value <= bound:
        return criterion.optimality.kept or criterion.count, best
    low, reduced = excited_count(criterion, best, bound), best
    high = (criterion.optimality.kept or criterion.count) - 1
    while low < high:
        middle = (low + high + 1) // 2
        candidate = improve(middle, reduced)
        if candidate.value <= bound:
            low, reduced = max(middle, min(excited_count(criterion, candidate, bound), high)), candidate
        else:
            high = middle - 1
    if low == 0:
        raise ExcitationError(
            f"excitation.criterion_bound {bound:g} cannot be reached for a single combination of parameters; raise it"
        )
    value = criterion.keeping(low).optimality.value(_eigenvalues(criterion, reduced))
    return low, replace(reduced, value=value)


def excited_count(criterion: Criterion, candidate: Candidate, bound: float) -> int:
    """Largest number of combinations for which a motion keeps the bound."""
    values = _eigenvalues(criterion, candidate)
    kept = (n for n in range(len(values), 0, -1) if criterion.keeping(n).optimality.value(values) <= bound)
    return next(kept, 0)


def _eigenvalues(criterion: Criterion, candidate: Candidate) -> Array:
    return criterion.evaluate(motion_samples(criterion, candidate.plan)).eigenvalues
