"""Plan or load exciting motions and inspect them; prepare a motion for execution on a robot.

:func:`prepare_motion` is a job that a :class:`~inertid_ros.core.worker.Worker` can run in another process.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import attrs
import numpy as np

from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.config.excitation import ExcitationOptions, ExecutionOptions, LimitOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.findings import Finding
from inertid_ros.excitation.constraints.constraint import Clearance, Constraint
from inertid_ros.excitation.constraints.motion_constraints import (
    Surroundings,
    motion_constraints,
    rest_pose,
    surroundings,
)
from inertid_ros.excitation.execution.horizons import HorizonTable
from inertid_ros.excitation.execution.plan_check import check_plan, with_approach
from inertid_ros.excitation.motion_limits import MotionLimits, motion_limits
from inertid_ros.excitation.plan import Plan, load_motion, slower
from inertid_ros.excitation.planning import inspection as inspections, planner
from inertid_ros.excitation.planning.interval_planner import plan_floating_base, wheel_limits
from inertid_ros.identification.information.information import EarlierInformation
from inertid_ros.robot.model import RobotModel, load_model

FITTED, HELD_OUT = "to fit", "to validate"
_PLANNED_FRACTION = 0.8


@dataclass(frozen=True)
class PlannedMotion:
    """Motion within all limits, its properties, and the final state of its planning (None if it was loaded)."""

    purpose: str
    inspection: inspections.Inspection
    criterion: planner.PlanningProgress | None = None

    @property
    def plan(self) -> Plan:
        return self.inspection.plan


@dataclass(frozen=True)
class Workspace:
    """Robot with limits, constraints and surroundings of its motions, and the information of earlier recordings.

    ``model`` is the robot as its joints are commanded: a floating robot (``floating``) rests on its base, and its
    wheels are joints.
    """

    model: RobotModel
    limits: MotionLimits
    constraints: Sequence[Constraint]
    around: Surroundings
    earlier: EarlierInformation | None
    floating: RobotModel | None = None

    @classmethod
    def of(cls, model: RobotModel, limit_options: LimitOptions, options: ExcitationOptions,
            prior: str | Path = "") -> "Workspace":
        """Workspace of a robot; the bodies of a result directory ``prior`` predict the efforts."""
        earlier, floating = None, model if model.free and model.wheels.names else None
        if prior:
            if model.foot:
                raise ExcitationError(
                    f"robot '{model.name}': it stands on a foot, so its motion is planned without an earlier result;"
                    " leave out --prior")
            from .earlier_result import earlier_result  # late, as this import takes as long as all others

            model, earlier = earlier_result(prior, model)
        if model.foot and not options.balance.support.x:
            sole = " --set 'excitation.balance.support={x: [-0.05, 0.1, 0.1, -0.05], y: [-0.03, -0.03, 0.03, 0.03]}'"
            raise ExcitationError(
                f"robot '{model.name}': it stands on '{model.foot}' and may fall; give the corners of the sole from the"
                f" origin of this link, x forward and y left [m], such as{sole}")
        model = model.commanded
        planner.refuse_free_base(model)
        limits = motion_limits(model, limit_options)
        if floating is not None:
            options = attrs.evolve(options, mounting="none")  # it moves in its surroundings
            accelerated = limit_options.acceleration
            limits = wheel_limits(limits, floating.wheels.names, options.combinations, accelerated)
        constraints = motion_constraints(model, limits, options)
        return cls(model, limits, constraints, surroundings(model, limits, options), earlier, floating)

    def planned(self, start: Array, options: ExcitationOptions, report: planner.PlanningReport) -> Plan:
        """Plan an exciting motion that begins at ``start`` ``(n,)``."""
        if self.floating is None:
            return planner.plan_excitation(self.model, self.limits, start, options, report, self.earlier)
        if options.kind != "combinations" or self.earlier is not None:
            raise ExcitationError(
                f"robot '{self.model.name}': its base floats, so only direction combinations can be planned, without an"
                " earlier result; set excitation.kind and excitation.validation_kind to combinations")
        return plan_floating_base(
            self.floating, self.limits, start, options, self.constraints,
            lambda fraction, condition: report(planner.PlanningProgress(fraction, condition, condition)))

    def inspected(
            self, plan: Plan, purpose: str = "", criterion: planner.PlanningProgress | None = None) -> PlannedMotion:
        """Inspect a motion; ExcitationError if it breaks a limit or a constraint."""
        check_plan(plan, self.model, self.limits, constraints=self.constraints)
        robot = self.floating or self.model
        inspection = inspections.inspect_plan(plan, robot, self.limits, self.constraints, self.earlier, self.around)
        return PlannedMotion(purpose, inspection, criterion)


def plan(model: RobotModel, configuration: ExcitationConfiguration | None = None,
        start: Mapping[str, float] | None = None, prior: str | Path = "",
        progress: Callable[[str, planner.PlanningProgress], None] = lambda purpose, report: None,
        ) -> tuple[PlannedMotion, ...]:
    """Plan a motion to fit and, without ``prior``, one to validate; held-out data of a prior is used again.

    Raises InertidError: a motion within the limits does not exist, or the result cannot be used.

    Parameters
    ----------
    start : position per joint at both ends of a motion [rad or m]; the default is the middle of the joint's range, or
        near it if the robot cannot rest there.
    prior : earlier result directory; the motion excites the parameters that are still uncertain.
    progress : called with the purpose of the motion and the state of planning.
    """
    configuration = configuration or ExcitationConfiguration()
    options, start = configuration.excitation, start or {}
    space = Workspace.of(model, configuration.limits, options, prior)
    kept = {*start, *model.wheels.names}  # wheels may stand at any angle
    named = np.array([name in kept for name in space.limits.joint_names])
    pose = rest_pose(space.model, space.limits, space.constraints, _pose(start, space.limits), named)

    def planned(purpose: str, wanted: ExcitationOptions) -> PlannedMotion:
        last = deque[planner.PlanningProgress](maxlen=1)

        def report(state: planner.PlanningProgress) -> None:
            last.append(state)
            progress(purpose, state)

        motion = space.planned(pose, wanted, report)
        return space.inspected(motion, purpose, last[0] if last else None)

    fitted = planned(FITTED, options)
    return (fitted,) if space.earlier is not None else (fitted, planned(HELD_OUT, options.held_out))


def check_motion(model: RobotModel, file: str | Path, configuration: ExcitationConfiguration,
        prior: str | Path = "") -> PlannedMotion:
    """Inspect a plan or JointTrajectory in YAML; InertidError if it cannot be read, or breaks a limit or constraint."""
    space = Workspace.of(model, configuration.limits, configuration.excitation, prior)
    return space.inspected(load_motion(file, space.limits))


def _pose(start: Mapping[str, float], limits: MotionLimits) -> Array:
    """Positions in ``start``; other joints are in the middle of their range."""
    pose = 0.5 * (limits.lower + limits.upper)
    for joint, position in start.items():
        if joint not in limits.joint_names:
            names = ", ".join(limits.joint_names)
            raise ExcitationError(f"--start {joint}={position:g}: the robot has no such joint; it has {names}")
        pose[limits.joint_names.index(joint)] = position
    return pose


@dataclass(frozen=True)
class ExcitationJob:
    """Motion to plan or to load, with its options.

    Attributes
    ----------
    urdf : content of the URDF.
    measured_position : (n,), measured position of the robot at rest.
    start : (n,), position at both ends of a planned motion; the measured position if None.
    plan_file : plan, or JointTrajectory in YAML, to replay; if empty, a motion is planned.
    speed_scale : above 0, at most 1.
    prior : result directory; its bodies predict efforts, and the motion excites its most uncertain parameters.
    folder : folder of the URDF, for its meshes; None if it is not a file.
    """

    urdf: str
    measured_position: Array
    start: Array | None = None
    plan_file: str = ""
    speed_scale: float = 1.0
    prior: str = ""
    robot: RobotOptions = field(default_factory=RobotOptions)
    limits: LimitOptions = field(default_factory=LimitOptions)
    excitation: ExcitationOptions = field(default_factory=ExcitationOptions)
    execution: ExecutionOptions = field(default_factory=ExecutionOptions)
    folder: Path | None = None


@dataclass(frozen=True)
class PreparedMotion:
    """Motion that passed every check, ready for execution.

    Attributes
    ----------
    plan : the exciting motion alone.
    approach_s : duration of the approach to the start of ``plan`` [s].
    table : horizons and brakes of approach and plan.
    summary : one line about the motion, to be read before it begins.
    clearance : smallest clearance during motion and approach; None if contact is impossible.
    paths : path ``(N, 3)`` in the root frame [m] of the last link of every limb.
    findings : possible contacts, and parameters that the motion does not excite, with reasons.
    """

    plan: Plan
    approach_s: float
    table: HorizonTable
    summary: str = ""
    clearance: Clearance | None = None
    paths: Mapping[str, Array] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class PreparationProgress:
    """Fraction done, and condition number of the best motion so far; NaN if a plan file is loaded."""

    fraction: float
    condition_number: float = float("nan")


def prepare_motion(job: ExcitationJob, progress: Callable[[PreparationProgress], None]) -> PreparedMotion:
    """Plan or load a motion, check it, prepend the approach, and compute every horizon and brake.

    Raises InertidError: the URDF or plan cannot be used, or a limit would be broken.
    """
    progress(PreparationProgress(0.0))
    space = Workspace.of(load_model(job.urdf, job.robot, folder=job.folder), job.limits, job.excitation, job.prior)
    model, limits, constraints = space.model, space.limits, space.constraints
    if job.plan_file:
        plan = load_motion(job.plan_file, limits)
    else:
        # A robot at rest just outside the margin of its limits begins at the margin.
        start = np.clip(job.measured_position, limits.lower, limits.upper) if job.start is None else job.start

        def report(state: planner.PlanningProgress) -> None:
            progress(PreparationProgress(_PLANNED_FRACTION * state.fraction, state.condition_number))

        plan = space.planned(start, job.excitation, report)
    plan = slower(plan, job.speed_scale)
    check_plan(plan, model, limits, constraints=constraints)
    progress(PreparationProgress(_PLANNED_FRACTION))
    whole, approach_s = with_approach(plan, model, job.measured_position, job.execution, constraints)
    table = HorizonTable(whole, whole.limits, job.execution)
    weak = inspections.motion_findings(plan, model, limits, constraints) if space.floating is None else ()
    findings = (*space.around.findings, *weak)
    clearance = inspections.closest_approach(constraints, whole)
    summary = inspections.motion_summary(plan, clearance, job.speed_scale)
    progress(PreparationProgress(1.0))
    return PreparedMotion(plan, approach_s, table, summary, clearance, inspections.limb_paths(plan, model), findings)
