"""Inertial parameters of one rigid body, their equivalent forms, and ellipsoids that bound its mass.

Everywhere in the project parameters have the order of Pinocchio's ``Inertia.toDynamicParameters``::

    pi = (m, m c_x, m c_y, m c_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)

with the inertia about the origin of the joint frame, in SI units. Functions accept any number of leading axes, so that
a robot of ``nb`` bodies is one array ``(nb, 10)``.

Sources: [Lee2019]_ sec. 3.2.1 (pseudo-inertia, eqs. 3.2.5-3.2.7) and sec. 3.3 (distances, eq. 3.3.25), [Wensing2018]_
def. 7 and theorem 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array, Mask, skew
from .errors import ModelError

BODY_PARAMETERS = 10
INERTIA_ELEMENTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # in the order of the parameters
POSITIVE = (0, 4, 6, 9)  # indices of mass and diagonal of the inertia
_MIN_MOMENT_RATIO = 0.01  # smallest to largest second moment of a body that is made consistent
_FLAT_MOMENT_RATIO = 1e-9  # smallest to largest second moment; in a thinner body rounding is the only thickness
_MAX_MEAN_STEPS, _MEAN_TOLERANCE = 1000, 1e-8  # 50 steps suffice for moments that differ by a factor of 10^5
URDF_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


class MassComInertia(NamedTuple):
    """Mass [kg], centre of mass ``(..., 3)`` [m] in the frame of a body, inertia ``(..., 3, 3)`` [kg m^2] about it."""

    mass: Array
    com: Array
    inertia: Array

    @property
    def numbers(self) -> Array:
        """``(10,)`` of one body: mass, com, and inertia about the com as xx, xy, xz, yy, yz, zz (like URDF and ROS)."""
        return np.array([self.mass, *self.com, *self.inertia[np.triu_indices(3)]])


def second_moments(inertia: Array) -> Array:
    """Second moments ``1/2 tr(I) 1 - I`` of an inertia ``(..., 3, 3)``, about the same point as the inertia."""
    return np.asarray(0.5 * np.trace(inertia, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - inertia)


def inertia_of_moments(moments: Array) -> Array:
    """Inertia ``tr(S) 1 - S`` of second moments; inverse of :func:`second_moments`."""
    return np.asarray(np.trace(moments, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - moments)


def pseudo_inertia(pi: ArrayLike) -> Array:
    """Pseudo-inertia ``J = [[Sigma, h], [h^T, m]]``, ``(..., 10)`` to ``(..., 4, 4)`` ([Lee2019]_ eq. 3.2.5)."""
    pi = np.asarray(pi, dtype=float)
    return (pi @ _FLAT_BASIS).reshape(*pi.shape[:-1], 4, 4)


def from_pseudo_inertia(matrix: ArrayLike) -> Array:
    """Inverse of :func:`pseudo_inertia`: ``(..., 4, 4)`` to ``(..., 10)``."""
    J = np.asarray(matrix, dtype=float)
    return np.concatenate([J[..., 3:4, 3], J[..., :3, 3], _upper(inertia_of_moments(J[..., :3, :3]))], axis=-1)


def inertia_about_origin(pi: ArrayLike) -> Array:
    """Rotational inertia about the joint frame origin, ``(..., 3, 3)`` [kg m^2]."""
    return np.take(np.asarray(pi, dtype=float), [[4, 5, 7], [5, 6, 8], [7, 8, 9]], axis=-1)


def _pseudo_inertia_basis() -> Array:
    """``(10, 4, 4)`` symmetric matrices E_k with ``J(pi) = sum_k pi_k E_k``."""
    unit, basis = np.eye(BODY_PARAMETERS), np.zeros((BODY_PARAMETERS, 4, 4))
    basis[:, 3, 3] = unit[:, 0]
    basis[:, :3, 3] = basis[:, 3, :3] = unit[:, 1:4]
    basis[:, :3, :3] = second_moments(inertia_about_origin(unit))
    basis.flags.writeable = False
    return basis


PSEUDO_INERTIA_BASIS = _pseudo_inertia_basis()
_FLAT_BASIS = PSEUDO_INERTIA_BASIS.reshape(BODY_PARAMETERS, 16)


def symmetric(elements: ArrayLike) -> Array:
    """Symmetric matrix ``(3, 3)`` from xx, xy, xz, yy, yz, zz, the order of URDF and ROS."""
    return np.take(np.asarray(elements, dtype=float), [[0, 1, 2], [1, 3, 4], [2, 4, 5]])


def mass_com_inertia(pi: ArrayLike) -> MassComInertia:
    """Split into mass, centre of mass and inertia about the centre of mass; a body of zero mass has com 0."""
    pi = np.asarray(pi, dtype=float)
    mass = pi[..., 0]
    com = np.divide(pi[..., 1:4], mass[..., None], out=np.zeros_like(pi[..., 1:4]), where=mass[..., None] != 0)
    shift = skew(com)
    inertia = inertia_about_origin(pi) + mass[..., None, None] * (shift @ shift)
    return MassComInertia(mass, com, inertia)


def from_mass_com_inertia(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Inverse of :func:`mass_com_inertia`: ``(...)``, ``(..., 3)``, ``(..., 3, 3)`` about the com to ``(..., 10)``."""
    m, c = np.asarray(mass, dtype=float), np.asarray(com, dtype=float)
    shift = skew(c)
    about_origin = np.asarray(inertia, dtype=float) - m[..., None, None] * (shift @ shift)
    return np.concatenate([m[..., None], m[..., None] * c, _upper(about_origin)], axis=-1)


def transform(pi: ArrayLike, rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Parameters in frame a, from the parameters in frame b and the pose of b in a ([Lee2019]_ eq. 3.3.24).

    ``x_a = rotation @ x_b + translation``.
    """
    placement = np.zeros((4, 4))
    placement[:3, :3], placement[:3, 3], placement[3, 3] = rotation, translation, 1.0
    return from_pseudo_inertia(placement @ pseudo_inertia(pi) @ placement.T)


def min_eigenvalue(pi: ArrayLike) -> Array:
    """Smallest eigenvalue of the pseudo-inertia, ``(...)``; positive if and only if a real body can have ``pi``."""
    return np.asarray(np.linalg.eigvalsh(pseudo_inertia(pi))[..., 0], dtype=float)


def is_consistent(pi: ArrayLike) -> Mask:
    """True for each body that is physically consistent: ``J(pi)`` positive definite ([Lee2019]_ eq. 3.2.7,
    [Wensing2018]_ theorem 3)."""
    pi = np.asarray(pi, dtype=float)
    finite = np.isfinite(pi).all(axis=-1)
    return finite & (min_eigenvalue(np.where(finite[..., None], pi, 0.0)) > 0.0)


def is_semi_consistent(pi: ArrayLike) -> Mask:
    """True for each body of positive mass and positive definite inertia about its centre of mass ([Wensing2018]_
    def. 4); its principal moments may break the triangle inequality."""
    mass, _, inertia = mass_com_inertia(pi)
    return np.asarray((mass > 0) & (np.linalg.eigvalsh(inertia)[..., 0] > 0))


def nearest_consistent(pi: ArrayLike) -> Array:
    """Bodies ``(..., 10)`` with second moments about the com raised until they are consistent.

    Mass and com stay. Eigenvalues of the second moment matrix below a bound are raised to it: the result is the nearest
    matrix in the Frobenius norm. The bound is a hundredth of the largest eigenvalue, or of ``m (1 cm)^2`` if that is
    larger. Consistent bodies change only if they are flat (discs): an ellipsoid around a flat body has no interior.
    """
    pi = np.asarray(pi, dtype=float)
    mass, com, inertia = mass_com_inertia(pi)
    values, vectors = np.linalg.eigh(second_moments(inertia))
    bound = np.maximum(_MIN_MOMENT_RATIO * values[..., -1:], 1e-4 * np.abs(mass)[..., None] * _MIN_MOMENT_RATIO)
    lifted = (vectors * np.maximum(values, bound)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    thick = is_consistent(pi) & (values[..., 0] > _FLAT_MOMENT_RATIO * values[..., -1])
    return np.where(thick[..., None], pi, from_mass_com_inertia(mass, com, inertia_of_moments(lifted)))


def relative_pseudo_inertia(lower: np.ndarray, pi: Array) -> Array:
    """``L^-1 J L^-T`` of bodies ``(..., 10)``, with Cholesky factors ``L`` (``lower``) of other pseudo-inertias."""
    inner = np.linalg.solve(lower, pseudo_inertia(pi))
    return np.asarray(np.linalg.solve(lower, np.swapaxes(inner, -1, -2)))


def geodesic_distance(pi: ArrayLike, other: ArrayLike) -> Array:
    """Affine-invariant Riemannian distance ``(...)`` of two bodies ([Lee2019]_ eq. 3.3.25), independent of
    units and frames.

    ``d^2 = 1/2 sum_k log^2 lambda_k(J_1^{-1} J_2)``. Infinite if either body is not physically consistent.
    """
    first, second = np.broadcast_arrays(np.asarray(pi, dtype=float), np.asarray(other, dtype=float))
    valid = is_consistent(first) & is_consistent(second)
    unit = from_pseudo_inertia(np.eye(4))
    lower = np.linalg.cholesky(pseudo_inertia(np.where(valid[..., None], first, unit)))
    whitened = relative_pseudo_inertia(lower, np.where(valid[..., None], second, unit))
    eigenvalues = np.linalg.eigvalsh(0.5 * (whitened + np.swapaxes(whitened, -1, -2)))
    distance = np.sqrt(0.5 * np.sum(np.log(np.maximum(eigenvalues, np.finfo(float).tiny)) ** 2, axis=-1))
    return np.where(valid, distance, np.inf)


def karcher_mean(bodies: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Mean ``(..., 10)`` of ``m`` values ``(m, ..., 10)`` of each body, independent of units and frames.

    It has the least weighted sum of squared geodesic distances ([Lee2019]_ eq. 3.4.42) and is unique. Weights ``(m,)``
    are above zero, and equal by default. Raises ModelError: a body is not physically consistent.
    """
    points = np.asarray(bodies, dtype=float)
    shares = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=float)
    shares = shares / shares.sum()
    mean = pseudo_inertia(np.tensordot(shares, points, axes=1))
    for _ in range(_MAX_MEAN_STEPS if is_consistent(points).all() else 0):
        lower = np.linalg.cholesky(mean)
        values, vectors = np.linalg.eigh(relative_pseudo_inertia(lower, points))
        logarithms = np.log(values)
        gradient = np.tensordot(shares, (vectors * logarithms[..., None, :]) @ np.swapaxes(vectors, -1, -2), axes=1)
        if np.linalg.norm(gradient, axis=(-2, -1)).max() <= _MEAN_TOLERANCE:
            return from_pseudo_inertia(mean)
        # The curvature along a geodesic is at least 1, and at most c coth c for eigenvalues over a range of exp(2 c);
        # a step of 2 over the sum of both bounds converges fastest ([Bini2013]_).
        c = np.maximum(0.5 * (logarithms[..., -1] - logarithms[..., 0]), np.finfo(float).eps)
        step = 2 / (1 + np.tensordot(shares, c / np.tanh(c), axes=1))
        values, vectors = np.linalg.eigh(step[..., None, None] * gradient)
        lower = lower @ vectors * np.exp(0.5 * values)[..., None, :]
        mean = lower @ np.swapaxes(lower, -1, -2)
    raise ModelError("mean of bodies: a body is not physically consistent, or has hardly any mass; correct it")


def _upper(inertia: Array) -> Array:
    """(xx, xy, yy, xz, yz, zz) of ``(..., 3, 3)``."""
    rows, columns = zip(*INERTIA_ELEMENTS, strict=True)
    return inertia[..., rows, columns]


def uniform_ellipsoid(pi: Array) -> tuple[Array, Array, Array]:
    """Centre (3,) [m], rotation (3, 3) of the axes, and semi-axes r (3,) [m] of the uniform ellipsoid with the mass,
    centre of mass and second moments (``m r^2 / 5`` about the centre) of a body ``(10,)``.
    """
    ellipsoid = Ellipsoid.from_body(pi)
    squares, axes = np.linalg.eigh(ellipsoid.shape)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    return ellipsoid.centre, axes, np.sqrt(np.maximum(squares, 0.0))


@dataclass(frozen=True)
class Ellipsoid:
    """``{x : (x - centre)^T shape^-1 (x - centre) <= 1}`` in the link's frame ([Wensing2018]_ eqs. 21-23).

    Attributes
    ----------
    centre : (3,), centre [m].
    shape : (3, 3), positive definite [m^2]; the semi-axes are the square roots of its eigenvalues.
    """

    centre: Array
    shape: Array

    @classmethod
    def from_axes(cls, centre: Array, rotation: Array, semi_axes: Array) -> "Ellipsoid":
        """Ellipsoid with semi-axes ``(3,)`` [m] along the columns of ``rotation``."""
        return cls(np.asarray(centre, dtype=float), rotation @ np.diag(np.square(semi_axes)) @ rotation.T)

    @classmethod
    def around_box(cls, centre: Array, rotation: Array, half_sizes: Array) -> "Ellipsoid":
        """Smallest ellipsoid through the corners of a box."""
        return cls.from_axes(centre, rotation, np.sqrt(3.0) * np.asarray(half_sizes, dtype=float))

    @classmethod
    def around_cylinder(cls, centre: Array, rotation: Array, radius: float, length: float) -> "Ellipsoid":
        """Smallest ellipsoid around a cylinder along z."""
        return cls.from_axes(centre, rotation, np.sqrt([1.5, 1.5, 3.0]) * [radius, radius, 0.5 * length])

    @classmethod
    def from_quadric(cls, Q: Array) -> "Ellipsoid":
        """Ellipsoid from ``Q`` ``(4, 4)`` of any scale with ``[x; 1]^T Q [x; 1] >= 0`` inside; see :attr:`quadric`.

        Raises
        ------
        ModelError
            Q is not an ellipsoid (for example a hyperboloid), or has the opposite sign.
        """
        Q = 0.5 * (np.asarray(Q, dtype=float) + np.transpose(Q))
        inverse = -Q[:3, :3]
        try:
            np.linalg.cholesky(inverse)
        except (np.linalg.LinAlgError, ValueError):
            raise ModelError("ellipsoid: the upper left 3 x 3 of Q is not negative definite; change its sign") from None
        centre: Array = np.asarray(np.linalg.solve(inverse, Q[:3, 3]), dtype=float)
        size = float(Q[3, 3] + centre @ inverse @ centre)
        if not size > 0:
            raise ModelError("ellipsoid: no point is inside of Q; correct its last element")
        return cls(centre, np.asarray(size * np.linalg.inv(inverse), dtype=float))

    @classmethod
    def from_body(cls, pi: Array, scale: float = 1.0) -> "Ellipsoid":
        """Homogeneous ellipsoid with com and second moments of a body ``(10,)``; ``scale`` multiplies its semi-axes."""
        mass, com, inertia = mass_com_inertia(pi)
        return cls(com, 5 * scale**2 * second_moments(inertia) / mass)

    def uniform(self, rng: np.random.Generator, count: int, scale: float = 1.0) -> Array:
        """Uniformly distributed points ``(count, 3)`` in the ellipsoid, with semi-axes multiplied by ``scale``."""
        direction = rng.normal(size=(count, 3))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        radius = rng.uniform(size=(count, 1)) ** (1 / 3)
        return np.asarray(self.centre + scale * radius * direction @ np.linalg.cholesky(self.shape).T)

    @property
    def quadric(self) -> Array:
        """``(4, 4)`` matrix Q with ``[x; 1]^T Q [x; 1] >= 0`` inside. A density inside the ellipsoid realizes a
        consistent body if ``tr(J Q) >= 0`` ([Wensing2018]_ eq. 23)."""
        inverse = np.linalg.inv(self.shape)
        side = inverse @ self.centre
        return np.block([[-inverse, side[:, None]], [side[None], 1.0 - self.centre @ side]])

    @property
    def row(self) -> Array:
        """``(10,)`` row with ``row @ pi = tr(J(pi) Q)``, Q of :attr:`quadric`."""
        return np.einsum("kij,ij->k", PSEUDO_INERTIA_BASIS, self.quadric)

    def com_block(self) -> Array:
        """``(16, 10)`` map from ``pi`` to ``[[m, (h - m c)^T], [h - m c, m shape]]``.

        The centre of mass is inside if and only if this matrix is positive semidefinite ([Wensing2018]_ eq. 22).
        """
        block = np.zeros((10, 4, 4))
        block[0, 0, 0] = 1.0
        block[0, 1:, 1:] = self.shape
        block[0, 0, 1:] = block[0, 1:, 0] = -self.centre
        for axis in range(3):
            block[1 + axis, 0, 1 + axis] = block[1 + axis, 1 + axis, 0] = 1.0
        return block.reshape(10, 16).T


Ellipsoids = Mapping[str, tuple[Ellipsoid, ...]]
