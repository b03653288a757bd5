"""The collision shapes of a robot's links, each placed in the moving body that it belongs to."""

from collections.abc import Sequence

import pinocchio as pin

from inertid_ros.core.errors import ModelError
from inertid_ros.robot.geometry.collision_shapes import CollisionShape, collision_shape, with_surfaces
from inertid_ros.robot.urdf import parsing

from .model import RobotModel


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
    found, unread = with_surfaces(placed)
    return tuple(found), {**unread, **unusable}
