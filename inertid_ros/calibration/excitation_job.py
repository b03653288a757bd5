"""The excitation node's planning, as a function that a :class:`~inertid_ros.core.worker.Worker` can run elsewhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions, LimitOptions
from inertid_ros.config.execution import ExecutionOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.findings import Finding
from inertid_ros.excitation.constraints.constraint import Clearance
from inertid_ros.excitation.execution.horizons import HorizonTable
from inertid_ros.excitation.execution.plan_check import check_plan, with_approach
from inertid_ros.excitation.plan import Plan, slower
from inertid_ros.excitation.plan_file import load_motion
from inertid_ros.excitation.planning.inspection import closest_approach, limb_paths, motion_findings, motion_summary
from inertid_ros.excitation.planning.planner import PlanningProgress, plan_excitation
from inertid_ros.robot.model import load_model

from .planning import Workspace

_PLANNED_FRACTION = 0.8


@dataclass(frozen=True)
class ExcitationJob:
    """A motion to plan or to load, and its options.

    Attributes
    ----------
    urdf : str
        Content of the URDF.
    measured_position : ndarray, shape (n,)
        Position of the robot at rest.
    start : ndarray, shape (n,) or None
        Where a planned motion begins and ends; the measured position if None.
    plan_file : str
        A plan, or a JointTrajectory in YAML, to replay; empty plans one.
    speed_scale : float
        Above 0, at most 1.
    prior : str
        Result directory; the motion excites what its data determines least, with efforts of its bodies.
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


@dataclass(frozen=True)
class PreparedMotion:
    """A motion that passed every check, ready to be executed.

    Attributes
    ----------
    plan : Plan
        The exciting motion alone.
    approach_s : float
        Duration of the approach to its start [s]; the table holds both.
    summary : str
        One line about the motion, to be read before it begins.
    clearance : Clearance or None
        Where motion and approach come closest to anything; None if nothing can meet.
    paths : mapping of str to ndarray, shape (N, 3)
        Path of the last link of every limb in the root frame [m].
    findings : tuple of Finding
        What the motion may meet, and what it does not excite, and why.
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
    """Fraction of the preparation done, and condition number of the best motion so far; NaN if none is planned."""

    fraction: float
    condition_number: float = float("nan")


def prepare_motion(job: ExcitationJob, progress: Callable[[PreparationProgress], None]) -> PreparedMotion:
    """Plan or load, check, put the approach before it, and compute every horizon and brake.

    Raises
    ------
    InertidError
        The URDF or plan cannot be used, or something would break a limit.
    """
    progress(PreparationProgress(0.0))
    space = Workspace.of(load_model(job.urdf, job.robot), job.limits, job.excitation, job.prior)
    model, limits, constraints = space.model, space.limits, space.constraints
    if job.plan_file:
        plan = load_motion(job.plan_file, limits)
    else:
        # A robot at rest just outside the margin of its limits begins at the margin.
        start = np.clip(job.measured_position, limits.lower, limits.upper) if job.start is None else job.start

        def report(state: PlanningProgress) -> None:
            progress(PreparationProgress(_PLANNED_FRACTION * state.fraction, state.condition_number))

        plan = plan_excitation(model, limits, start, job.excitation, report, space.earlier)
    plan = slower(plan, job.speed_scale)
    check_plan(plan, model, limits, constraints=constraints)
    progress(PreparationProgress(_PLANNED_FRACTION))
    whole, approach_s = with_approach(plan, model, job.measured_position, job.execution, constraints)
    table = HorizonTable(whole, whole.limits, job.execution)
    findings = (*space.around.findings, *motion_findings(plan, model, limits, constraints))
    clearance = closest_approach(constraints, whole)
    summary = motion_summary(plan, clearance, job.speed_scale)
    progress(PreparationProgress(1.0))
    return PreparedMotion(plan, approach_s, table, summary, clearance, limb_paths(plan, model), findings)
