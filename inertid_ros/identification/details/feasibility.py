"""How far every body is from what no body can be."""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.robot.bodies.inertial_parameters import is_consistent, mass_com_inertia, pseudo_inertia


@dataclass(frozen=True)
class FeasibilityMargin:
    """Margins of one body; all are positive if and only if a real body can have its parameters.

    Attributes
    ----------
    link : str
        Its name.
    smallest_eigenvalue : float
        Of the pseudo-inertia; its unit depends on the frame.
    relative_eigenvalue : float
        Smallest eigenvalue of the pseudo-inertia over that of the URDF as given (repaired where it is inconsistent),
        as of a generalised eigenvalue problem: free of units and frames, 1 where nothing changed.
    triangle : float
        Sum of the two smaller principal moments of inertia less the largest, over the largest: 0 of a flat plate, 1 of
        a ball.
    consistent : bool
        Whether the body is physically consistent.
    """

    link: str
    smallest_eigenvalue: float
    relative_eigenvalue: float
    triangle: float
    consistent: bool


def feasibility_margins(estimate: Estimate) -> tuple[FeasibilityMargin, ...]:
    """Margins of every moving body, in the order of the model."""
    own, given = pseudo_inertia(estimate.bodies), pseudo_inertia(estimate.model.consistent_body_prior)
    moments = np.linalg.eigvalsh(mass_com_inertia(estimate.bodies).inertia)
    largest = np.where(moments[:, 2] != 0, moments[:, 2], np.nan)
    triangle = (moments[:, 0] + moments[:, 1] - moments[:, 2]) / largest
    consistent = is_consistent(estimate.bodies)
    return tuple(
        FeasibilityMargin(
            name,
            float(estimate.min_eigenvalues[i]),
            float(scipy.linalg.eigh(own[i], given[i], eigvals_only=True)[0]),
            float(triangle[i]),
            bool(consistent[i]),
        )
        for i, name in enumerate(estimate.model.link_names)
    )
