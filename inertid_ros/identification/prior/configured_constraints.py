"""Constraints as a configuration gives them."""

from inertid_ros.config.identification_constraints import ConstraintOptions
from inertid_ros.robot.geometry.collision_ellipsoids import collision_ellipsoids
from inertid_ros.robot.model import RobotModel

from .constraints import Constraints


def configured_constraints(model: RobotModel, options: ConstraintOptions) -> Constraints:
    """What :func:`~inertid_ros.identification.identify.identify` takes, of the options of a configuration.

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
