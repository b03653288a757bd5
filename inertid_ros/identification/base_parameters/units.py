"""Units and columns: a tree of unit lengths and unit gravity, and where its parameters are in the layout."""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.bodies.layout import ParameterLayout

from .column_selection import BODY_ORDER
from .kinematic_tree import KinematicTree
from .observability import OFFSET, ROTOR
from .parameter_regrouping import coupling_columns

_LENGTH_POWER = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
_DRIVES = {ROTOR: "rotor_inertia", OFFSET: "offset"}
_ORDER = (BODY_ORDER[0], ROTOR, *BODY_ORDER[1:], OFFSET)  # regrouped first to regrouped last


@dataclass(frozen=True)
class TreeUnits:
    """Units in which the typical length and gravity of a tree are one.

    Attributes
    ----------
    length : float
        Unit of length [m].
    gravity : float
        Unit of gravity [m/s^2].
    speed : ndarray, shape (links,)
        Unit of each joint's velocity [rad/s]; [m/s] where prismatic.
    jointed : ndarray of bool, shape (links,)
        Links behind a joint.
    """

    length: float
    gravity: float
    speed: Array
    jointed: np.ndarray

    @classmethod
    def of(cls, tree: KinematicTree) -> "TreeUnits":
        """Units of a tree."""
        links = len(tree.links)
        speed = np.where(tree.axes[:links, 3:].any(axis=1), 1.0, tree.length)
        return cls(tree.length, float(np.linalg.norm(tree.gravity)) or 1.0, speed, ~tree.free[:links])

    def normalised(self, tree: KinematicTree) -> KinematicTree:
        """The tree in these units."""
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
        Which of the ten parameters, reflected inertia and offset there are.
    columns : ndarray of int
        Their columns in the layout.
    order : tuple of int
        Positions in ``local``, regrouped first to regrouped last.
    """

    local: np.ndarray
    columns: np.ndarray
    order: tuple[int, ...]


def columns_of_links(tree: KinematicTree, layout: ParameterLayout) -> list[LinkColumns]:
    """Columns of each link, in the order of the tree."""
    terms = [k for k, term in _DRIVES.items() if term in layout.drive_terms]
    local = [*range(BODY_PARAMETERS), *terms]
    order = tuple(local.index(k) for k in _ORDER if k in local)
    link_columns, joint = [], 0
    for link, free in enumerate(tree.free[: len(tree.links)]):
        inertial = range(BODY_PARAMETERS * link, BODY_PARAMETERS * (link + 1))
        if free:
            link_columns.append(LinkColumns(np.arange(BODY_PARAMETERS), np.array(inertial), BODY_ORDER))
            continue
        drives = [layout.drive(_DRIVES[k]).start + joint for k in terms]
        link_columns.append(LinkColumns(np.array(local), np.array([*inertial, *drives]), order))
        joint += 1
    return link_columns
