"""Options of what is known of the robot for certain."""

from collections.abc import Mapping

import attrs

from inertid_ros.config.schema import former_syntax
from inertid_ros.config.schema.option_fields import REQUIRED, named, option
from inertid_ros.core.errors import ConfigurationError


@attrs.frozen
class MirrorOptions:
    """Of which link another is the mirror image."""

    link: str = option(REQUIRED, "the other link", of=str)
    axis: str = option(
        REQUIRED, "normal of the plane of reflection, of the links' frames", of=str, choices=("x", "y", "z")
    )


@attrs.frozen
class ConstraintOptions:
    """What is known of the robot for certain, beyond physical consistency."""

    collision_shapes: bool = option(False, "a link's mass lies within ellipsoids around its collision shapes")
    collision_margin: float = option(1.0, "factor on the axes of these ellipsoids", minimum=0.1, maximum=10.0)
    mesh_folders: tuple[str, ...] = option((), "folders in which package:// meshes of collision shapes are looked for")
    mass: Mapping[str, tuple[float, ...]] = named(
        float, "lowest and highest mass of a link [kg]", "mass_link_names", many=True, length=2, minimum=0.0,
        maximum=1e6, former=former_syntax.values,
    )
    total_mass: float = option(0.0, "of all moving links [kg]; 0 where unknown", minimum=0.0, maximum=1e6)
    at_most: Mapping[str, float] = named(
        float, "highest value of a parameter, such as joint3.coulomb (SI)", "at_most_names", minimum=-1e9, maximum=1e9,
        former=former_syntax.values,
    )
    fixed: tuple[str, ...] = option((), "parameters held at their value in the URDF, such as link3.m")
    equal: Mapping[str, str] = named(
        str, "parameter that has the same value, such as right_foot.m for left_foot.m", "equal_names",
        former=former_syntax.values,
    )
    mirrored: Mapping[str, MirrorOptions] = named(
        MirrorOptions, "links that are mirror images of others", "mirrored_names", former=former_syntax.mirrored
    )

    def __attrs_post_init__(self) -> None:
        for link, (lowest, highest) in self.mass.items():
            if lowest > highest:
                raise ConfigurationError(f"mass.{link} is {lowest:g} to {highest:g}; give the lowest first")
