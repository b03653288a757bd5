"""The pass from the base to the tips: what the joints before a body can do to it and feel of it."""

from dataclasses import dataclass

import numpy as np

from ...robot.parameters import BODY_PARAMETERS, Array
from .geometry import KinematicTree
from .motion import SPATIAL_INERTIA_BASIS, JointMotion
from .selection import span

ROTOR, OFFSET = BODY_PARAMETERS, BODY_PARAMETERS + 1  # drive terms that a rigid body can imitate follow its ten
LOCAL = BODY_PARAMETERS + 2


@dataclass(frozen=True)
class Reach:
    """What the joints before a body, and its own, can do to it and feel of it.

    Attributes
    ----------
    accelerations: ``(k, 6)`` span of those that it can have, and of gravity as it can see it, except for what follows.
    steady_gravity: ``(6,)`` the part of gravity, as an upward acceleration, that no joint changes in its frame.
    steady_coupled: ``(n, 6)`` the part of the acceleration by each coupled joint that no joint between changes.
    felt: ``(f, 10)`` span of the combinations of its parameters that these joints feel.
    """

    accelerations: Array
    steady_gravity: Array
    steady_coupled: Array
    felt: Array


@dataclass(frozen=True)
class Equations:
    """What must vanish of a body, together with all that is carried by it, for no joint to feel a change of parameters.

    Attributes
    ----------
    rows: ``(k, 12)`` on its ten parameters, rotor inertia and offset.
    coupled: ``(k, c)`` on the rotor inertia of coupled drives.
    """

    rows: Array
    coupled: Array

    def of(self, local: np.ndarray) -> "Equations":
        """Equations on some of the twelve."""
        return Equations(self.rows[:, local], self.coupled)


def reach_of_bodies(tree: KinematicTree, motion: JointMotion, ratios: Array) -> tuple[list[Equations], float]:
    """Equations of every body of a tree of unit lengths and unit gravity, and the smallest gap of all spans.

    Parameters
    ----------
    ratios: ``(c, nb)`` ratio of each body's joint in each coupled drive.
    """
    count = len(tree.parents)
    none, upward = np.zeros((0, 6)), np.concatenate([-tree.gravity, np.zeros(3)])
    world = Reach(none, upward, np.zeros((count, 6)), np.zeros((0, BODY_PARAMETERS)))
    every = np.eye(BODY_PARAMETERS, LOCAL)
    anywhere = Reach(np.eye(6), np.zeros(6), np.zeros((count, 6)), np.eye(BODY_PARAMETERS))  # gravity adds nothing
    reaches: list[Reach] = []
    equations: list[Equations] = []
    gap = float("inf")
    for body, parent in enumerate(tree.parents):
        if tree.free[body]:
            reaches.append(anywhere)
            equations.append(Equations(every, np.zeros((BODY_PARAMETERS, len(ratios)))))
            continue
        before = reaches[parent] if parent >= 0 else world
        reach, own, clearness = _behind_joint(before, tree.axes[body], motion, ratios, body)
        reaches.append(reach)
        equations.append(own)
        gap = min(gap, clearness)
    return equations, gap


def _behind_joint(
    before: Reach, axis: Array, motion: JointMotion, ratios: Array, body: int
) -> tuple[Reach, Equations, float]:
    velocity, parameters = motion.velocity[body], motion.parameters[body]
    steady_gravity = velocity[0] @ before.steady_gravity
    steady_coupled = before.steady_coupled @ velocity[0].T
    varying = [
        _parts(velocity, before.accelerations),
        _parts(velocity[1:], before.steady_gravity[None]),
        _parts(velocity[1:], before.steady_coupled[before.steady_coupled.any(axis=1)]),
    ]
    accelerations = span(np.vstack(varying))

    # The joint's own torque, by cause. A rotor resists together with the body; an offset acts like steady gravity; a
    # coupled drive makes joints feel each other also where no body does, so that pairs of joints count one by one.
    earlier = np.flatnonzero(ratios.any(axis=0))
    earlier = earlier[earlier < body]
    causes = np.vstack([accelerations.rows, steady_coupled[earlier], steady_gravity, axis])
    torque = np.zeros((len(causes), LOCAL))
    torque[:, :BODY_PARAMETERS] = causes @ (axis @ SPATIAL_INERTIA_BASIS).T
    torque[-2, OFFSET] = torque[-1, ROTOR] = 1.0
    coupled = np.zeros((len(causes), len(ratios)))
    first = len(accelerations.rows)
    coupled[first : first + len(earlier)] = (ratios[:, earlier] * ratios[:, [body]]).T
    coupled[-1] = ratios[:, body] ** 2

    constant, *changing = before.felt @ parameters
    passed = np.vstack(changing)
    felt = span(np.vstack([torque[:, :BODY_PARAMETERS], passed, constant]))
    rows = np.vstack([torque, np.pad(passed, ((0, 0), (0, LOCAL - BODY_PARAMETERS)))])
    equations = Equations(rows, np.pad(coupled, ((0, len(passed)), (0, 0))))

    known = accelerations
    if ratios[:, body].any():
        steady_coupled = steady_coupled.copy()
        steady_coupled[body] = axis
    else:
        known = span(np.vstack([accelerations.rows, axis]))
    reach = Reach(known.rows, steady_gravity, steady_coupled, felt.rows)
    return reach, equations, min(accelerations.gap, felt.gap, known.gap)


def _parts(velocity: Array, vectors: Array) -> Array:
    """Every part ``(k, 6, 6)`` of a transform applied to every vector ``(m, 6)``: ``(k m, 6)``."""
    return np.asarray((vectors @ np.swapaxes(velocity, 1, 2)).reshape(-1, 6))
