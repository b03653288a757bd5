"""Observability conditions of every link, by one pass from the base to the tips of the tree.

The accelerations that the joints before a body give it, and the torques that it causes there and at its own joint,
determine which of its parameters motion can excite; ``docs/base_parameters.md`` derives it, and [Wensing2024]_
describes observability likewise.
"""

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
    """Accelerations that a body can have by the joints before it, and gravity as an upward one.

    Most count by their span alone. Some have a label, because the joint that makes them, or a rotor that it turns, acts
    on later joints in other ways as well; of these only what no joint in between changes keeps the label.

    Attributes
    ----------
    unlabelled : ndarray, shape (k, 6)
        Orthonormal span of those without a label, linear then angular.
    labels : tuple of int
        One per labelled acceleration.
    labelled : ndarray, shape (m, 6)
        Part of each labelled acceleration that no joint in between changes.
    """

    unlabelled: Array
    labels: tuple[int, ...]
    labelled: Array

    @property
    def all(self) -> Array:
        """``(k + m, 6)``, those without a label first."""
        return np.vstack([self.unlabelled, self.labelled])


@dataclass
class SharedInertiaTerms:
    """Torque of inertias that act on several joints, by the label of the acceleration that causes it.

    Attributes
    ----------
    count : int
        Number ``s`` of shared inertias: coupled drives, then geared rotors.
    labels : int
        Number of labels given so far.
    coefficients : dict of (int, int) to ndarray, shape (s,)
        By label and by the body at whose joint it acts.
    without_links : list of ndarray, shape (s,)
        Torque that depends on shared inertias and on no link.
    """

    count: int
    labels: int = 1
    coefficients: dict[tuple[int, int], Array] = field(default_factory=dict)
    without_links: list[Array] = field(default_factory=list)

    def new_labels(self, number: int) -> tuple[int, ...]:
        """Labels that nothing has yet."""
        first, self.labels = self.labels, self.labels + number
        return tuple(range(first, self.labels))

    def add(self, label: int, body: int, coefficients: Array) -> None:
        """Add ``(s,)`` coefficients to the torque of a label at the joint of a body."""
        self.coefficients[label, body] = self.of(label, body) + coefficients

    def of(self, label: int, body: int) -> Array:
        """``(s,)`` coefficients of a label at the joint of a body."""
        return self.coefficients.get((label, body), np.zeros(self.count))


@dataclass(frozen=True)
class LinkAccelerations:
    """Accelerations of one body before and after its own joint adds to them.

    Attributes
    ----------
    inherited : Accelerations
        By the joints before its own.
    total : Accelerations
        With its own joint.
    gap : float
        Smallest gap of the spans.
    """

    inherited: Accelerations
    total: Accelerations
    gap: float


def link_accelerations(
    tree: KinematicTree, motion: JointMotion, labelled: set[int], anchors: set[int], terms: SharedInertiaTerms
) -> dict[int, LinkAccelerations]:
    """Accelerations of every link, and of the world (-1), which has gravity only.

    Parameters
    ----------
    tree : KinematicTree
        Of unit lengths and unit gravity.
    motion : JointMotion
        Of its joints.
    labelled : set of int
        Bodies whose own joint's acceleration gets a label.
    anchors : set of int
        Bodies at which every acceleration gets a label.
    terms : SharedInertiaTerms
        Gives the labels.
    """
    upward = Accelerations(np.zeros((0, 6)), (GRAVITY,), np.append(-tree.gravity, np.zeros(3))[None])
    accelerations = {-1: LinkAccelerations(upward, upward, float("inf"))}
    for body in tree.links:
        if tree.free[body]:
            total = Accelerations(np.eye(6), (GRAVITY,), np.zeros((1, 6)))  # in every direction: gravity adds none
            inherited, gap = total, float("inf")
        else:
            inherited, gap = _through_joint(accelerations[tree.parents[body]].total, motion.velocity[body])
            axis = tree.axes[body][None]
            if body in labelled:
                labels, fixed = (*inherited.labels, *terms.new_labels(1)), np.vstack([inherited.labelled, axis])
                total = Accelerations(inherited.unlabelled, labels, fixed)
            else:
                spanned = span(np.vstack([inherited.unlabelled, axis]))
                total = Accelerations(spanned.rows, inherited.labels, inherited.labelled)
                gap = min(gap, spanned.gap)
        if body in anchors:
            labels = (*total.labels, *terms.new_labels(len(total.unlabelled)))
            total = Accelerations(np.zeros((0, 6)), labels, np.vstack([total.labelled, total.unlabelled]))
        accelerations[body] = LinkAccelerations(inherited, total, gap)
    return accelerations


def _through_joint(before: Accelerations, velocity: Array) -> tuple[Accelerations, float]:
    """Accelerations of a parent as its child has them, by the coefficients ``(3, 6, 6)`` of the transform."""
    moving = before.labelled[before.labelled.any(axis=1)]
    changed = transformed(velocity[1:], moving)
    spanned = span(np.vstack([transformed(velocity, before.unlabelled), changed]))
    return Accelerations(spanned.rows, before.labels, before.labelled @ velocity[0].T), spanned.gap


@dataclass(frozen=True)
class ObservabilityConditions:
    """What must vanish of a body, with all bodies behind it, for a change of parameters to cause no torque.

    Attributes
    ----------
    rows : ndarray, shape (k, 12)
        On its ten parameters, rotor inertia and offset.
    shared : ndarray, shape (k, s)
        On the inertias that act on several joints.
    """

    rows: Array
    shared: Array

    def of(self, local: np.ndarray) -> "ObservabilityConditions":
        """Conditions on some of the twelve columns."""
        return ObservabilityConditions(self.rows[:, local], self.shared)


def link_conditions(
    tree: KinematicTree,
    motion: JointMotion,
    accelerations: dict[int, LinkAccelerations],
    own_joint: Array,
    terms: SharedInertiaTerms,
) -> tuple[list[ObservabilityConditions], dict[int, Array], float]:
    """Conditions of every link.

    Parameters
    ----------
    tree : KinematicTree
        Of unit lengths and unit gravity.
    motion : JointMotion
        Of its joints.
    accelerations : dict of int to LinkAccelerations
        Of every link and of the world.
    own_joint : ndarray, shape (links, 7, s)
        Torque of shared inertias at its joint by its own acceleration, and by each component of another acceleration.
    terms : SharedInertiaTerms
        Torques of shared inertias by labelled accelerations.

    Returns
    -------
    conditions : list of ObservabilityConditions
        Of every link.
    observable : dict of int to ndarray, shape (f, 10)
        Functionals of each link's parameters on which some joint torque depends.
    gap : float
        Smallest gap of all spans.
    """
    observable: dict[int, Array] = {-1: np.zeros((0, BODY_PARAMETERS))}
    conditions, gap = [], min(of_link.gap for of_link in accelerations.values())
    for body in tree.links:
        if tree.free[body]:
            observable[body] = np.eye(BODY_PARAMETERS)
            shared = np.zeros((BODY_PARAMETERS, terms.count))
            conditions.append(ObservabilityConditions(np.eye(BODY_PARAMETERS, LOCAL), shared))
            continue
        inherited, axis = accelerations[body].inherited, tree.axes[body]
        causes = np.vstack([inherited.all, axis])
        constant, *changing = observable[tree.parents[body]] @ motion.parameters[body]
        passed = np.vstack(changing)
        first, count = len(inherited.unlabelled), len(causes)
        rows = np.zeros((count + len(passed), LOCAL))
        shared = np.zeros((len(rows), terms.count))
        rows[:count, :BODY_PARAMETERS] = causes @ (axis @ SPATIAL_INERTIA_BASIS).T
        rows[count:, :BODY_PARAMETERS] = passed
        rows[count - 1, ROTOR] = 1.0  # a rotor resists together with the body ...
        rows[first : count - 1, OFFSET] = np.equal(inherited.labels, GRAVITY)  # ... and an offset pulls like gravity
        if terms.count:
            shared[: count - 1] = inherited.all @ own_joint[body][1:]
            shared[first : count - 1] += [terms.of(label, body) for label in inherited.labels]
            shared[count - 1] = own_joint[body][0]
        spanned = span(np.vstack([rows[:, :BODY_PARAMETERS], constant]))
        observable[body], gap = spanned.rows, min(gap, spanned.gap)
        conditions.append(ObservabilityConditions(rows, shared))
    return conditions, observable, gap


def transformed(velocity: Array, vectors: Array) -> Array:
    """Every coefficient ``(k, 6, 6)`` of a transform applied to every vector ``(m, 6)``: ``(k m, 6)``."""
    return np.asarray((vectors @ np.swapaxes(velocity, 1, 2)).reshape(-1, 6))
