"""Hard constraints on the estimate, beyond physical consistency."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from inertid_ros.config.identification_constraints import ConstraintOptions
from inertid_ros.robot.bodies.ellipsoids import Ellipsoid, Ellipsoids
from inertid_ros.robot.collision_ellipsoids import collision_ellipsoids
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class Constraints:
    """Constraints on links (or rotors) and parameters, by their names in the layout.

    Attributes
    ----------
    inside : mapping of str to tuple of Ellipsoid
        Link to ellipsoids; the link's mass lies within their union ([Wensing2018]_ Thm. 4, Cor. 2).
    com_inside : mapping of str to Ellipsoid
        Link to an ellipsoid that holds its centre of mass ([Wensing2018]_ eq. 22).
    mass : mapping of str to (float, float)
        Link to lowest and highest mass [kg].
    total_mass : float
        Of all moving bodies [kg]; 0 where it is not known.
    at_most : mapping of str to float
        Column to its highest value, such as a friction that a data sheet bounds (SI).
    fixed : tuple of str
        Columns held at their prior, such as ``arm.m`` or ``joint3.rotor_inertia``.
    equal : tuple of (str, str)
        Pairs of columns that have the same value.
    mirrored : tuple of (str, str, str)
        (link, link, axis): the second is the mirror image of the first across the plane normal to that axis of their
        frames.
    """

    inside: Ellipsoids = field(default_factory=dict)
    com_inside: Mapping[str, Ellipsoid] = field(default_factory=dict)
    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    total_mass: float = 0.0
    at_most: Mapping[str, float] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    equal: tuple[tuple[str, str], ...] = ()
    mirrored: tuple[tuple[str, str, str], ...] = ()


def configured_constraints(model: RobotModel, options: ConstraintOptions) -> Constraints:
    """Constraints of a configuration.

    Raises
    ------
    ModelError
        The collision shapes of the URDF cannot be read.
    """
    shapes = options.collision_shapes
    return Constraints(
        inside=collision_ellipsoids(model, options.mesh_folders, options.collision_margin) if shapes else {},
        mass={link: (lowest, highest) for link, (lowest, highest) in options.mass.items()},
        total_mass=options.total_mass,
        at_most=options.at_most,
        fixed=options.fixed,
        equal=tuple(options.equal.items()),
        mirrored=tuple((link, mirror.link, mirror.axis) for link, mirror in options.mirrored.items()),
    )
