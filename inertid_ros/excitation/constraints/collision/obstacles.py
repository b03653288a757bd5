"""Obstacles around the robot, as options give them."""

from collections.abc import Mapping

import numpy as np
import pinocchio as pin

from inertid_ros.config.collision import OBSTACLE_SHAPES, ObstacleOptions
from inertid_ros.robot.geometry.collision_shapes import CollisionShape


def obstacles(given: Mapping[str, ObstacleOptions]) -> tuple[CollisionShape, ...]:
    """Name and options of each to a shape fixed to the root, named like a link."""
    return tuple(_obstacle(name, obstacle) for name, obstacle in given.items())


def _obstacle(name: str, given: ObstacleOptions) -> CollisionShape:
    sizes = [np.atleast_1d(getattr(given, field)) for field in OBSTACLE_SHAPES[given.shape]]
    placement = pin.SE3(pin.rpy.rpyToMatrix(np.array(given.rpy)), np.array(given.xyz))
    return CollisionShape(name, -1, placement.homogeneous, given.shape, tuple(np.concatenate(sizes)))
