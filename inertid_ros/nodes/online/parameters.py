"""Parameters of the online node. They need no ROS: parameter files and documentation are made from them as well."""

from typing import TYPE_CHECKING

import attrs

from inertid_ros.config.schema.option_fields import option, section

if TYPE_CHECKING:  # names and ranges of parameters are needed without any numerics
    from inertid_ros.adaptation.calibrated_robot import FrictionDrift
    from inertid_ros.adaptation.online.followed_robot import FollowOptions


@attrs.frozen
class PayloadNodeOptions:
    """How the payload action identifies; what a goal gives goes before it."""

    frame: str = option("", "link that holds the payload, in whose frame it is; empty takes the last moving link")
    duration_s: float = option(5.0, "of the joint states that are taken [s]", minimum=0.5, maximum=600.0)
    reference: tuple[str, ...] = option((), "recordings of the same session without payload: bags or npz files")
    largest_mass: float = option(
        0.0, "a heavier payload is refused [kg]; 0 refuses none", minimum=0.0, maximum=1e6
    )
    reference_drift: float = option(
        0.03, "of friction from the reference to the payload, as a share of it", minimum=0.0, maximum=10.0
    )
    timeout_s: float = option(60.0, "longest time to solve after the measurement [s]", minimum=1.0, maximum=3600.0)


@attrs.frozen
class OnlineNodeOptions:
    """Parameters of the online node."""

    result: str = option(
        "", "result directory of the calibrated robot; empty takes the one that identifier/report names"
    )
    recordings: tuple[str, ...] = option(
        (),
        "recordings of the robot as it was calibrated, whose residuals are the noise of the stream; empty takes those"
        " that the result was fitted to, where they still are",
    )
    rate_hz: float = option(
        0.0, "of the joint states [Hz]; 0 measures it at the start", minimum=0.0, maximum=1e4
    )
    solve_period_s: float = option(0.5, "between two sets of parameters [s]", minimum=0.01, maximum=600.0)
    time_constant_s: float = option(
        10.0, "in which the weight of a sample falls to 1/e [s]; 0 forgets nothing", minimum=0.0, maximum=1e6
    )
    window_s: float = option(
        0.0, "in place of it, time after which a sample counts no more [s]; 0 for none", minimum=0.0, maximum=1e6
    )
    prior_spread: float = option(
        0.3, "how far bodies may go from the calibration, as their geodesic distance", minimum=1e-3, maximum=100.0
    )
    drift: float = option(
        0.1, "of friction since the calibration, as a share of it, that is no change", minimum=0.0, maximum=10.0
    )
    change_window_s: float = option(
        0.4, "of joint states in which a change is looked for [s]", minimum=0.05, maximum=60.0
    )
    false_alarms_per_hour: float = option(
        0.01, "largest expected number of changes that are none", minimum=1e-9, maximum=1e3
    )
    payload: PayloadNodeOptions = section(PayloadNodeOptions)

    @property
    def friction_drift(self) -> "FrictionDrift":
        """How much friction may have changed."""
        from inertid_ros.adaptation.calibrated_robot import FrictionDrift

        return FrictionDrift(self.drift, self.payload.reference_drift)

    def following(self) -> "FollowOptions":
        """How the robot is followed."""
        from inertid_ros.adaptation.online.change_detector import DetectorOptions
        from inertid_ros.adaptation.online.followed_robot import FollowOptions
        from inertid_ros.adaptation.online.online_identification import OnlineOptions
        from inertid_ros.adaptation.online.online_information import Forgetting

        forgetting = Forgetting(0.0 if self.window_s else self.time_constant_s, self.window_s)
        detector = DetectorOptions(self.change_window_s, self.false_alarms_per_hour, self.friction_drift)
        return FollowOptions(OnlineOptions(self.prior_spread, forgetting), detector, self.solve_period_s)
