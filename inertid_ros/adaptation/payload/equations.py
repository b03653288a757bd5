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

from inertid_ros.adaptation.calibrated_robot import CalibratedRobot, FrictionDrift
from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor, semidefinite_root
from inertid_ros.identification.information.information import Information
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

from .tool_frame import ToolFrame

_ANYTHING = 1e3  # kg, kg m and kg m^2: what no equation determines stays below


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
