"""Identifiability of every parameter: identified, identified in combination only, or left at the prior."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.identification.base_parameters import BaseParameters

IDENTIFIED, COMBINED, PRIOR = "identified", "identified only in combination", "left at the prior"
VERDICTS = (PRIOR, COMBINED, IDENTIFIED)  # in ascending order
_IDENTIFIED_SHARE = 0.5  # share of the prior variance that the data takes away where both are equally accurate
_MEMBER = 0.1  # what counts as part of a combination: this much of its most uncertain member's standard deviation


@dataclass(frozen=True)
class Identifiability:
    """Identifiability of one standard parameter.

    Attributes
    ----------
    parameter : str
        Its name in the layout.
    verdict : str
        :data:`IDENTIFIED`, :data:`COMBINED` or :data:`PRIOR`.
    combinations : tuple of str
        Base parameters that the data determines and that it matters in, most first; of itself where it is identified.
    share : float
        Largest share of the prior variance, 0 to 1, that the data removes from a base parameter with this one.
    """

    parameter: str
    verdict: str
    combinations: tuple[str, ...]
    share: float

    def __str__(self) -> str:
        which = f" {self.combinations[0]}" if self.verdict == COMBINED else ""
        return f"{self.parameter}: {self.verdict}{which}"


def identifiability(base: BaseParameters, base_shares: Array, prior: Array) -> tuple[Identifiability, ...]:
    """Identifiability of every standard parameter, in the order of the layout.

    A base parameter is identified where the data determines it at least as accurately as the prior does.

    Parameters
    ----------
    base : BaseParameters
        Of the data.
    base_shares : ndarray, shape (r,)
        Share of the prior variance of each base parameter that the data removes, 0 to 1.
    prior : ndarray, shape (p, p)
        Covariance of the standard parameters before the data.
    """
    deviation = np.abs(base.projection) * np.sqrt(np.diagonal(prior))
    weight = deviation / np.maximum(deviation.max(axis=1, keepdims=True), np.finfo(float).tiny)
    alone, names = set(base.alone.tolist()), base.names
    parameters = []
    for column, name in enumerate(base.layout.names):
        within = np.flatnonzero(weight[:, column] >= _MEMBER)
        share = float(base_shares[within].max(initial=0.0))
        within = within[base_shares[within] >= _IDENTIFIED_SHARE]
        within = within[np.argsort(-weight[within, column], kind="stable")]
        verdict = PRIOR if len(within) == 0 else IDENTIFIED if column in alone else COMBINED
        parameters.append(Identifiability(name, verdict, tuple(names[row] for row in within), share))
    return tuple(parameters)
