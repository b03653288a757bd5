"""Hard constraints on the estimate beyond physical consistency, and their rows and blocks in the convex program."""

from collections.abc import Mapping
from dataclasses import replace

import attrs
import numpy as np
import pinocchio as pin

from inertid_ros.config.identification import ConstraintOptions
from inertid_ros.core import inertial_parameters as inertial
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.link_shapes import collision_ellipsoids
from inertid_ros.robot.model import RobotModel

from .convex_program import ConvexProgram, LinearConstraints, MatrixInequalities
from .coordinates import IDENTITY, Coordinates


@attrs.frozen
class Constraints(ConstraintOptions):
    """Configured constraints plus ellipsoids, by the names of links, rotors and parameters in the layout.

    Attributes
    ----------
    inside : ellipsoids whose union holds the mass of a link ([Wensing2018]_ Thm. 4, Cor. 2)
    com_inside : ellipsoid that holds a link's centre of mass ([Wensing2018]_ eq. 22)
    """

    inside: inertial.Ellipsoids = attrs.field(factory=dict)
    com_inside: Mapping[str, inertial.Ellipsoid] = attrs.field(factory=dict)


def configured_constraints(model: RobotModel, options: ConstraintOptions) -> Constraints:
    """Constraints of a configuration, with its ellipsoids and, if configured, ellipsoids around collision shapes."""
    inside: dict[str, tuple[inertial.Ellipsoid, ...]] = {}
    if options.collision_shapes:
        inside |= collision_ellipsoids(model, options.mesh_folders, options.collision_margin)
    own: dict[str, tuple[inertial.Ellipsoid, ...]] = {}
    com_inside: dict[str, inertial.Ellipsoid] = {}
    for link, distance in options.com_distance.items():
        centre = inertial.mass_com_inertia(model.layout.all_bodies(model.prior)[_body(model.layout, link)]).com
        com_inside[link] = inertial.Ellipsoid(centre, distance**2 * np.eye(3))
    for given in options.ellipsoids.values():
        axes = np.asarray(pin.rpy.rpyToMatrix(*given.rpy))
        ellipsoid = inertial.Ellipsoid.from_axes(np.array(given.centre), axes, np.array(given.semi_axes))
        if given.holds == "com":
            com_inside[given.link] = ellipsoid
        else:
            own[given.link] = (*own.get(given.link, ()), ellipsoid)
    names = (
        "consistency", "mass", "total_mass", "total_mass_range", "com_box", "at_most", "fixed", "equal", "mirrored")
    given_options = {name: getattr(options, name) for name in names}
    return Constraints(inside={**inside, **own}, com_inside=com_inside, **given_options)


def constrained(
    convex_program: ConvexProgram, constraints: Constraints, coordinates: Coordinates, prior: Array
) -> ConvexProgram:
    """Add hard constraints to a convex program in normalised coordinates.

    A body inside a union of ellipsoids is split into one piece per ellipsoid. Pieces after the first are further
    columns after the ``p`` parameters.

    Parameters
    ----------
    prior : (p,), physical parameters at which ``fixed`` columns are held

    Raises
    ------
    IdentificationError
        An unknown link or column, or semi-consistency under a regularizer that needs consistent bodies.
    """
    rows = _Rows(coordinates.layout)
    inequalities, equalities = rows.inequalities(constraints), rows.equalities(constraints, prior)
    # A fixed parameter may be zero, and a barrier would then leave no interior: drop its bound.
    moving = ~np.isin(convex_program.positive, [rows.columns[name] for name in constraints.fixed])
    physical = replace(
        convex_program,
        positive=convex_program.positive[moving],
        positive_weights=convex_program.positive_weights[moving],
        inequalities=convex_program.inequalities + _normalised(inequalities, coordinates),
        equalities=convex_program.equalities + _normalised(equalities, coordinates),
        blocks=convex_program.blocks + _com_blocks(constraints, coordinates))
    split = _split(physical, constraints, coordinates)
    return _semi_consistent(split, coordinates) if constraints.consistency == "semi" else split


class _Rows:
    """Named rows of linear constraints in physical parameters."""

    def __init__(self, layout: ParameterLayout) -> None:
        self.layout = layout
        self.columns = {name: column for column, name in enumerate(layout.names)}

    def column(self, name: str) -> Array:
        """``(p,)`` unit row of a parameter."""
        if name not in self.columns:
            raise IdentificationError(
                f"constraints: no parameter '{name}'; parameters are named like '{self.layout.names[0]}' and"
                f" '{self.layout.names[-1]}'")
        return np.eye(self.layout.size)[self.columns[name]]

    @property
    def masses(self) -> Array:
        """``(p,)`` row that adds the masses of links and rotors, without those of a controller's own model."""
        row = np.zeros(self.layout.size)
        row[: self.layout.rotor_end : inertial.BODY_PARAMETERS] = 1.0
        return row

    def inequalities(self, constraints: Constraints) -> LinearConstraints:
        rows: list[tuple[Array, float, str]] = []
        for link, (lowest, highest) in constraints.mass.items():
            body = _body(self.layout, link)
            mass = np.eye(self.layout.size)[self.layout.body(body).start]
            rows += [(mass, -lowest, f"mass of {link} at least {lowest:g} kg")]
            rows += [(-mass, highest, f"mass of {link} at most {highest:g} kg")]
        for link, box in constraints.com_box.items():
            start = self.layout.body(_body(self.layout, link)).start
            for axis, (lowest, highest) in enumerate(zip(box[:3], box[3:], strict=True)):
                mass, moment = np.eye(self.layout.size)[[start, start + 1 + axis]]
                name = f"centre of mass of {link} inside its box along {'xyz'[axis]}"
                rows += [(moment - lowest * mass, 0.0, name), (highest * mass - moment, 0.0, name)]
        if constraints.total_mass_range:
            lowest, highest = constraints.total_mass_range
            rows += [(self.masses, -lowest, f"total mass at least {lowest:g} kg")]
            rows += [(-self.masses, highest, f"total mass at most {highest:g} kg")]
        for name, highest in constraints.at_most.items():
            rows += [(-self.column(name), highest, f"{name} at most {highest:g}")]
        for link, ellipsoids in constraints.inside.items():
            if len(ellipsoids) == 1:
                row = np.zeros(self.layout.size)
                row[self.layout.body(_body(self.layout, link))] = ellipsoids[0].row
                rows += [(row, 0.0, f"mass of {link} inside its ellipsoid")]
        return _stack(rows, self.layout.size)

    def equalities(self, constraints: Constraints, prior: Array) -> LinearConstraints:
        rows: list[tuple[Array, float, str]] = []
        for name in constraints.fixed:
            row = self.column(name)
            rows += [(row, -float(row @ prior), f"{name} fixed at {row @ prior:g}")]
        for first, second in constraints.equal.items():
            rows += [(self.column(first) - self.column(second), 0.0, f"{first} equal to {second}")]
        for first, image in constraints.mirrored.items():
            second, flip = image.link, np.diag([-1.0 if image.axis == axis else 1.0 for axis in "xyz"])
            mirror = inertial.transform(np.eye(inertial.BODY_PARAMETERS), flip, np.zeros(3)).T
            one, two = (self.layout.body(_body(self.layout, link)) for link in (first, second))
            for k in range(inertial.BODY_PARAMETERS):
                row = np.zeros(self.layout.size)
                row[one] += mirror[k]
                row[two.start + k] -= 1.0
                rows += [(row, 0.0, f"{first} mirror image of {second}")]
        if constraints.total_mass:
            rows += [(self.masses, -constraints.total_mass, f"total mass {constraints.total_mass:g} kg")]
        return _stack(rows, self.layout.size)


def _body(layout: ParameterLayout, link: str) -> int:
    if link not in layout.body_names:
        raise IdentificationError(f"constraints: no moving link '{link}'; the robot has {', '.join(layout.body_names)}")
    return layout.body_names.index(link)


def _stack(rows: list[tuple[Array, float, str]], size: int) -> LinearConstraints:
    if not rows:
        return LinearConstraints.none(size)
    matrix, shift, names = zip(*rows, strict=True)
    return LinearConstraints(np.array(matrix), np.array(shift, dtype=float), tuple(names))


def _normalised(linear: LinearConstraints, coordinates: Coordinates) -> LinearConstraints:
    matrix = linear.matrix @ coordinates.matrix
    length = np.maximum(np.linalg.norm(matrix, axis=1), 1e-300)
    return LinearConstraints(
        matrix / length[:, None], (linear.shift + linear.matrix @ coordinates.offset) / length, linear.names)


def _com_blocks(constraints: Constraints, coordinates: Coordinates) -> MatrixInequalities:
    layout = coordinates.layout
    blocks = MatrixInequalities.none(layout.size)
    for link, ellipsoid in constraints.com_inside.items():
        columns = layout.body(_body(layout, link))
        scale = np.diag(np.concatenate([[1.0], 1 / np.sqrt(np.diagonal(ellipsoid.shape))]))  # all elements in kg
        block = np.kron(scale, scale) @ ellipsoid.com_block()
        matrix = np.zeros((1, 16, layout.size))
        matrix[0] = block @ coordinates.matrix[columns]
        shift = (block @ coordinates.offset[columns]).reshape(1, 4, 4)
        blocks += MatrixInequalities(matrix, shift, (f"centre of mass of {link} inside its ellipsoid",))
    return blocks


def _split(convex_program: ConvexProgram, constraints: Constraints, coordinates: Coordinates) -> ConvexProgram:
    """Split bodies in unions of ellipsoids: new columns for all pieces but the first, which is the rest of the body."""
    layout = coordinates.layout
    unions = {link: ellipsoids for link, ellipsoids in constraints.inside.items() if len(ellipsoids) > 1}
    extra = inertial.BODY_PARAMETERS * sum(len(ellipsoids) - 1 for ellipsoids in unions.values())
    if extra == 0:
        return convex_program
    size = layout.size + extra
    basis = inertial.PSEUDO_INERTIA_BASIS.reshape(inertial.BODY_PARAMETERS, 16).T
    rows: list[tuple[Array, float, str]] = []
    blocks = MatrixInequalities.none(size)
    start = layout.size
    for link, ellipsoids in unions.items():
        columns = layout.body(_body(layout, link))
        body, offset = coordinates.matrix[columns, columns], coordinates.offset[columns]
        remainder = np.zeros((inertial.BODY_PARAMETERS, size))  # normalised body minus all further pieces
        remainder[:, columns] = np.eye(inertial.BODY_PARAMETERS)
        for number, ellipsoid in enumerate(ellipsoids[1:], 1):
            piece = np.zeros((inertial.BODY_PARAMETERS, size))
            piece[:, start : start + inertial.BODY_PARAMETERS] = np.eye(inertial.BODY_PARAMETERS)
            remainder -= piece
            name = f"mass of {link} inside its ellipsoids (piece {number})"
            rows += [(ellipsoid.row @ body @ piece, 0.0, name)]
            blocks += MatrixInequalities((basis @ piece)[None], np.zeros((1, 4, 4)), (name,))
            start += inertial.BODY_PARAMETERS
        name = f"mass of {link} inside its ellipsoids (piece 0)"
        rows += [(ellipsoids[0].row @ body @ remainder, float(ellipsoids[0].row @ offset), name)]
        locked = inertial.pseudo_inertia(np.linalg.solve(body, offset))  # part of the body, so it must lie inside, too
        blocks += MatrixInequalities((basis @ remainder)[None], locked[None], (name,))
    wide = convex_program.over(np.eye(layout.size, size))
    inside = _stack(rows, size)
    length = np.linalg.norm(inside.matrix, axis=1)
    inside = LinearConstraints(inside.matrix / length[:, None], inside.shift / length, inside.names)
    return replace(wide, inequalities=wide.inequalities + inside, blocks=wide.blocks + blocks)


def _semi_consistent(convex_program: ConvexProgram, coordinates: Coordinates) -> ConvexProgram:
    """Require positive mass and rotational inertia alone ([Wensing2018]_ def. 4) in place of consistent bodies.

    A body is semi-consistent if and only if it is a consistent body plus a positive semidefinite rotational inertia,
    the six further columns of every body. ``[[I, S(h)], [S(h)^T, m 1]] >= 0`` of [Wensing2018]_ thm. 1 is equivalent.
    """
    layout, bodies = coordinates.layout, len(convex_program.body_weights)
    start, size = layout.size, layout.size + 6 * bodies
    basis = inertial.PSEUDO_INERTIA_BASIS.reshape(inertial.BODY_PARAMETERS, 16).T
    inertias = np.pad(inertial.inertia_about_origin(np.eye(10)[4:]), ((0, 0), (0, 1), (0, 1)))
    blocks = MatrixInequalities.none(size)
    for body, name in enumerate(layout.body_names):
        columns, further = layout.body(body), slice(start + 6 * body, start + 6 * (body + 1))
        normalise = coordinates.matrix[columns, columns]
        scale = np.trace(inertial.mass_com_inertia(normalise @ IDENTITY).inertia)
        rest, addition = np.zeros((10, size)), np.zeros((1, 16, size))
        rest[:, columns] = np.eye(10)
        rest[:, further] = -scale * np.linalg.inv(normalise)[:, 4:]
        addition[0, :, further] = inertias.reshape(6, 16).T
        names = (f"semi-consistency of {name}",)
        blocks += MatrixInequalities((basis @ rest)[None], np.zeros((1, 4, 4)), names)
        blocks += MatrixInequalities(addition, np.diag([0.0, 0.0, 0.0, 1.0])[None], names)
    wide = convex_program.over(np.eye(start, size))
    return replace(wide, body_weights=np.zeros(0), blocks=wide.blocks + blocks)
