"""URDFs of the example robots, with the joints locked that identification does not support."""

from pathlib import Path

from lxml import etree

from inertid_ros.config.robot import RobotOptions
from inertid_ros.robot.model import RobotModel, load_model

ARMS = (
    "panda_description/urdf/panda.urdf",
    "panda_description/urdf/panda_collision.urdf",
    "kinova_description/robots/kinova.urdf",
    "ur_description/urdf/ur3_robot.urdf",
    "ur_description/urdf/ur3_gripper.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "ur_description/urdf/ur5_gripper.urdf",
    "ur_description/urdf/ur10_robot.urdf",
    "ur_description/urdf/ur10_joint_limited_robot.urdf",
    "xarm_description/urdf/xarm7.urdf",
    "z1_description/urdf/z1.urdf",
    "so_arm_description/urdf/so100.urdf",
    "so_arm_description/urdf/so101.urdf",
    "talos_data/robots/talos_left_arm.urdf",
    "talos_data/robots/talos_full_v2.urdf",
    "baxter_description/urdf/baxter.urdf",
    "tiago_pro_description/robots/tiago_pro.urdf",
)


def load_with_locks(path: Path, position: float = 0.01) -> RobotModel:
    """Model of a robot; leaders of mimic joints are held at ``position``."""
    leaders = load_model(path).options.locked_joints
    return load_model(path, RobotOptions(locked_joints=dict.fromkeys(leaders, position)))


def all_locked(model: RobotModel) -> dict[str, float]:
    """Positions of the locked joints, mimicking ones included."""
    locked = dict(model.options.locked_joints)
    for joint in etree.fromstring(model.urdf.encode()).findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None and mimic.get("joint") in locked:
            factor, offset = float(mimic.get("multiplier", 1)), float(mimic.get("offset", 0))
            locked[joint.get("name")] = factor * locked[mimic.get("joint")] + offset
    return locked


def without_geometry(urdf: str) -> str:
    """URDF that other software loads without its meshes."""
    robot = etree.fromstring(urdf.encode())
    for link in robot.findall("link"):
        for element in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(element)
    return etree.tostring(robot, encoding="unicode")
