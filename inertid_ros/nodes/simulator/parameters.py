"""Parameters of the simulator node. They need no ROS: parameter files and documentation are made from them as well."""

import attrs

from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.schema.option_fields import option, section
from inertid_ros.config.simulation import LeggedRobotOptions, PerturbationOptions, SimulationOptions


@attrs.frozen
class SimulatorOptions:
    """Parameters of the simulator node, beside those of robot and simulation."""

    urdf: str = option("", "URDF file of the true robot; empty takes the Panda of example-robot-data")
    start: tuple[float, ...] = option(
        (), "pose at the start [rad or m]; empty takes the middle of the limits", of=float, minimum=-1e6, maximum=1e6
    )
    state_hz: float = option(200.0, "rate of the joint states [Hz]", minimum=1.0, maximum=1000.0)
    publish_clock: bool = option(False, "publish the simulated time on /clock")
    perturb: bool = option(False, "publish a URDF that is wrong by point masses; false publishes the truth")
    perturbation_seed: int = option(0, "of these point masses", minimum=0)
    perturbation: PerturbationOptions = section(PerturbationOptions)
    robot: RobotOptions = section(RobotOptions)
    simulation: SimulationOptions = section(SimulationOptions)
    legged_robot: LeggedRobotOptions = section(LeggedRobotOptions)


@attrs.frozen
class FaultOptions:
    """Faults of the simulated robot's joint states and of the plates below it; may be changed while it runs."""

    silent: bool = option(False, "report nothing")
    frozen: bool = option(False, "repeat the last values with fresh stamps")
    not_finite: bool = option(False, "report NaN")
    delay_s: float = option(0.0, "report every state this late [s]", minimum=0.0, maximum=10.0)
    drop: float = option(0.0, "share of states that are lost", minimum=0.0, maximum=1.0)
    stamp_offset_s: float = option(0.0, "added to every stamp [s]", minimum=-1e9, maximum=1e9)
    silent_plates: tuple[str, ...] = option((), "force plates that report nothing")
    frozen_plates: tuple[str, ...] = option((), "force plates that repeat their last values with fresh stamps")
    reversed_plates: tuple[str, ...] = option((), "force plates that report what the robot does to them")
