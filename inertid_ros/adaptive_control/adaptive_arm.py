"""Build an arm under adaptive control from a description or a result directory, and options."""

from dataclasses import dataclass

import attrs
import numpy as np

from inertid_ros.adaptive_control.controlled_arm import ArmState, ControlledArm, EffortWatch
from inertid_ros.adaptive_control.controller import (
    AdaptationOptions,
    AdaptiveController,
    CalibratedDrives,
    Law,
    Tracking,
)
from inertid_ros.config.excitation import LimitOptions
from inertid_ros.config.execution import EffortControlOptions, MonitorOptions, StateMonitorOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.excitation.execution.monitor import StateMonitor
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.report.results import Result, ResultError
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class FirstEstimate:
    """Robot with physically consistent bodies ``(nb, 10)``, and its drives if it is calibrated."""

    model: RobotModel
    bodies: Array
    drives: CalibratedDrives | None = None


def first_estimate(model: RobotModel, result_directory: str = "") -> FirstEstimate:
    """Take the bodies of the description, or bodies and drives of a result directory.

    Raises
    ------
    InertidError
        The directory holds no result, one that was rejected, or one of another robot.
    """
    if not result_directory:
        return FirstEstimate(model, model.consistent_body_prior)
    result = Result.load(result_directory)
    if result.rejected:
        raise ResultError(f"{result_directory}: was rejected ({result.report.get('message')}); give a good calibration")
    if result.model.hash != model.hash or result.model.joint_names != model.joint_names:
        raise ModelError(f"{result_directory}: is of another robot, or has other joints locked; give that of this one")
    bodies = result.model.layout.bodies(result.parameters)
    return FirstEstimate(result.model, bodies, CalibratedDrives(result.model, result.parameters))


def adaptive_controller(estimate: FirstEstimate, options: EffortControlOptions) -> AdaptiveController:
    """Build the controller of an arm.

    Raises
    ------
    InertidError
        The robot has a free base, inconsistent bodies or no effort limits, or lacks a link to adapt.
    """
    model = estimate.model
    for link in options.adapted_links:
        if link not in model.link_names:
            raise ModelError(
                f"control.adapted_links names '{link}', which is no moving link; there are"
                f" {', '.join(model.link_names)}"
            )
    limit = np.array(model.limits.effort)
    limited = np.isfinite(limit) & (limit > 0)
    if not limited.all():
        joint = model.joint_names[int(np.argmin(limited))]
        raise ModelError(f"URDF joint '{joint}': has no effort limit, by which torque must be limited; add one")
    adaptation = AdaptationOptions(
        bandwidth=options.bandwidth,
        speed=options.speed,
        law=Law[options.law.upper()],
        adapted=tuple(model.link_names.index(link) for link in options.adapted_links),
        largest_factor=options.largest_factor,
        effort_limit=options.effort_fraction * limit,
        tracking=Tracking[options.controller_type.upper()],
        dead_zone=options.dead_zone,
    )
    return AdaptiveController(model, estimate.bodies, adaptation, estimate.drives)


def controlled_arm(
    controller: AdaptiveController,
    model: RobotModel,
    limits: LimitOptions,
    options: EffortControlOptions,
    monitor: StateMonitorOptions,
    begin: ArmState,
) -> ControlledArm:
    """Take control of an arm where it stands.

    Raises
    ------
    InertidError
        A limit is missing.
    """
    motion = motion_limits(model, limits)
    urdf = model.limits
    lower = np.where(np.isfinite(urdf.lower), urdf.lower, motion.lower)
    upper = np.where(np.isfinite(urdf.upper), urdf.upper, motion.upper)
    speed = np.where(np.isfinite(urdf.velocity), urdf.velocity, motion.velocity)
    watched = MonitorOptions(**attrs.asdict(monitor))
    states = StateMonitor(model.joint_names, (lower, upper), speed, urdf.effort, watched, begin.time)
    watch = EffortWatch(model.joint_names, speed, np.asarray(controller.options.effort_limit), options.saturation_s)
    return ControlledArm(controller, motion, states, watch, options, begin)
