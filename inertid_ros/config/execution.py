"""Options of execution: how a plan is sent to the controller or an arm is controlled, and when it is stopped."""

import math
from typing import TypeVar

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import option, section

Monitoring = TypeVar("Monitoring", bound="StateMonitorOptions")
_PERIODS, _SHORTEST_TIMEOUT_S, _LONGEST_TIMEOUT_S = 6, 0.03, 0.2


@attrs.frozen
class BrakeOptions:
    """How hard a brake along the path may be."""

    shortest_s: float = option(0.2, "fastest stop from full speed that is tried [s]", minimum=0.01, maximum=10.0)
    rise_s: float = option(0.1, "time from no deceleration to the strongest [s]", minimum=0.01, maximum=10.0)
    longest_s: float = option(
        3.0, "a plan that needs longer than this to stop from any phase is refused [s]", minimum=0.1, maximum=60.0)


@attrs.frozen
class ExecutionOptions:
    """How a plan is handed to the controller: horizons that each end at rest."""

    horizon_s: float = option(
        0.25, "time that each message follows the plan before it brakes [s]", minimum=0.02, maximum=2.0)
    period_s: float = option(
        0.05, "time between two messages; horizon_s less this is how late the sender may be [s]", minimum=1e-3,
        maximum=0.5)
    grid_s: float = option(0.02, "distance of the phases at which a brake may begin [s]", minimum=1e-3, maximum=0.2)
    step_s: float = option(0.01, "distance of the points; divides the grid [s]", minimum=1e-3, maximum=0.1)
    latency_s: float = option(
        0.02, "a motion and a stop begin no sooner than this after they are asked for; a brake that the controller"
        " receives later than that sets the robot back [s]", minimum=0.0, maximum=0.1)
    approach_speed: float = option(
        0.25, "fraction of the velocity limits on the way to the start of the plan", minimum=0.01, maximum=1.0)
    settle_s: float = option(0.5, "pause at the start of the plan [s]", minimum=0.02, maximum=60.0)
    max_start_error: float = option(
        1.0, "farthest distance to the start of the plan that is approached [rad or m]", minimum=0.0, maximum=100.0)
    brake: BrakeOptions = section(BrakeOptions)

    def __attrs_post_init__(self) -> None:
        ratio = self.grid_s / self.step_s
        if abs(ratio - round(ratio)) > 1e-9:
            raise ConfigurationError(f"grid_s {self.grid_s} is not a multiple of step_s {self.step_s}; make it one")
        if self.latency_s + self.period_s >= self.horizon_s:
            raise ConfigurationError(
                f"latency_s {self.latency_s} and period_s {self.period_s} together are not below horizon_s"
                f" {self.horizon_s}; lower them"
            )


@attrs.frozen
class StateMonitorOptions:
    """Limits of the joint states beyond which a robot stops."""

    state_timeout_s: float = option(
        0.0, "a brake is commanded if no state is accepted for so long, by receipt on the steady clock; 0 leaves that"
        " to the last horizon, which brakes by itself (arms that are controlled by efforts: six periods of the driver,"
        " 0.03 to 0.2) [s]", minimum=0.0, maximum=2.0)
    max_age_s: float = option(
        0.1, "states whose stamp is older than this at receipt are late and rejected [s]", minimum=0.005, maximum=10.0)
    max_future_s: float = option(
        0.02, "states whose stamp is farther ahead than this are rejected [s]", minimum=0.0, maximum=10.0)
    min_rate_hz: float = option(
        50.0, "fewer accepted states than this over the window stop the motion [Hz]", minimum=1.0, maximum=10_000.0)
    rate_window_s: float = option(2.0, "window of the rate [s]", minimum=0.1, maximum=10.0)
    tracking_tolerance: float = option(
        0.1, "largest distance of measured from commanded position [rad or m]", minimum=1e-4, maximum=10.0)
    stuck_distance: float = option(
        0.02, "a joint that was commanded this far while its reported position kept every digit is stuck [rad or m]",
        minimum=1e-4, maximum=10.0)
    max_effort_fraction: float = option(
        1.0, "of the URDF's effort limits; more for effort_time_s stops the motion", minimum=0.01, maximum=10.0)
    effort_time_s: float = option(0.05, "see max_effort_fraction [s]", minimum=0.0, maximum=10.0)

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

    max_wait_s: float = option(
        3.0, "a robot that came to rest because states or horizons were late goes on along its path if they come again"
        " within this time; 0 ends the motion at once [s]", minimum=0.0, maximum=60.0)
    progress_tolerance: float = option(
        0.0, "distance by which a message may set the robot forward, if the controller's speed is scaled; 0 takes a"
        " tenth of tracking_tolerance [rad or m]", minimum=0.0, maximum=10.0)
    lease_timeout_s: float = option(
        0.4, "without a renewed lease for this long the motion stops, where one was asked for [s]", minimum=0.05,
        maximum=60.0)


@attrs.frozen
class EffortControlOptions:
    """How an arm is controlled by efforts while parameters adapt."""

    rate_hz: float = option(500.0, "of the effort commands [Hz]", minimum=50.0, maximum=2000.0)
    controller_type: str = option(
        "passivity", "how the torque follows from the error", choices=("passivity", "computed_torque"))
    law: str = option(
        "natural", "metric in which parameters adapt; none keeps the first estimate",
        choices=("natural", "pullback", "none"))
    bandwidth: float = option(
        20.0, "of the controller: errors of position decay as exp(-bandwidth t) [1/s]", minimum=0.1, maximum=200.0)
    speed: float = option(10.0, "of adaptation", minimum=0.0, maximum=1e4)
    adapted_links: tuple[str, ...] = option((), "moving links whose parameters adapt; empty takes all")
    largest_factor: float = option(
        5.0, "by which mass and second moments of a link may differ from the first estimate, and gains with them",
        minimum=1.0, maximum=1e4)
    dead_zone: float = option(
        0.005, "error, velocity plus bandwidth times position, below which a joint adapts nothing [rad/s or m/s]",
        minimum=0.0, maximum=10.0)
    transition_s: float = option(
        0.5, "from the torque that was measured to that of the controller, where it takes over [s]", minimum=0.01,
        maximum=10.0)
    effort_fraction: float = option(
        0.95, "of the URDF's effort limits that is commanded at most", minimum=0.01, maximum=1.0)
    longest_pause_s: float = option(
        0.05, "between two commands; a longer one stops the arm [s]", minimum=0.005, maximum=1.0)
    saturation_s: float = option(
        0.5, "for which a joint may be at that limit; longer stops the arm [s]", minimum=0.01, maximum=60.0)
    brake: BrakeOptions = section(BrakeOptions)
