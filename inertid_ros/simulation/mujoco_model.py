"""From URDF text to a MuJoCo model, through MuJoCo's own URDF reader.

Pinocchio's reader is not used, so that the simulator tests the dynamics independently.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.bodies.inertial_parameters import mass_com_inertia
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import parsing

_DROPPED = ("transmission", "gazebo", "mujoco", "material")


@dataclass(frozen=True)
class MujocoRobot:
    """A compiled MuJoCo model and where the robot's joints are in it.

    Attributes
    ----------
    model : object
        ``mujoco.MjModel`` without geometry.
    dof : ndarray, shape (n,)
        Index of each joint's degree of freedom, in the order of the :class:`RobotModel`.
    position : ndarray, shape (n,)
        Index of each joint's position.
    """

    model: Any
    dof: Array
    position: Array


def import_mujoco() -> Any:
    """The ``mujoco`` module.

    Raises
    ------
    ModelError
        It is not installed.
    """
    try:
        import mujoco
    except ImportError:
        raise ModelError("the simulator needs MuJoCo, which is not installed; pip install mujoco") from None
    return mujoco


def build_mujoco(robot: RobotModel, timestep: float) -> MujocoRobot:
    """Compile the robot's URDF, geometry stripped and locked joints fixed, for physics at ``timestep`` [s].

    Raises
    ------
    ModelError
        MuJoCo is not installed or refuses the URDF.
    """
    mujoco = import_mujoco()
    root = parsing.parse_description(robot.urdf)
    text = fix_joints(root, locked_positions(robot, root))
    try:
        spec = mujoco.MjSpec.from_string(text)
        spec.compiler.fusestatic = True
        spec.compiler.balanceinertia = False
        spec.option.timestep = timestep
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.gravity = np.array(robot.options.gravity, dtype=float)
        model = spec.compile()
    except ValueError as error:
        raise ModelError(f"URDF: MuJoCo refuses it ({str(error).splitlines()[0]}); fix the URDF") from None
    return MujocoRobot(model, *joint_indices(model, robot.joint_names))


def set_bodies(robot: MujocoRobot, bodies: Array) -> None:
    """Give the moving bodies other inertial parameters ``(nb, 10)``, in place and fast enough for a robot in motion."""
    mujoco, model = import_mujoco(), robot.model
    split = mass_com_inertia(bodies)
    for index, body in enumerate(model.dof_bodyid[robot.dof]):
        moments, axes = np.linalg.eigh(split.inertia[index])
        axes[:, 0] *= np.linalg.det(axes)  # a rotation
        model.body_mass[body], model.body_ipos[body] = split.mass[index], split.com[index]
        model.body_inertia[body] = moments
        mujoco.mju_mat2Quat(model.body_iquat[body], axes.ravel())
    mujoco.mj_setConst(model, mujoco.MjData(model))


def joint_indices(model: Any, names: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """``(n,)`` indices of joints' degrees of freedom, and of their positions."""
    joints = [model.joint(name) for name in names]
    return np.array([int(joint.dofadr[0]) for joint in joints]), np.array([int(joint.qposadr[0]) for joint in joints])


def locked_positions(robot: RobotModel, root: etree._Element) -> dict[str, float]:
    """Position of every movable joint of the URDF that the robot model does not move [rad or m]."""
    given = robot.options.locked_joints
    out = {}
    for joint in root.findall("joint"):
        name, mimic = str(joint.get("name")), joint.find("mimic")
        if joint.get("type") not in parsing.MOVABLE or name in robot.joint_names:
            continue
        if name in given:
            out[name] = float(given[name])
        elif mimic is not None and mimic.get("joint") in given:
            where = f"URDF joint '{name}'"
            factor = parsing.number(mimic, "multiplier", where, "mimic", default=1.0)
            offset = parsing.number(mimic, "offset", where, "mimic", default=0.0)
            out[name] = factor * float(given[str(mimic.get("joint"))]) + offset
    return out


def fix_joints(root: etree._Element, locked: Mapping[str, float]) -> str:
    """URDF text without geometry in which the locked joints are fixed at their positions."""
    copy = etree.fromstring(etree.tostring(root))
    for tag in _DROPPED:
        for element in copy.findall(tag):
            copy.remove(element)
    for link in copy.findall("link"):
        for tag in ("visual", "collision"):
            for element in link.findall(tag):
                link.remove(element)
    for joint in copy.findall("joint"):
        name = str(joint.get("name"))
        if name in locked:
            _fix(joint, locked[name])
        elif joint.get("type") != "fixed":
            for limit in joint.findall("limit"):
                limit.set("effort", "0")  # the simulator's own controller saturates
    return etree.tostring(copy, encoding="unicode")


def _fix(joint: etree._Element, position: float) -> None:
    where = f"URDF joint '{joint.get('name')}'"
    xyz, rpy = parsing.origin(joint, where)
    axis = parsing.axis(joint, where)
    rotation = Rotation.from_euler("xyz", rpy)
    if joint.get("type") == "prismatic":
        xyz = xyz + rotation.apply(axis * position)
    else:
        rotation = rotation * Rotation.from_rotvec(axis * position)
    for tag in ("origin", "mimic", "limit", "dynamics", "axis"):
        for element in joint.findall(tag):
            joint.remove(element)
    joint.set("type", "fixed")
    numbers = {"xyz": xyz, "rpy": rotation.as_euler("xyz")}
    etree.SubElement(joint, "origin", {key: " ".join(repr(float(x)) for x in v) for key, v in numbers.items()})
