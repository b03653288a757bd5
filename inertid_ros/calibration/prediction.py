"""Predict the torque along a motion from identified parameters, for feed-forward control."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, ModelError
from inertid_ros.core.samples import Samples
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.plan_file import load_motion
from inertid_ros.regressors.equations import prediction_variance
from inertid_ros.regressors.force_equations import ForceEquations
from inertid_ros.report.results import Result


@dataclass(frozen=True)
class TorquePrediction:
    """Torque at the points of a motion.

    Attributes
    ----------
    motion : motion with the joint names and the joint order of the model
    joint_names : names of the joints in recordings and controllers
    torque : (N, n), torque of bodies, rotors, friction and terms, without the sensor's offset [N m or N]
    deviation : (N, n), standard deviation of ``torque`` by the covariance of the parameters [N m or N]
    limit : (n,), effort limit of the URDF; infinite without one [N m or N]
    """

    motion: Plan
    joint_names: tuple[str, ...]
    torque: Array
    deviation: Array
    limit: Array


def torque_along(result: Result, path: str | Path) -> TorquePrediction:
    """Predict torque along a plan or a ``JointTrajectory`` in YAML by the parameters of a result.

    Raises ModelError: the base of the robot is free.
    Raises ExcitationError: the motion cannot be read, is of another robot, or needs more effort than the URDF allows.
    """
    model = result.model
    if model.free:
        raise ModelError(f"{result.directory}: torque of a motion is predicted for robots on a fixed base only")
    recorded = tuple(model.recorded_joints.recorded(model.joint_names))
    motion = _in_model_order(load_motion(path, replace(motion_limits(model), joint_names=recorded)), result, recorded)
    samples = _samples(motion)
    equations, parameters = ForceEquations(model), np.array(result.parameters)
    offsets = np.arange(model.layout.size)[model.layout.drive("offset")]
    parameters[offsets] = 0.0  # the offset belongs to the sensor
    covariance = np.array(result.covariance)
    covariance[offsets] = covariance[:, offsets] = 0.0
    prediction = TorquePrediction(
        motion, recorded, equations.predict(parameters, samples),
        np.sqrt(prediction_variance(equations, covariance, samples)),
        np.where(model.limits.effort > 0, model.limits.effort, np.inf))
    _check_limits(prediction, path)
    return prediction


def _in_model_order(motion: Plan, result: Result, recorded: tuple[str, ...]) -> Plan:
    """Motion with joint names and joint order of the model; ``motion`` may have the names in recordings."""
    model = result.model
    if motion.model_hash not in ("", model.hash):
        raise ExcitationError(f"this motion was planned for another robot than that of {result.directory}; plan again")
    names = model.joint_names if set(motion.joint_names) == set(model.joint_names) else recorded
    if sorted(motion.joint_names) != sorted(names):
        raise ExcitationError(f"joints {list(motion.joint_names)} of the motion are not the robot's {list(names)}")
    order = [motion.joint_names.index(name) for name in names]
    channels = {key: getattr(motion, key)[:, order] for key in ("position", "velocity", "acceleration")}
    return replace(motion, joint_names=model.joint_names, limits=motion_limits(model), **channels)


def _samples(motion: Plan) -> Samples:
    every = np.ones(motion.position.shape, dtype=bool)
    return Samples(
        motion.time, motion.position, motion.velocity, motion.acceleration, np.zeros(every.shape), every, every[:, 0])


def _check_limits(prediction: TorquePrediction, path: str | Path) -> None:
    excess = np.abs(prediction.torque) - prediction.limit
    row, joint = np.unravel_index(np.argmax(excess), excess.shape)
    if excess[row, joint] > 0:
        raise ExcitationError(
            f"{path}: {prediction.joint_names[joint]} needs {abs(prediction.torque[row, joint]):.3g} N m or N at"
            f" {prediction.motion.time[row]:.2f} s, and the URDF allows {prediction.limit[joint]:.3g}; move slower")
