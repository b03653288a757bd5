"""Options of what a motion must not touch."""

from collections.abc import Mapping

import attrs

from inertid_ros.config.schema import former_syntax
from inertid_ros.config.schema.option_fields import REQUIRED, named, option, vector
from inertid_ros.core.errors import ConfigurationError

OBSTACLE_SHAPES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"),
                   "capsule": ("radius", "length")}


@attrs.frozen
class ObstacleOptions:
    """A body around the robot."""

    shape: str = option(
        REQUIRED, "box, sphere, cylinder or capsule, the last two along z", of=str, choices=tuple(OBSTACLE_SHAPES)
    )
    size: tuple[float, ...] = option((), "full edges of a box [m]", of=float, minimum=1e-6, maximum=1e4)
    radius: float = option(0.0, "of all but a box [m]", minimum=0.0, maximum=1e4)
    length: float = option(0.0, "of a cylinder, or of a capsule without its caps [m]", minimum=0.0, maximum=1e4)
    xyz: tuple[float, ...] = vector((0.0, 0.0, 0.0), "of its centre in the root frame [m]", 1e4)
    rpy: tuple[float, ...] = vector((0.0, 0.0, 0.0), "roll, pitch and yaw in the root frame [rad]", 10.0)

    def __attrs_post_init__(self) -> None:
        needed = OBSTACLE_SHAPES[self.shape]
        for name in ("size", "radius", "length"):
            if bool(getattr(self, name)) != (name in needed):
                what = "is missing; give it" if name in needed else "does not belong"
                raise ConfigurationError(f"{name} {what} to a {self.shape}, which has {' and '.join(needed)} [m]")
        if self.size and len(self.size) != 3:
            raise ConfigurationError(f"size has {len(self.size)} values; give 3")


@attrs.frozen
class CollisionOptions:
    """What a motion must not touch."""

    self_collision: bool = option(True, "links keep clear of one another, by the collision shapes of the URDF")
    clearance_m: float = option(0.01, "smallest distance of links from one another [m]", minimum=0.0, maximum=10.0)
    obstacle_clearance_m: float = option(
        0.05, "smallest distance of links from obstacles and from the floor or mounting plane [m]", minimum=0.0,
        maximum=10.0,
    )
    obstacles: Mapping[str, ObstacleOptions] = named(
        ObstacleOptions, "bodies around the robot", "obstacle_names", former=former_syntax.elements
    )
    mesh_folders: tuple[str, ...] = option(
        (), "folders in which package:// meshes are looked for, before those above the URDF and of ROS"
    )
    srdf: str = option("", "file that names pairs of links not to be checked; the links of a joint never are")
    ignored: Mapping[str, tuple[str, ...]] = named(
        str, "links and obstacles that a link or obstacle is not checked against", "ignored_names", many=True,
        former=former_syntax.pairs,
    )
