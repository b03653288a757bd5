"""Configuration: option trees of command line and nodes, and options that have an effect only with other options.

An option is refused if the options that it needs are missing. An option whose value equals its default counts as not
given, even if a file contains it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from inertid_ros.core.errors import ConfigurationError

from .excitation import ExcitationOptions, LimitOptions
from .identification import WEIGHTED_ESTIMATORS, ConstraintOptions, IdentifyOptions
from .option_fields import REQUIRED, Option, options, section
from .recordings import PrepareOptions, RecordingTopics
from .robot import RobotOptions
from .structuring import flat, flow

GIVEN: Literal["given"] = "given"
ABSENT: Literal["absent"] = "absent"
Wanted = tuple[Any, ...] | range | Literal["given", "absent"]
"""Condition on another option. Tuple or range: the option equals one of these values, or is a list with one of them;
``given`` or ``absent``: the option differs from its default or not. An empty tuple is never fulfilled, for an option
that the other option replaces."""


@attrs.frozen
class Configuration:
    """All options of reading, preparing and identifying, by topic."""

    robot: RobotOptions = section(RobotOptions)
    topics: RecordingTopics = section(RecordingTopics)
    prepare: PrepareOptions = section(PrepareOptions)
    identify: IdentifyOptions = section(IdentifyOptions)
    constraints: ConstraintOptions = section(ConstraintOptions)


@attrs.frozen
class ExcitationConfiguration:
    """All options of planning a motion, by topic."""

    robot: RobotOptions = section(RobotOptions)
    limits: LimitOptions = section(LimitOptions)
    excitation: ExcitationOptions = section(ExcitationOptions)


@attrs.frozen
class Effect:
    """Options that have an effect only if at least one of some conditions holds.

    ``words`` holds keys of options or sections, separated by blanks. ``needs`` maps keys of options, sections or
    mappings of named elements to conditions.
    """

    words: str
    needs: Mapping[str, Wanted]

    @property
    def options(self) -> list[str]:
        return self.words.split()


_BASE_TOPICS = ("topics.odometry", "topics.pose", "topics.twist", "topics.imu")
_CONTACT_THRESHOLDS = "prepare.wrenches.contact_on_n prepare.wrenches.contact_off_n prepare.wrenches.max_slip_m_s"
_BY_SEARCH = ("fourier", "cycloidal", "bspline")  # all types except direction combinations


def _planned(*types: str) -> dict[str, Any]:
    """Condition: the fitted motion or the held-out motion has one of these types."""
    return {"excitation.kind": types, "excitation.validation_kind": types}


EFFECTS = (
    Effect("identify.regularizer identify.solver identify.prior_spread identify.drive_weight identify.outlier_threshold"
        " identify.spread", {"identify.estimator": ("consistent",), "identify.fit_stribeck_speed": GIVEN}),
    Effect("identify.variance_limit", {"identify.estimator": ("reduced", "auto")}),
    Effect("identify.variance_limit", {"identify.kept_parameters": ABSENT}),
    Effect("identify.kept_parameters", {"identify.estimator": ("reduced",)}),
    Effect("identify.sensor_deviation", {"identify.estimator": WEIGHTED_ESTIMATORS}),
    Effect("identify.solver",
        {"identify.regularizer": ("entropic", "pullback", "riemannian", "euclidean", "relative", "geodesic")}),
    Effect("identify.changing_terms", {"identify.prior": GIVEN}),
    Effect("constraints.collision_margin constraints.mesh_folders", {"constraints.collision_shapes": GIVEN}),
    Effect("robot.command_kp robot.command_kd robot.command_gain_factors robot.command_limits robot.command_delay_s"
        " topics.commands topics.controller_state",
        {"robot.effort": ("position_command",)}),
    Effect("topics.command_joints", {"topics.commands": GIVEN}),
    Effect("robot.command_kp robot.command_kd robot.command_gain_factors robot.command_limits",
        {"identify.equations": ("force",)}),
    Effect("robot.command_delay_s", {"identify.remove_delay": (True,)}),
    Effect("robot.stribeck_speeds", {"robot.drive_terms": ("stribeck",)}),
    Effect("prepare.base prepare.trim_transients prepare.low_speed_fraction prepare.wrenches.reversed robot.contacts"
        " robot.plates robot.effort_scale robot.terms robot.couplings robot.rotor_inertias robot.stribeck_speeds"
        " identify.drive_weight",
        {"identify.equations": ("force",)}),
    Effect("prepare.base", {"robot.base": ("free",)}),
    Effect("prepare.motion_from prepare.trim_transients prepare.low_speed_fraction prepare.wrenches.check"
        " robot.locked_joints robot.drive_terms robot.couplings robot.rotor_inertias robot.stribeck_speeds robot.terms"
        " robot.effort_scale identify.drive_weight", {"robot.base": ("fixed", "free")}),
    Effect("prepare.base.imu_frame", {"prepare.base.motion_from": ("imu",)}),
    Effect("prepare.wrenches.reversed", {"robot.contacts": GIVEN, "robot.plates": GIVEN}),
    Effect(_CONTACT_THRESHOLDS, {"robot.base": ("free",)}),
    Effect(_CONTACT_THRESHOLDS, {"robot.plates": GIVEN}),
    Effect(" ".join(_BASE_TOPICS), {"robot.base": ("free",)}),
    Effect("topics.max_wrench_gap_s",
        dict.fromkeys(("topics.wrenches", "topics.further_joint_states", "topics.commands", "topics.controller_state",
            *_BASE_TOPICS), GIVEN)),
    Effect("excitation.harmonics excitation.base_frequency_hz", _planned("fourier")),
    Effect("excitation.intervals", _planned("cycloidal", "bspline")),
    Effect("excitation.combinations", _planned("combinations")),
    Effect("excitation.duration_s excitation.starts excitation.improved excitation.workers excitation.criterion_samples"
        " excitation.constraint_samples", _planned(*_BY_SEARCH)),
    Effect("excitation.iterations", {"excitation.improved": range(1, 1001)}),
    Effect("excitation.validation_duration_s", {"excitation.validation_kind": _BY_SEARCH}),
    Effect("excitation.criterion excitation.scaling excitation.measured excitation.kept_parameters"
        " excitation.criterion_bound", {"excitation.kind": _BY_SEARCH}),
    Effect("excitation.base_deviation", {"excitation.measured": ("base",)}),
    Effect("excitation.mounting", {"excitation.floor_m": ABSENT}),
    Effect("excitation.collision.clearance_m excitation.collision.srdf",
        {"excitation.collision.self_collision": (True,)}),
    Effect("excitation.collision.obstacle_clearance_m", {"excitation.mounting": ("floor", "wall", "ceiling"),
        "excitation.floor_m": GIVEN, "excitation.collision.obstacles": GIVEN}),
    Effect("excitation.balance.support_margin_m excitation.balance.normal_force",
        {"excitation.balance.support": GIVEN}),
    Effect("excitation.balance.ground_m",
        {"excitation.balance.support": GIVEN, "excitation.balance.com_region": GIVEN}),
    Effect(  # a floating robot moves in its surroundings
        "excitation.floor_m excitation.collision.obstacles excitation.collision.obstacle_clearance_m"
        " excitation.balance excitation.mounting",
        {"robot.base": ("fixed",), "robot.plates": GIVEN}))
"""Options of reading, identifying and planning that have an effect only with certain other options."""


def check_configuration(configuration: Configuration | ExcitationConfiguration, where: str) -> None:
    """Refuse given options that have no effect with the other options, see :data:`EFFECTS`."""
    check_effects(EFFECTS, dict(flat(attrs.asdict(configuration))), options(type(configuration)), where)


def check_effects(effects: Iterable[Effect], values: Mapping[str, Any], known: Iterable[Option], where: str) -> None:
    """Refuse given options that have no effect; the ConfigurationError names the option and the conditions.

    Parameters
    ----------
    effects : conditions on options that are not ``known`` are ignored.
    values : values of options by dotted key.
    known : all options of the command or node.
    where : file or node, for messages.
    """
    defaults = {entry.key: _plain(entry.default) for entry in known}
    values = {key: _plain(value) for key, value in values.items()}

    def given(key: str) -> list[str]:
        """Keys equal to ``key`` or below it whose values differ from their defaults."""
        below = (name for name in values if f"{name}.".startswith(f"{key}."))
        return [name for name in below if values[name] != defaults.get(name, REQUIRED)]

    def holds(key: str, wanted: Wanted) -> bool:
        if isinstance(wanted, str):
            return bool(given(key)) == (wanted == GIVEN)
        value = values.get(key, defaults[key])
        return any(part in wanted for part in (value if isinstance(value, tuple) else (value,)))

    def state(key: str, wanted: Wanted) -> str:
        if wanted == GIVEN and key not in values:
            return f"{key} is not given"
        name = key if key in values else given(key)[0]
        return f"{name} is {flow(values[name])}"

    for effect in effects:
        needs = {key: wanted for key, wanted in effect.needs.items()
                 if any(f"{name}.".startswith(f"{key}.") for name in defaults)}
        if not needs or any(holds(key, wanted) for key, wanted in needs.items()):
            continue
        for key in (key for option in effect.options for key in given(option)):
            states = " and ".join(state(other, wanted) for other, wanted in needs.items())
            remedy = " or ".join(_remedy(other, wanted) for other, wanted in needs.items())
            raise ConfigurationError(f"{where}: {key} is {flow(values[key])}, which has no effect while {states};"
                                     f" {remedy}, or leave {key} out")


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _remedy(key: str, wanted: Wanted) -> str:
    if isinstance(wanted, str):
        return f"give {key}" if wanted == GIVEN else f"leave {key} out"
    if not wanted:
        return f"set {key} instead"
    if isinstance(wanted, range):
        return f"set {key} to {wanted.start} or more"
    return f"set {key} to {' or '.join(map(flow, wanted))}"
