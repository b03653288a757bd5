"""The humanoid of example-robot-data, with chosen joints free and all other joints held."""

import re
import sys
from collections.abc import Callable

import numpy as np

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ModelError
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

TALOS = "talos_data/robots/talos_full_v2.urdf"
ARMS = re.compile(r"arm_(left|right)_[1-7]_joint")
BODY = re.compile(r"(arm|leg|torso|head)_.*_?joint")


def humanoid(free: Callable[[str], object], terms: tuple[str, ...] = ()) -> RobotModel:
    """TALOS with the joints for which ``free`` is true, mounted at its waist."""
    try:
        text = example_urdf(TALOS).read_text()
    except ModelError:
        sys.exit("skipped: TALOS of example-robot-data is not installed; pip install example-robot-data")
    joints = re.findall(r'<joint name="(\w+)" type="(?:revolute|continuous|prismatic)"', text)
    held = {joint: _middle(text, joint) for joint in joints if not free(joint)}
    return load_model(text, RobotOptions(locked_joints=held, drive_terms=terms))


def limits_of(model: RobotModel, acceleration: float = 10.0) -> MotionLimits:
    """Limits of a robot; the URDF has no acceleration limits, so all joints have one given limit."""
    given = model.limits
    lower, upper = (np.clip(bound, -np.pi, np.pi) for bound in (given.lower, given.upper))
    return MotionLimits(
        model.joint_names, lower, upper, given.velocity, np.full(model.joints, acceleration), given.effort
    )


def _middle(text: str, joint: str) -> float:
    """Position nearest to zero within the joint's limits."""
    block = text[text.index(f'<joint name="{joint}"') :]
    numbers = [re.search(rf'{key}="([^"]+)"', block[: block.index("</joint>")]) for key in ("lower", "upper")]
    low, high = (float(found.group(1)) if found else 0.0 for found in numbers)
    return float(np.clip(0.0, low, high))
