"""The pass from the base to the tips: what the joints before a body can do to it and feel of it."""

from dataclasses import dataclass, field

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

from .column_selection import span
from .joint_motion import SPATIAL_INERTIA_BASIS, JointMotion
from .kinematic_tree import KinematicTree

ROTOR, OFFSET = BODY_PARAMETERS, BODY_PARAMETERS + 1  # drive terms that a rigid body can imitate follow its ten
LOCAL = BODY_PARAMETERS + 2
GRAVITY = 0  # the first of the labels


@dataclass(frozen=True)
class Accelerations:
    """The accelerations that a body can have by the joints before it, and gravity as an upward one.

    Most count by their span alone. Some carry a label, because the joint that makes them, or a rotor that it turns, is
    felt by later joints in other ways as well; of these only what no joint in between changes keeps the label.

    Attributes
    ----------
    spread: ``(k, 6)`` orthonormal span of those without a label.
    labels: ``m`` numbers; steady: ``(m, 6)`` the steady part of each.
    """

    spread: Array
    labels: tuple[int, ...]
    steady: Array

    @property
    def all(self) -> Array:
        """``(k + m, 6)``, those without a label first."""
        return np.vstack([self.spread, self.steady])


@dataclass
class Labels:
    """All labels given, and what a joint feels of shared inertias where it feels that label.

    Attributes
    ----------
    shared: number of inertias that act on several joints: coupled drives, then geared rotors.
    weights: ``(shared,)`` per label and joint's body.
    alone: rows ``(shared,)`` of what is felt where no body is.
    """

    shared: int
    count: int = 1
    weights: dict[tuple[int, int], Array] = field(default_factory=dict)
    alone: list[Array] = field(default_factory=list)

    def new(self, number: int) -> tuple[int, ...]:
        first, self.count = self.count, self.count + number
        return tuple(range(first, self.count))

    def add(self, label: int, body: int, weight: Array) -> None:
        self.weights[label, body] = self.weight(label, body) + weight

    def weight(self, label: int, body: int) -> Array:
        return self.weights.get((label, body), np.zeros(self.shared))


@dataclass(frozen=True)
class Reach:
    """Accelerations of one body before (``carried``) and after (``own``) its own joint adds to them; gap of spans."""

    carried: Accelerations
    own: Accelerations
    gap: float


def world(tree: KinematicTree) -> Reach:
    """What stands still feels gravity only."""
    upward = Accelerations(np.zeros((0, 6)), (GRAVITY,), np.append(-tree.gravity, np.zeros(3))[None])
    return Reach(upward, upward, float("inf"))


def reach_of_links(
    tree: KinematicTree, motion: JointMotion, labelled: set[int], anchors: set[int], labels: Labels
) -> dict[int, Reach]:
    """Reach of every link and of the world (-1).

    Parameters
    ----------
    labelled: bodies whose own joint's acceleration gets a label.
    anchors: bodies at which everything gets a label.
    """
    reaches = {-1: world(tree)}
    for body in tree.links:
        if tree.free[body]:
            after = Accelerations(np.eye(6), (GRAVITY,), np.zeros((1, 6)))  # in every direction: gravity adds none
            carried, gap = after, float("inf")
        else:
            carried, gap = _through_joint(reaches[tree.parents[body]].own, motion.velocity[body])
            axis = tree.axes[body][None]
            if body in labelled:
                names, steady = (*carried.labels, *labels.new(1)), np.vstack([carried.steady, axis])
                after = Accelerations(carried.spread, names, steady)
            else:
                known = span(np.vstack([carried.spread, axis]))
                after, gap = Accelerations(known.rows, carried.labels, carried.steady), min(gap, known.gap)
        if body in anchors:
            names = (*after.labels, *labels.new(len(after.spread)))
            after = Accelerations(np.zeros((0, 6)), names, np.vstack([after.steady, after.spread]))
        reaches[body] = Reach(carried, after, gap)
    return reaches


def _through_joint(before: Accelerations, velocity: Array) -> tuple[Accelerations, float]:
    """Accelerations of a parent as its child has them, from the parts ``(3, 6, 6)`` of the transform."""
    moving = before.steady[before.steady.any(axis=1)]
    known = span(np.vstack([parts(velocity, before.spread), parts(velocity[1:], moving)]))
    return Accelerations(known.rows, before.labels, before.steady @ velocity[0].T), known.gap


@dataclass(frozen=True)
class Equations:
    """What must vanish of a body, together with all that is carried by it, for no joint to feel a change of parameters.

    Attributes
    ----------
    rows: ``(k, 12)`` on its ten parameters, rotor inertia and offset.
    shared: ``(k, s)`` on the inertias that act on several joints.
    """

    rows: Array
    shared: Array

    def of(self, local: np.ndarray) -> "Equations":
        """Equations on some of the twelve."""
        return Equations(self.rows[:, local], self.shared)


def observability_conditions(
    tree: KinematicTree, motion: JointMotion, reaches: dict[int, Reach], shares: Array, labels: Labels
) -> tuple[list[Equations], dict[int, Array], float]:
    """Equations of every link, what is felt of it ``(f, 10)``, and the smallest gap of all spans.

    Parameters
    ----------
    shares: ``(links, 7, s)`` what its joint feels of shared inertias by its own acceleration, and by each component
        of any other acceleration of the body.
    """
    felt: dict[int, Array] = {-1: np.zeros((0, BODY_PARAMETERS))}
    equations, gap = [], min(reach.gap for reach in reaches.values())
    for body in tree.links:
        if tree.free[body]:
            felt[body] = np.eye(BODY_PARAMETERS)
            equations.append(Equations(np.eye(BODY_PARAMETERS, LOCAL), np.zeros((BODY_PARAMETERS, labels.shared))))
            continue
        carried, axis = reaches[body].carried, tree.axes[body]
        causes = np.vstack([carried.all, axis])
        constant, *changing = felt[tree.parents[body]] @ motion.parameters[body]
        passed = np.vstack(changing)
        first, count = len(carried.spread), len(causes)
        rows = np.zeros((count + len(passed), LOCAL))
        shared = np.zeros((len(rows), labels.shared))
        rows[:count, :BODY_PARAMETERS] = causes @ (axis @ SPATIAL_INERTIA_BASIS).T
        rows[count:, :BODY_PARAMETERS] = passed
        rows[count - 1, ROTOR] = 1.0  # a rotor resists together with the body ...
        rows[first : count - 1, OFFSET] = np.equal(carried.labels, GRAVITY)  # ... and an offset pulls like gravity
        if labels.shared:
            shared[: count - 1] = carried.all @ shares[body][1:]
            shared[first : count - 1] += [labels.weight(label, body) for label in carried.labels]
            shared[count - 1] = shares[body][0]
        known = span(np.vstack([rows[:, :BODY_PARAMETERS], constant]))
        felt[body], gap = known.rows, min(gap, known.gap)
        equations.append(Equations(rows, shared))
    return equations, felt, gap


def parts(velocity: Array, vectors: Array) -> Array:
    """Every part ``(k, 6, 6)`` of a transform applied to every vector ``(m, 6)``: ``(k m, 6)``."""
    return np.asarray((vectors @ np.swapaxes(velocity, 1, 2)).reshape(-1, 6))
