"""Bodies perturbed by point masses that are added or taken away, as a wrong prior ([Lee2019]_ sec. B.2)."""

import numpy as np

from inertid_ros.config.simulation import PerturbationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.ellipsoids import Ellipsoid
from inertid_ros.robot.bodies.inertial_parameters import from_pseudo_inertia, is_consistent, pseudo_inertia

from .model import RobotModel

_ATTEMPTS = 100


def perturb(model: RobotModel, rng: np.random.Generator, options: PerturbationOptions | None = None) -> Array:
    """``(nb, 10)`` perturbed parameters of the moving bodies of a robot; all are physically consistent.

    What links behind locked joints contribute stays, so that the result can be written to a URDF.
    """
    own = model.consistent_body_prior - model.body_locked
    return np.array([perturb_body(pi, rng, options) if pi.any() else pi for pi in own]) + model.body_locked


def perturb_body(pi: Array, rng: np.random.Generator, options: PerturbationOptions | None = None) -> Array:
    """One body ``(10,)`` with point masses ([Lee2019]_ eq. B.2.11): ``P + sum_i dm eta_i [x_i; 1] [x_i; 1]^T``.

    The mass change ``dm`` is uniform in ``[-d m, d m]``; the shares ``eta_i`` are uniform on the simplex, the points
    ``x_i`` uniform in the ellipsoid. Where taking mass away leaves no physically consistent body, the points are
    drawn again, and in the end less is taken.
    """
    options = options or PerturbationOptions()
    P, region = pseudo_inertia(pi), Ellipsoid.of_body(pi)
    change = options.mass_uncertainty * float(pi[0]) * rng.uniform(-1.0, 1.0)
    while True:
        for _ in range(_ATTEMPTS):
            shares = rng.dirichlet(np.ones(options.point_masses))
            points = region.uniform(rng, options.point_masses, options.region_scale)
            points = np.column_stack([points, np.ones(options.point_masses)])
            perturbed = from_pseudo_inertia(P + change * np.einsum("i,ij,ik->jk", shares, points, points))
            if is_consistent(perturbed):
                return perturbed
        change *= 0.5
