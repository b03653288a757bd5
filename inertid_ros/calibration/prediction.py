"""Predict torque from identified parameters: along a motion for feed-forward control, or of a recording by cause.

On a free base also its centre of mass, momentum and contact wrenches ([vanDerGaag2024]_ sec. IV-B, eq. 4.1).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import attrs
import numpy as np

from inertid_ros.calibration.dataset import Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import FRICTION_TERMS
from inertid_ros.core.arrays import Array, Indices, cross, rotation_matrices, skew
from inertid_ros.core.errors import ExcitationError, ModelError
from inertid_ros.core.samples import Samples
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.plan import Plan, load_motion
from inertid_ros.regressors import equations as regression
from inertid_ros.regressors.whole_body_equations import BodySegmentEquations, MomentumEquations
from inertid_ros.report.results import Result
from inertid_ros.robot.contacts import wrenches_of_force
from inertid_ros.robot.kinematics import batches
from inertid_ros.robot.layout import COUPLING_TERMS, ParameterLayout
from inertid_ros.robot.model import RobotModel

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class TorquePrediction:
    """Torque at the points of a motion.

    Attributes
    ----------
    motion : motion with the joint names and the joint order of the model
    joint_names : names of the joints in recordings and controllers
    torque : (N, n), torque of bodies, rotors, friction and terms, without the sensor's offset [N m or N]
    deviation : (N, n), standard deviation of ``torque`` from the covariance of the parameters [N m or N]
    limit : (n,), effort limit of the URDF; infinite without one [N m or N]
    """

    motion: Plan
    joint_names: tuple[str, ...]
    torque: Array
    deviation: Array
    limit: Array


def torque_along(result: Result, path: str | Path) -> TorquePrediction:
    """Predict torque along a plan or a ``JointTrajectory`` in YAML from the parameters of a result.

    Raises ModelError: the base of the robot is free.
    Raises ExcitationError: the motion cannot be read, belongs to another robot, or exceeds the URDF's effort limits.
    """
    model = result.model
    if model.free:
        raise ModelError(f"{result.directory}: torque of a motion is predicted for robots on a fixed base only")
    recorded = tuple(model.recorded_joints.recorded(model.joint_names))
    motion = _in_model_order(load_motion(path, replace(motion_limits(model), joint_names=recorded)), result, recorded)
    every = np.ones(motion.position.shape, dtype=bool)
    samples = Samples(motion.time, motion.position, motion.velocity, motion.acceleration, np.zeros(every.shape), every,
        every[:, 0])
    equations, parameters = regression.ForceEquations(model), model.layout.without_compensation(result.parameters)
    offsets = np.arange(model.layout.size)[model.layout.drive("offset")]
    parameters[offsets] = 0.0  # the offset belongs to the sensor
    covariance = model.layout.without_compensation(result.covariance)
    covariance[offsets] = covariance[:, offsets] = 0.0
    prediction = TorquePrediction(
        motion, recorded, equations.predict(parameters, samples),
        np.sqrt(regression.prediction_variance(equations, covariance, samples)),
        np.where(model.limits.effort > 0, model.limits.effort, np.inf))
    check_efforts(prediction.torque, prediction.limit, recorded, motion.time, path)
    return prediction


@dataclass(frozen=True)
class WholeBodyQuantity:
    """Quantity of a whole robot at the usable samples of a recording.

    Attributes
    ----------
    name : quantity with its frame and unit
    channels : ``c`` names
    value : (N, c), NaN if unknown
    deviation : (N, c), standard deviation of ``value`` from the covariance of the parameters
    """

    name: str
    channels: tuple[str, ...]
    value: Array
    deviation: Array


@dataclass(frozen=True)
class RecordedTorque:
    """Measured and predicted torque of a recording below the cutoff of a result, by cause ([Wensing2018]_ fig. 5).

    Attributes
    ----------
    time : (N,), [s]
    channels : names of the measured quantities, for torque the joints
    quantity : measured quantity and its unit
    measured : (N, c)
    causes : part of the prediction ``(N, c)`` by cause; causes without effect are left out
    deviation : (N, c), standard deviation of the prediction from the covariance of the parameters
    whole_body : on a free base, centre of mass, momentum and errors of wrenches
    """

    time: Array
    channels: tuple[str, ...]
    quantity: tuple[str, str]
    measured: Array
    causes: Mapping[str, Array]
    deviation: Array
    whole_body: tuple[WholeBodyQuantity, ...] = ()

    @property
    def predicted(self) -> Array:
        """``(N, c)`` sum of all causes."""
        return np.sum(list(self.causes.values()), axis=0)


def recorded_torque(result: Result, recording: Recording | LongRecording,
        configuration: Configuration | None = None) -> RecordedTorque:
    """Predict the torque of a recording from the parameters of a result, by cause.

    If a recording is too long for memory, only its parts in memory are predicted.
    Raises InertidError: the recording cannot be used.
    """
    configuration = configuration or Configuration()
    identify = attrs.evolve(configuration.identify, equations=result.equation_type)
    dataset = Dataset.screened(result.model, attrs.evolve(configuration, identify=identify), [recording])
    parts = dataset.aligned(result.cutoff_hz, result.effort_delay_s).samples()
    equations = regression.equations_of(result.model, result.equation_type)

    def joined(values: Callable[[Samples], Array]) -> Array:
        return np.concatenate([values(part)[part.usable] for part in parts])

    def caused_by(columns: Indices) -> Array:
        alone = np.zeros_like(result.parameters)
        alone[columns] = result.parameters[columns]
        return joined(lambda part: equations.predict(alone, part))

    torques = {cause: caused_by(columns) for cause, columns in _columns_by_cause(result.model.layout).items()}
    causes = {cause: torque for cause, torque in torques.items() if torque.any()}
    variance = joined(lambda part: regression.prediction_variance(equations, result.covariance, part))
    return RecordedTorque(
        joined(lambda part: part.time), equations.channels, equations.quantity, joined(lambda part: part.tau), causes,
        np.sqrt(variance), whole_body_quantities(equations, result.parameters, result.covariance, parts))


def _columns_by_cause(layout: ParameterLayout) -> dict[str, Indices]:
    every = np.arange(layout.size)
    coupled = every[layout.coupling_start : layout.term_start].reshape(-1, len(COUPLING_TERMS))
    friction = [COUPLING_TERMS.index(term) for term in FRICTION_TERMS if term in COUPLING_TERMS]
    posed = [every[layout.term(index)] for index, term in enumerate(layout.terms) if term.labels]
    coupled = np.vstack([coupled, *posed])
    return {
        "bodies": every[: layout.body_size],
        "rotors": np.concatenate([every[layout.body_size : layout.rotor_end], every[layout.drive("rotor_inertia")],
            coupled[:, COUPLING_TERMS.index("rotor_inertia")]]),
        "gravity compensation": every[layout.rotor_end : layout.inertial_size],
        "friction": np.concatenate(
            [*(every[layout.drive(term)] for term in FRICTION_TERMS), coupled[:, friction].ravel()]),
        "offset": every[layout.drive("offset")],
        "stiffness": every[layout.drive("stiffness")],
        "user terms": np.setdiff1d(every[layout.term_start :], coupled)}


def _in_model_order(motion: Plan, result: Result, recorded: tuple[str, ...]) -> Plan:
    """Motion with joint names and joint order of the model; ``motion`` may have the names in recordings."""
    model = result.model
    if motion.model_hash not in ("", model.hash):
        raise ExcitationError(f"this motion was planned for another robot than {result.directory}; plan again")
    names = model.joint_names if set(motion.joint_names) == set(model.joint_names) else recorded
    if sorted(motion.joint_names) != sorted(names):
        raise ExcitationError(f"joints {list(motion.joint_names)} of the motion are not the robot's {list(names)}")
    order = [motion.joint_names.index(name) for name in names]
    channels = {key: getattr(motion, key)[:, order] for key in ("position", "velocity", "acceleration")}
    return replace(motion, joint_names=model.joint_names, limits=motion_limits(model), **channels)


def check_efforts(torque: Array, limit: Array, joint_names: Sequence[str], time: Array, where: str | Path) -> None:
    """Raise ExcitationError unless torque ``(N, n)`` at times ``(N,)`` [s] keeps the limits ``(n,)`` of the URDF."""
    excess = np.abs(torque) - limit
    row, joint = map(int, np.unravel_index(np.argmax(excess), excess.shape))
    if not excess[row, joint] <= 0:  # or not a number
        raise ExcitationError(
            f"{where}: {joint_names[joint]} needs {abs(torque[row, joint]):.3g} N m or N at {time[row]:.2f} s, and the"
            f" URDF allows {limit[joint]:.3g}; move slower")


def whole_body_quantities(equations: regression.Equations, parameters: Array, covariance: Array,
        parts: Sequence[Samples]) -> tuple[WholeBodyQuantity, ...]:
    """Centre of mass, momentum about it, and the error of wrenches that are predicted from joint torques.

    The frame is the world, or the base for equations of momentum, which do not contain the pose of the base. A fixed
    base has none of these. Errors of wrenches need contacts that measure whole wrenches. Segments on
    boards that measure only pressure have errors of the zero-moment point ([Lee2019]_ sec. 3.6.3).
    """
    model, in_world = equations.model, equations.equation_type != MomentumEquations.equation_type
    if not model.free:
        return ()
    usable = [part.select(np.flatnonzero(part.usable)) for part in parts]
    batched = [part.select(rows) for part in usable for rows in batches(len(part))]
    if isinstance(equations, BodySegmentEquations):
        if model.ground is None:
            return ()
        errors = _joined([_point_errors(equations, parameters, covariance, batch) for batch in batched])
        return (WholeBodyQuantity("measured minus predicted zero-moment point, board [m]", _AXES[:2], *errors),)
    frame = "world" if in_world else "base"
    names = tuple(f"{part} {axis}" for part in ("linear", "angular") for axis in _AXES)
    value, deviation = _joined([_centroidal(model, parameters, covariance, batch, in_world) for batch in batched])
    out = [WholeBodyQuantity(f"centre of mass, {frame} [m]", _AXES, value[:, :3], deviation[:, :3]),
        WholeBodyQuantity(f"momentum about it, {frame} [N s, N m s]", names, value[:, 3:], deviation[:, 3:])]
    if model.contacts and model.ground is None:
        names = tuple(f"{contact.name} {part} {axis}"
            for contact in model.contacts for part in ("force", "torque") for axis in _AXES)
        errors = _joined([_wrench_errors(equations, parameters, covariance, batch) for batch in batched])
        out.append(WholeBodyQuantity("measured minus predicted wrench [N, N m]", names, *errors))
    return tuple(out)


def _point_errors(equations: BodySegmentEquations, parameters: Array, covariance: Array, samples: Samples
        ) -> tuple[Array, Array]:
    """Measured minus predicted zero-moment points on a board ``(k, 2)``, and their standard deviations."""
    rows, tau = equations.coefficients(samples, slice(None)), samples.tau
    moments = np.stack([-rows[:, 4], rows[:, 3]], axis=1)
    force = rows[:, 2] @ parameters
    with np.errstate(divide="ignore", invalid="ignore"):  # without load, there is no point
        points = moments @ parameters / force[:, None]
        slope = (moments - points[..., None] * rows[:, 2:3]) / force[:, None, None]
        return np.stack([-tau[:, 4], tau[:, 3]], axis=1) / tau[:, 2:3] - points, _deviation(slope, covariance)


def _joined(pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    values, deviations = zip(*pairs, strict=True)
    return np.concatenate(values), np.concatenate(deviations)


def _centroidal(model: RobotModel, parameters: Array, covariance: Array, samples: Samples, in_world: bool
        ) -> tuple[Array, Array]:
    """Centre of mass, linear momentum and angular momentum about it ``(k, 9)``, and their standard deviations."""
    equations, size = MomentumEquations(model), model.layout.inertial_size
    x, q = parameters[:size], samples.q
    surge, sway = (equations.regressor(q, np.tile(velocity, (len(q), 1)))  # of the base alone, at 1 m/s along x and y
        for velocity in np.eye(model.velocities)[:2])
    mass, moments = surge[:, :1], np.stack([sway[:, 5], -surge[:, 5], surge[:, 4]], axis=1)
    centre = (moments @ x) / (mass @ x)
    of_centre = (moments - centre[:, :, None] * mass) / (mass @ x)[:, :, None]
    momentum = equations.regressor(q, samples.v)
    linear, of_linear = momentum[:, :3] @ x, momentum[:, :3]
    angular = momentum[:, 3:] @ x - cross(centre, linear)
    of_angular = momentum[:, 3:] + skew(linear) @ of_centre - skew(centre) @ of_linear
    value, slope = np.stack([centre, linear, angular], axis=1), np.stack([of_centre, of_linear, of_angular], axis=1)
    if in_world:
        turn = rotation_matrices(q[:, None, 3:7])
        value, slope = (turn @ value[..., None])[..., 0], turn @ slope
        value[:, 0] += q[:, :3]
    return value.reshape(-1, 9), _deviation(slope.reshape(len(q), 9, size), covariance[:size, :size])


def _wrench_errors(equations: regression.Equations, parameters: Array, covariance: Array, samples: Samples
        ) -> tuple[Array, Array]:
    """Measured minus predicted wrenches ``(k, 6 c)`` of ``c`` contacts, and their standard deviations.

    The measured side of the equations contains joint torques and measured wrenches. Its residual is therefore the
    generalized force of the wrench errors.
    """
    every = replace(samples, mask=np.ones_like(samples.mask))
    (blocks,) = regression.dense_equations(equations, every, len(every))
    rows = np.zeros((len(samples), equations.count, len(parameters)))
    for channel, (columns, (block, _)) in enumerate(zip(equations.columns, blocks, strict=True)):
        rows[:, channel, columns] = block
    explain = wrenches_of_force(equations.model, samples.q)
    error = (explain @ (samples.tau - equations.predict(parameters, samples))[..., None])[..., 0]
    error[~samples.mask.all(axis=1)] = np.nan
    return error, _deviation(explain @ rows, covariance)


def _deviation(slope: Array, covariance: Array) -> Array:
    """Standard deviations ``(k, c)`` of values with slopes ``(k, c, p)`` in the parameters."""
    return np.sqrt(np.maximum(np.sum(slope @ covariance * slope, axis=2), 0.0))
