"""Equations of a payload alone: what a robot is known to be, and how its friction drifts, is marginalised out.

The torque of a calibrated robot with a payload is ``tau = A (x + d) + A_b T pi + noise``, with the parameters ``x`` and
the covariance of its result, drift of friction in ``d``, the columns ``A_b`` of the link that holds the payload and the
payload's parameters ``pi`` in the tool frame, which ``T`` places in the link's. With ``d = L u`` and ``u`` of unit
variance the equations are least squares in ``u`` and ``pi``, and a QR with ``pi`` last leaves ten rows of ``pi`` alone.
A recording without payload shares all of ``d`` but the drift between recordings.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, transform
from inertid_ros.core.qr import r_factor, semidefinite_root
from inertid_ros.identification.information.information import Information
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

_DRIFTING = ("viscous", "coulomb", "stribeck")
_ANYTHING = 1e3  # kg, kg m and kg m^2: what no equation determines stays below


@dataclass(frozen=True)
class CalibratedRobot:
    """A robot as its result states it.

    Attributes
    ----------
    equations : Equations
        Of joint torques.
    parameters : ndarray, shape (p,)
        In the order of the layout.
    covariance : ndarray, shape (p, p)
        Of the parameters.
    deviation : ndarray, shape (c,)
        Standard deviation of the residual per channel [N m or N].
    counts : ndarray, shape (c,)
        Independent samples that it was found from.
    """

    equations: Equations
    parameters: Array
    covariance: Array
    deviation: Array
    counts: Array

    @property
    def layout(self) -> ParameterLayout:
        """Of the parameters."""
        return self.equations.model.layout


@dataclass(frozen=True)
class FrictionDrift:
    """How much friction differs from that of the calibration; standard deviations as shares of a joint's friction.

    Attributes
    ----------
    since_calibration : float
        Of all recordings of a payload, and the reference.
    between_recordings : float
        Of recordings with payload from the reference.
    """

    since_calibration: float = 0.1
    between_recordings: float = 0.03

    def root(self, layout: ParameterLayout, parameters: Array, share: float) -> Array:
        """``(p, k)`` root of the covariance: friction by its share, offsets by the same share of Coulomb friction."""
        deviation = np.zeros(layout.size)
        for term in _DRIFTING:
            deviation[layout.drive(term)] = share * np.abs(parameters[layout.drive(term)])
        if "coulomb" in layout.drive_terms and "offset" in layout.drive_terms:
            deviation[layout.drive("offset")] = share * np.abs(parameters[layout.drive("coulomb")])
        couplings = slice(layout.coupling_start, layout.term_start)
        deviation[couplings] = share * np.abs(parameters[couplings])
        return np.diag(deviation)[:, deviation > 0]


@dataclass(frozen=True)
class ToolFrame:
    """A link of the URDF that holds a payload.

    Attributes
    ----------
    name : str
        Of the link.
    body : int
        Index of the moving body that it belongs to.
    placement : ndarray, shape (10, 10)
        Inertial parameters in the frame of the joint before that body, from those in this frame.
    """

    name: str
    body: int
    placement: Array

    @classmethod
    def of(cls, model: RobotModel, name: str = "") -> "ToolFrame":
        """Frame of a link by its name; of the last moving link where none is given.

        Raises
        ------
        ModelError
            The robot has no such link, it does not move, or the robot has several last links.
        """
        tree = model.pinocchio
        if not name:
            parents = {joint.parent for joint in model.tree}
            last = [index for index in range(len(model.tree)) if index not in parents]
            if len(last) > 1:
                names = ", ".join(model.link_names[index] for index in last)
                raise ModelError(f"payload: the robot has several last links ({names}); choose one with --frame")
            return cls(model.link_names[last[0]], last[0], np.eye(BODY_PARAMETERS))
        if not tree.existFrame(name):
            raise ModelError(f"payload: the URDF has no link '{name}'; name the link that holds it with --frame")
        frame = tree.frames[tree.getFrameId(name)]
        if frame.parentJoint == 0:
            raise ModelError(f"payload: link '{name}' does not move, so that nothing shows what it holds")
        placement = transform(np.eye(BODY_PARAMETERS), frame.placement.rotation, frame.placement.translation).T
        return cls(name, int(frame.parentJoint) - 1, placement)

    def bodies(self, parameters: Array, count: int) -> Array:
        """What a payload ``(10,)`` in this frame adds to the moving bodies, ``(count, 10)``."""
        added = np.zeros((count, BODY_PARAMETERS))
        added[self.body] = self.placement @ parameters
        return added


@dataclass(frozen=True)
class PayloadEquations:
    """Equations of a payload, whitened: errors are independent and of unit variance.

    Attributes
    ----------
    R : ndarray, shape (10, 10)
        Of the parameters in the tool frame.
    z : ndarray, shape (10,)
        Measured side.
    payload : ndarray, shape (10,)
        Least squares, which need not be physically consistent.
    loaded, reference : ndarray, shape (p,)
        Parameters of the robot with the payload, and without it in the reference.
    loaded_covariance : ndarray, shape (p, p)
        Of ``loaded``.
    surprise : float
        Squared distance of the robot from its calibration in standard deviations.
    """

    R: Array
    z: Array
    payload: Array
    loaded: Array
    reference: Array
    loaded_covariance: Array
    surprise: float


def payload_equations(
    robot: CalibratedRobot,
    tool: ToolFrame,
    recordings: tuple[tuple[Information, Array], ...],
    drift: FrictionDrift,
) -> PayloadEquations:
    """Equations of what a calibrated robot holds.

    Parameters
    ----------
    recordings : tuple of (Information, ndarray of shape (c,))
        Equations with payload and the weights of their channels; then, where there is one, of the reference.
    """
    layout, x = robot.layout, robot.parameters
    known = [semidefinite_root(robot.covariance).T, drift.root(layout, x, drift.since_calibration)]
    own = drift.root(layout, x, drift.between_recordings if len(recordings) > 1 else 0.0)
    common = np.hstack(known)
    shared, varying = common.shape[1], own.shape[1]
    size = shared + varying + BODY_PARAMETERS
    held = np.zeros((layout.size, BODY_PARAMETERS))
    held[layout.body(tool.body)] = tool.placement
    loaded, unloaded = np.hstack([common, own, held]), np.hstack([common, 0 * own, 0 * held])
    rows = [np.diag(np.append(np.ones(shared + varying), np.full(BODY_PARAMETERS, 1 / _ANYTHING)))]
    measured = [np.zeros(size)]
    for (information, weights), columns in zip(recordings, (loaded, unloaded), strict=False):
        R, z = information.whitened(weights)
        rows.append(R @ columns)
        measured.append(z - R @ x)
    whole = r_factor(np.column_stack([np.vstack(rows), np.concatenate(measured)]))
    R, z = whole[:size, :size], whole[:size, size]
    solution = solve_triangular(R, z)
    root = loaded @ solve_triangular(R, np.eye(size))
    return PayloadEquations(
        R=R[-BODY_PARAMETERS:, -BODY_PARAMETERS:],
        z=z[-BODY_PARAMETERS:],
        payload=solution[-BODY_PARAMETERS:],
        loaded=x + loaded @ solution,
        reference=x + unloaded @ solution,
        loaded_covariance=root @ root.T,
        surprise=float(np.sum(solution[: shared + varying] ** 2)),
    )
