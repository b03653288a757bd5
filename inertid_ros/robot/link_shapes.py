"""The collision shapes of a robot's links, each placed in the moving body that it belongs to."""

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from inertid_ros.core.errors import ModelError
from inertid_ros.robot.geometry.collision_shapes import CollisionShape, collision_shape, with_surfaces
from inertid_ros.robot.urdf import parsing

from .model import RobotModel
from .units import longest_chain

# Times the longest way along joints; over the robots of example-robot-data, meshes of moving links have 1.7 at most.
_LARGEST = 30.0


def collision_shapes(
    model: RobotModel, packages: Sequence[str] = ()
) -> tuple[tuple[CollisionShape, ...], dict[str, str]]:
    """Shapes of all links that can be used, and why another link's cannot: link to reason.

    Parameters
    ----------
    packages : sequence of str
        Folders in which ``package://`` meshes are looked for first, see :func:`.locate_mesh`.
    """
    robot = model.pinocchio
    placed: list[CollisionShape] = []
    unusable: dict[str, str] = {}
    for link in parsing.parse_description(model.urdf).findall("link"):
        name = str(link.get("name"))
        frame = robot.frames[robot.getFrameId(name, pin.FrameType.BODY)]
        body = int(frame.parentJoint) - 1, frame.placement
        for element in link.findall("collision"):
            try:
                placed.append(collision_shape(element, name, body, (packages, model.folder)))
            except ModelError as error:
                unusable.setdefault(name, str(error))
    read, problems = with_surfaces(placed)
    found = [shape for shape in read if not _is_in_millimetres(model, shape, problems)]
    return tuple(found), {**problems, **unusable}


def _is_in_millimetres(model: RobotModel, shape: CollisionShape, problems: dict[str, str]) -> bool:
    """Whether a mesh of a moving link is far larger than the whole robot, which is told as a problem of the link."""
    length = longest_chain(model.pinocchio)
    if shape.surface is None or shape.body < 0 or not length:
        return False
    size = float(np.ptp(shape.surface.hull_vertices, axis=0).max())
    if size <= _LARGEST * length:
        return False
    problems.setdefault(
        shape.link,
        f"URDF link '{shape.link}' collision: mesh '{shape.mesh}' is {size:.3g} m large, in a robot of {length:.2g} m;"
        f' if it is in millimetres, write scale="{_scaled(shape.scale)}" into its <mesh>',
    )
    return True


def _scaled(scale: tuple[float, float, float]) -> str:
    return " ".join(f"{1e-3 * factor:g}" for factor in scale)
