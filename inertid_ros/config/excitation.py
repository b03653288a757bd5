"""Options of exciting motions: limits, what they must not touch, how they are planned and executed, when they stop."""

import math
from collections.abc import Mapping
from typing import TypeVar

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import REQUIRED, named, option, section, vector

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
    """How the limits of a motion follow from those of the URDF."""

    position_margin: float = option(0.05, "kept from the URDF's position limits [rad or m]", 0.0, 10.0)
    velocity_fraction: float = option(0.8, "of the URDF's velocity limits that a motion may use", 0.01, 1.0)
    effort_fraction: float = option(0.8, "of the URDF's effort limits that the prior model may need; the rest covers"
        " its error", 0.01, 1.0)
    # 250 mm/s, the reduced speed of ISO 10218-1, at half a metre from the joint
    default_velocity: float = option(0.5, "limit of joints to which neither the URDF nor velocity gives one; it is told"
        " [rad/s or m/s]", 1e-3, 1e3)
    default_acceleration: float = option(5.0, "limit of joints that acceleration does not name; a URDF has none"
        " [rad/s^2 or m/s^2]", 1e-3, 1e4)
    acceleration: Mapping[str, float] = named(float, "limit of a joint [rad/s^2 or m/s^2]", "acceleration_joint_names",
        minimum=1e-9, maximum=1e9)
    velocity: Mapping[str, float] = named(float, "limit of a joint in place of the URDF's [rad/s or m/s]",
        "velocity_joint_names", minimum=1e-9, maximum=1e9)
    effort: Mapping[str, float] = named(float, "limit of a joint in place of the URDF's [N m or N]",
        "effort_joint_names", minimum=1e-9, maximum=1e9)
    position: Mapping[str, tuple[float, ...]] = named(float, "lower and upper limit of a joint, inside the URDF's [rad"
        " or m]", "position_joint_names", many=True, length=2, minimum=-1e6, maximum=1e6)
    continuous_range: float = option(math.pi, "joints without position limits stay within plus and minus this [rad]",
        0.01, 1e3)


@attrs.frozen
class ObstacleOptions:
    """A body around the robot."""

    shape: str = option(REQUIRED, "box, sphere, cylinder or capsule, the last two along z", of=str,
        choices=tuple(OBSTACLE_SHAPES))
    size: tuple[float, ...] = option((), "full edges of a box [m]", 1e-6, 1e4, of=float)
    radius: float = option(0.0, "of all but a box [m]", 0.0, 1e4)
    length: float = option(0.0, "of a cylinder, or of a capsule without its caps [m]", 0.0, 1e4)
    xyz: tuple[float, ...] = vector((0.0, 0.0, 0.0), "of its centre in the root frame [m]", 1e4)
    rpy: tuple[float, ...] = vector((0.0, 0.0, 0.0), "roll, pitch and yaw in the root frame [rad]", 10.0)

    def __attrs_post_init__(self) -> None:
        needed = OBSTACLE_SHAPES[self.shape]
        for name in ("size", "radius", "length"):
            if bool(getattr(self, name)) != (name in needed):
                what = "is missing; give it" if name in needed else "does not belong"
                raise ConfigurationError(f"{name} {what} to a {self.shape}, which has {' and '.join(needed)} [m]")
        if self.size and len(self.size) != 3:
            raise ConfigurationError(f"size has {len(self.size)} values; give 3")


@attrs.frozen
class CollisionOptions:
    """What a motion must not touch."""

    self_collision: bool = option(True, "links keep clear of one another, by the collision shapes of the URDF")
    clearance_m: float = option(0.01, "smallest distance of links from one another [m]", 0.0, 10.0)
    obstacle_clearance_m: float = option(0.05, "smallest distance of links from obstacles and from the floor or"
        " mounting plane [m]", 0.0, 10.0)
    obstacles: Mapping[str, ObstacleOptions] = named(ObstacleOptions, "bodies around the robot", "obstacle_names")
    mesh_folders: tuple[str, ...] = option((), "folders in which package:// meshes are looked for, before those above"
        " the URDF and of ROS")
    srdf: str = option("", "file that names pairs of links not to be checked; the links of a joint never are")
    ignored: Mapping[str, tuple[str, ...]] = named(str, "links and obstacles that a link or obstacle is not checked"
        " against", "ignored_names", many=True)


@attrs.frozen
class AreaOptions:
    """Corners of an area on the ground, in the root frame."""

    x: tuple[float, ...] = option((), "of every corner [m]", -1e4, 1e4, of=float)
    y: tuple[float, ...] = option((), "of every corner [m]", -1e4, 1e4, of=float)

    def __attrs_post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ConfigurationError(f"x has {len(self.x)} values and y {len(self.y)}; give both of every corner")


@attrs.frozen
class BalanceOptions:
    """Balance of a robot whose root link stands on the ground, such as a humanoid with its legs locked.

    Attributes
    ----------
    support : area of contact, in which the zero-moment point stays; without corners it is not checked.
    com_region : area above which the centre of mass stays; without corners that of contact with its margin.
    """

    support: AreaOptions = section(AreaOptions)
    ground_m: float = option(0.0, "height of the ground in the root frame [m]", -100.0, 100.0)
    support_margin_m: float = option(0.02, "kept from the edges of the area of contact [m]", 0.0, 10.0)
    normal_force: float = option(0.2, "smallest force on the ground, as a fraction of the weight", 0.0, 1.0)
    com_region: AreaOptions = section(AreaOptions)


@attrs.frozen
class CombinationOptions:
    """How a motion of direction combinations is planned ([Naveen2019]_ sec. 5)."""

    interval_s: float = option(1.0, "of each interval [s]", 0.05, 600.0)
    offered: int = option(256, "combinations to choose from, at most; n joints have 2^(n-1)", 2, 100_000)
    most: int = option(67, "intervals kept at most; 0 keeps what pruning keeps", 0, 100_000)
    neutral: int = option(5, "intervals in a row that pruning keeps without gain", 0, 1000)
    significant: float = option(1 / 300, "singular values count from this fraction of the largest on", 1e-12, 1.0)
    velocity_reward: float = option(0.003, "weight of one over the mean squared velocity beside the condition number"
        " [rad^2/s^2]", 0.0, 1e6)
    wheel_range: float = option(9.42477796076938, "angle that every reaction wheel turns in an interval [rad]",
        1e-6, 1e6)
    orders: int = option(8, "random orders of the combinations that are tried", 1, 10_000)
    starts: int = option(20, "random seeds tried per order, before and after pruning", 1, 100_000)
    iterations: int = option(40, "of sequential quadratic programming after pruning; before it a quarter", 0, 100_000)
    samples: int = option(6, "instants per interval at which the cost is evaluated", 2, 1000)


@attrs.frozen
class ExcitationOptions:
    """How an exciting motion is planned."""

    kind: str = option("fourier", "motion to plan; combinations are cycloidal intervals of direction combinations,"
        " which are planned for the condition number, without regard to earlier recordings", choices=MOTION_TYPES)
    duration_s: float = option(20.0, "of the motion [s]", 1.0, 600.0)
    base_frequency_hz: float = option(0.1, "of the Fourier series; a whole number of periods in the duration moves best"
        " [Hz]", 1e-3, 10.0)
    harmonics: int = option(6, "of the Fourier series", 2, 50)
    intervals: int = option(20, "of the cycloidal or B-spline motion", 2, 1000)
    criterion: str = option("condition", "what planning makes small: condition number, or root mean square (a),"
        " geometric mean (d) or largest (e) standard deviation of the parameters", choices=CRITERIA)
    scaling: str = option("columns", "what a step in the parameters counts: regressor columns of unit norm, the prior's"
        " metric (the same in all frames and units), their prior values, or SI units (none)",
        choices=CRITERION_SCALINGS)
    measured: tuple[str, ...] = option(("joints",), "what is measured: joint torques, the wrench at the base (a force"
        " plate)", choices=MEASURED)
    base_deviation: tuple[float, ...] = option((1.0, 0.3), "standard deviations of force and torque at the base per"
        " root second [N, N m]", 1e-9, 1e9, length=2)
    kept_parameters: int = option(0, "only so many combinations of parameters count, the best excited; 0 counts all",
        0, 100_000)
    criterion_bound: float = option(math.inf, "combinations are left out until the criterion of the rest can be brought"
        " below this", minimum=1e-12)
    seed: int = option(0, "of the random starts; the same seed gives the same motion", minimum=0)
    validation_kind: str = option("fourier", "of the held-out motion", choices=MOTION_TYPES)
    validation_duration_s: float = option(0.0, "of the held-out motion [s]; 0 is as long as the other", 0.0, 600.0)
    validation_seed: int = option(1, "of the held-out motion", minimum=0)
    starts: int = option(48, "random feasible motions to begin with", 1, 100_000)
    improved: int = option(3, "of the best of them that are improved", 0, 1000)
    workers: int = option(0, "processes that improve at once; 0 takes one per core; the motion is the same", 0, 1024)
    iterations: int = option(60, "of each improvement, at most", 0, 100_000)
    time_limit_s: float = option(60.0, "planning ends then with the best motion so far; reached, it depends on the"
        " machine's speed [s]", 0.1, 1e5)
    criterion_samples: int = option(120, "instants at which the criterion is evaluated", 10, 100_000)
    limit_use: float = option(0.95, "fraction of velocity and acceleration limits used; the rest is room for braking",
        0.05, 1.0)
    mounting: str = option("floor", "what the robot is mounted on: nothing moves below (behind) the lowest point of its"
        " base in the root frame; none looks at no floor", choices=MOUNTINGS)
    floor_m: float = option(-math.inf, "height in the root frame that no part of a moving link may go below; -.inf"
        " leaves it to mounting [m]", maximum=1e4)
    constraint_samples: int = option(400, "instants at which the search looks at distances; the finished plan is proven"
        " in between", 10, 100_000)
    knot_step_s: float = option(0.02, "distance of the plan's points [s]", 1e-3, 0.1)
    collision: CollisionOptions = section(CollisionOptions)
    balance: BalanceOptions = section(BalanceOptions)
    combinations: CombinationOptions = section(CombinationOptions)

    @property
    def held_out(self) -> "ExcitationOptions":
        """Those of the held-out motion; ConfigurationError if it would be the motion that is fitted."""
        duration = self.validation_duration_s or self.duration_s
        if (self.validation_kind, self.validation_seed, duration) == (self.kind, self.seed, self.duration_s):
            raise ConfigurationError(
                f"excitation.seed and excitation.validation_seed are both {self.seed}, so that the held-out motion"
                " would be the one that is fitted; change one of them")
        return attrs.evolve(self, kind=self.validation_kind, seed=self.validation_seed, duration_s=duration)


@attrs.frozen
class BrakeOptions:
    """How hard a brake along the path may be."""

    shortest_s: float = option(0.2, "fastest stop from full speed that is tried [s]", 0.01, 10.0)
    rise_s: float = option(0.1, "time from no deceleration to the strongest [s]", 0.01, 10.0)
    longest_s: float = option(3.0, "a plan that needs longer than this to stop from any phase is refused [s]",
        0.1, 60.0)


@attrs.frozen
class ExecutionOptions:
    """How a plan is handed to the controller: horizons that each end at rest."""

    horizon_s: float = option(0.25, "time that each message follows the plan before it brakes [s]", 0.02, 2.0)
    period_s: float = option(0.05, "time between two messages; horizon_s less this is how late the sender may be [s]",
        1e-3, 0.5)
    grid_s: float = option(0.02, "distance of the phases at which a brake may begin [s]", 1e-3, 0.2)
    step_s: float = option(0.01, "distance of the points; divides the grid [s]", 1e-3, 0.1)
    latency_s: float = option(0.02, "a motion and a stop begin no sooner than this after they are asked for; a brake"
        " that the controller receives later than that sets the robot back [s]", 0.0, 0.1)
    approach_speed: float = option(0.25, "fraction of the velocity limits on the way to the start of the plan",
        0.01, 1.0)
    settle_s: float = option(0.5, "pause at the start of the plan [s]", 0.02, 60.0)
    max_start_error: float = option(1.0, "farthest distance to the start of the plan that is approached [rad or m]",
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

    state_timeout_s: float = option(0.0, "a brake is commanded if no state is accepted for so long, by receipt on the"
        " steady clock; 0 leaves that to the last horizon, which brakes by itself (arms that are controlled by efforts:"
        " six periods of the driver, 0.03 to 0.2) [s]", 0.0, 2.0)
    max_age_s: float = option(0.1, "states whose stamp is older than this at receipt are late and rejected [s]",
        0.005, 10.0)
    max_future_s: float = option(0.02, "states whose stamp is farther ahead than this are rejected [s]", 0.0, 10.0)
    min_rate_hz: float = option(50.0, "fewer accepted states than this over the window stop the motion [Hz]",
        1.0, 10_000.0)
    rate_window_s: float = option(2.0, "window of the rate [s]", 0.1, 10.0)
    tracking_tolerance: float = option(0.1, "largest distance of measured from commanded position [rad or m]",
        1e-4, 10.0)
    stuck_distance: float = option(0.02, "a joint that was commanded this far while its reported position kept every"
        " digit is stuck [rad or m]", 1e-4, 10.0)
    max_effort_fraction: float = option(1.0, "of the URDF's effort limits; more for effort_time_s stops the motion",
        0.01, 10.0)
    effort_time_s: float = option(0.05, "see max_effort_fraction [s]", 0.0, 10.0)

    def timed(self: Monitoring, period_s: float) -> Monitoring:
        """Return the options with a timeout for efforts that follow from states that come every ``period_s`` seconds.

        A period of NaN takes the shortest timeout.
        """
        if self.state_timeout_s:
            return self
        periods = 0.0 if math.isnan(period_s) else _PERIODS * period_s
        return attrs.evolve(self, state_timeout_s=min(max(periods, _SHORTEST_TIMEOUT_S), _LONGEST_TIMEOUT_S))


@attrs.frozen
class MonitorOptions(StateMonitorOptions):
    """Limits beyond which a motion along a plan stops."""

    max_wait_s: float = option(3.0, "a robot that came to rest because states or horizons were late goes on along its"
        " path if they come again within this time; 0 ends the motion at once [s]", 0.0, 60.0)
    progress_tolerance: float = option(0.0, "distance by which a message may set the robot forward, if the controller's"
        " speed is scaled; 0 takes a tenth of tracking_tolerance [rad or m]", 0.0, 10.0)
    lease_timeout_s: float = option(0.4, "without a renewed lease for this long the motion stops, where one was asked"
        " for [s]", 0.05, 60.0)


@attrs.frozen
class EffortControlOptions:
    """How an arm is controlled by efforts while parameters adapt."""

    rate_hz: float = option(500.0, "of the effort commands [Hz]", 50.0, 2000.0)
    controller_type: str = option("passivity", "how the torque follows from the error",
        choices=("passivity", "computed_torque"))
    law: str = option("natural", "metric in which parameters adapt; none keeps the first estimate",
        choices=("natural", "pullback", "none"))
    bandwidth: float = option(20.0, "of the controller: errors of position decay as exp(-bandwidth t) [1/s]",
        0.1, 200.0)
    speed: float = option(10.0, "of adaptation", 0.0, 1e4)
    adapted_links: tuple[str, ...] = option((), "moving links whose parameters adapt; empty takes all")
    largest_factor: float = option(5.0, "by which mass and second moments of a link may differ from the first estimate,"
        " and gains with them", 1.0, 1e4)
    dead_zone: float = option(0.005, "error, velocity plus bandwidth times position, below which a joint adapts nothing"
        " [rad/s or m/s]", 0.0, 10.0)
    transition_s: float = option(0.5, "from the torque that was measured to that of the controller, where it takes over"
        " [s]", 0.01, 10.0)
    effort_fraction: float = option(0.95, "of the URDF's effort limits that is commanded at most", 0.01, 1.0)
    longest_pause_s: float = option(0.05, "between two commands; a longer one stops the arm [s]", 0.005, 1.0)
    saturation_s: float = option(0.5, "for which a joint may be at that limit; longer stops the arm [s]", 0.01, 60.0)
    brake: BrakeOptions = section(BrakeOptions)
