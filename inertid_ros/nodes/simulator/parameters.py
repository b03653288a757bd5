"""Parameters of the simulator node. They need no ROS: parameter files and documentation are made from them as well."""

import attrs

from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.schema.option_fields import option, section
from inertid_ros.config.simulation import LeggedRobotOptions, PerturbationOptions, SimulationOptions
from inertid_ros.core.errors import ConfigurationError


@attrs.frozen
class SimulatorOptions:
    """Parameters of the simulator node, beside those of robot and simulation."""

    urdf: str = option("", "URDF file of the true robot; empty takes the Panda of example-robot-data")
    start: tuple[float, ...] = option(
        (), "pose at the start [rad or m]; empty takes the middle of the limits", of=float, minimum=-1e6, maximum=1e6
    )
    state_hz: float = option(200.0, "rate of the joint states [Hz]", minimum=1.0, maximum=1000.0)
    controller: str = option(
        "",
        "name of the trajectory controller: trajectories come on <controller>/joint_trajectory, and where control_msgs"
        " is installed, its state is published; empty leaves the prefix and the state away",
    )
    publish_clock: bool = option(False, "publish the simulated time on /clock")
    perturb: bool = option(False, "publish a URDF that is wrong by point masses; false publishes the truth")
    perturbation_seed: int = option(0, "of these point masses", minimum=0)
    perturbation: PerturbationOptions = section(PerturbationOptions)
    robot: RobotOptions = section(RobotOptions)
    simulation: SimulationOptions = section(SimulationOptions)
    legged_robot: LeggedRobotOptions = section(LeggedRobotOptions)


@attrs.frozen
class FaultOptions:
    """Faults of the simulated robot's joint states, controller and plates; may be changed while it runs."""

    silent: bool = option(False, "report nothing")
    frozen: bool = option(False, "repeat the last values with fresh stamps")
    not_finite: bool = option(False, "report NaN")
    delay_s: float = option(0.0, "report every state this late [s]", minimum=0.0, maximum=10.0)
    drop: float = option(0.0, "share of states that are lost", minimum=0.0, maximum=1.0)
    stamp_offset_s: float = option(0.0, "added to every stamp [s]", minimum=-1e9, maximum=1e9)
    gap_rate_hz: float = option(
        0.3, "how often the publisher of states is held up; those of meanwhile are missing [Hz]",
        minimum=0.0, maximum=100.0,
    )
    gap_s: tuple[float, ...] = option(
        (0.01, 0.017, 0.03), "for how long: shortest, median and longest; those of a joint_state_broadcaster on an"
        " idle machine, on a busy one (0.024, 0.068, 0.39) at 1 Hz [s]", length=3, minimum=1e-3, maximum=10.0,
    )
    speed_scaling: float = option(1.0, "pace of the controller's trajectories", minimum=0.0, maximum=2.0)
    tell_speed_scaling: bool = option(True, "the controller's state tells that pace; false tells 1")
    silent_plates: tuple[str, ...] = option((), "force plates that report nothing")
    frozen_plates: tuple[str, ...] = option((), "force plates that repeat their last values with fresh stamps")
    reversed_plates: tuple[str, ...] = option((), "force plates that report what the robot does to them")

    def __attrs_post_init__(self) -> None:
        if sorted(self.gap_s) != list(self.gap_s):
            raise ConfigurationError(f"gap_s {self.gap_s} falls; give shortest, median and longest")
