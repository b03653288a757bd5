"""Options of exciting motions: limits, collisions, planning, execution and stops."""

import math
from collections.abc import Mapping
from typing import TypeVar

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import REQUIRED, TRIPLE, named, option, section, vector

Monitoring = TypeVar("Monitoring", bound="StateMonitorOptions")
MOTION_TYPES = ("fourier", "cycloidal", "bspline", "combinations")
CRITERIA = ("condition", "a", "d", "e")
CRITERION_SCALINGS = ("columns", "metric", "prior", "none")
MEASURED = ("joints", "base")
MOUNTINGS = ("floor", "wall", "ceiling", "none")
OBSTACLE_SHAPES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"),
                   "capsule": ("radius", "length")}
_PERIODS, _SHORTEST_TIMEOUT_S, _LONGEST_TIMEOUT_S = 6, 0.03, 0.2


@attrs.frozen
class LimitOptions:
    """Limits of a motion, derived from the limits of the URDF."""

    position_margin: float = option(0.05, "distance kept from the URDF's position limits [rad or m]", 0.0, 10.0)
    velocity_fraction: float = option(0.8, "fraction of the URDF's velocity limits that a motion may use", 0.01, 1.0)
    effort_fraction: float = option(0.8, "fraction of the URDF's effort limits that the prior model may need; the"
        " rest covers the error of this model", 0.01, 1.0)
    # 250 mm/s, the reduced speed of ISO 10218-1, at half a metre from the joint
    default_velocity: float = option(0.5, "velocity limit of joints without a limit in the URDF or in"
        " limits.velocity; it is logged [rad/s or m/s]", 1e-3, 1e3)
    default_acceleration: float = option(5.0, "acceleration limit of joints without a limit in"
        " limits.acceleration; URDFs have no acceleration limits [rad/s^2 or m/s^2]", 1e-3, 1e4)
    acceleration: Mapping[str, float] = named(float, "acceleration limit of a joint [rad/s^2 or m/s^2]",
        "acceleration_joint_names", minimum=1e-9, maximum=1e9)
    velocity: Mapping[str, float] = named(float, "velocity limit of a joint in place of the URDF's [rad/s or m/s]",
        "velocity_joint_names", minimum=1e-9, maximum=1e9)
    effort: Mapping[str, float] = named(float, "effort limit of a joint in place of the URDF's [N m or N]",
        "effort_joint_names", minimum=1e-9, maximum=1e9)
    position: Mapping[str, tuple[float, ...]] = named(tuple[float, float], "lower and upper position limit of a"
        " joint, inside the URDF's [rad or m]", "position_joint_names", minimum=-1e6, maximum=1e6)
    continuous_range: float = option(math.pi, "range of joints without position limits, to both sides of zero [rad]",
        0.01, 1e3)


@attrs.frozen
class ObstacleOptions:
    """Body in the surroundings of the robot."""

    shape: str = option(REQUIRED, "box, sphere, cylinder or capsule (axis along z)", of=str,
        choices=tuple(OBSTACLE_SHAPES))
    size: tuple[float, ...] = option((), "full edge lengths of a box [m]", 1e-6, 1e4, of=TRIPLE)
    radius: float = option(0.0, "radius of a sphere, cylinder or capsule [m]", 0.0, 1e4)
    length: float = option(0.0, "length of a cylinder, or of a capsule without its caps [m]", 0.0, 1e4)
    xyz: tuple[float, ...] = vector((0.0, 0.0, 0.0), "position of the obstacle's centre in the root frame [m]", 1e4)
    rpy: tuple[float, ...] = vector((0.0, 0.0, 0.0), "roll, pitch and yaw in the root frame [rad]", 10.0)

    def __attrs_post_init__(self) -> None:
        needed = OBSTACLE_SHAPES[self.shape]
        for name in ("size", "radius", "length"):
            if bool(getattr(self, name)) != (name in needed):
                what = "is missing; give it" if name in needed else "does not belong"
                raise ConfigurationError(f"{name} {what} to a {self.shape}, which has {' and '.join(needed)} [m]")


@attrs.frozen
class CollisionOptions:
    """Collision checks of a motion."""

    self_collision: bool = option(True, "links keep clear of each other, by the collision shapes of the URDF")
    clearance_m: float = option(0.01, "smallest distance between links [m]", 0.0, 10.0)
    obstacle_clearance_m: float = option(0.05, "smallest distance of links from obstacles and from the floor or"
        " mounting plane [m]", 0.0, 10.0)
    obstacles: Mapping[str, ObstacleOptions] = named(ObstacleOptions, "bodies around the robot", "obstacle_names")
    mesh_folders: tuple[str, ...] = option((), "folders to search for package:// meshes, before the folders above"
        " the URDF and the folders of ROS")
    srdf: str = option("", "SRDF file with pairs of links that are not checked; two links that a joint connects are"
        " never checked")
    ignored: Mapping[str, tuple[str, ...]] = named(tuple[str, ...], "links and obstacles that a link or obstacle"
        " is not checked against", "ignored_names")


@attrs.frozen
class AreaOptions:
    """Corners of an area on the ground, in the root frame."""

    x: tuple[float, ...] = option((), "x of every corner of the area [m]", -1e4, 1e4, of=tuple[float, ...])
    y: tuple[float, ...] = option((), "y of every corner of the area [m]", -1e4, 1e4, of=tuple[float, ...])

    def __attrs_post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ConfigurationError(f"x has {len(self.x)} values and y {len(self.y)}; give both for every corner")


@attrs.frozen
class BalanceOptions:
    """Balance of a robot whose root link stands on the ground, such as a humanoid with its legs locked.

    Attributes
    ----------
    support : contact area that must contain the zero-moment point; without corners the point is not checked.
    com_region : area that must contain the point below the centre of mass; without corners: the contact area with its
        margin.
    """

    support: AreaOptions = section(AreaOptions)
    ground_m: float = option(0.0, "height of the ground in the root frame [m]", -100.0, 100.0)
    support_margin_m: float = option(0.02, "distance kept from the edges of the contact area [m]", 0.0, 10.0)
    normal_force: float = option(0.2, "smallest force on the ground, as a fraction of the weight", 0.0, 1.0)
    com_region: AreaOptions = section(AreaOptions)


@attrs.frozen
class CombinationOptions:
    """Planning of a motion of direction combinations ([Naveen2019]_ sec. 5)."""

    interval_s: float = option(1.0, "duration of each interval [s]", 0.05, 600.0)
    offered: int = option(256, "largest number of direction combinations to choose from; n joints have 2^(n-1)", 2,
        100_000)
    most: int = option(67, "largest number of intervals after pruning; 0: no limit", 0, 100_000)
    neutral: int = option(5, "largest number of intervals without gain that pruning keeps; the count restarts if an"
        " interval adds a significant singular value", 0, 1000)
    significant: float = option(1 / 300, "singular values above this fraction of the largest are significant", 1e-12,
        1.0)
    velocity_reward: float = option(0.003, "weight of one over the mean squared velocity, added to the condition"
        " number [rad^2/s^2]", 0.0, 1e6)
    wheel_range: float = option(9.42477796076938, "angle that every reaction wheel turns in an interval [rad]",
        1e-6, 1e6)
    orders: int = option(8, "random orders of the direction combinations to try", 1, 10_000)
    starts: int = option(20, "random seeds to try per order, before and after pruning", 1, 100_000)
    iterations: int = option(40, "SQP iterations after pruning; a quarter of them before pruning", 0, 100_000)
    samples: int = option(6, "instants per interval at which the cost is evaluated", 2, 1000)


@attrs.frozen
class ExcitationOptions:
    """Planning of an exciting motion."""

    kind: str = option("fourier", "motion to plan; combinations: cycloidal intervals, each with one combination of the"
        " joints' directions of motion, planned for the condition number without use of earlier recordings",
        choices=MOTION_TYPES)
    duration_s: float = option(20.0, "duration of the motion [s]", 1.0, 600.0)
    base_frequency_hz: float = option(0.1, "base frequency of the Fourier series; best is a whole number of periods in"
        " the duration [Hz]", 1e-3, 10.0)
    harmonics: int = option(6, "number of harmonics of the Fourier series", 2, 50)
    intervals: int = option(20, "number of intervals of the cycloidal or B-spline motion", 2, 1000)
    criterion: str = option("condition", "quantity that planning minimizes: condition number, or root mean square (a),"
        " geometric mean (d) or largest (e) standard deviation of the parameters", choices=CRITERIA)
    scaling: str = option("columns", "scaling of the parameters in the criterion: regressor columns of unit norm,"
        " the prior's metric (equal in all frames and units), their prior values, or SI units (none)",
        choices=CRITERION_SCALINGS)
    measured: tuple[str, ...] = option(("joints",), "measured quantities: joint torques, the wrench at the base (a"
        " force plate)", choices=MEASURED)
    base_deviation: tuple[float, ...] = option((1.0, 0.3), "standard deviations of force and torque at the base per"
        " root second [N, N m]", 1e-9, 1e9, of=tuple[float, float])
    kept_parameters: int = option(0, "number of best excited parameter combinations in the criterion; 0 takes all",
        0, 100_000)
    criterion_bound: float = option(math.inf, "the worst excited parameter combinations are left out until the"
        " criterion of the remaining combinations can fall below this bound", minimum=1e-12)
    seed: int = option(0, "seed of the random starts; the same seed gives the same motion", minimum=0)
    validation_kind: str = option("fourier", "type of the held-out motion", choices=MOTION_TYPES)
    validation_duration_s: float = option(0.0, "duration of the held-out motion [s]; 0 takes excitation.duration_s",
        0.0, 600.0)
    validation_seed: int = option(1, "seed of the held-out motion", minimum=0)
    starts: int = option(48, "number of random feasible motions to begin with", 1, 100_000)
    improved: int = option(3, "number of the best start motions to improve", 0, 1000)
    workers: int = option(0, "number of parallel processes, which has no effect on the motion; 0: one per core", 0,
        1024)
    iterations: int = option(60, "largest number of iterations of each improvement", 0, 100_000)
    time_limit_s: float = option(60.0, "longest planning time; at this limit the best motion so far is used, which"
        " depends on the speed of the machine [s]", 0.1, 1e5)
    criterion_samples: int = option(120, "instants at which the criterion is evaluated", 10, 100_000)
    limit_use: float = option(0.95, "fraction of velocity and acceleration limits used; the rest is room for braking",
        0.05, 1.0)
    mounting: str = option("floor", "surface that carries the robot: no link moves below (behind) the lowest point of"
        " the base in the root frame; none disables this check", choices=MOUNTINGS)
    floor_m: float = option(-math.inf, "lowest height in the root frame for all parts of moving links; -.inf takes"
        " it from excitation.mounting [m]", maximum=1e4)
    constraint_samples: int = option(400, "instants at which the search checks distances; the finished plan is verified"
        " between these instants, too", 10, 100_000)
    knot_step_s: float = option(0.02, "time between points of the plan [s]", 1e-3, 0.1)
    collision: CollisionOptions = section(CollisionOptions)
    balance: BalanceOptions = section(BalanceOptions)
    combinations: CombinationOptions = section(CombinationOptions)

    @property
    def held_out(self) -> "ExcitationOptions":
        """Options of the held-out motion; ConfigurationError if it equals the fitted motion."""
        duration = self.validation_duration_s or self.duration_s
        if (self.validation_kind, self.validation_seed, duration) == (self.kind, self.seed, self.duration_s):
            raise ConfigurationError(
                f"excitation.seed and excitation.validation_seed are both {self.seed}, so that the held-out motion"
                " equals the fitted motion; change one of them")
        return attrs.evolve(self, kind=self.validation_kind, seed=self.validation_seed, duration_s=duration)


@attrs.frozen
class BrakeOptions:
    """Strength of a brake along the path."""

    shortest_s: float = option(0.2, "shortest stop from full speed that is tried [s]", 0.01, 10.0)
    rise_s: float = option(0.1, "time from no deceleration to the strongest [s]", 0.01, 10.0)
    longest_s: float = option(3.0, "longest stop from any phase; a plan that needs longer is refused [s]", 0.1, 60.0)


@attrs.frozen
class ExecutionOptions:
    """Execution of a plan by the controller, in horizons that each end at rest."""

    horizon_s: float = option(0.25, "time that each message follows the plan before it brakes [s]", 0.02, 2.0)
    period_s: float = option(0.05, "time between two messages; the sender may be late by horizon_s - period_s [s]",
        1e-3, 0.5)
    grid_s: float = option(0.02, "time between phases at which a brake may begin [s]", 1e-3, 0.2)
    step_s: float = option(0.01, "time between points; grid_s is a multiple of it [s]", 1e-3, 0.1)
    latency_s: float = option(0.02, "time from a request to the start of a motion or stop; a brake that reaches the"
        " controller later than this sets the robot back [s]", 0.0, 0.1)
    approach_speed: float = option(0.25, "fraction of the velocity limits on the way to the start of the plan",
        0.01, 1.0)
    settle_s: float = option(0.5, "pause at the start of the plan [s]", 0.02, 60.0)
    max_start_error: float = option(1.0, "largest distance from which the start of the plan is approached [rad or m]",
        0.0, 100.0)
    brake: BrakeOptions = section(BrakeOptions)

    def __attrs_post_init__(self) -> None:
        ratio = self.grid_s / self.step_s
        if abs(ratio - round(ratio)) > 1e-9:
            raise ConfigurationError(f"grid_s {self.grid_s} is not a multiple of step_s {self.step_s}; make it one")
        if self.latency_s + self.period_s >= self.horizon_s:
            raise ConfigurationError(
                f"latency_s {self.latency_s} and period_s {self.period_s} together are not below horizon_s"
                f" {self.horizon_s}; lower them")


@attrs.frozen
class StateMonitorOptions:
    """Limits of the joint states beyond which a robot stops."""

    state_timeout_s: float = option(0.0, "a brake is commanded if no state is accepted for this time, by receipt on the"
        " steady clock; 0 relies on the last horizon, which brakes by itself (arms that are controlled by efforts:"
        " six periods of the driver, 0.03 to 0.2) [s]", 0.0, 2.0)
    max_age_s: float = option(0.1, "states whose stamp is older than this at receipt are late and rejected [s]",
        0.005, 10.0)
    max_future_s: float = option(0.02, "states whose stamp is farther ahead than this are rejected [s]", 0.0, 10.0)
    min_rate_hz: float = option(50.0, "fewer accepted states than this over the window stop the motion [Hz]",
        1.0, 10_000.0)
    rate_window_s: float = option(2.0, "window of the rate [s]", 0.1, 10.0)
    tracking_tolerance: float = option(0.1, "largest distance of measured from commanded position [rad or m]",
        1e-4, 10.0)
    stuck_distance: float = option(0.02, "a joint is stuck if it was commanded this far while its reported position"
        " did not change in any digit [rad or m]", 1e-4, 10.0)
    max_effort_fraction: float = option(1.0, "fraction of the URDF's effort limits; more for effort_time_s stops the"
        " motion", 0.01, 10.0)
    effort_time_s: float = option(0.05, "see max_effort_fraction [s]", 0.0, 10.0)

    def timed(self: Monitoring, period_s: float) -> Monitoring:
        """Options with the timeout for control by efforts, from the period of states [s]; a configured timeout stays.

        A period of NaN gives the shortest timeout.
        """
        if self.state_timeout_s:
            return self
        periods = 0.0 if math.isnan(period_s) else _PERIODS * period_s
        return attrs.evolve(self, state_timeout_s=min(max(periods, _SHORTEST_TIMEOUT_S), _LONGEST_TIMEOUT_S))


@attrs.frozen
class MonitorOptions(StateMonitorOptions):
    """Limits beyond which a motion along a plan stops."""

    max_wait_s: float = option(3.0, "a robot that came to rest because of late states or horizons continues along its"
        " path if they return within this time; 0 ends the motion at once [s]", 0.0, 60.0)
    progress_tolerance: float = option(0.0, "distance by which a message may set the robot forward, if the controller's"
        " speed is scaled; 0 takes a tenth of tracking_tolerance [rad or m]", 0.0, 10.0)
    wheel_speed: float = option(1.0, "largest measured speed of a reaction wheel, as a fraction of its velocity limit",
        0.01, 10.0)
    base_speed: float = option(math.inf, "largest measured speed of a floating base [m/s]", 0.0)
    base_rate: float = option(math.inf, "largest measured angular velocity of a floating base [rad/s]", 0.0)
    lease_timeout_s: float = option(0.4, "motions with a lease stop without renewal for this time [s]", 0.05, 60.0)


@attrs.frozen
class EffortControlOptions:
    """Control of an arm by efforts while parameters adapt."""

    rate_hz: float = option(500.0, "rate of the effort commands [Hz]", 50.0, 2000.0)
    controller_type: str = option("passivity", "control law from the error to the torque",
        choices=("passivity", "computed_torque"))
    law: str = option("natural", "metric in which parameters adapt; none keeps the first estimate",
        choices=("natural", "pullback", "none"))
    bandwidth: float = option(20.0, "bandwidth of the controller: position errors decay as exp(-bandwidth t) [1/s]",
        0.1, 200.0)
    speed: float = option(10.0, "speed of adaptation", 0.0, 1e4)
    adapted_links: tuple[str, ...] = option((), "moving links whose parameters adapt; empty takes all")
    largest_factor: float = option(5.0, "largest ratio of a link to the first estimate, in mass and second moments;"
        " gains change with it", 1.0, 1e4)
    masses: Mapping[str, tuple[float, ...]] = named(tuple[float, float], "smallest and largest mass of an adapting link"
        " [kg]", "mass_names", minimum=0.0, maximum=1e6)
    inside_links: bool = option(False, "the mass of every adapting link stays inside an ellipsoid around its shapes and"
        " frames")
    friction_weight: float = option(0.0, "weight of friction relative to the bodies: viscous and Coulomb friction adapt"
        " faster with a smaller weight, such as 0.5; 0 keeps the friction of the calibration", 0.0, 1e3)
    dead_zone: float = option(0.005, "error (velocity plus bandwidth times position) below which a joint does not adapt"
        " [rad/s or m/s]", 0.0, 10.0)
    transition_s: float = option(0.5, "time from the measured torque to the torque of the controller when it takes over"
        " [s]", 0.01, 10.0)
    effort_fraction: float = option(0.95, "largest commanded fraction of the URDF's effort limits", 0.01, 1.0)
    longest_pause_s: float = option(0.05, "longest pause of commands; a longer pause stops the arm [s]", 0.005, 1.0)
    saturation_s: float = option(0.5, "longest time of a joint at this limit; more time stops the arm [s]", 0.01, 60.0)
    brake: BrakeOptions = section(BrakeOptions)
