"""The MuJoCo world of a legged robot: its URDF with a free root, soles, and force plates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.config.simulation import LeggedRobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.urdf import parsing
from inertid_ros.simulation.mujoco_model import fix_joints, import_mujoco, joint_indices

from .soles import SimulatedPlate, Sole

_CORNER = 0.005  # m, radius of the balls at the corners of a sole
_PLATE_SIZE = (0.3, 0.2, 0.02)  # m, half
_STIFFNESS = (0.008, 1.0)  # time constant [s] and damping ratio of the contact


@dataclass(frozen=True)
class ForcePlateWorld:
    """A compiled world.

    Attributes
    ----------
    model : object
        ``mujoco.MjModel``.
    spec : object
        What it was compiled from; ``spec.to_xml()`` is MJCF text.
    position, dof : ndarray, shape (n,)
        Indices of the joints.
    root : str
        Name of the root link.
    plates : tuple of int
        Geometry index of every plate.
    """

    model: Any
    dof: Array
    position: Array
    root: str
    plates: tuple[int, ...]


def build_world(
    urdf: str,
    joint_names: Sequence[str],
    soles: Sequence[Sole],
    plates: Sequence[SimulatedPlate],
    options: LeggedRobotOptions,
) -> ForcePlateWorld:
    """Compile a URDF with a free root, balls at the corners of the soles, and boxes for the plates.

    Raises
    ------
    ModelError
        MuJoCo is not installed or refuses the URDF, a sole's link does not exist, or it has no plate.
    """
    mujoco = import_mujoco()
    tree = parsing.parse_description(urdf)
    root = _root_link(tree)
    text = fix_joints(tree, _not_moved(tree, joint_names))
    names = [plate.name for plate in plates]
    try:
        spec = mujoco.MjSpec.from_string(text)
        spec.compiler.fusestatic = False
        spec.compiler.balanceinertia = False
        spec.option.timestep = options.timestep_s
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.impratio = 10.0
        spec.option.tolerance = 1e-14  # wrenches and accelerations agree to the last digits
        spec.option.iterations = 200
        spec.body(root).add_freejoint()
        for plate in plates:
            spec.worldbody.add_geom(
                name=plate.name, type=mujoco.mjtGeom.mjGEOM_BOX, size=_PLATE_SIZE,
                pos=(plate.origin[0], plate.origin[1], -_PLATE_SIZE[2]), solref=_STIFFNESS,
                friction=(options.friction, 0.0, 0.0),
            )
        for sole in soles:
            body = spec.body(sole.frame)
            if body is None or sole.plate not in names:
                raise ModelError(f"sole of {sole.frame}: no such link, or no plate '{sole.plate}'; correct it")
            inward = sole.rotation[:, 2] * _CORNER
            for number, corner in enumerate(sole.corners):
                body.add_geom(
                    name=f"{sole.frame}_corner_{number}", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(_CORNER, 0, 0),
                    pos=corner + inward, mass=0.0, condim=3, solref=_STIFFNESS, friction=(options.friction, 0.0, 0.0),
                )
        model = spec.compile()
    except ValueError as error:
        raise ModelError(f"URDF: MuJoCo refuses it ({str(error).splitlines()[0]}); fix the URDF") from None
    return ForcePlateWorld(
        model,
        *joint_indices(model, joint_names),
        root,
        tuple(model.geom(name).id for name in names),
    )


def plate_wrench(world: ForcePlateWorld, data: Any, plate: int, placement: Any) -> Array:
    """Force and torque ``(6,)`` of a plate on the robot, in the plate's frame, at the last forward step."""
    mujoco = import_mujoco()
    total, point = np.zeros(6), np.zeros(6)
    origin = placement.translation
    for index in range(data.ncon):
        contact = data.contact[index]
        if world.plates[plate] not in (contact.geom1, contact.geom2):
            continue
        mujoco.mj_contactForce(world.model, data, index, point)
        # Along the normal from the first geometry to the second, acting on the second.
        sign = 1.0 if contact.geom1 == world.plates[plate] else -1.0
        force = sign * contact.frame.reshape(3, 3).T @ point[:3]
        total[:3] += force
        total[3:] += pin.skew(contact.pos - origin) @ force
    return np.concatenate([placement.rotation.T @ total[:3], placement.rotation.T @ total[3:]])


def to_pinocchio(world: ForcePlateWorld, data: Any) -> tuple[Array, Array, Array]:
    """Configuration ``(n + 7,)``, velocity and acceleration ``(n + 6,)`` as Pinocchio has them.

    MuJoCo's free joint has the linear velocity in the world and the angular one in the body; Pinocchio has both in
    the body, and the derivative of that as acceleration.
    """
    quaternion = data.qpos[3:7][[1, 2, 3, 0]]
    turn = pin.Quaternion(quaternion).toRotationMatrix().T
    linear, angular = turn @ data.qvel[:3], data.qvel[3:6]
    acceleration = turn @ data.qacc[:3] - pin.skew(angular) @ linear
    return (
        np.concatenate([data.qpos[:3], quaternion, data.qpos[world.position]]),
        np.concatenate([linear, angular, data.qvel[world.dof]]),
        np.concatenate([acceleration, data.qacc[3:6], data.qacc[world.dof]]),
    )


def set_configuration(world: ForcePlateWorld, data: Any, q: Array) -> None:
    """Put the robot at a Pinocchio configuration."""
    data.qpos[:3], data.qpos[3:7] = q[:3], q[[6, 3, 4, 5]]
    data.qpos[world.position] = q[7:]


def _root_link(tree: etree._Element) -> str:
    children = {joint.find("child").get("link") for joint in tree.findall("joint")}
    return next(str(link.get("name")) for link in tree.findall("link") if link.get("name") not in children)


def _not_moved(tree: etree._Element, joint_names: Sequence[str]) -> dict[str, float]:
    movable = (str(j.get("name")) for j in tree.findall("joint") if j.get("type") in parsing.MOVABLE)
    return {name: 0.0 for name in movable if name not in joint_names}
