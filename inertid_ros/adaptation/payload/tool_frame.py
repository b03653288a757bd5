"""The frame in which a payload is expressed, and the link that it moves with."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, transform
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class ToolFrame:
    """A link of the URDF that holds a payload.

    Attributes
    ----------
    name : str
        Of the link.
    body : int
        Index of the moving body that it belongs to.
    placement : ndarray, shape (10, 10)
        Inertial parameters in the frame of the joint before that body, from those in this frame.
    """

    name: str
    body: int
    placement: Array

    @classmethod
    def of(cls, model: RobotModel, name: str = "") -> "ToolFrame":
        """Frame of a link by its name; of the last moving link where none is given.

        Raises
        ------
        ModelError
            The robot has no such link, it does not move, or the robot has several last links.
        """
        tree = model.pinocchio
        if not name:
            parents = {joint.parent for joint in model.tree}
            last = [index for index in range(len(model.tree)) if index not in parents]
            if len(last) > 1:
                names = ", ".join(model.link_names[index] for index in last)
                raise ModelError(f"payload: the robot has several last links ({names}); choose one with --frame")
            return cls(model.link_names[last[0]], last[0], np.eye(BODY_PARAMETERS))
        if not tree.existFrame(name):
            raise ModelError(f"payload: the URDF has no link '{name}'; name the link that holds it with --frame")
        frame = tree.frames[tree.getFrameId(name)]
        if frame.parentJoint == 0:
            raise ModelError(f"payload: link '{name}' does not move, so that nothing shows what it holds")
        placement = transform(np.eye(BODY_PARAMETERS), frame.placement.rotation, frame.placement.translation).T
        return cls(name, int(frame.parentJoint) - 1, placement)

    def bodies(self, parameters: Array, count: int) -> Array:
        """What a payload ``(10,)`` in this frame adds to the moving bodies, ``(count, 10)``."""
        added = np.zeros((count, BODY_PARAMETERS))
        added[self.body] = self.placement @ parameters
        return added
