"""What the torque of the joints is linear in along a motion: bodies near those of the URDF, and the drives.

Torque is linear in the pseudo-inertias ``J = L (1 + E) L^T`` of the bodies, where ``L L^T`` is the URDF's and ``E``
says how far they are from it, without units.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.dynamics.body_torques import body_torques
from inertid_ros.dynamics.newton_euler import rigid_torque
from inertid_ros.dynamics.user_terms import term_columns
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, from_pseudo_inertia, pseudo_inertia
from inertid_ros.robot.bodies.layout import Coupling
from inertid_ros.robot.bodies.user_terms import UserTerm
from inertid_ros.robot.model import RobotModel

_MOMENTS = 4


def _basis() -> Array:
    """``(10, 4, 4)`` orthonormal symmetric matrices."""
    basis = np.zeros((len(PAIRS), 4, 4))
    for matrix, (row, column) in zip(basis, PAIRS, strict=True):
        matrix[row, column] = matrix[column, row] = 1.0 if row == column else np.sqrt(0.5)
    return basis


PAIRS = np.array([(row, column) for row in range(4) for column in range(row, 4)])
BASIS = _basis()
"""``(10, 4, 4)`` orthonormal symmetric matrices, each with one or two elements that are not zero, at PAIRS."""


@dataclass(frozen=True)
class Motion:
    """Motion of ``N`` samples.

    Attributes
    ----------
    q, v, a : ndarray, shapes (N, nq), (N, nv), (N, nv)
        In the model's order.
    direction : ndarray, shape (N, n + couplings)
        Direction of sliding of every drive, -1 to 1.
    """

    q: Array
    v: Array
    a: Array
    direction: Array


class TorqueColumns:
    """What the torque of the joints is linear in, along one motion.

    Parameters
    ----------
    model : RobotModel
        The robot as given.
    motion : Motion
    """

    def __init__(self, model: RobotModel, motion: Motion) -> None:
        self.model, self.motion = model, motion
        self._joints = slice(model.velocities - model.joints, None)
        self._bodies: dict[tuple[float, ...], Array] = {}
        self._bases: dict[int, Array] = {}  # orthonormal columns of the drives of a joint

    def drives(self, joint: int) -> tuple[list[int], Array]:
        """Parameters of the drives that act on a joint, of ``d``, and their columns ``(N, k)``.

        Parameters are rotor inertia, viscous, Coulomb friction and offset of the joints, then of the couplings, then
        those of the user terms.
        """
        n, (gearing, motions) = self.model.joints, self._gears
        count = len(gearing) - n
        columns, values = [3 * n + joint], [np.ones(len(self.motion.q))]
        for gear in np.flatnonzero(gearing[:, joint]).tolist():
            for index, each in enumerate(motions):
                columns.append(index * n + gear if gear < n else 4 * n + index * count + gear - n)
                values.append(gearing[gear, joint] * each[:, gear])
        for index, (of_joint, each) in enumerate(self._terms):
            if of_joint == joint:
                columns.append(4 * n + 3 * count + index)
                values.append(each)
        return columns, np.stack(values, axis=1)

    @cached_property
    def _gears(self) -> tuple[Array, tuple[Array, Array, Array]]:
        """``(n + couplings, n)`` what turns every drive; acceleration, speed and direction ``(N, n + couplings)``."""
        gearing = np.vstack([np.eye(self.model.joints), self.model.layout.coupling_ratios])
        v, a = (channel[:, self._joints] @ gearing.T for channel in (self.motion.v, self.motion.a))
        return gearing, (a, v, self.motion.direction)

    @cached_property
    def _terms(self) -> list[tuple[int, Array]]:
        """Joint and column ``(N,)`` of every user term's parameter."""
        layout, count = self.model.layout, self.model.joints
        v, a = self.motion.v[:, self._joints], self.motion.a[:, self._joints]
        signals = {"q": self.motion.q[:, -count:], "v": v, "a": a, "direction": self.motion.direction[:, :count]}
        if any(term.uses_load for term in layout.terms):
            signals["load"] = self.torque_of_urdf
        return term_columns(layout.terms, layout.joints, signals)

    @property
    def not_negative(self) -> NDArray[np.bool_]:
        """``(d,)`` columns of the drives whose parameters are not negative: all but offsets and some user terms."""
        n, layout = self.model.joints, self.model.layout
        of_terms = [term.non_negative for term in layout.terms for _ in term.expressions]
        return np.r_[np.ones(3 * n), np.zeros(n), np.ones(3 * len(layout.couplings)), of_terms] > 0

    def with_coupling(self, coupling: Coupling) -> "TorqueColumns":
        """The same motion of a robot with one drive more that turns with several joints."""
        layout = replace(self.model.layout, couplings=(*self.model.layout.couplings, coupling))
        speed = self.motion.v[:, self._joints] @ layout.coupling_ratios[-1]
        direction = np.column_stack([self.motion.direction, np.sign(speed)])
        return TorqueColumns(replace(self.model, layout=layout), replace(self.motion, direction=direction))

    def with_terms(self, terms: tuple[UserTerm, ...]) -> "TorqueColumns":
        """The same motion of a robot on which more torques act."""
        layout = replace(self.model.layout, terms=(*self.model.layout.terms, *terms))
        return TorqueColumns(replace(self.model, layout=layout), self.motion)

    def without_drives(self, joint: int, values: Array) -> Array:
        """What friction, rotor and offset of a joint cannot take of ``(N, k)`` values of its torque."""
        if joint not in self._bases:
            own = self.drives(joint)[1]
            columns, size, _ = np.linalg.svd(own[:, np.any(own != 0, axis=0)], full_matrices=False)
            self._bases[joint] = columns[:, size > 1e-9 * size.max(initial=0.0)]
        basis = self._bases[joint]
        return np.asarray(values - basis @ (basis.T @ values))

    def bodies(self, gravity: Array) -> Array:
        """``(n, N, 10 nb)`` columns of ``1 + E`` of all bodies, for a gravity ``(3,)`` [m/s^2]."""
        key = tuple(gravity.tolist())
        if key not in self._bodies:
            inertial, weights = self._parameters
            out = inertial.copy()
            out[..., :_MOMENTS] += np.tensordot(gravity, weights, 1)
            n, rows, count, _ = out.shape
            columns = np.swapaxes(out.reshape(n * rows, count, -1), 0, 1) @ _directions(self.model)
            self._bodies[key] = np.swapaxes(columns, 0, 1).reshape(n, rows, -1)
        return self._bodies[key]

    def moments(self, body: int, gravity: Array) -> Array:
        """``(n, N, 4)`` torques of mass and first moment of a body, for a gravity ``(3,)`` [m/s^2]."""
        inertial, weights = self._parameters
        return np.asarray(inertial[:, :, body, :_MOMENTS] + np.tensordot(gravity, weights[:, :, :, body], 1))

    @cached_property
    def torque_of_urdf(self) -> Array:
        """``(N, n)`` torque of the bodies of the URDF [N m or N]."""
        motion = self.motion
        return rigid_torque(self.model, self.model.consistent_body_prior, motion.q, motion.v, motion.a)[:, self._joints]

    @property
    def weight_of_urdf(self) -> Array:
        """``(N, n)`` torque of the bodies of the URDF at rest [N m or N]."""
        q, still = self.motion.q, np.zeros_like(self.motion.v)
        return rigid_torque(self.model, self.model.consistent_body_prior, q, still, still)[:, self._joints]

    @cached_property
    def _parameters(self) -> tuple[Array, Array]:
        """``(n, N, nb, 10)`` torques of the parameters without gravity, and ``(3, n, N, nb, 4)`` of unit gravities."""
        q, v, a = self.motion.q, self.motion.v, self.motion.a
        still = np.zeros_like(v)
        inertial = body_torques(self.model, np.zeros(3), (q, v, a))[self._joints]
        weights = [body_torques(self.model, axis, (q, still, still), _MOMENTS)[self._joints] for axis in np.eye(3)]
        return inertial, np.array(weights)


def _directions(model: RobotModel) -> Array:
    """``(nb, 10, 10)`` parameters of ``L E_k L^T`` for an orthonormal basis of symmetric matrices."""
    matrices = pseudo_inertia(model.consistent_body_prior)
    roots = np.linalg.cholesky(matrices)
    out = np.empty((len(roots), BODY_PARAMETERS, BODY_PARAMETERS))
    for k, basis in enumerate(BASIS):
        out[:, :, k] = from_pseudo_inertia(roots @ basis @ np.swapaxes(roots, 1, 2))
    return out
