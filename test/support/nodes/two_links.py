"""The robot of the node tests: two links, and a motion that uses most of its velocity limits."""

from pathlib import Path

import numpy as np

from inertid_ros.excitation.motion_limits import MotionLimits, motion_limits
from inertid_ros.excitation.motions import FourierBasis, LinearTrajectory
from inertid_ros.excitation.plan import Plan, plan_of, plan_text
from inertid_ros.robot.model import RobotModel, load_model

URDF = """<robot name="two_links">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.004" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="2" effort="60"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="2" effort="40"/></joint>
</robot>"""


# The robot itself is not quite as its description says, and its joints have friction.
TRUE_URDF = URDF.replace('<mass value="2"/>', '<mass value="2.5"/>').replace('<mass value="1"/>', '<mass value="0.8"/>')
VISCOUS, COULOMB, NOISE = 0.5, 0.8, 0.05  # N m s/rad, N m, N m


def two_links() -> tuple[RobotModel, MotionLimits]:
    """The model and its limits."""
    model = load_model(URDF)
    return model, motion_limits(model)


def write_plan(path: Path, duration: float = 3.0) -> Plan:
    """A motion around the zero pose that uses 90 per cent of the tightest limit, as a plan file."""
    model, limits = two_links()
    basis = FourierBasis(duration, 2, 1 / duration)
    shape = np.random.default_rng(7).normal(size=(basis.size, model.joints))
    instants = np.linspace(0, duration, 400)
    used = LinearTrajectory(basis, np.zeros(model.joints), shape).sample(instants)
    bounds = (limits.upper, limits.velocity, limits.acceleration)
    use = max(float(np.max(np.abs(values) / bound)) for values, bound in zip(used, bounds, strict=True))
    motion = LinearTrajectory(basis, np.zeros(model.joints), 0.9 / use * shape)
    plan = plan_of(motion, limits, motion_type="fourier", model_hash=model.hash)
    path.write_text(plan_text(plan))
    return plan
