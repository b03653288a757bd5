"""Equations of a payload, with the uncertainty of the calibrated robot and its friction drift marginalised out.

The torque of a calibrated robot with a payload is ``tau = A (x + d) + A_b T pi + noise``. ``x`` are the calibrated
parameters; their error ``d`` has the covariance of the calibration plus the covariance of friction drift. ``A_b`` are
the columns of the link that holds the payload, and ``T`` maps the payload's parameters ``pi`` from the tool frame to
this link. With ``d = L u`` and ``u`` of unit variance, the equations are a least-squares problem in ``u`` and ``pi``.
A QR with ``pi`` last leaves ten rows that contain ``pi`` alone. A recording without payload has the same ``d``, except
for the friction drift between recordings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from inertid_ros.config.robot import FRICTION_TERMS
from inertid_ros.core.arrays import Array, r_factor, semidefinite_root
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, transform
from inertid_ros.identification.information.information import Information
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

_PAYLOAD_DEVIATION = 1e3  # kg, kg m and kg m^2; vague prior that bounds undetermined parameters


@dataclass(frozen=True)
class CalibratedRobot:
    """A robot with the parameters ``(p,)`` of its calibration and their covariance.

    Attributes
    ----------
    equations : equations of joint torques.
    deviation : (c,), standard deviation of the residual per channel [N m or N].
    counts : (c,), independent samples per channel.
    """

    equations: Equations
    parameters: Array
    covariance: Array
    deviation: Array
    counts: Array

    @property
    def layout(self) -> ParameterLayout:
        return self.equations.model.layout


@dataclass(frozen=True)
class FrictionDrift:
    """Drift of friction since the calibration: standard deviations as shares of a joint's friction.

    ``since_calibration`` is common to all recordings; ``between_recordings`` is the drift between the recordings with
    payload and the reference.
    """

    since_calibration: float = 0.1
    between_recordings: float = 0.03


def friction_drift_root(layout: ParameterLayout, parameters: Array, share: float) -> Array:
    """Root ``(p, k)`` of the covariance of friction drift; offsets drift by ``share`` of Coulomb friction."""
    deviation = np.zeros(layout.size)
    for term in FRICTION_TERMS:
        deviation[layout.drive(term)] = share * np.abs(parameters[layout.drive(term)])
    if "coulomb" in layout.drive_terms and "offset" in layout.drive_terms:
        deviation[layout.drive("offset")] = share * np.abs(parameters[layout.drive("coulomb")])
    couplings = slice(layout.coupling_start, layout.term_start)
    deviation[couplings] = share * np.abs(parameters[couplings])
    return np.diag(deviation)[:, deviation > 0]


@dataclass(frozen=True)
class ToolFrame:
    """Frame of the link that holds a payload.

    Attributes
    ----------
    body : index of the moving body.
    placement : (10, 10), maps inertial parameters in this frame to parameters in the body's joint frame.
    """

    name: str
    body: int
    placement: Array

    @classmethod
    def from_link(cls, model: RobotModel, name: str = "") -> "ToolFrame":
        """Return the frame of the link ``name``, or without a name the frame of the last moving link.

        Raises
        ------
        ModelError
            There is no such link, it does not move, or ``name`` is empty and the robot has several last links.
        """
        tree = model.pinocchio
        if not name:
            last = model.end_bodies
            if len(last) > 1:
                names = ", ".join(model.link_names[index] for index in last)
                raise ModelError(f"payload: the robot has several last links ({names}); choose one with --frame")
            return cls(model.link_names[last[0]], last[0], np.eye(BODY_PARAMETERS))
        if not tree.existFrame(name):
            raise ModelError(f"payload: the URDF has no link '{name}'; name the payload's link with --frame")
        frame = tree.frames[tree.getFrameId(name)]
        if frame.parentJoint == 0:
            raise ModelError(f"payload: link '{name}' does not move, so that its payload has no effect")
        placement = transform(np.eye(BODY_PARAMETERS), frame.placement.rotation, frame.placement.translation).T
        return cls(name, int(frame.parentJoint) - 1, placement)

    def bodies(self, parameters: Array, count: int) -> Array:
        """Parameters ``(count, 10)`` that a payload ``(10,)`` in this frame adds to the moving bodies."""
        bodies = np.zeros((count, BODY_PARAMETERS))
        bodies[self.body] = self.placement @ parameters
        return bodies


@dataclass(frozen=True)
class PayloadEquations:
    """Whitened equations ``R pi = z`` of a payload in the tool frame: errors are independent and of unit variance.

    Attributes
    ----------
    payload : (10,), least-squares estimate, not necessarily physically consistent.
    loaded, reference : (p,), parameters of the robot with the payload, and in the reference without payload.
    surprise : squared distance of the robot from its calibration in standard deviations.
    """

    R: Array
    z: Array
    payload: Array
    loaded: Array
    reference: Array
    loaded_covariance: Array
    reference_covariance: Array
    surprise: float


def payload_equations(
        robot: CalibratedRobot, tool: ToolFrame, recordings: Sequence[tuple[Information, Array]],
        drift: FrictionDrift) -> PayloadEquations:
    """Return the equations of the payload of a calibrated robot.

    ``recordings`` are pairs of compressed equations and channel weights ``(c,)``: first of the recordings with payload,
    then of the reference, if any.
    """
    layout, x = robot.layout, robot.parameters
    # Columns of the deviations u from the calibration, then of the payload.
    common = np.hstack([semidefinite_root(robot.covariance).T, friction_drift_root(layout, x, drift.since_calibration)])
    session = friction_drift_root(layout, x, drift.between_recordings if len(recordings) > 1 else 0.0)
    shared, varying = common.shape[1], session.shape[1]
    size = shared + varying + BODY_PARAMETERS
    body = np.zeros((layout.size, BODY_PARAMETERS))
    body[layout.body(tool.body)] = tool.placement
    loaded, unloaded = np.hstack([common, session, body]), np.hstack([common, 0 * session, 0 * body])
    rows = [np.diag(np.append(np.ones(shared + varying), np.full(BODY_PARAMETERS, 1 / _PAYLOAD_DEVIATION)))]
    measured = [np.zeros(size)]
    for (information, weights), columns in zip(recordings, (loaded, unloaded), strict=False):
        R, z = information.whitened(weights)
        rows.append(R @ columns)
        measured.append(z - R @ x)
    # With the payload last, the last ten rows of the R factor hold the payload alone.
    factor = r_factor(np.column_stack([np.vstack(rows), np.concatenate(measured)]))
    R, z = factor[:size, :size], factor[:size, size]
    solution = solve_triangular(R, z)
    inverse = solve_triangular(R, np.eye(size))
    roots = loaded @ inverse, unloaded @ inverse
    return PayloadEquations(
        R=R[-BODY_PARAMETERS:, -BODY_PARAMETERS:], z=z[-BODY_PARAMETERS:], payload=solution[-BODY_PARAMETERS:],
        loaded=x + loaded @ solution, reference=x + unloaded @ solution, loaded_covariance=roots[0] @ roots[0].T,
        reference_covariance=roots[1] @ roots[1].T, surprise=float(np.sum(solution[: shared + varying] ** 2)))
