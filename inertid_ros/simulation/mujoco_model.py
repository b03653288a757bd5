"""MuJoCo models of arms, and of legged robots on force plates, built from URDF text by MuJoCo's own reader.

Pinocchio's reader is not used, so that the simulator tests the dynamics independently.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.config.simulation import LeggedRobotOptions
from inertid_ros.core.arrays import Array, Indices
from inertid_ros.core.inertial_parameters import mass_com_inertia
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import parsing
from inertid_ros.robot.urdf.joints import locked_joints, moving_links
from inertid_ros.robot.urdf.mjcf import import_mujoco, refusals
from inertid_ros.robot.urdf.text import place

from .example_robots import SimulatedPlate, Sole

_UNUSED_TAGS = ("transmission", "gazebo", "mujoco", "material", "visual", "collision")
_CORNER_RADIUS_M = 0.005  # radius of the balls at the corners of a sole
_PLATE_SIZE_M = (0.3, 0.2, 0.02)  # half edges
_CONTACT_SOLREF = (0.008, 1.0)  # time constant [s] and damping ratio


@dataclass(frozen=True)
class MujocoRobot:
    """A compiled ``mujoco.MjModel``, indices ``(n,)`` of joint velocities and positions, and of plate geometries."""

    model: Any
    dof: Indices
    position: Indices
    plates: Mapping[str, int] = field(default_factory=dict)


def build_mujoco(robot: RobotModel, timestep: float, floating: bool = False) -> MujocoRobot:
    """Compile the robot's URDF without geometry, with locked joints fixed, for physics at ``timestep`` [s].

    The root link rests, or moves freely if ``floating``. ModelError: MuJoCo is not installed or refuses the URDF.
    """
    root = parsing.parse_description(robot.urdf)
    text = fix_joints(root, locked_joints(root, robot.options.locked_joints))
    with refusals():
        spec = _specification(text, timestep)
        spec.compiler.fusestatic = True
        spec.option.gravity = np.array(robot.options.gravity, dtype=float)
        if floating:
            spec.body(robot.root_name).add_freejoint()
        model = spec.compile()
    return MujocoRobot(model, *joint_indices(model, robot.joint_names))


def _specification(text: str, timestep: float) -> Any:
    mujoco = import_mujoco()
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.balanceinertia = False
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return spec


def joint_frames(path: str, progress: object
        ) -> tuple[dict[str, tuple[int, Array, Array, pin.SE3]], dict[str, pin.SE3]]:
    """Frames of an MJCF file with its joints at zero; run in a :class:`.Worker`, as MuJoCo reads all files named in it.

    Returns type, axis, anchor and body pose per joint, and the pose per body, in MuJoCo's world.
    """
    mujoco = import_mujoco()
    with refusals(path):
        model = mujoco.MjModel.from_xml_path(path)
    scene = mujoco.MjData(model)
    scene.qpos[model.jnt_qposadr[model.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)]] = 0.0
    mujoco.mj_kinematics(model, scene)
    poses = [pin.SE3(turn.reshape(3, 3), place) for turn, place in zip(scene.xmat, scene.xpos, strict=True)]
    joints = {model.joint(k).name: (int(model.jnt_type[k]), scene.xaxis[k].copy(), scene.xanchor[k].copy(),
        poses[model.jnt_bodyid[k]]) for k in range(model.njnt)}
    return joints, {model.body(k).name: poses[k] for k in range(1, model.nbody)}


def set_bodies(robot: MujocoRobot, bodies: Array) -> None:
    """Change the inertial parameters ``(nb, 10)`` of the moving bodies in place, also while the robot moves."""
    mujoco, model = import_mujoco(), robot.model
    split = mass_com_inertia(bodies)
    for index, body in enumerate(model.dof_bodyid[robot.dof]):
        moments, axes = np.linalg.eigh(split.inertia[index])
        axes[:, 0] *= np.linalg.det(axes)  # make it a rotation
        model.body_mass[body], model.body_ipos[body] = split.mass[index], split.com[index]
        model.body_inertia[body] = moments
        mujoco.mju_mat2Quat(model.body_iquat[body], axes.ravel())
    mujoco.mj_setConst(model, mujoco.MjData(model))


def joint_indices(model: Any, names: Sequence[str]) -> tuple[Indices, Indices]:
    """Indices ``(n,)`` of the velocities of joints, and of their positions."""
    joints = [model.joint(name) for name in names]
    return np.array([int(joint.dofadr[0]) for joint in joints]), np.array([int(joint.qposadr[0]) for joint in joints])


def fix_joints(root: etree._Element, locked: Mapping[str, float]) -> str:
    """Return URDF text without geometry, with the locked joints fixed at their positions."""
    copy = etree.fromstring(etree.tostring(root))
    etree.strip_elements(copy, *_UNUSED_TAGS, with_tail=False)
    for joint in copy.findall("joint"):
        name = str(joint.get("name"))
        if name in locked:
            _fix(joint, locked[name])
        elif joint.get("type") != "fixed":
            for limit in joint.findall("limit"):
                limit.set("effort", "0")  # the simulator's own controller saturates
    return etree.tostring(copy, encoding="unicode")


def _fix(joint: etree._Element, position: float) -> None:
    turn, shift = np.eye(3), np.zeros(3)
    if joint.get("type") == "prismatic":
        shift = parsing.axis(joint) * position
    else:
        turn = pin.exp3(parsing.axis(joint) * position)
    place(joint, parsing.placement(joint) * pin.SE3(turn, shift))
    etree.strip_elements(joint, "mimic", "limit", "dynamics", "axis", with_tail=False)
    joint.set("type", "fixed")


def build_world(
        urdf: str, joint_names: Sequence[str], soles: Sequence[Sole], plates: Sequence[SimulatedPlate],
        options: LeggedRobotOptions) -> MujocoRobot:
    """Compile a URDF with a free root, balls at the corners of the soles, and boxes for the plates.

    Raises
    ------
    ModelError
        MuJoCo is not installed or refuses the URDF.
    """
    mujoco = import_mujoco()
    tree = parsing.parse_description(urdf)
    contact = {"solref": _CONTACT_SOLREF, "friction": (options.friction, 0.0, 0.0)}
    with refusals():
        spec = _specification(fix_joints(tree, {}), options.timestep_s)
        spec.compiler.fusestatic = False
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.impratio = 10.0
        spec.option.tolerance = 1e-14  # wrenches and accelerations agree to the last digits
        spec.option.iterations = 200
        spec.body(moving_links(tree, (), free=True)[0]).add_freejoint()
        for plate in plates:
            spec.worldbody.add_geom(
                name=plate.name, type=mujoco.mjtGeom.mjGEOM_BOX, size=_PLATE_SIZE_M,
                pos=(*plate.placement.translation[:2], -_PLATE_SIZE_M[2]), **contact)
        for sole in soles:
            body = spec.body(sole.frame)
            inward = sole.placement.rotation[:, 2] * _CORNER_RADIUS_M
            for number, corner in enumerate(sole.corners):
                body.add_geom(
                    name=f"{sole.frame}_corner_{number}", type=mujoco.mjtGeom.mjGEOM_SPHERE,
                    size=(_CORNER_RADIUS_M, 0, 0), pos=corner + inward, mass=0.0, condim=3, **contact)
        model = spec.compile()
    geometries = {plate.name: model.geom(plate.name).id for plate in plates}
    return MujocoRobot(model, *joint_indices(model, joint_names), geometries)


def plate_wrench(world: MujocoRobot, data: Any, plate: SimulatedPlate) -> Array:
    """Force and torque ``(6,)`` of a plate on the robot, in the plate's frame, at the last forward step of MuJoCo."""
    mujoco, geometry, placement = import_mujoco(), world.plates[plate.name], plate.placement
    total, point = np.zeros(6), np.zeros(6)
    for index in range(data.ncon):
        contact = data.contact[index]
        if geometry not in (contact.geom1, contact.geom2):
            continue
        mujoco.mj_contactForce(world.model, data, index, point)
        # MuJoCo gives the force on the second geometry; the normal points from the first to the second geometry.
        sign = 1.0 if contact.geom1 == geometry else -1.0
        force = sign * contact.frame.reshape(3, 3).T @ point[:3]
        total[:3] += force
        total[3:] += pin.skew(contact.pos - placement.translation) @ force
    return np.concatenate([placement.rotation.T @ total[:3], placement.rotation.T @ total[3:]])


def to_pinocchio(world: MujocoRobot, data: Any) -> tuple[Array, Array, Array]:
    """Return configuration ``(n + 7,)``, velocity and acceleration ``(n + 6,)`` in Pinocchio's convention.

    MuJoCo's free joint has its linear velocity in the world frame and its angular velocity in the body frame. Pinocchio
    has linear and angular velocity in the body frame; the acceleration is the derivative of their components.
    """
    quaternion = data.qpos[3:7][[1, 2, 3, 0]]
    turn = pin.Quaternion(quaternion).toRotationMatrix().T
    linear, angular = turn @ data.qvel[:3], data.qvel[3:6]
    acceleration = turn @ data.qacc[:3] - pin.skew(angular) @ linear
    return (
        np.concatenate([data.qpos[:3], quaternion, data.qpos[world.position]]),
        np.concatenate([linear, angular, data.qvel[world.dof]]),
        np.concatenate([acceleration, data.qacc[3:6], data.qacc[world.dof]]))


def set_configuration(world: MujocoRobot, data: Any, q: Array) -> None:
    """Set the configuration of the robot, given in Pinocchio's convention."""
    data.qpos[:3], data.qpos[3:7] = q[:3], q[[6, 3, 4, 5]]
    data.qpos[world.position] = q[7:]
