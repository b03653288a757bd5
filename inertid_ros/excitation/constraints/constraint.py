"""Interface of constraints on a motion, and the proof that a motion keeps a constraint between samples too.

Limits of position, velocity and acceleration need no constraint object: every shape of motion is scaled until it fits
them (:func:`.scale_to_limits`). Every other constraint is a :class:`.Constraint`, and appears in three places:

- **Before the search** :meth:`Constraint.check_start` refuses an infeasible start pose.
- **During the search** :meth:`Constraint.penalty` adds to the objective: zero while the constraint holds with a
  margin, smooth, and growing with the violation. It is evaluated at samples only, may be coarse, and is not a proof.
- **On the finished motion** :meth:`Constraint.check` must hold, between samples too. A motion that violates the check
  is scaled down as a whole until the check holds, as the start pose is feasible. The same check runs before a plan
  moves a robot, so it must also work for plans from other sources.

A penalty comes with its derivative along the motion. Penalties that depend on the regressor (joint efforts, reaction at
the base) give the derivative with respect to the regressor's elements instead, as weights; the planning
problem adds all weights and differentiates the regressor once (:func:`.regressor_product_gradient`).

To add a constraint: derive from :class:`Constraint`; write its options into ``ExcitationOptions``; let
:func:`.motion_constraints` make it.

**The proof.** A function with values ``f0`` and ``f1`` at two instants ``h`` apart, and a rate of change of at most
``rate`` per second, cannot fall below ``(f0 + f1 - rate h) / 2`` between them. If this bound is positive, the interval
is proven. Otherwise the interval is halved, until every part is proven or the function is negative at some instant.
The rates come from the motion's derivatives, which the Bernstein form of its polynomial bounds on every interval.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Protocol

import numpy as np

from inertid_ros.core.arrays import Array, Indices
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.regressors.regressor_gradient import BodyWrenches
from inertid_ros.robot.kinematics import TreeKinematics, TreeState

_PROOF_HALVINGS = 16
_MAX_UNDECIDED = 400_000  # parts of the motion; more would take too long to decide


@dataclass(frozen=True)
class MotionSamples:
    """Motion ``(N, n)`` at instants ``step`` [s] apart, and its kinematics, computed once on demand."""

    chain: TreeKinematics
    q: Array
    v: Array
    a: Array
    step: float = 1.0

    def __len__(self) -> int:
        return len(self.q)

    @cached_property
    def state(self) -> TreeState:
        return self.chain.state(self.q, self.v, self.a)

    @cached_property
    def wrenches(self) -> BodyWrenches:
        """Wrenches per unit of body parameters: ``regressor @ body_prior.ravel()`` is the reaction at the root."""
        return BodyWrenches.of(self.state)


@dataclass(frozen=True)
class Penalty:
    """Value of a penalty (not negative; of order one for a relevant violation) and its derivatives.

    Attributes
    ----------
    position, velocity, acceleration : (N, n), derivative with respect to the samples.
    joint_weights : ndarray or float, shape (N, n, 10 nb)
        Derivative with respect to the elements of the bodies' joint torque regressor, in the order of
        ``model.body_prior.ravel()``, in addition to the derivatives above.
    base_weights : ndarray or float, shape (N, 6, 10 nb)
        Derivative with respect to the regressor of the reaction wrench (force, torque) at the root, in its frame.
    """

    value: float
    position: Array | float = 0.0
    velocity: Array | float = 0.0
    acceleration: Array | float = 0.0
    joint_weights: Array | float = 0.0
    base_weights: Array | float = 0.0

    def __add__(self, other: "Penalty") -> "Penalty":
        return Penalty(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


@dataclass(frozen=True)
class Clearance:
    """Closest approach of a link to another link, an obstacle or the floor."""

    closest_m: float
    required_m: float
    link: str
    other: str
    time_s: float

    def __str__(self) -> str:
        return (
            f"closest approach: '{self.link}' to '{self.other}', {1e3 * self.closest_m:.0f} mm at {self.time_s:.2f} s"
            f" (required {1e3 * self.required_m:.0f} mm)")


@dataclass(frozen=True)
class ConstraintUsage:
    """Largest fraction of a constraint that a motion uses; 1 is just allowed.

    ``description`` is the limited quantity, such as ``effort of joint 'elbow'``. ``option`` is the option that gives
    more room, empty if the robot sets the limit. ``clearance`` is the closest approach, if distances are constrained.
    """

    used: float
    description: str
    option: str = ""
    clearance: Clearance | None = None


@dataclass(frozen=True)
class DerivativeBounds:
    """Bounds ``(S, n)`` on the absolute derivatives of a motion, on S segments."""

    velocity: Array
    acceleration: Array
    jerk: Array


State = tuple[Array, Array, Array]
"""Position, velocity and acceleration, ``(N, n)`` each."""


class Constraint(Protocol):
    """Constraint on a motion within the joint limits.

    Its C channels are functions of the state and must be non-negative. Constraints can be pickled. If the channels
    depend on positions alone (``positions_only``), the penalty is cheap, and the search evaluates it at more instants.
    """

    positions_only: bool

    def penalty(self, motion: MotionSamples) -> Penalty:
        """Penalty of violations during the search."""

    def refine(self, motion: MotionSamples) -> bool:
        """Correct a coarse penalty if a motion violates the constraint; return whether the penalty changed."""
        return False

    def slack(self, q: Array, v: Array, a: Array) -> Array:
        """Values ``(N, C)`` of channels at samples ``(N, n)``.

        A non-negative value may be only a lower bound of the exact value; see :meth:`values`.
        """

    def values(self, q: Array, v: Array, a: Array, channels: Indices) -> Array:
        """Exact values ``(K,)`` at samples ``(K, n)``, of one channel each."""
        return self.slack(q, v, a)[np.arange(len(q)), channels]

    def rates(self, bounds: DerivativeBounds) -> Array:
        """Bounds ``(S, C)`` on the rate of change of every channel on every segment [1/s]."""

    def undecided(self, curve: PiecewiseQuintic, rates: Array) -> tuple[Indices, Indices]:
        """Segments of a curve and channels ``(K,)`` that still need a proof."""
        segments, channels = np.indices(rates.shape).reshape(2, -1)
        return segments, channels

    def violation(self, state: State, channel: int, when: str, at_rest: bool) -> str:
        """One line on a state, ``(1, n)`` each, with a negative channel: joint or link, value, limit and remedy.

        ``when`` describes the instant; ``at_rest`` is true for a start pose.
        """

    def usage(self, plan: Plan) -> ConstraintUsage: ...

    def check_start(self, pose: Array) -> None:
        """Raise ExcitationError if a robot at rest in a start pose ``(n,)`` violates the constraint."""
        state = pose[None], np.zeros((1, len(pose))), np.zeros((1, len(pose)))
        slack = self.slack(*state)[0]
        if (slack < 0).any():
            raise ExcitationError(self.violation(state, int(np.argmin(slack)), "in the start pose", True))

    def check(self, plan: Plan) -> None:
        """Raise ExcitationError for a motion that violates the constraint, also between points."""
        if (worst := find_violation(plan.curve, self)) is not None:
            time, channel = worst
            raise ExcitationError(self.violation(plan.sample(np.array([time])), channel, f"at {time:.3f} s", False))


def first_problem(constraints: Sequence[Constraint], check: Callable[[Constraint], None]) -> str:
    """Message of the first constraint for which ``check`` raises ExcitationError; empty if all constraints pass."""
    try:
        for constraint in constraints:
            check(constraint)
    except ExcitationError as error:
        return str(error)
    return ""


def derivative_bounds(curve: PiecewiseQuintic) -> DerivativeBounds:
    """Bounds on the derivatives of a curve, on the segments between its knots."""
    return DerivativeBounds(*(np.abs(curve.control_points(order)).max(axis=1) for order in (1, 2, 3)))


def find_violation(curve: PiecewiseQuintic, constraint: Constraint) -> tuple[float, int] | None:
    """Time [s] and channel of the most negative value, or of a value too close to zero for a proof.

    None if all channels are proven non-negative everywhere.
    """
    rates = constraint.rates(derivative_bounds(curve))
    segments, channels = constraint.undecided(curve, rates)
    rates = rates[segments, channels]
    left, right = curve.time[segments], curve.time[segments + 1]
    low, high = _at_knots(curve, constraint, segments, channels)
    for _ in range(_PROOF_HALVINGS):
        if (low < 0).any() or (high < 0).any():
            break
        unproven = 0.5 * (low + high - rates * (right - left)) < 0
        if not unproven.any():
            return None
        left, right, low, high, rates = (values[unproven] for values in (left, right, low, high, rates))
        channels = channels[unproven]
        if len(left) > _MAX_UNDECIDED:
            break
        middle = 0.5 * (left + right)
        between = constraint.values(*curve.sample(middle), channels)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        low, high = np.concatenate([low, between]), np.concatenate([between, high])
        rates, channels = np.tile(rates, 2), np.tile(channels, 2)
    values, times = (low, left) if low.min() < high.min() else (high, right)
    worst = int(np.argmin(values))
    return float(times[worst]), int(channels[worst])


def _at_knots(
        curve: PiecewiseQuintic, constraint: Constraint, segments: Indices, channels: Indices) -> tuple[Array, Array]:
    """Values at both ends of segments; values at shared ends are computed once."""
    keys = np.concatenate([segments, segments + 1]), np.tile(channels, 2)
    (knots, at), back = np.unique(np.array(keys), axis=1, return_inverse=True)
    values = constraint.values(curve.position[knots], curve.velocity[knots], curve.acceleration[knots], at)
    low, high = values[back.ravel()].reshape(2, -1)
    return low, high
