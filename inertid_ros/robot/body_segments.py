"""A body of segments whose motion is each measured by itself, as motion capture gives that of a person."""

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.bodies.layout import ParameterLayout

from .model import JointLimits, ModelOptions, RobotModel
from .wheels import mount


def body_segment_model(
    name: str, segments: Sequence[str], prior: Array, gravity: Sequence[float] = (0.0, 0.0, -9.81)
) -> RobotModel:
    """Model of bodies without joints: each moves freely, and what holds them together need not be known.

    Parameters
    ----------
    prior : ndarray, shape (nb, 10)
        Parameters of the segments in their own frames.
    gravity : sequence of float
        ``(3,)`` m/s^2 in the world.

    Raises
    ------
    ModelError
        A segment is named twice, or the prior has another shape or no mass.
    """
    prior = np.asarray(prior, dtype=float)
    if len(set(segments)) != len(segments) or prior.shape != (len(segments), BODY_PARAMETERS):
        raise ModelError(
            f"{name}: {len(segments)} segments and a prior of shape {prior.shape}; give each a name of its own and ten"
            " parameters"
        )
    if not np.isfinite(prior).all() or (prior[:, 0] <= 0).any():
        raise ModelError(f"{name}: the prior of a segment has no mass or is not finite; give a rough guess")
    model = pin.Model()
    model.name = name
    model.gravity.linear = np.array(gravity, dtype=float)
    for segment, parameters in zip(segments, prior, strict=True):
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), segment)
        model.appendBodyToJoint(joint, pin.Inertia.FromDynamicParameters(parameters), pin.SE3.Identity())
    nothing = np.zeros(0)
    x, y, z = map(float, gravity)
    return RobotModel(
        name=name,
        urdf="",
        pinocchio=model,
        layout=ParameterLayout(tuple(segments), (), ()),
        body_prior=prior,
        body_locked=np.zeros_like(prior),
        drive_prior={},
        limits=JointLimits(nothing, nothing, nothing, nothing),
        wheels=mount(model, ()),
        options=ModelOptions(drive_terms=(), gravity=(x, y, z), base="free"),
    )
