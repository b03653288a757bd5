"""Options of what a motion must not touch."""

from dataclasses import dataclass

from .options import option


@dataclass(frozen=True)
class CollisionOptions:
    """What a motion must not touch."""

    self_collision: bool = option(True, "links keep clear of one another, by the collision shapes of the URDF")
    clearance_m: float = option(
        0.01, "smallest distance of links from one another and from obstacles [m]", minimum=0.0, maximum=10.0
    )
    obstacles: tuple[str, ...] = option(
        (),
        "things around the robot, each NAME=FIELD:VALUE,... with shape (box, sphere, cylinder or capsule, the last two"
        " along z), size (full edges) or radius and length [m], and xyz [m] and rpy [rad] in the root frame, such as"
        " table=shape:box,size:1 0.6 0.04,xyz:0.6 0 0.4",
    )
    mesh_folders: tuple[str, ...] = option(
        (), "folders in which package:// meshes are looked for, before those of a sourced ROS workspace"
    )
    srdf: str = option("", "file that names pairs of links not to be checked; the links of a joint never are")
    ignored: tuple[str, ...] = option((), "pairs of links or obstacles not to be checked, each NAME=NAME")
