"""Regularizers: distances to the prior, added to the data's equations as one convex program.

All are written in normalised coordinates, where every body's prior is the identity; so units and frames do not matter
to any of them but the Euclidean one, which is there to be compared with.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.bodies.layout import ParameterLayout

from .convex_program import ConvexProgram
from .coordinates import Coordinates
from .distances import IDENTITY, PULLBACK, TRACE, Distance, Entropic, Quadratic, Riemannian
from .point_masses import PointMasses

_BARRIER = 0.05
_ZERO, _LEAST = 1e-3, 0.1  # of its natural size: what counts as zero in a prior, and how far it may then be off

OWN_SPREADS = ("entropic", "pullback")  # regularizers under which single links may have a prior spread of their own


@dataclass(frozen=True)
class Regularization:
    """A regularizer and its weights, the logarithm of the prior density.

    Attributes
    ----------
    regularizer : str
        One of :data:`~inertid_ros.config.identification.REGULARIZERS`:

        - entropic: log-det divergence ([Lee2019]_ eq. 3.5.44), a smooth convex one that keeps bodies physically
          consistent;
        - pullback: constant pullback metric ([Lee2019]_ eq. 3.5.50), quadratic;
        - riemannian: squared geodesic distance ([Lee2019]_ eq. 3.5.53), not convex, found from the entropic solution;
        - euclidean: of parameters in SI units ([Lee2019]_ eq. 3.2.16), as is common in the field; neither frames nor
          units may change;
        - relative: of parameters by the size of their prior ([vanDerGaag2024]_ sec. III-C), for a prior that is right
          up to some per cent of every single parameter; inconsistent bodies are not
          repaired before, but kept in the cone;
        - point_mass: Euclidean distance of point masses that make up the bodies ([Lee2019]_ eq. 3.5.54), by OSQP;
        - geodesic: geodesic distance to the prior and to the hyperplane of every equation ([Lee2019]_ eq. 3.4.37).
    prior_spread : float
        Standard deviation of a body's geodesic distance to its prior.
    drive_weight : float
        Of drive parameters which cannot be negative: an exponential density per normalised
        unit, so that a term stays near zero unless the data ask for it. A weak log barrier ([Lee2019]_ eq. 5.3.30)
        keeps it above zero.
    offset_deviation : float
        Standard deviation of normalised offsets and user terms around zero.
    own_prior_spreads : ndarray or None, shape (nb,)
        Prior spreads of single bodies, NaN where it is ``prior_spread``; of "entropic" and "pullback" only.
    metric : ndarray or None, shape (nb, 10, 10)
        Of the squared distance, of "euclidean", "relative" and "point_mass" only.
    centre : ndarray or None, shape (nb, 10)
        Prior in normalised coordinates, of "relative" only; elsewhere it is the identity.
    points : PointMasses or None
        Of "point_mass" only.
    """

    regularizer: str
    prior_spread: float
    drive_weight: float
    offset_deviation: float
    own_prior_spreads: Array | None = None
    metric: Array | None = None
    points: PointMasses | None = None
    centre: Array | None = None

    def __post_init__(self) -> None:
        if self.own_prior_spreads is not None and self.regularizer not in OWN_SPREADS:
            raise IdentificationError(
                f"identify.spread: regularizer '{self.regularizer}' has one prior spread for all links; choose entropic"
                " or pullback"
            )

    @property
    def weight(self) -> float:
        """``exp(-weight d^2)`` is a normal density of that standard deviation."""
        return 0.5 / self.prior_spread**2

    def spreads(self, bodies: int, of_all: float | None = None) -> Array:
        """``(nb,)`` prior spread of every body; ``of_all``, if given, where it is not its own."""
        of_all = self.prior_spread if of_all is None else of_all
        own = np.full(bodies, np.nan) if self.own_prior_spreads is None else self.own_prior_spreads
        return np.where(np.isnan(own), of_all, own)

    @property
    def distance(self) -> Distance:
        """The squared distance of bodies to their prior."""
        if self.regularizer == "entropic":
            return Entropic()
        if self.regularizer in ("riemannian", "geodesic"):
            return Riemannian()
        return Quadratic(
            PULLBACK if self.metric is None else self.metric, IDENTITY if self.centre is None else self.centre
        )


def euclidean_metric(coordinates: Coordinates, masses: Array) -> Array:
    """``(nb, 10, 10)`` metric of ``1/2 |d pi|^2 / s^2`` over all ten SI numbers of a body.

    One factor serves all bodies: with ``s`` the RMS of the prior masses ``(nb,)`` [kg] a typical mass is as uncertain
    as under the geometric distances. All else follows from the units.
    """
    return np.array([0.5 * block.T @ block for block in coordinates.blocks]) / np.mean(np.square(masses))


def relative_metric(coordinates: Coordinates, bodies: Array) -> Array:
    """``(nb, 10, 10)`` metric of ``sum (d pi / s)^2`` with the sizes ``s`` of the prior's parameters ``(nb, 10)``.

    A parameter that is zero in the prior, as of symmetric bodies, counts as some share of its natural size.
    """
    blocks, bodies = coordinates.blocks, np.abs(bodies)
    natural = np.linalg.norm(blocks @ np.linalg.inv(np.linalg.cholesky(PULLBACK)).T, axis=2)
    scaled = blocks / np.where(bodies > _ZERO * natural, bodies, _LEAST * natural)[..., None]
    return np.array([block.T @ block for block in scaled])


def regularized(R: Array, z: Array, layout: ParameterLayout, regularization: Regularization) -> ConvexProgram:
    """Convex program of whitened equations ``R x = z`` in normalised coordinates with a regularization.

    Quadratic distances become rows, the log-det divergence a barrier. With any other distance there are
    only the terms of the drives; bodies are held in the cone.
    """
    bodies, size, inertial = len(layout.body_names), layout.size, layout.inertial_size
    positive, free = layout.non_negative, layout.of_any_size
    rows = [R, np.eye(size)[free] / regularization.offset_deviation]
    targets = [z, np.zeros(len(free))]
    linear, constant = np.zeros(size), 0.0
    linear[positive] = regularization.drive_weight
    body_weights, weights = np.zeros(bodies), 0.5 / regularization.spreads(bodies) ** 2
    if regularization.regularizer == "entropic":
        linear[:inertial] = np.outer(weights, TRACE).ravel()
        constant -= 4 * float(weights.sum())
        body_weights += weights
    elif isinstance(regularization.distance, Quadratic):
        centre = np.broadcast_to(regularization.distance.centre, (bodies, BODY_PARAMETERS))
        factors = np.linalg.cholesky(weights[:, None, None] * regularization.distance.hessian(centre))
        root = np.pad(block_diag(*factors.swapaxes(1, 2)), ((0, 0), (0, size - inertial)))
        rows.append(root)
        targets.append(root[:, :inertial] @ centre.ravel())
    return ConvexProgram(
        R=np.vstack(rows),
        z=np.concatenate(targets),
        linear=linear,
        body_weights=body_weights,
        positive=positive,
        positive_weights=np.full(len(positive), _BARRIER * regularization.drive_weight),
        constant=constant,
    )
