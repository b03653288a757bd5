"""Messages to arrays and back. Nothing else in the package converts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, WrenchStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from inertid_ros.msg import (
    CoupledDrive,
    IdentificationReport,
    InertialParameters,
    JointDynamics,
    LinkInertia,
    SampleBatch,
)

from ..data.assemble import Block
from ..data.base_messages import WIDTHS
from ..errors import InertidError, RecordingError
from ..identification.estimate import Estimate
from ..identification.statement import VERDICTS
from ..identification.validation import Validation
from ..robot.layout import COUPLING_TERMS, DRIVE_TERMS
from ..robot.model import RobotModel
from ..robot.parameters import Array, from_mass_com_inertia, mass_com_inertia

NANOSECONDS = 1_000_000_000


def to_nanoseconds(stamp: Time | Duration) -> int:
    """Stamp or duration to nanoseconds."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def to_time(nanoseconds: int) -> Time:
    """Nanoseconds to a stamp."""
    seconds, rest = divmod(int(nanoseconds), NANOSECONDS)
    return Time(sec=seconds, nanosec=rest)


def to_duration(seconds: float) -> Duration:
    """Seconds to a duration."""
    whole, rest = divmod(round(seconds * NANOSECONDS), NANOSECONDS)
    return Duration(sec=int(whole), nanosec=int(rest))


@dataclass(frozen=True)
class JointSample:
    """One JointState in a chosen joint order; ``velocity`` and ``effort`` are NaN where the message has none."""

    stamp_ns: int
    position: Array
    velocity: Array
    effort: Array


class JointOrder:
    """Picks a fixed set of joints out of JointState messages, whatever their order and company."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = tuple(joint_names)
        self._known: dict[tuple[str, ...], NDArray[np.intp] | None] = {}

    def sample(self, message: JointState) -> JointSample | None:
        """The wanted joints of a message; None where it holds none of them.

        Raises
        ------
        RecordingError: some of the joints are missing, a joint is listed twice, or lengths do not fit.
        """
        names = tuple(message.name)
        if names not in self._known:
            self._known[names] = self._columns(names)
        columns = self._known[names]
        if columns is None:
            return None
        fields = [self._pick(message, key, len(names), columns) for key in ("position", "velocity", "effort")]
        return JointSample(to_nanoseconds(message.header.stamp), *fields)

    def _columns(self, names: tuple[str, ...]) -> NDArray[np.intp] | None:
        if len(set(names)) != len(names):
            raise RecordingError(f"joint_states: a joint is listed twice in {list(names)}; fix the publisher")
        missing = [joint for joint in self.joint_names if joint not in names]
        if len(missing) == len(self.joint_names):
            return None
        if missing:
            raise RecordingError(f"joint_states: joints {missing} are missing; the message has {list(names)}")
        return np.array([names.index(joint) for joint in self.joint_names], dtype=np.intp)

    @staticmethod
    def _pick(message: JointState, key: str, count: int, columns: NDArray[np.intp]) -> Array:
        values = np.asarray(getattr(message, key), dtype=float)
        if len(values) == 0 and key != "position":
            return np.full(len(columns), np.nan)
        if len(values) != count:
            raise RecordingError(f"joint_states: {key} has {len(values)} values for {count} joints; fix the publisher")
        return values[columns]


def to_joint_state(
    joint_names: Sequence[str], stamp: Time, position: Array, velocity: Array, effort: Array
) -> JointState:
    """Arrays ``(n,)`` to a JointState."""
    return JointState(
        header=Header(stamp=stamp),
        name=list(joint_names),
        position=position.tolist(),
        velocity=velocity.tolist(),
        effort=effort.tolist(),
    )


def from_wrench(message: WrenchStamped) -> Array:
    """``(6,)`` force [N], torque [N m]."""
    force, torque = message.wrench.force, message.wrench.torque
    return np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])


def to_odometry(pose: Array, twist: Array, child_frame: str, stamp: Time) -> Odometry:
    """Pose ``(7,)`` of a base in the world and its twist ``(6,)`` in its own axes."""
    message = Odometry(header=Header(stamp=stamp, frame_id="world"), child_frame_id=child_frame)
    place, turn = message.pose.pose.position, message.pose.pose.orientation
    place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = map(float, pose)
    linear, angular = message.twist.twist.linear, message.twist.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = map(float, twist)
    return message


def to_imu(specific_force: Array, rate: Array, frame: str, stamp: Time) -> Imu:
    """What an inertial measurement unit without an orientation of its own reports."""
    message = Imu(header=Header(stamp=stamp, frame_id=frame))
    message.orientation_covariance[0] = -1.0
    for part, values in ((message.linear_acceleration, specific_force), (message.angular_velocity, rate)):
        part.x, part.y, part.z = map(float, values)
    return message


def to_wrench(wrench: Array, frame: str, stamp: Time) -> WrenchStamped:
    """Force and torque ``(6,)`` in a frame."""
    message = WrenchStamped(header=Header(stamp=stamp, frame_id=frame))
    for part, values in ((message.wrench.force, wrench[:3]), (message.wrench.torque, wrench[3:])):
        part.x, part.y, part.z = map(float, values)
    return message


@dataclass(frozen=True)
class TrajectoryArrays:
    """A joint trajectory: ``time`` (N,) s from its start, ``position``, ``velocity``, ``acceleration`` (N, n)."""

    joint_names: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array
    acceleration: Array


def to_joint_trajectory(trajectory: TrajectoryArrays, stamp: Time | None = None) -> JointTrajectory:
    """Arrays to a JointTrajectory; without a stamp the controller starts it on receipt."""
    message = JointTrajectory(joint_names=list(trajectory.joint_names))
    message.header.stamp = stamp or Time()
    rows = zip(trajectory.time, trajectory.position, trajectory.velocity, trajectory.acceleration, strict=True)
    message.points = [
        JointTrajectoryPoint(
            positions=q.tolist(), velocities=v.tolist(), accelerations=a.tolist(), time_from_start=to_duration(t)
        )
        for t, q, v, a in rows
    ]
    return message


def from_joint_trajectory(message: JointTrajectory, joint_names: Sequence[str]) -> TrajectoryArrays:
    """A JointTrajectory in a chosen joint order; missing velocities and accelerations become zero.

    Raises
    ------
    InertidError: other joints, lengths that do not fit, not finite, or time that does not increase.
    """
    wanted = tuple(joint_names)
    if sorted(message.joint_names) != sorted(wanted):
        raise InertidError(f"joint trajectory: holds joints {list(message.joint_names)}, expected {list(wanted)}")
    order = [list(message.joint_names).index(joint) for joint in wanted]
    count = len(message.points)
    if count == 0:
        raise InertidError("joint trajectory: holds no points; send at least one")
    time = np.array([to_nanoseconds(point.time_from_start) for point in message.points]) / NANOSECONDS
    arrays = []
    for key in ("positions", "velocities", "accelerations"):
        rows = [list(getattr(point, key)) for point in message.points]
        if key != "positions" and not any(rows):
            arrays.append(np.zeros((count, len(wanted))))
            continue
        if any(len(row) != len(wanted) for row in rows):
            raise InertidError(f"joint trajectory: {key} do not have {len(wanted)} values in every point")
        arrays.append(np.array(rows, dtype=float)[:, order])
    if not all(np.isfinite(array).all() for array in arrays):
        raise InertidError("joint trajectory: holds values that are not finite")
    if (np.diff(time) <= 0).any() or time[0] < 0:
        raise InertidError("joint trajectory: time_from_start does not increase from zero")
    return TrajectoryArrays(wanted, time, *arrays)


@dataclass(frozen=True)
class BatchInfo:
    """What a SampleBatch says beside its samples."""

    recording: str
    sequence: int
    last: bool


def to_batch(block: Block, info: BatchInfo, after_gap: NDArray[np.bool_]) -> SampleBatch:
    """Synchronised samples to a message; ``after_gap`` (N,) marks samples whose predecessor was lost."""
    frames = list(block.wrenches)
    wrench = np.stack([block.wrenches[frame] for frame in frames], axis=1) if frames else np.zeros(0)
    message = SampleBatch(
        recording=info.recording,
        sequence=info.sequence,
        last=info.last,
        joint_names=list(block.joint_names),
        stamps=[to_time(stamp) for stamp in block.stamps_ns],
        position=block.position.ravel().tolist(),
        velocity=[] if block.velocity is None else block.velocity.ravel().tolist(),
        effort=block.effort.ravel().tolist(),
        wrench_frames=frames,
        wrench=wrench.ravel().tolist(),
        flags=np.where(after_gap, SampleBatch.AFTER_GAP, SampleBatch.OK).astype(np.uint8).tolist(),
        **{channel: values.ravel().tolist() for channel, values in block.base.items()},
    )
    if message.stamps:
        message.header.stamp = message.stamps[0]
    return message


def from_batch(message: SampleBatch) -> Block:
    """Inverse of :func:`to_batch`.

    Raises
    ------
    RecordingError: array lengths do not fit.
    """
    n, count, frames = len(message.joint_names), len(message.stamps), len(message.wrench_frames)
    where = f"{message.recording}: batch {message.sequence}"

    def table(key: str, width: int) -> Array:
        values = np.asarray(getattr(message, key), dtype=float)
        if values.size != count * width:
            raise RecordingError(f"{where}: {key} has {values.size} values, expected {count * width}")
        return values.reshape(count, width)

    wrench = table("wrench", 6 * frames).reshape(count, frames, 6)
    return Block(
        joint_names=tuple(message.joint_names),
        stamps_ns=np.array([to_nanoseconds(stamp) for stamp in message.stamps], dtype=np.int64),
        position=table("position", n),
        velocity=table("velocity", n) if len(message.velocity) or not count else None,
        effort=table("effort", n),
        wrenches={frame: wrench[:, index] for index, frame in enumerate(message.wrench_frames)},
        base={channel: table(channel, width) for channel, width in WIDTHS.items() if len(getattr(message, channel))},
    )


def to_inertial_parameters(
    estimate: Estimate, validation: Validation | None, sequence: int, stamp: Time
) -> InertialParameters:
    """An estimate to the message that controllers receive."""
    model, layout = estimate.model, estimate.layout
    return InertialParameters(
        header=Header(stamp=stamp),
        sequence=sequence,
        model_hash=model.hash,
        validation_status=validation_status(validation),
        validation_relative_error=float("nan") if validation is None else validation.calibrated.relative_error,
        links=_links(model.link_names, estimate.bodies, layout.bodies(estimate.standard_deviation)),
        joints=_joints(estimate),
        couplings=_couplings(estimate),
        parameter_names=list(layout.names),
        covariance=estimate.covariance.ravel().tolist(),
        knowledge=[VERDICTS.index(statement.verdict) for statement in estimate.statements],
    )


def validation_status(validation: Validation | None) -> int:
    """The constant of InertialParameters for a validation."""
    if validation is None:
        return InertialParameters.NOT_VALIDATED
    return InertialParameters.PASSED if validation.passed else InertialParameters.REJECTED


def known_parameters(model: RobotModel, bodies: Array, drives: Mapping[str, Array], stamp: Time) -> InertialParameters:
    """Parameters that nobody estimated, such as a simulator's truth: ``(nb, 10)`` and drive term to ``(n,)``."""
    unknown = np.full(len(DRIVE_TERMS), np.nan)
    joints = [
        JointDynamics(
            name=name,
            **{term: float(drives[term][index]) for term in DRIVE_TERMS},
            standard_deviation=unknown,
        )
        for index, name in enumerate(model.joint_names)
    ]
    return InertialParameters(
        header=Header(stamp=stamp),
        model_hash=model.hash,
        validation_relative_error=float("nan"),
        links=_links(model.link_names, bodies, np.full(bodies.shape, np.nan)),
        joints=joints,
    )


def _links(link_names: Sequence[str], bodies: Array, deviations: Array) -> list[LinkInertia]:
    split = mass_com_inertia(bodies)
    rows, columns = (0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)
    return [
        LinkInertia(
            name=name,
            mass=float(split.mass[index]),
            com=Point(**dict(zip("xyz", split.com[index].tolist(), strict=True))),
            inertia=split.inertia[index][rows, columns],
            standard_deviation=deviations[index],
        )
        for index, name in enumerate(link_names)
    ]


def _joints(estimate: Estimate) -> list[JointDynamics]:
    layout = estimate.layout
    unknown = np.full(estimate.model.joints, np.nan)
    deviations = {
        term: estimate.standard_deviation[layout.drive(term)] if term in layout.drive_terms else unknown
        for term in DRIVE_TERMS
    }
    return [
        JointDynamics(
            name=name,
            **{term: float(estimate.drive(term)[index]) for term in DRIVE_TERMS},
            standard_deviation=np.array([deviations[term][index] for term in DRIVE_TERMS]),
            stribeck_speed=float(layout.stribeck_speed[index]),
        )
        for index, name in enumerate(estimate.model.joint_names)
    ]


def _couplings(estimate: Estimate) -> list[CoupledDrive]:
    layout, messages = estimate.layout, []
    for index, coupling in enumerate(layout.couplings):
        start = layout.coupling_start + index * len(COUPLING_TERMS)
        columns = slice(start, start + len(COUPLING_TERMS))
        values = dict(zip(COUPLING_TERMS, estimate.parameters[columns].tolist(), strict=True))
        message = CoupledDrive(name=coupling.name, joints=list(coupling.joints), ratios=list(coupling.ratios), **values)
        message.standard_deviation = estimate.standard_deviation[columns]
        messages.append(message)
    return messages


@dataclass(frozen=True)
class ReceivedParameters:
    """Content of an InertialParameters message.

    Attributes
    ----------
    link_names: moving bodies, with ``bodies`` (nb, 10).
    joint_names: joints, with ``drives``: each drive term to ``(n,)``, and ``stribeck_speed`` (n,).
    couplings: for each coupled drive the ratio of every joint ``(n,)`` and its terms.
    """

    sequence: int
    model_hash: str
    validation_status: int
    link_names: tuple[str, ...]
    bodies: Array
    joint_names: tuple[str, ...]
    drives: Mapping[str, Array]
    stribeck_speed: Array
    couplings: tuple[tuple[Array, Mapping[str, float]], ...]


def from_inertial_parameters(message: InertialParameters) -> ReceivedParameters:
    """Message to parameters about the joint frame origins."""
    inertia = np.zeros((len(message.links), 3, 3))
    for index, link in enumerate(message.links):
        xx, xy, xz, yy, yz, zz = link.inertia
        inertia[index] = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    mass = np.array([link.mass for link in message.links])
    com = np.array([[link.com.x, link.com.y, link.com.z] for link in message.links]).reshape(-1, 3)
    return ReceivedParameters(
        sequence=int(message.sequence),
        model_hash=message.model_hash,
        validation_status=int(message.validation_status),
        link_names=tuple(link.name for link in message.links),
        bodies=from_mass_com_inertia(mass, com, inertia),
        joint_names=tuple(joint.name for joint in message.joints),
        drives={term: np.array([getattr(joint, term) for joint in message.joints]) for term in DRIVE_TERMS},
        stribeck_speed=np.array([joint.stribeck_speed for joint in message.joints]),
        couplings=tuple(_coupling(drive, [joint.name for joint in message.joints]) for drive in message.couplings),
    )


def _coupling(drive: CoupledDrive, joint_names: Sequence[str]) -> tuple[Array, Mapping[str, float]]:
    ratios = dict(zip(drive.joints, drive.ratios, strict=False))
    row = np.array([float(ratios.get(name, 0.0)) for name in joint_names])
    return row, {term: float(getattr(drive, term)) for term in COUPLING_TERMS}


def to_report(report: Mapping[str, Any], parameters: InertialParameters, directory: str) -> IdentificationReport:
    """Content of ``report.json`` to the message that dashboards watch; ``parameters`` is what it reports on."""
    judged, prior = report.get("validation", report["train"]), report["prior"]
    links, solver, base = report["links"], report["solver"], report["base_parameters"]
    sources = report["provenance"]["recordings"]
    channels = report.get("channels", report["joint_names"])
    of_joints = [channels.index(name) for name in report["joint_names"] if name in channels]
    return IdentificationReport(
        header=parameters.header,
        sequence=parameters.sequence,
        model_hash=parameters.model_hash,
        validation_status=parameters.validation_status,
        message=report["message"],
        train=[source["name"] for source in sources if source["role"] == "train"],
        validation=[source["name"] for source in sources if source["role"] == "validation"],
        joint_names=report["joint_names"],
        link_names=[link["name"] for link in links],
        train_relative_error=_number(report["train"]["relative_error"]),
        validation_relative_error=parameters.validation_relative_error,
        prior_relative_error=_number(prior["relative_error"]),
        rms_torque=[_number(judged["rms_torque"][row]) for row in of_joints],
        rms_error=[_number(judged["rms_error"][row]) for row in of_joints],
        rms_error_prior=[_number(prior["rms_error"][row]) for row in of_joints],
        min_pseudo_inertia_eigenvalue=[_number(link["min_pseudo_inertia_eigenvalue"]) for link in links],
        geodesic_distance_to_prior=[_number(link["geodesic_distance_to_prior"]) for link in links],
        base_parameter_count=int(base["count"]),
        condition_number=_number(base["condition_number"]),
        solver=str(solver["name"]),
        solver_status=str(solver["status"]),
        solver_iterations=int(solver["iterations"]),
        solver_seconds=_number(solver["seconds"]),
        report_json=json.dumps(report),
        result_directory=directory,
    )


def _number(value: float | None) -> float:
    """``report.json`` has None where a number is not finite."""
    return float("nan") if value is None else float(value)
