"""Record the movements of a legged robot, without ROS and as fast as the machine can."""

from collections.abc import Sequence

import numpy as np

from inertid_ros.data.recording import Recording

from .body_sensors import BodySample
from .legged_robot import LeggedRobot

_TAIL_S = 0.2


def simulate_movements(
    robot: LeggedRobot, *, state_hz: float = 200.0, noise: bool = True, name: str = "simulated"
) -> Recording:
    """Run the robot's movements and record all its sensors at one rate.

    Parameters
    ----------
    noise : bool, optional
        Whether the sensors have any; without, the base's acceleration is recorded as well, exactly.

    Raises
    ------
    ModelError
        The robot fell.
    """
    per_state = max(round(1.0 / (state_hz * robot.options.timestep_s)), 1)
    measure = robot.state if noise else robot.true_state
    robot.move()
    begin, samples = robot.time, [measure()]
    while robot.moving or robot.time < begin + robot.movement.duration + _TAIL_S:
        robot.step(per_state)
        samples.append(measure())
    return recording_of(robot, samples, name, exact=not noise)


def recording_of(robot: LeggedRobot, samples: Sequence[BodySample], name: str, exact: bool = False) -> Recording:
    """Samples as one recording; ``exact`` keeps the base's true acceleration."""

    def table(key: str) -> np.ndarray:
        return np.array([getattr(sample, key) for sample in samples])

    return Recording(
        joint_names=robot.joint_names,
        time=table("time") - samples[0].time,
        position=table("position"),
        effort=table("effort"),
        velocity=table("velocity"),
        wrenches={
            plate.name: np.array([sample.wrenches[plate.name] for sample in samples]) for plate in robot.robot.plates
        },
        base_pose=table("base_pose"),
        base_twist=table("base_twist"),
        base_acceleration=table("base_acceleration") if exact else None,
        imu=np.hstack([table("specific_force"), table("rate")]),
        name=name,
    )
