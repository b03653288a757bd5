"""The configuration: trees of options, the same for command line and nodes."""

from typing import Any

import attrs

from inertid_ros.config.schema.effects import ABSENT, GIVEN, check_effects, only
from inertid_ros.config.schema.option_fields import options, section
from inertid_ros.config.schema.structuring import flat

from .excitation import ExcitationOptions, LimitOptions
from .identification import IdentifyOptions
from .identification_constraints import ConstraintOptions
from .preparation import PrepareOptions
from .recording_topics import RecordingTopics
from .robot import RobotOptions


@attrs.frozen
class Configuration:
    """Everything that can be set of reading, preparing and identifying, by topic."""

    robot: RobotOptions = section(RobotOptions)
    topics: RecordingTopics = section(RecordingTopics)
    prepare: PrepareOptions = section(PrepareOptions)
    identify: IdentifyOptions = section(IdentifyOptions)
    constraints: ConstraintOptions = section(ConstraintOptions)


@attrs.frozen
class ExcitationConfiguration:
    """Everything that can be set of planning a motion, by topic."""

    robot: RobotOptions = section(RobotOptions)
    limits: LimitOptions = section(LimitOptions)
    excitation: ExcitationOptions = section(ExcitationOptions)


_BASE_TOPICS = ("topics.odometry", "topics.pose", "topics.twist", "topics.imu")
_BY_SEARCH = ("fourier", "cycloidal", "bspline")  # all motions but direction combinations


def _planned(*types: str) -> dict[str, Any]:
    """One of the two motions that are planned, the fitted and the held-out one, is of one of these types."""
    return {"excitation.kind": types, "excitation.validation_kind": types}


EFFECTS = (
    only(
        "identify.regularizer identify.solver identify.prior_spread identify.drive_weight identify.outlier_threshold"
        " identify.spread",
        {"identify.estimator": ("consistent",), "identify.fit_stribeck_speed": GIVEN},
    ),
    only(
        "identify.solver",
        {"identify.regularizer": ("entropic", "pullback", "riemannian", "euclidean", "relative", "geodesic")},
    ),
    only("identify.changing_terms", {"identify.prior": GIVEN}),
    only("constraints.collision_margin constraints.mesh_folders", {"constraints.collision_shapes": GIVEN}),
    only("robot.stribeck_speeds", {"robot.drive_terms": ("stribeck",)}),
    only(
        "prepare.base prepare.trim_transients prepare.low_speed_fraction prepare.wrenches.reversed robot.contacts"
        " robot.plates robot.effort_scale robot.terms robot.couplings robot.stribeck_speeds identify.drive_weight",
        {"identify.equations": ("force",)},
    ),
    only("prepare.base", {"robot.base": ("free",)}),
    only("prepare.base.imu_frame", {"prepare.base.motion_from": ("imu",)}),
    only("prepare.wrenches.reversed", {"robot.contacts": GIVEN, "robot.plates": GIVEN}),
    only(
        "prepare.wrenches.contact_on_n prepare.wrenches.contact_off_n prepare.wrenches.max_slip_m_s",
        {"robot.base": ("free",)},
    ),
    only(
        "prepare.wrenches.contact_on_n prepare.wrenches.contact_off_n prepare.wrenches.max_slip_m_s",
        {"robot.plates": GIVEN},
    ),
    only(" ".join(_BASE_TOPICS), {"robot.base": ("free",)}),
    only("topics.max_wrench_gap_s", dict.fromkeys(("topics.wrenches", *_BASE_TOPICS), GIVEN)),
    only("excitation.harmonics excitation.base_frequency_hz", _planned("fourier")),
    only("excitation.intervals", _planned("cycloidal", "bspline")),
    only("excitation.combinations", _planned("combinations")),
    only(
        "excitation.duration_s excitation.starts excitation.improved excitation.workers excitation.criterion_samples"
        " excitation.constraint_samples",
        _planned(*_BY_SEARCH),
    ),
    only("excitation.iterations", {"excitation.improved": range(1, 1001)}),
    only("excitation.validation_duration_s", {"excitation.validation_kind": _BY_SEARCH}),
    only(
        "excitation.criterion excitation.scaling excitation.measured excitation.kept_parameters"
        " excitation.criterion_bound",
        {"excitation.kind": _BY_SEARCH},
    ),
    only("excitation.base_deviation", {"excitation.measured": ("base",)}),
    only("excitation.mounting", {"excitation.floor_m": ABSENT}),
    only(
        "excitation.collision.clearance_m excitation.collision.srdf",
        {"excitation.collision.self_collision": (True,)},
    ),
    only(
        "excitation.collision.obstacle_clearance_m",
        {
            "excitation.mounting": ("floor", "wall", "ceiling"),
            "excitation.floor_m": GIVEN,
            "excitation.collision.obstacles": GIVEN,
        },
    ),
    only(
        "excitation.balance.support_margin_m excitation.balance.normal_force",
        {"excitation.balance.support": GIVEN},
    ),
    only(
        "excitation.balance.ground_m",
        {"excitation.balance.support": GIVEN, "excitation.balance.com_region": GIVEN},
    ),
    only(  # a robot that floats is planned for without regard to what surrounds it, and to torques
        "excitation.floor_m excitation.collision.obstacles excitation.collision.clearance_m"
        " excitation.collision.obstacle_clearance_m excitation.collision.ignored excitation.collision.srdf"
        " excitation.balance limits.effort limits.effort_fraction",
        {"robot.base": ("fixed",)},
    ),
)
"""Options of reading, identifying and planning that have an effect beside certain others only."""


def check_configuration(configuration: Configuration | ExcitationConfiguration, where: str) -> None:
    """Refuse options that are given and have no effect beside others, see :data:`EFFECTS`.

    Raises
    ------
    ConfigurationError
        Names both options.
    """
    check_effects(EFFECTS, dict(flat(attrs.asdict(configuration))), options(type(configuration)), where)
