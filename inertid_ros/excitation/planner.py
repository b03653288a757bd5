"""The entry to planning: an exciting motion of the type that the options name."""

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.criteria.earlier_information import EarlierInformation
from inertid_ros.excitation.direction_combinations.fixed_base import plan_fixed_base
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.planning.optimize import PlanningProgress, PlanningReport, optimize_motion
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.robot.model import RobotModel


def refuse_free_base(model: RobotModel) -> None:
    """Reject robots whose motion depends on what their base does.

    Raises
    ------
    ExcitationError
        The base is free.
    """
    if model.free:
        raise ExcitationError(
            f"{model.name}: its base is free (robot.base), so its motion cannot be planned; plan with"
            " robot.base fixed for a robot whose root link rests on the ground, or give robot.wheels of one that floats"
            " to inertid excite"
        )


def plan_excitation(
    model: RobotModel,
    limits: MotionLimits,
    start: Array,
    options: ExcitationOptions | None = None,
    report: PlanningReport = lambda progress: None,
    earlier: EarlierInformation | None = None,
) -> Plan:
    """Plan a motion from ``start`` and back to it that keeps its limits everywhere and excites well.

    The same options give the same motion, however many processes work on it, unless the time limit is reached or the
    user interrupts (KeyboardInterrupt); then the best motion so far is returned.

    Parameters
    ----------
    model : RobotModel
        The robot, with its prior.
    limits : MotionLimits
        Limits that the motion keeps.
    start : ndarray, shape (n,)
        Pose at which the motion starts and ends [rad or m].
    options : ExcitationOptions, optional
        Type of motion, criterion and constraints.
    report : callable, optional
        Called with a :class:`PlanningProgress` now and then; may raise to cancel.
    earlier : EarlierInformation, optional
        Information of earlier recordings; the motion then excites what they left open. Direction combinations do
        without it.

    Returns
    -------
    Plan
        The motion, checked against all limits and constraints.

    Raises
    ------
    ExcitationError
        The start is outside the limits or violates a constraint, there is no space to move, or the bound of the
        criterion cannot be reached; joint or link and values named.
    """
    options = options or ExcitationOptions()
    if options.kind == "combinations":
        return plan_fixed_base(
            model, limits, start, options,
            lambda fraction, condition: report(PlanningProgress(fraction, condition, "", condition)),
        )[0]
    return optimize_motion(model, limits, start, options, report, earlier)
