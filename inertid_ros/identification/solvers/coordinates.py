"""Normalised coordinates, in which the prior pseudo-inertia of every body is the identity, and distances in them.

With the prior pseudo-inertia ``L L^T`` and ``J(pi) = L S L^T``, the coordinates of ``S`` do not depend on units and
frames. The geometric regularizers have one form for every body, and the problem is as well conditioned as the data
allow ([Lee2019]_ eq. 3.3.24). The entropic, pullback and geodesic distances of a body to its prior are functions of
``S`` alone, so they do not depend on frames and units either ([Lee2019]_ sec. 3.3).
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core import inertial_parameters as inertial
from inertid_ros.core.arrays import Array, Indices, Mask, is_positive_definite
from inertid_ros.identification.information.information import Information
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

IDENTITY = inertial.from_pseudo_inertia(np.eye(4))
TRACE = np.trace(inertial.PSEUDO_INERTIA_BASIS, axis1=1, axis2=2)
# pullback metric at the identity, g = 1/2 tr(E_k E_l) ([Lee2019]_ eq. 3.3.30, appendix B.1)
PULLBACK = 0.5 * np.einsum("kij,lji->kl", inertial.PSEUDO_INERTIA_BASIS, inertial.PSEUDO_INERTIA_BASIS)
_COINCIDENT_DIFFERENCE = 1e-7  # relative difference of eigenvalues below which they count as equal
TYPICAL_PRIOR_SPREAD = 0.3  # geodesic distance of CAD links to real ones: a few tens of per cent in mass and size
ENERGY_SHARE = 0.05  # scale of a drive parameter: its torque is this share of the joint's torque
_MIN_PRIOR_SIZE_SHARE = 0.1  # of the size by the metric: least size of a prior, since zero would fix the parameter
_CONTRADICTED_FACTOR = 3.0  # times the measurement of a joint's channel: larger friction is impossible
_STILL_EFFECT = 1e-4  # rad, rad/s, rad/s^2, or m for rad; a joint that moves less does not excite its drive


@dataclass(frozen=True)
class Quadratic:
    """Quadratic distance ``sum (x - x0)^T g (x - x0)`` with a metric g.

    The metric is the constant pullback ([Lee2019]_ eq. 3.3.32), Euclidean, relative, or of point masses.

    Attributes
    ----------
    centre : (nb, 10) or (10,), x0; the prior, which is the identity for a consistent body
    """

    metric: Array
    centre: Array = field(default_factory=IDENTITY.copy)

    def value(self, bodies: Array) -> float:
        return float(np.sum((bodies - self.centre) * self.gradient(bodies)) / 2)

    def gradient(self, bodies: Array) -> Array:
        return 2 * np.asarray((self.metric @ (bodies - self.centre)[..., None])[..., 0])

    def hessian(self, bodies: Array) -> Array:
        """Hessian ``(nb, 10, 10)``, one block per body."""
        return np.array(np.broadcast_to(2 * self.metric, (len(bodies), *self.metric.shape[-2:])))


@dataclass(frozen=True)
class Entropic:
    """Log-det divergence ``tr S - log det S - 4`` ([Lee2019]_ eq. 3.3.28)."""

    def value(self, bodies: Array) -> float:
        S = inertial.pseudo_inertia(bodies)
        sign, logarithm = np.linalg.slogdet(S)
        if not is_positive_definite(S):
            return np.inf
        return float(np.einsum("bii->", S) - 4 * len(S) - logarithm.sum())

    def gradient(self, bodies: Array) -> Array:
        return _trace_with_basis(np.eye(4) - np.linalg.inv(inertial.pseudo_inertia(bodies)))

    def hessian(self, bodies: Array) -> Array:
        inverse = np.linalg.inv(inertial.pseudo_inertia(bodies))[:, None]
        basis = inertial.PSEUDO_INERTIA_BASIS
        return np.einsum("bkij,lji->bkl", inverse @ basis @ inverse, basis)


@dataclass(frozen=True)
class Riemannian:
    """Squared geodesic distance ``1/2 |log S|^2`` ([Lee2019]_ eq. 3.3.25), not convex if an eigenvalue exceeds e."""

    def value(self, bodies: Array) -> float:
        S = inertial.pseudo_inertia(bodies)
        if not is_positive_definite(S):
            return np.inf
        return float(0.5 * np.sum(np.log(np.linalg.eigvalsh(S)) ** 2))

    def gradient(self, bodies: Array) -> Array:
        values, vectors = np.linalg.eigh(inertial.pseudo_inertia(bodies))
        return _trace_with_basis((vectors * (np.log(values) / values)[:, None]) @ np.swapaxes(vectors, 1, 2))

    def hessian(self, bodies: Array) -> Array:
        """Hessian, diagonal in the eigenvectors of S: divided differences of the derivative ``log(x) / x``."""
        values, vectors = np.linalg.eigh(inertial.pseudo_inertia(bodies))
        turned = np.swapaxes(vectors, 1, 2)[:, None] @ inertial.PSEUDO_INERTIA_BASIS @ vectors[:, None]
        first, second = values[:, :, None], values[:, None, :]
        step = second / first - 1
        together = np.abs(step) < _COINCIDENT_DIFFERENCE
        apart = np.where(together, 1.0, step)
        slope = np.where(together, 1 - step / 2, np.log1p(apart) / apart)
        weights = (slope - np.log(first)) / (first * second)
        return np.einsum("bkij,bij,blij->bkl", turned, weights, turned)


Distance = Quadratic | Entropic | Riemannian
"""A squared distance to the prior, summed over bodies ``(nb, 10)`` in normalised coordinates, with derivatives."""


def _trace_with_basis(matrices: Array) -> Array:
    """Convert a gradient with respect to S ``(nb, 4, 4)`` to a gradient with respect to parameters ``(nb, 10)``."""
    return np.einsum("kij,bij->bk", inertial.PSEUDO_INERTIA_BASIS, matrices)


@dataclass(frozen=True)
class Coordinates:
    """Affine map ``parameters = offset + matrix @ normalised``.

    Attributes
    ----------
    offset : (p,), known contribution of links behind locked joints
    prior : (p,), prior in normalised coordinates; every body is the identity there
    """

    layout: ParameterLayout
    matrix: Array
    offset: Array
    prior: Array

    def physical(self, normalised: Array) -> Array:
        return self.offset + self.matrix @ normalised

    @property
    def blocks(self) -> Array:
        """``(nb, 10, 10)`` blocks of the matrix, one per body."""
        spans = map(self.layout.body, range(len(self.layout.body_names)))
        return np.array([self.matrix[span, span] for span in spans])

    def normalise(self, R: Array, z: Array) -> tuple[Array, Array]:
        """Convert equations ``R x = z`` to normalised coordinates."""
        return R @ self.matrix, z - R @ self.offset


def normalised_coordinates(
        layout: ParameterLayout, bodies: Array, locked: Array, drives: Array, drive_scale: Array) -> Coordinates:
    """Coordinates around a physically consistent prior.

    Parameters
    ----------
    bodies, locked : (nb, 10), prior of links and rotors, and the known part of it; their difference must be consistent
    drives, drive_scale : (p - 10 nb,), prior and scale of the drive parameters
    """
    factors = np.linalg.cholesky(inertial.pseudo_inertia(bodies - locked))
    blocks = [inertial.from_pseudo_inertia(L @ inertial.PSEUDO_INERTIA_BASIS @ L.T).T for L in factors]
    matrix, offset = block_diag(*blocks, np.diag(drive_scale)), np.append(locked, np.zeros(len(drives)))
    identity = np.tile(inertial.from_pseudo_inertia(np.eye(4)), len(bodies))
    return Coordinates(layout, matrix, offset, np.concatenate([identity, drives / drive_scale]))


def prior_coordinates(model: RobotModel, information: Information) -> Coordinates:
    """Normalised coordinates; a drive parameter of one explains a small share of its channel's measurement."""
    layout = model.layout
    scale, _ = _drive_scale(layout, information)
    prior, tail, positive = model.prior.copy(), slice(layout.inertial_size, None), layout.non_negative
    # The scale is at least the measured scale: damping and friction of a URDF are often placeholders near zero. Zero
    # replaces a prior beyond the measurement.
    prior[contradicted_friction(model, information)] = 0.0
    scale[positive] = np.maximum(scale[positive], prior[positive])
    # A rotor inertia of known prior is 1, like the prior of a body is the identity.
    rotors = layout.rotor_inertias
    scale[rotors] = np.where(prior[rotors] > 0, prior[rotors], scale[rotors])
    return normalised_coordinates(layout, model.consistent_prior, model.inertial_locked, prior[tail], scale[tail])


def contradicted_friction(model: RobotModel, information: Information) -> Indices:
    """Columns of drive parameters whose prior exceeds the joints' measurements; fits replace the prior by zero."""
    layout, prior = model.layout, model.prior
    scale, excited = _drive_scale(layout, information)
    positive = layout.non_negative
    beyond = prior[positive] * ENERGY_SHARE > _CONTRADICTED_FACTOR * scale[positive]
    return np.asarray(positive[excited[positive] & beyond])


def _drive_scale(layout: ParameterLayout, information: Information) -> tuple[Array, Mask]:
    """Drive parameters ``(p,)`` that explain a small share of their channels' measurement, and mask of excited ones."""
    torque = np.maximum(information.rms_measured, 1e-3 * information.rms_measured.max())
    scale, unmeasured = np.full(layout.size, np.inf), np.full(layout.size, np.inf)
    excited = np.zeros(layout.size, dtype=bool)
    for channel, level in zip(information.channels, torque, strict=True):
        effect = np.linalg.norm(channel.r_factor[:, :-1], axis=0) / np.sqrt(max(channel.count, 1))
        excited[channel.columns] |= (effect > _STILL_EFFECT) & (channel.count > 0)
        effect = np.where(effect > _STILL_EFFECT, effect, 1.0)  # not excited: as if the joint moved at a rate of one
        # If a drive acts on two joints and one of them reports no effort, the other joint sets the scale.
        of_channel = scale if channel.count else unmeasured
        of_channel[channel.columns] = np.minimum(of_channel[channel.columns], ENERGY_SHARE * level / effect)
    scale = np.where(np.isinf(scale), unmeasured, scale)
    scale[np.isinf(scale)] = 1.0  # momentum equations do not contain drives
    return scale, excited


def scaling_matrix(scaling: str, coordinates: Coordinates) -> Array:
    """Scaling matrix H ``(p, p)``: a change ``H y`` of the parameters has the length ``|y|``.

    Parameters
    ----------
    scaling : str
        "metric", the pullback metric at the prior, independent of units and frames ([Lee2019]_ eq. 4.3.29-32); "prior",
        each column by the size of its prior ([vanDerGaag2024]_ sec. III-C), independent of units; "none".
    """
    if scaling == "none":
        return np.eye(coordinates.layout.size)
    metric = prior_covariance_root(coordinates, TYPICAL_PRIOR_SPREAD) / TYPICAL_PRIOR_SPREAD
    if scaling == "metric":
        return metric
    prior = np.abs(coordinates.physical(coordinates.prior))
    return np.diag(np.maximum(prior, _MIN_PRIOR_SIZE_SHARE * np.linalg.norm(metric, axis=1)))


def body_spreads(common: float, own: Array | None, bodies: int) -> Array:
    """Prior spread ``(nb,)`` of every body: its own, or the common spread if its own is NaN or none is given."""
    return np.full(bodies, common) if own is None else np.where(np.isnan(own), common, own)


def prior_covariance_root(coordinates: Coordinates, prior_spread: float | Array) -> Array:
    """Square root ``(p, p)`` of the covariance ``root @ root.T`` of the prior.

    Bodies are normal under the pullback metric ([Lee2019]_ eq. 4.3.37). The standard deviation of a drive parameter is
    its prior; or if larger, and not for a rotor inertia, the value that explains a small share of the joint's torque.
    Offsets and user terms may be as large as the torque.

    Parameters
    ----------
    prior_spread : (nb,), standard deviation of a body's geodesic distance per direction
    """
    layout, root = coordinates.layout, coordinates.matrix.copy()
    shape, bodies = np.linalg.inv(np.linalg.cholesky(PULLBACK)).T, len(layout.body_names)
    for body, of_body in enumerate(np.broadcast_to(prior_spread, bodies)):
        block = layout.body(body)
        root[block, block] = of_body * root[block, block] @ shape
    root[:, layout.of_any_size] /= ENERGY_SHARE
    return root
