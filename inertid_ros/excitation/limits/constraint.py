"""The interface of constraints on a motion, beside the limits that shapes keep by their size.

Position, velocity and acceleration need no constraint object: every shape of motion is scaled until it fits them
(:mod:`inertid_ros.excitation.planning.feasible_size`). Everything else is a :class:`.Constraint`, and appears in three
places:

- **Before the search** :meth:`Constraint.check_start` refuses a start pose at which nothing can be planned.
- **During the search** :meth:`Constraint.penalty` adds to the objective: zero while the constraint holds with a
  margin, smooth, and growing with the violation. It is evaluated at samples only and may be coarse; it proves nothing.
- **On the finished motion** :meth:`Constraint.check` must hold, between samples too. A motion that violates it is made
  smaller as a whole until it does, since the start pose is feasible. The same check refuses a plan before
  it moves a robot, so it must accept plans that were made elsewhere.

:meth:`Constraint.usage` reports how much of what it allows a motion uses.

A penalty is given with its derivative along the motion. What depends on the regressor (joint efforts, the reaction
at the base, hence centre of pressure and contact forces) gives the derivative with respect to the regressor's
elements instead, as weights; the problem adds the weights of all terms and differentiates the regressor once
(:func:`inertid_ros.regressors.regressor_gradient.regressor_product_gradient`).

To add a constraint: write a class with these methods, its options into ``ExcitationOptions``, and let
:func:`.motion_constraints` make it where its options name it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.motions.trajectories import Trajectory
from inertid_ros.kinematics.tree_kinematics import TreeKinematics, TreeState
from inertid_ros.regressors.body_wrenches import BodyWrenches


@dataclass(frozen=True)
class MotionSamples:
    """A motion at N instants, and kinematics that constraints share; each is computed once, when it is needed.

    Attributes
    ----------
    chain : TreeKinematics
        Kinematics of the robot.
    q, v, a : ndarray, shape (N, n)
        Position, velocity, acceleration.
    step : float
        Time between instants [s].
    """

    chain: TreeKinematics
    q: Array
    v: Array
    a: Array
    step: float = 1.0

    def __len__(self) -> int:
        return len(self.q)

    @property
    def placements(self) -> Array:
        """``(N, n, 4, 4)`` of the moving bodies in the root frame."""
        return self.state.placements

    @property
    def screws(self) -> Array:
        """``(N, n, 6)`` of the joints, (linear, angular) about the root origin: the columns of all Jacobians."""
        return self.state.screws

    @cached_property
    def state(self) -> TreeState:
        """Placements, velocities and accelerations of the bodies."""
        return self.chain.state(self.q, self.v, self.a)

    @cached_property
    def wrenches(self) -> BodyWrenches:
        """Wrenches of the bodies per unit of their parameters: ``regressor @ body_prior.ravel()`` is the reaction."""
        return BodyWrenches.of(self.state)


@dataclass(frozen=True)
class Penalty:
    """Value of a penalty and its derivatives; what is zero everywhere may be left out.

    Attributes
    ----------
    value : float
        At least zero; dimensionless, of order one for a violation that matters.
    position, velocity, acceleration : ndarray or float, shape (N, n)
        Derivative with respect to the samples.
    joint_weights : ndarray or float, shape (N, n, 10 nb)
        Derivative with respect to the elements of the joint torque regressor of the bodies, in the order of
        ``model.body_prior.ravel()``; counted in addition.
    base_weights : ndarray or float, shape (N, 6, 10 nb)
        The same of the reaction wrench (force, torque) at the root, in its frame; for ``f(W)`` of the wrench ``W`` of
        the prior it is the derivative of ``f`` times the prior.
    """

    value: float
    position: Array | float = 0.0
    velocity: Array | float = 0.0
    acceleration: Array | float = 0.0
    joint_weights: Array | float = 0.0
    base_weights: Array | float = 0.0


@dataclass(frozen=True)
class Clearance:
    """Where a motion comes closest to what it must keep clear of.

    Attributes
    ----------
    closest_m, required_m : float
        Distance there, and what has to be kept [m].
    link, other : str
        Link, and link, obstacle or floor that it comes close to.
    time_s : float
        Instant of the motion [s].
    """

    closest_m: float
    required_m: float
    link: str
    other: str
    time_s: float

    def __str__(self) -> str:
        return (
            f"'{self.link}' comes to {1e3 * self.closest_m:.0f} mm from '{self.other}' at {self.time_s:.2f} s,"
            f" at least {1e3 * self.required_m:.0f} mm are kept"
        )


@dataclass(frozen=True)
class ConstraintUsage:
    """How much of what a constraint allows a motion uses.

    Attributes
    ----------
    used : float
        Fraction used; 1 is just allowed.
    description : str
        What is limited, such as ``effort of joint 'elbow'``.
    option : str
        Option that gives it more room; empty where the robot sets the limit.
    clearance : Clearance or None
        Where the motion comes closest, if distances are constrained.
    """

    used: float
    description: str
    option: str = ""
    clearance: Clearance | None = None


class Constraint(Protocol):
    """A constraint on whole motions. Objects are bound to one robot and its limits, and can be pickled.

    Attributes
    ----------
    positions_only : bool
        Whether the penalty depends on positions alone; being cheap, it is evaluated at more instants.
    """

    positions_only: bool

    def check_start(self, pose: Array) -> None:
        """Reject a start ``(n,)`` at which the robot cannot even rest.

        Raises
        ------
        ExcitationError
            One line with constraint, joint or link, value and limit, and what to do.
        """

    def penalty(self, motion: MotionSamples) -> Penalty:
        """Penalty of violations during the search."""

    def refine(self, motion: MotionSamples) -> bool:
        """Correct what is coarse in the penalty where a motion violates the constraint; whether anything changed."""
        return False

    def check(self, trajectory: Trajectory) -> None:
        """Reject a motion that violates the constraint anywhere, between samples too.

        Raises
        ------
        ExcitationError
            One line with constraint, joint or link, time, value and limit, and what to do.
        """

    def usage(self, trajectory: Trajectory) -> ConstraintUsage:
        """The largest fraction of the constraint that a motion uses."""
