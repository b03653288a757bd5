"""Base parameters in closed form: one pass from the base to the tips of the tree, without a single state.

``docs/base_parameters.md`` derives it. For every body the pass keeps the velocities that the joints before it can give
it, gravity as it can see it, and the combinations of its ten parameters that some joint before it feels. Of the
latter, what changes with the body's own joint must be known of this body alone and makes its base parameters; what
does not change is regrouped into the parent. A base that moves freely differs by its start only: it can have any
velocity, so that all its ten parameters are felt (B 18-25).
"""

from dataclasses import dataclass, replace

import numpy as np

from ...robot.layout import ParameterLayout
from ...robot.model import RobotModel
from ...robot.parameters import BODY_PARAMETERS, Array
from .geometry import KinematicTree, kinematic_tree, tidy
from .motion import SPATIAL_INERTIA_BASIS, JointMotion, joint_motion
from .result import BaseParameters
from .selection import BODY_ORDER, choose_dependent

_SPAN = 1e-7  # part of a unit vector outside of a span below which it belongs to the span
_ROUNDING = 1e-15
_NEGLIGIBLE = 1e-10  # coefficient in units of the typical length that is rounding
_LENGTH_POWER = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
_ROTOR, _OFFSET = BODY_PARAMETERS, BODY_PARAMETERS + 1  # drive terms that rigid bodies can imitate join the ten
_DRIVES = {_ROTOR: "rotor_inertia", _OFFSET: "offset"}
_ORDER = (BODY_ORDER[0], _ROTOR, *BODY_ORDER[1:], _OFFSET)  # regrouped first to regrouped last


def closed_form_base_parameters(model: RobotModel) -> BaseParameters:
    """Base parameters of a fixed-base robot from its kinematics alone.

    Rounded right angles in the URDF are taken as right angles, see :func:`~.geometry.tidy`. Rotor inertia and offset
    are regrouped with body parameters where these make the same torque; the other drive terms never are.
    """
    return minimal_parameters(tidy(kinematic_tree(model)), model.layout)


def minimal_parameters(tree: KinematicTree, layout: ParameterLayout) -> BaseParameters:
    """Base parameters of any tree, with a fixed or a freely moving base.

    Parameters
    ----------
    layout: one link per body of the tree, in its order, and one joint per body that does not move freely.

    Raises
    ------
    ValueError: the layout has not one link per body and one joint per joint.
    """
    joints = int(np.sum(~tree.free))
    if len(layout.links) != len(tree.parents) or len(layout.joints) != joints:
        raise ValueError(
            f"layout of {len(layout.links)} links and {len(layout.joints)} joints does not fit a tree of"
            f" {len(tree.parents)} bodies and {joints} joints: use the layout of the same robot"
        )
    length, gravity = tree.length, float(np.linalg.norm(tree.gravity)) or 1.0
    normal = replace(tree, translations=tree.translations / length, gravity=tree.gravity / gravity)
    motion, places = joint_motion(normal), _places(tree, layout)
    bodies = _bodies(normal, motion, places)
    units = _units(tree, layout, length, gravity)
    projection = _projection(bodies, motion, places, tree.parents, layout.size) * units[:, None] / units
    dependent = np.concatenate([p.columns[body.dependent] for p, body in zip(places, bodies, strict=True)])
    dependent = np.sort(dependent)
    independent = np.setdiff1d(np.arange(layout.size), dependent)
    gap = min(body.gap for body in bodies)
    return BaseParameters(
        layout, independent, dependent, projection[np.ix_(independent, dependent)], float("nan"), max(gap, 1.0)
    )


@dataclass(frozen=True)
class _Places:
    """Which of the ten parameters, rotor inertia and offset a body has in the layout, and at which columns."""

    local: np.ndarray
    columns: np.ndarray

    @property
    def order(self) -> list[int]:
        """Positions in ``local``, regrouped first to regrouped last."""
        return [int(np.flatnonzero(self.local == k)[0]) for k in _ORDER if k in self.local]


@dataclass(frozen=True)
class _Reach:
    """What the joints before a body do to it and know of it.

    Attributes
    ----------
    velocities: ``(k, 6)`` span of the velocities that it can have.
    felt: ``(f, 10)`` span of the combinations of its parameters that they feel.
    mean_gravity: ``(6,)`` part of gravity in its frame that no joint changes, as an upward acceleration.
    other_gravity: ``(k, 6)`` span of the rest.
    """

    velocities: Array
    felt: Array
    mean_gravity: Array
    other_gravity: Array


@dataclass(frozen=True)
class _Body:
    """A body's reach, and which of its local parameters are kept.

    Attributes
    ----------
    independent, dependent: positions in :attr:`_Places.local`.
    mixing: ``(kept, regrouped)`` coefficients of the dependent ones in the base parameters of this body.
    gap: the smallest ratio of kept to dropped in its spans.
    """

    reach: _Reach
    independent: np.ndarray
    dependent: np.ndarray
    mixing: Array
    gap: float


def _bodies(tree: KinematicTree, motion: JointMotion, places: list[_Places]) -> list[_Body]:
    gravity = np.concatenate([-tree.gravity, np.zeros(3)])  # as the acceleration that resting bodies seem to have
    nothing = np.zeros((0, 6))
    world = _Reach(nothing, np.zeros((0, BODY_PARAMETERS)), gravity, nothing)
    anywhere = _Reach(np.eye(6), np.eye(BODY_PARAMETERS), np.zeros(6), nothing)  # gravity shows nothing more
    bodies: list[_Body] = []
    for index, parent in enumerate(tree.parents):
        if tree.free[index]:
            none = np.zeros(0, dtype=int)
            every = np.arange(BODY_PARAMETERS)
            bodies.append(_Body(anywhere, every, none, np.zeros((BODY_PARAMETERS, 0)), float("inf")))
            continue
        before = bodies[parent].reach if parent >= 0 else world
        velocity, parameters = motion.velocity[index], motion.parameters[index]
        bodies.append(_behind_joint(before, tree.axes[index], velocity, parameters, places[index]))
    return bodies


def _behind_joint(before: _Reach, axis: Array, velocity: Array, parameters: Array, places: _Places) -> _Body:
    """Reach and base parameters of a body from the reach of its parent (or of the world).

    Parameters
    ----------
    axis: ``(6,)``; velocity: ``(3, 6, 6)`` and parameters: ``(5, 10, 10)`` as in :class:`JointMotion`.
    """
    carried, gap_velocity = _span(_seen(velocity, before.velocities))
    varying = np.vstack([_seen(velocity, before.other_gravity), velocity[1:] @ before.mean_gravity])
    other_gravity, gap_gravity = _span(varying)
    mean_gravity = velocity[0] @ before.mean_gravity

    torque = axis @ SPATIAL_INERTIA_BASIS  # (10, 6): times an acceleration, the joint torque of each unit parameter
    causes = np.vstack([carried, other_gravity, axis, mean_gravity])
    own = np.zeros((len(causes), BODY_PARAMETERS + len(_DRIVES)))
    own[:, :BODY_PARAMETERS] = causes @ torque.T
    own[-2, _ROTOR] = own[-1, _OFFSET] = 1.0  # felt with the joint's own acceleration, and with constant gravity
    constant, *changing = before.felt @ parameters
    passed = np.vstack(changing)
    alone, gap_alone = _span(np.vstack([own, np.pad(passed, ((0, 0), (0, len(_DRIVES))))])[:, places.local])
    felt, gap_felt = _span(np.vstack([own[:, :BODY_PARAMETERS], passed, constant]))

    null_space = np.linalg.svd(alone)[2][len(alone) :].T
    dependent = choose_dependent(null_space, places.order)
    independent = np.setdiff1d(np.arange(len(places.local)), dependent)
    mixing = -np.linalg.solve(null_space[dependent].T, null_space[independent].T).T
    mixing[np.abs(mixing) < _NEGLIGIBLE] = 0.0
    reach = _Reach(_span(np.vstack([carried, axis]))[0], felt, mean_gravity, other_gravity)
    return _Body(reach, independent, dependent, mixing, min(gap_velocity, gap_gravity, gap_alone, gap_felt))


def _seen(velocity: Array, vectors: Array) -> Array:
    """Rows of velocities of the parent, each as the ``(3,)`` parts that its child sees."""
    return np.asarray((vectors @ np.swapaxes(velocity, 1, 2)).reshape(-1, 6))


def _span(rows: Array) -> tuple[Array, float]:
    """Orthonormal rows of a span, and how clearly the last one kept stands above the first one dropped."""
    if len(rows) == 0:
        return rows, float("inf")
    _, singular, directions = np.linalg.svd(rows, full_matrices=False)
    kept = int(np.sum(singular > _SPAN * max(1.0, singular[0])))
    above = singular[kept - 1] if kept else 1.0
    below = singular[kept] if kept < len(singular) else 0.0
    return directions[:kept], float(above / max(below, _ROUNDING))


def _projection(
    bodies: list[_Body], motion: JointMotion, places: list[_Places], parents: tuple[int, ...], size: int
) -> Array:
    """``(p, p)`` map from the parameters to those kept, by following what each body leaves to its parent."""
    projection = np.eye(size)
    of_body: list[Array] = []  # (p, 10) of each body: what its parameters, with all regrouped into it, contribute
    for index, (body, place, parent) in enumerate(zip(bodies, places, parents, strict=True)):
        count = len(place.local)
        local = np.zeros((size, count))
        local[place.columns[body.independent], body.independent] = 1.0
        local[np.ix_(place.columns[body.independent], body.dependent)] = body.mixing
        if parent >= 0:
            left = np.zeros((count, len(body.dependent)))
            left[body.dependent, np.arange(len(body.dependent))] = 1.0
            left[body.independent] = -body.mixing
            local[:, body.dependent] += of_body[parent] @ motion.parameters_at_zero[index] @ left[:BODY_PARAMETERS]
        local[np.abs(local) < _NEGLIGIBLE] = 0.0
        projection[:, place.columns] = local
        of_body.append(local[:, :BODY_PARAMETERS])
    return projection


def _places(tree: KinematicTree, layout: ParameterLayout) -> list[_Places]:
    joints = np.cumsum(~tree.free) - 1
    terms = [k for k, term in _DRIVES.items() if term in layout.drive_terms]
    places = []
    for body, (free, joint) in enumerate(zip(tree.free, joints, strict=True)):
        own = [] if free else terms
        drives = [layout.drive(_DRIVES[k]).start + joint for k in own]
        inertial = range(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
        places.append(_Places(np.array([*range(BODY_PARAMETERS), *own]), np.array([*inertial, *drives], dtype=int)))
    return places


def _units(tree: KinematicTree, layout: ParameterLayout, length: float, gravity: float) -> Array:
    """``(p,)`` SI value of each parameter's unit where the typical length and gravity are one."""
    units = np.ones(layout.size)
    units[: layout.body_size] = np.tile(length**_LENGTH_POWER, len(tree.parents))
    if "rotor_inertia" in layout.drive_terms:
        revolute = tree.axes[~tree.free, 3:].any(axis=1)
        units[layout.drive("rotor_inertia")] = np.where(revolute, length**2, 1.0)
    units[layout.drive("offset")] = gravity
    return units
