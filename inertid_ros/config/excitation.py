"""Options of motions: what limits they keep, how they are planned, sent and watched."""

import math
from dataclasses import dataclass, field

from inertid_ros.core.errors import ExcitationError

from .balance import BalanceOptions
from .collision import CollisionOptions
from .direction_combinations import CombinationOptions
from .options import option

KINDS = ("fourier", "cycloidal", "bspline", "combinations")
CRITERIA = ("condition", "a", "d", "e")
SCALINGS = ("columns", "metric", "prior", "none")
MEASURED = ("joints", "base")


@dataclass(frozen=True)
class LimitOptions:
    """How the limits of a motion follow from those of the URDF."""

    position_margin: float = option(
        0.05, "kept from the URDF's position limits [rad or m]", minimum=0.0, maximum=10.0
    )
    velocity_fraction: float = option(
        0.8, "of the URDF's velocity limits that a motion may use", minimum=0.01, maximum=1.0
    )
    effort_fraction: float = option(
        0.8, "of the URDF's effort limits that the prior model may need; the rest covers its error",
        minimum=0.01, maximum=1.0,
    )
    default_acceleration: float = option(
        5.0, "limit of joints that acceleration does not name; a URDF has none [rad/s^2 or m/s^2]",
        minimum=1e-3, maximum=1e4,
    )
    acceleration: tuple[str, ...] = option((), "limits, each JOINT=VALUE [rad/s^2 or m/s^2]")
    velocity: tuple[str, ...] = option((), "limits in place of the URDF's, each JOINT=VALUE [rad/s or m/s]")
    effort: tuple[str, ...] = option((), "limits in place of the URDF's, each JOINT=VALUE [N m or N]")
    position: tuple[str, ...] = option(
        (), "boxes inside the URDF's position limits, each JOINT=LOWER:UPPER [rad or m]"
    )
    continuous_range: float = option(
        math.pi, "joints without position limits stay within plus and minus this [rad]", minimum=0.01, maximum=1e3
    )


@dataclass(frozen=True)
class ExcitationOptions:
    """How an exciting motion is planned."""

    kind: str = option(
        "fourier",
        "motion to plan; combinations are cycloidal intervals of direction combinations, which are planned for the"
        " condition number, without regard to earlier recordings",
        choices=KINDS,
    )
    duration_s: float = option(20.0, "of the motion [s]", minimum=1.0, maximum=600.0)
    base_frequency_hz: float = option(
        0.1, "of the Fourier series; a whole number of periods in the duration moves best [Hz]",
        minimum=1e-3, maximum=10.0,
    )
    harmonics: int = option(6, "of the Fourier series", minimum=2, maximum=50)
    intervals: int = option(20, "of the cycloidal or B-spline motion", minimum=2, maximum=1000)
    criterion: str = option(
        "condition",
        "what planning makes small: condition number, or root mean square (a), geometric mean (d) or largest (e)"
        " standard deviation of the parameters",
        choices=CRITERIA,
    )
    scaling: str = option(
        "columns",
        "what a step in the parameters counts: regressor columns of unit norm, the prior's metric (the same in all"
        " frames and units), their prior values, or SI units (none)",
        choices=SCALINGS,
    )
    measured: tuple[str, ...] = option(
        ("joints",), "what tells of the parameters: joint torques, the wrench at the base (a force plate)",
        choices=MEASURED,
    )
    base_deviation: tuple[float, ...] = option(
        (1.0, 0.3), "standard deviations of force and torque at the base per root second [N, N m]",
        minimum=1e-9, maximum=1e9,
    )
    kept_parameters: int = option(
        0, "only so many combinations of parameters count, the best excited; 0 counts all", minimum=0, maximum=100_000
    )
    criterion_bound: float = option(
        math.inf, "combinations are left out until the criterion of the rest can be brought below this", minimum=1e-12
    )
    seed: int = option(0, "of the random starts; the same seed gives the same motion", minimum=0)
    starts: int = option(48, "random feasible motions to begin with", minimum=1, maximum=100_000)
    improved: int = option(3, "of the best of them that are improved", minimum=0, maximum=1000)
    workers: int = option(
        0, "processes that improve at once; 0 takes one per core; the motion is the same", minimum=0, maximum=1024
    )
    iterations: int = option(60, "of each improvement, at most", minimum=0, maximum=100_000)
    time_limit_s: float = option(
        60.0, "planning ends then with the best motion so far; reached, it depends on the machine's speed [s]",
        minimum=0.1, maximum=1e5,
    )
    criterion_samples: int = option(120, "instants at which the criterion is evaluated", minimum=10, maximum=100_000)
    limit_use: float = option(
        0.95, "fraction of velocity and acceleration limits used; the rest is room for braking",
        minimum=0.05, maximum=1.0,
    )
    floor_m: float = option(
        -math.inf, "height in the root frame that no part of a moving link may go below; -.inf checks none [m]"
    )
    constraint_samples: int = option(
        400, "instants at which the search looks at distances; the finished plan is proven in between",
        minimum=10, maximum=100_000,
    )
    knot_step_s: float = option(0.02, "distance of the plan's points [s]", minimum=1e-3, maximum=0.1)
    collision: CollisionOptions = field(default_factory=CollisionOptions)
    balance: BalanceOptions = field(default_factory=BalanceOptions)
    combinations: CombinationOptions = field(default_factory=CombinationOptions)

    def __post_init__(self) -> None:
        if len(self.base_deviation) != 2:
            raise ExcitationError(
                f"excitation.base_deviation has {len(self.base_deviation)} numbers; give force and torque"
            )


@dataclass(frozen=True)
class BrakeOptions:
    """How hard a brake along the path may be."""

    shortest_s: float = option(0.2, "fastest stop from full speed that is tried [s]", minimum=0.01, maximum=10.0)
    rise_s: float = option(0.1, "time from no deceleration to the strongest [s]", minimum=0.01, maximum=10.0)
    longest_s: float = option(
        3.0, "a plan that needs longer than this to stop from any phase is refused [s]", minimum=0.1, maximum=60.0
    )


@dataclass(frozen=True)
class ExecutionOptions:
    """How a plan is handed to the controller: horizons that each end at rest."""

    horizon_s: float = option(
        0.15, "time that each message follows the plan before it brakes [s]", minimum=0.02, maximum=2.0
    )
    grid_s: float = option(
        0.02, "distance of the phases at which a brake may begin, and the longest tick [s]", minimum=1e-3, maximum=0.2
    )
    step_s: float = option(0.01, "distance of the points; divides the grid [s]", minimum=1e-3, maximum=0.1)
    latency_s: float = option(
        0.004, "a stop begins no sooner than this after it is asked for [s]", minimum=0.0, maximum=0.1
    )
    approach_speed: float = option(
        0.25, "fraction of the velocity limits on the way to the start of the plan", minimum=0.01, maximum=1.0
    )
    settle_s: float = option(0.5, "pause at the start of the plan [s]", minimum=0.02, maximum=60.0)
    max_start_error: float = option(
        1.0, "farthest distance to the start of the plan that is approached [rad or m]", minimum=0.0, maximum=100.0
    )
    brake: BrakeOptions = field(default_factory=BrakeOptions)

    def __post_init__(self) -> None:
        ratio = self.grid_s / self.step_s if self.step_s > 0 else 0.5
        if ratio < 0.5 or abs(ratio - round(ratio)) > 1e-9:
            raise ExcitationError(
                f"execution.grid_s {self.grid_s} is not a multiple of execution.step_s {self.step_s}; make it one"
            )
        if not 0 <= self.latency_s < self.horizon_s:
            raise ExcitationError(
                f"execution.latency_s {self.latency_s} is not below execution.horizon_s {self.horizon_s}; lower it"
            )


@dataclass(frozen=True)
class MonitorOptions:
    """When the joint states say that the motion must stop."""

    state_timeout_s: float = option(
        0.03,
        "longest time without an accepted state, by receipt on the steady clock; three periods of the driver at least,"
        " and the robot is told to brake 5 to 15 ms later [s]",
        minimum=0.005,
        maximum=2.0,
    )
    max_age_s: float = option(
        0.1, "states whose stamp is older than this at receipt are late and rejected [s]", minimum=0.005, maximum=10.0
    )
    max_future_s: float = option(
        0.02, "states whose stamp is farther ahead than this are rejected [s]", minimum=0.0, maximum=10.0
    )
    min_rate_hz: float = option(
        50.0, "fewer accepted states than this over the window stop the motion [Hz]", minimum=1.0, maximum=10_000.0
    )
    rate_window_s: float = option(0.5, "window of the rate [s]", minimum=0.1, maximum=10.0)
    tracking_tolerance: float = option(
        0.1, "largest distance of measured from commanded position [rad or m]", minimum=1e-4, maximum=10.0
    )
    stuck_distance: float = option(
        0.02, "a joint that was commanded this far while its reported position kept every digit is stuck [rad or m]",
        minimum=1e-4, maximum=10.0,
    )
    max_effort_fraction: float = option(
        1.0, "of the URDF's effort limits; more for effort_time_s stops the motion", minimum=0.01, maximum=10.0
    )
    effort_time_s: float = option(0.05, "see max_effort_fraction [s]", minimum=0.0, maximum=10.0)
    lease_timeout_s: float = option(
        0.4, "without a renewed lease for this long the motion stops, where one was asked for [s]",
        minimum=0.05, maximum=60.0,
    )
