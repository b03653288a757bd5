"""Base parameters in closed form: one pass from the base to the tips of the tree, without sampled states.

``docs/base_parameters.md`` derives the method. The effect of a body's parameters on the joints between base and body
has two parts. The part that changes with the body's own joint makes its base parameters. The constant part acts like
parameters of the parent: it is regrouped into the parent by the rules of [Gautier1990]_, and has no effect in the root
body. For a freely moving base only the start differs: the base can have any velocity, so all its ten parameters are
observable ([Naveen2019]_ eq. 18-25).
"""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.layout import COUPLING_TERMS, ParameterLayout
from inertid_ros.robot.model import RobotModel

from . import numeric
from .kinematic_tree import KinematicTree, joint_motion, kinematic_tree, tidy
from .observability import OFFSET_COLUMN, ROTOR_COLUMN, regroup_rotor, regroup_shared, tree_conditions

_LENGTH_POWER = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
_TERMS_OF_COLUMNS = {ROTOR_COLUMN: "rotor_inertia", OFFSET_COLUMN: "offset"}
# Columns of a link, from regrouped first to regrouped last.
_LINK_ORDER = (numeric.BODY_ORDER[0], ROTOR_COLUMN, *numeric.BODY_ORDER[1:], OFFSET_COLUMN)


class ParentRegrouping:
    """Regrouping of every parameter, filled body by body from the base to the tips.

    Parameters
    ----------
    at_zero : ndarray, shape (nb, 10, 10)
        Maps from each body's parameters to its parent's frame at q = 0; any other q works as well.

    Attributes
    ----------
    projection : ndarray, shape (p, p)
        Column ``k`` expresses a unit of parameter ``k`` by kept parameters.
    """

    def __init__(self, size: int, parents: tuple[int, ...], at_zero: Array) -> None:
        self.projection = np.eye(size)
        self.regrouped: list[int] = []
        self._parents, self._at_zero = parents, at_zero
        self._columns: list[np.ndarray] = []
        self._choices: list[numeric.ColumnChoice] = []

    def add_body(self, columns: np.ndarray, choice: numeric.ColumnChoice) -> None:
        self._columns.append(columns)
        self._choices.append(choice)
        local = np.zeros((len(self.projection), len(columns)))
        local[columns[choice.independent], choice.independent] = 1.0
        local[np.ix_(columns[choice.independent], choice.dependent)] = choice.regrouping
        local[:, choice.dependent] += self._at_parent(len(self._columns) - 1, choice.null_space)
        self.projection[:, columns] = local
        self.regrouped += list(columns[choice.dependent])

    def add_kept(self, column: Array, body: int, amounts: Array) -> None:
        """Add amounts of a body's kept parameters to ``column`` ``(p,)``, minus the effect on the body's ancestors."""
        choice, columns = self._choices[body], self._columns[body]
        column[columns[choice.independent]] += amounts
        local = np.zeros(len(columns))
        local[choice.independent] = -amounts
        column += self._at_parent(body, local[:, None])[:, 0]

    def set_column(self, index: int, column: Array) -> None:
        """Regroup parameter ``index``, which belongs to no body, into ``column`` ``(p,)`` of kept parameters."""
        self.projection[:, index] = column
        self.regrouped.append(index)

    def add_spin(self, body: int, spin: Array, column: Array) -> None:
        """Regroup a rotor's spin, ``(10,)`` in the rotor's parameters, into ``column`` ``(p,)`` of kept parameters."""
        choice, columns = self._choices[body], self._columns[body]
        self.projection[:, columns[choice.dependent]] += np.outer(column, spin @ choice.null_space)

    def _at_parent(self, body: int, local: Array) -> Array:
        """Convert parameters of a body, ``(10 or more, k)``, to kept parameters ``(p, k)`` via the parent body."""
        parent = self._parents[body]
        if parent < 0:
            return np.zeros((len(self.projection), local.shape[1]))
        inertial = self.projection[:, self._columns[parent][:BODY_PARAMETERS]]
        return np.asarray(inertial @ self._at_zero[body] @ local[:BODY_PARAMETERS])


def coupling_columns(layout: ParameterLayout, term: str) -> np.ndarray:
    """``(c,)`` columns of one term of the couplings."""
    first = layout.coupling_start + COUPLING_TERMS.index(term)
    return first + len(COUPLING_TERMS) * np.arange(len(layout.couplings))


def regroup_friction(layout: ParameterLayout, projection: Array) -> np.ndarray:
    """Write the regrouping of friction of coupled drives into ``projection`` ``(p, p)``; return the columns regrouped.

    Viscous friction of a drive with ratios ``r`` makes the torque ``r r^T v``, so two drives on the same two joints
    repeat the effect of these joints' own friction. Coulomb friction repeats only if ratios are parallel.
    """
    regrouped = []
    for term, shape in (("viscous", _squares), ("coulomb", _directions)):
        ratios, columns = layout.coupling_ratios, coupling_columns(layout, term)
        if term in layout.drive_terms:
            ratios = np.vstack([np.eye(len(layout.joints)), ratios])
            columns = np.concatenate([np.arange(layout.size)[layout.drive(term)], columns])
        if not len(layout.couplings):
            continue
        choice = numeric.choose_columns(shape(ratios), list(reversed(range(len(columns)))))
        projection[np.ix_(columns[choice.independent], columns[choice.dependent])] = choice.regrouping
        projection[columns[choice.dependent], columns[choice.dependent]] = 0.0
        regrouped.append(columns[choice.dependent])
    return np.concatenate([np.zeros(0, dtype=int), *regrouped])


def _squares(ratios: Array) -> Array:
    """``(n^2, k)`` elements of ``r r^T`` of each drive."""
    return np.asarray((ratios[:, :, None] * ratios[:, None, :]).reshape(len(ratios), -1).T)


def _directions(ratios: Array) -> Array:
    """``(k, k)`` norm of each drive's ratios, in the row of the first drive with parallel ratios."""
    sizes = np.linalg.norm(ratios, axis=1)
    cosines = np.abs(ratios @ ratios.T) / np.outer(sizes, sizes)
    first = np.argmax(cosines > 1 - 1e-12, axis=0)
    matrix = np.zeros((len(ratios), len(ratios)))
    matrix[first, np.arange(len(ratios))] = sizes
    return matrix


@dataclass(frozen=True)
class TreeUnits:
    """Units in which the typical length and gravity of a tree are one.

    Attributes
    ----------
    length, gravity : float
        Units of length [m] and of gravity [m/s^2].
    speed : ndarray, shape (links,)
        Unit of each joint's velocity [rad/s], or [m/s] for a prismatic joint.
    """

    length: float
    gravity: float
    speed: Array
    jointed: np.ndarray

    @classmethod
    def from_tree(cls, tree: KinematicTree) -> "TreeUnits":
        links = len(tree.links)
        speed = np.where(tree.axes[:links, 3:].any(axis=1), 1.0, tree.length)
        return cls(tree.length, float(np.linalg.norm(tree.gravity)) or 1.0, speed, ~tree.free[:links])

    def normalised(self, tree: KinematicTree) -> KinematicTree:
        ratios = tuple(tree.ratio(rotor) * self.speed[tree.driver(rotor)] for rotor in tree.rotors)
        translations, gravity = tree.translations / self.length, tree.gravity / self.gravity
        return replace(tree, translations=translations, gravity=gravity, rotor_ratios=ratios)

    def coupling_ratios(self, layout: ParameterLayout) -> Array:
        """``(c, links)`` ratios of coupled drives, of unit norm."""
        ratios = np.zeros((len(layout.couplings), len(self.jointed)))
        ratios[:, self.jointed] = layout.coupling_ratios
        ratios *= self.speed
        return np.asarray(ratios / np.linalg.norm(ratios, axis=1, keepdims=True))

    def units(self, layout: ParameterLayout) -> Array:
        """``(p,)`` SI value of a unit of each parameter."""
        units = np.ones(layout.size)
        units[: layout.inertial_size] = np.tile(self.length**_LENGTH_POWER, layout.inertial_size // BODY_PARAMETERS)
        speed = self.speed[self.jointed]
        if "rotor_inertia" in layout.drive_terms:
            units[layout.drive("rotor_inertia")] = (self.length / speed) ** 2
        units[layout.drive("offset")] = self.gravity
        squares = np.sum((layout.coupling_ratios * speed) ** 2, axis=1)
        units[coupling_columns(layout, "rotor_inertia")] = self.length**2 / squares
        return units


@dataclass(frozen=True)
class LinkColumns:
    """Columns of a link's parameters and of its joint's drive in the layout.

    Attributes
    ----------
    local : ndarray of int
        Existing parameters among the ten of the body, reflected inertia and offset.
    columns : ndarray of int
        Their columns in the layout.
    order : tuple of int
        Positions in ``local``, in the order of regrouping.
    """

    local: np.ndarray
    columns: np.ndarray
    order: tuple[int, ...]


def columns_of_links(tree: KinematicTree, layout: ParameterLayout) -> list[LinkColumns]:
    """Columns of each link, in the order of the tree."""
    terms = [k for k, term in _TERMS_OF_COLUMNS.items() if term in layout.drive_terms]
    local = [*range(BODY_PARAMETERS), *terms]
    order = tuple(local.index(k) for k in _LINK_ORDER if k in local)
    link_columns, joint = [], 0
    for link, free in enumerate(tree.free[: len(tree.links)]):
        inertial = range(BODY_PARAMETERS * link, BODY_PARAMETERS * (link + 1))
        if free:
            link_columns.append(LinkColumns(np.arange(BODY_PARAMETERS), np.array(inertial), numeric.BODY_ORDER))
            continue
        drives = [layout.drive(_TERMS_OF_COLUMNS[k]).start + joint for k in terms]
        link_columns.append(LinkColumns(np.array(local), np.array([*inertial, *drives]), order))
        joint += 1
    return link_columns


def closed_form_base_parameters(model: RobotModel) -> numeric.BaseParameters:
    """Base parameters of a robot from its kinematics alone.

    Rounded right angles in the URDF are taken as right angles, see :func:`.tidy`. Reflected inertia, offset, coupled
    drives and rotors are regrouped if links or other drives make the same torque.

    Raises
    ------
    IdentificationError
        A rotor is mounted or geared in a way that the closed form does not cover, gravity is compensated, or mimic
        joints are carried.
    """
    if model.layout.compensation or model.mimics:
        raise IdentificationError("the closed form of base parameters covers neither a gravity compensation nor mimic"
            " joints; use structural_base_parameters")
    return minimal_parameters(tidy(kinematic_tree(model)), model.layout)


def minimal_parameters(tree: KinematicTree, layout: ParameterLayout) -> numeric.BaseParameters:
    """Base parameters of any tree, with a fixed or a freely moving base.

    Parameters
    ----------
    layout : ParameterLayout
        Layout with the links and rotors of the tree, in its order, and one joint per link that does not move freely.
    """
    units, link_columns = TreeUnits.from_tree(tree), columns_of_links(tree, layout)
    normalised = units.normalised(tree)
    motion = joint_motion(normalised)
    conditions = tree_conditions(normalised, motion, units.coupling_ratios(layout))
    links = [link.of(columns.local) for link, columns in zip(conditions.links, link_columns, strict=True)]
    choices = [numeric.choose_columns(link.rows, columns.order)
        for link, columns in zip(links, link_columns, strict=True)]
    shared, shared_mixing = regroup_shared(conditions.shared, links, choices)
    couplings, rotors = len(layout.couplings), []
    for index, (rows, spin) in enumerate(zip(conditions.rotors, conditions.spins, strict=True)):
        rotors.append(regroup_rotor(rows, spin, couplings + index in shared.independent))

    regrouping = ParentRegrouping(layout.size, tree.parents, motion.parameters_at_zero)
    for columns, choice in zip(link_columns, choices, strict=True):
        regrouping.add_body(columns.columns, choice)
    for body, (choice, _) in zip(tree.rotors, rotors, strict=True):
        regrouping.add_body(np.arange(layout.size)[layout.body(body)], choice)
    coupled = coupling_columns(layout, "rotor_inertia")
    for position, index in enumerate(shared.dependent):
        column = np.zeros(layout.size)
        for link, mixing in enumerate(shared_mixing):
            regrouping.add_kept(column, link, mixing[:, position])
        for kept, amount in zip(shared.independent, shared.regrouping[:, position], strict=True):
            if kept < couplings:
                column[coupled[kept]] += amount
            else:
                _, by_spin = rotors[kept - couplings]
                regrouping.add_kept(column, tree.rotors[kept - couplings], amount * by_spin)
        if index < couplings:
            regrouping.set_column(coupled[index], column)
        else:
            regrouping.add_spin(tree.rotors[index - couplings], conditions.spins[index - couplings], column)
    gap = min([conditions.gap, shared.gap, *(choice.gap for choice in choices)])
    return _result(regrouping, layout, units, gap)


def _result(
        parents: ParentRegrouping, layout: ParameterLayout, tree_units: TreeUnits, gap: float
        ) -> numeric.BaseParameters:
    projection = parents.projection
    projection[np.abs(projection) < numeric.NEGLIGIBLE_COEFFICIENT] = 0.0
    dependent = np.sort(np.concatenate([parents.regrouped, regroup_friction(layout, projection)]).astype(int))
    independent = np.setdiff1d(np.arange(layout.size), dependent)
    units = tree_units.units(layout)
    regrouping = (projection * units[:, None] / units)[np.ix_(independent, dependent)]
    return numeric.BaseParameters(independent, dependent, regrouping, max(gap, 1.0), layout, float("nan"))


def base_parameters_of_robot(model: RobotModel) -> numeric.BaseParameters:
    """Base parameters of the robot itself: in closed form, or numerically if the closed form does not cover it."""
    try:
        return closed_form_base_parameters(model)
    except IdentificationError:
        return numeric.structural_base_parameters(model)
