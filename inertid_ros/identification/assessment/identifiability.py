"""Identifiability of every parameter: identified, in combination only, partly, or left at the prior."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.identification.base_parameters import BaseParameters

IDENTIFIED, COMBINED, PARTLY, PRIOR = (
    "identified",
    "identified only in combination",
    "partly identified",
    "left at the prior",
)
VERDICTS = (PRIOR, PARTLY, COMBINED, IDENTIFIED)  # in ascending order
_IDENTIFIED_SHARE = 0.9  # of the prior variance that the data takes away: the prior is a tenth of what is known
_PARTLY_SHARE = 0.5  # data and prior are equally accurate
_MOVED = 3.0  # prior deviations: farther off, a value is not that of the prior, whatever the share
_MEMBER = 0.1  # what counts as part of a combination: this much of its most uncertain member's standard deviation


@dataclass(frozen=True)
class Identifiability:
    """Identifiability of one standard parameter.

    Attributes
    ----------
    parameter : str
        Its name in the layout.
    verdict : str
        :data:`IDENTIFIED` or :data:`COMBINED` where the data carries nine tenths, :data:`PARTLY` where it carries half
        or the value is three prior deviations off the prior, else :data:`PRIOR`.
    combinations : tuple of str
        Base parameters that the data determines so far and that it matters in, most first; of itself where it is
        identified.
    share : float
        Largest share of the prior variance, 0 to 1, that the data removes from a base parameter with this one.
    relative_deviation : float
        Standard deviation of the estimate over the size of its value; infinite where the value is zero.
    moved : float
        Value less that of the prior, in prior deviations; in its own where they are larger.
    """

    parameter: str
    verdict: str
    combinations: tuple[str, ...]
    share: float
    relative_deviation: float = float("inf")
    moved: float = 0.0

    @property
    def shown_by_data(self) -> bool:
        """Whether the data show half of a base parameter with it; how far it moved counts for nothing here."""
        return self.share >= _PARTLY_SHARE

    def __str__(self) -> str:
        which = f" {self.combinations[0]}" if self.verdict == COMBINED else ""
        moved = f" ({abs(self.moved):.2g} prior deviations off the prior)" if abs(self.moved) >= _MOVED else ""
        return f"{self.parameter}: {self.verdict}{which}{moved}"


def identifiability(
    base: BaseParameters, base_shares: Array, prior: Array, relative_deviation: Array, moved: Array
) -> tuple[Identifiability, ...]:
    """Identifiability of every standard parameter, in the order of the layout.

    Parameters
    ----------
    base : BaseParameters
        Of the data.
    base_shares : ndarray, shape (r,)
        Share of the prior variance of each base parameter that the data removes, 0 to 1.
    prior : ndarray, shape (p, p)
        Covariance of the standard parameters before the data.
    relative_deviation, moved : ndarray, shape (p,)
        Of the standard parameters, see :class:`Identifiability`.
    """
    deviation = np.abs(base.projection) * np.sqrt(np.diagonal(prior))
    weight = deviation / np.maximum(deviation.max(axis=1, keepdims=True), np.finfo(float).tiny)
    alone, names = set(base.alone.tolist()), base.names
    parameters = []
    for column, name in enumerate(base.layout.names):
        members = np.flatnonzero(weight[:, column] >= _MEMBER)
        share = float(base_shares[members].max(initial=0.0))
        verdict = IDENTIFIED if column in alone else COMBINED
        within = members[base_shares[members] >= _IDENTIFIED_SHARE]
        if len(within) == 0:
            off = abs(moved[column]) >= _MOVED
            within = members if off else members[base_shares[members] >= _PARTLY_SHARE]
            verdict = PARTLY if off or len(within) else PRIOR
        within = within[np.argsort(-weight[within, column], kind="stable")]
        combinations = tuple(names[row] for row in within)
        parameters.append(
            Identifiability(name, verdict, combinations, share, float(relative_deviation[column]), float(moved[column]))
        )
    return tuple(parameters)
