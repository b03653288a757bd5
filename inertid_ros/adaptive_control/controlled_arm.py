"""An arm under adaptive control: commanded effort at every tick, also after a fault.

While joint states arrive, torque control never ends: it holds the arm after a fault and without a trajectory.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import attrs
import numpy as np

from inertid_ros.config.excitation import EffortControlOptions, LimitOptions, MonitorOptions, StateMonitorOptions
from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import ExcitationError, ModelError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.samples import StateSample
from inertid_ros.excitation.execution.monitor import StateMonitor
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.report.results import Result, ResultError
from inertid_ros.robot.link_shapes import surrounding_ellipsoids
from inertid_ros.robot.model import RobotModel, refuse_carried
from inertid_ros.robot.urdf.joints import JointLimits

from .controller import AdaptationOptions, AdaptiveController, CalibratedDrives, Law, Reference, Tracking
from .inertial_manifold import HalfSpaces
from .reference import ReferenceMotion, way_along

_MASS = np.eye(BODY_PARAMETERS)[0]
_MAX_ADAPTATION_STEP_S = 0.01
_TRUSTED_FEEDBACK_AGE_S = 0.1  # feedback torque of this age is free of effects of a fault of the states
_STUCK_STATES = 4  # identical in every digit of position, velocity and effort while the reference moves
_VELOCITY_NOISE = 0.02  # rad/s or m/s, of an arm at rest; a measured velocity may exceed its limit by this noise
_MAX_PATH_ERROR = 0.02  # rad or m; an arm that is farther from its reference stops at its position, not along the path


@dataclass(frozen=True)
class FirstEstimate:
    """Robot model, physically consistent bodies ``(nb, 10)``, and drives if the robot is calibrated."""

    model: RobotModel
    bodies: Array
    drives: CalibratedDrives | None = None


def first_estimate(model: RobotModel, result_directory: str = "") -> FirstEstimate:
    """Return the bodies of the robot description, or bodies and drives of a result directory.

    Raises
    ------
    InertidError
        The directory holds no result, a rejected result, or a result of another robot.
    """
    if not result_directory:
        return FirstEstimate(model, model.consistent_body_prior)
    result = Result.load(result_directory)
    if result.rejected:
        raise ResultError(f"{result_directory}: was rejected ({result.report.get('message')}); give a good calibration")
    if result.model.hash != model.hash or result.model.joint_names != model.joint_names:
        raise ModelError(f"{result_directory}: another robot, or other locked joints; give this arm's result")
    bodies = result.model.layout.bodies(result.parameters)
    return FirstEstimate(result.model, bodies, CalibratedDrives(result.model, result.parameters))


def adaptive_controller(estimate: FirstEstimate, options: EffortControlOptions) -> AdaptiveController:
    """Build the controller of an arm.

    Raises
    ------
    InertidError
        The robot has a free base, inconsistent bodies or no effort limits, or lacks a link to adapt.
    """
    model = estimate.model
    refuse_carried(model)
    for key, links in (("adapted_links", options.adapted_links), ("masses", options.masses)):
        for link in links:
            if link not in model.link_names:
                raise ModelError(
                    f"control.{key} names '{link}', which is not a moving link; moving links:"
                    f" {', '.join(model.link_names)}")
    limit = np.array(model.limits.effort)
    limited = np.isfinite(limit) & (limit > 0)
    if not limited.all():
        joint = model.joint_names[int(np.argmin(limited))]
        raise ModelError(f"URDF joint '{joint}': has no effort limit, which torque control needs; add it")
    adaptation = AdaptationOptions(
        bandwidth=options.bandwidth, speed=options.speed, law=Law[options.law.upper()],
        adapted=tuple(model.link_names.index(link) for link in options.adapted_links),
        bounds=link_bounds(model, estimate.bodies, options), largest_factor=options.largest_factor,
        friction_weight=options.friction_weight, effort_limit=options.effort_fraction * limit,
        tracking=Tracking[options.controller_type.upper()], dead_zone=options.dead_zone)
    return AdaptiveController(model, estimate.bodies, adaptation, estimate.drives)


def link_bounds(model: RobotModel, bodies: Array, options: EffortControlOptions) -> dict[int, HalfSpaces]:
    """Bounds of adapting links, by index: their mass, and ellipsoids around them ([Wensing2018]_ eq. 22).

    Raises ModelError: the first estimate ``bodies (nb, 10)`` breaks a bound, a bounded link does not adapt, or the
    shapes of a link cannot be read.
    """
    ellipsoids = surrounding_ellipsoids(model, shapes=True) if options.inside_links else (None,) * len(bodies)
    bounds = {}
    for index, (link, ellipsoid) in enumerate(zip(model.link_names, ellipsoids, strict=True)):
        normals, offsets = [], []
        adapts = not options.adapted_links or link in options.adapted_links
        if link in options.masses:
            if not adapts:
                raise ModelError(
                    f"control.masses bounds '{link}', which does not adapt; add it to control.adapted_links or drop its"
                    " bound")
            least, largest = options.masses[link]
            normals, offsets = [_MASS, -_MASS], [least, -largest]
        if options.inside_links and adapts:
            if ellipsoid is None:
                raise ModelError(
                    f"control.inside_links: a collision shape of '{link}' cannot be read; set control.inside_links to"
                    " false or provide its mesh")
            normals, offsets = [*normals, ellipsoid.row], [*offsets, 0.0]
        if not normals:
            continue
        bounds[index] = HalfSpaces(np.array(normals), np.array(offsets))
        if (bounds[index].slack(bodies[index]) <= 0).any():
            raise ModelError(
                f"control: the first estimate of '{link}', {bodies[index][0]:.4g} kg, is outside its bounds"
                " (control.masses, control.inside_links); correct the bounds or calibrate again")
    return bounds


class EffortWatch:
    """Check velocities against their limits ``(n,)``, and how long commands stay at their effort limits ``(n,)``."""

    def __init__(self, joint_names: Sequence[str], velocity: Array, effort: Array, saturation_s: float) -> None:
        self._names, self._velocity, self._effort = tuple(joint_names), velocity, effort
        self._saturation_s = saturation_s
        self._since = np.full(len(self._names), np.inf)

    def saturate(self, now: float, saturated: Mask) -> None:
        """Record the joints ``(n,)`` that need more than their effort limit at ``now``."""
        self._since = np.where(saturated, np.minimum(self._since, now), np.inf)

    def check(self, now: float, velocity: Array) -> str:
        """Return the reason to stop at ``now`` with a measured velocity ``(n,)``; empty if all is well."""
        speed = np.abs(velocity) - self._velocity - _VELOCITY_NOISE
        joint = int(np.argmax(speed))
        if speed[joint] > 0:
            return (
                f"joint '{self._names[joint]}' moves at {abs(velocity[joint]):.3g} rad/s or m/s, its limit is"
                f" {self._velocity[joint]:.4g}; find the cause of this motion")
        duration = now - self._since
        joint = int(np.argmax(duration))
        return f"the arm could not follow for {duration[joint]:.2f} s" if duration[joint] > self._saturation_s else ""

    def explained(self, problem: str) -> str:
        """Add the joint that is at its effort limit, if any, to the text of a problem."""
        joint = int(np.argmin(self._since))
        if not problem or np.isinf(self._since[joint]):
            return problem
        return (
            f"{problem}; joint '{self._names[joint]}' is at its effort limit {self._effort[joint]:.4g} N m or N: the"
            " payload is too heavy for this pose, or the arm is blocked; remove the payload or the obstacle")


class TorqueTransition:
    """Blend from the previously delivered torque to the controller's torque within ``duration`` seconds."""

    def __init__(self, duration: float) -> None:
        self._duration, self._begin = duration, -np.inf
        self._difference: Array | float = 0.0

    def begin(self, before: Array, torque: Array, now: float) -> None:
        """Begin a transition from the torque ``before (n,)`` to ``torque (n,)`` [N m or N]."""
        self._difference, self._begin = before - torque, now

    def ended(self, now: float) -> bool:
        return now >= self._begin + self._duration

    def smoothed(self, torque: Array, now: float) -> Array:
        if self.ended(now):
            return torque
        share = (now - self._begin) / self._duration
        return np.asarray(torque + (1 - share**2 * (3 - 2 * share)) * self._difference)


class Stage(Enum):
    """Motion of the arm."""

    HOLDING = "holding"
    FOLLOWING = "following"
    STOPPING = "stopping"


class ControlledArm:
    """Reference, monitoring and torque of an arm. All times are on the steady clock [s].

    Control begins at the arm's present position, with the measured torque. While states are missing or unusable, the
    reference brakes, and the commanded torque is the model's torque at the reference plus the last feedback torque.
    Once the reference is at rest, commands end. When states arrive again, the arm comes to rest from its position at
    that time.

    Parameters
    ----------
    controller : controller whose effort limit bounds all commands.
    limits : motion limits of references.
    begin : measured state at the start, at rest.

    Attributes
    ----------
    fault : fault that stopped the arm, until :meth:`resume`; else empty.
    accepts : True if trajectories are accepted and parameters adapt.
    largest_error : largest distance from the reference since the last trajectory was accepted [rad or m].

    Raises
    ------
    InertidError
        A limit is missing.
    """

    def __init__(
            self, controller: AdaptiveController, model: RobotModel, limits: LimitOptions,
            options: EffortControlOptions, monitor: StateMonitorOptions, begin: StateSample) -> None:
        motion, urdf = motion_limits(model, limits), model.limits
        lower = np.where(np.isfinite(urdf.lower), urdf.lower, motion.lower)
        upper = np.where(np.isfinite(urdf.upper), urdf.upper, motion.upper)
        speed = np.where(np.isfinite(urdf.velocity), urdf.velocity, motion.velocity)
        watched, usable = MonitorOptions(**attrs.asdict(monitor)), JointLimits(lower, upper, speed, urdf.effort)
        self.controller, self.monitor = controller, StateMonitor(model.joint_names, usable, watched, begin.time)
        self.fault, self.largest_error, self.accepts = "", 0.0, True
        self._limits, self._options = motion, options
        effort = np.asarray(controller.options.effort_limit)
        self._watch = EffortWatch(model.joint_names, speed, effort, options.saturation_s)
        self._state, self._seen = begin, begin.time
        self._reference = ReferenceMotion(motion, begin.position, np.zeros_like(begin.position), begin.time,
                                          options.brake)  # fmt: skip
        self._asked = self._reference.at(begin.time)
        self._transition = TorqueTransition(options.transition_s)
        self._ticked, self._elsewhere, self._repeats = begin.time, True, 0
        self._recent: deque[tuple[float, Reference, Array]] = deque()  # time, reference, torque with feedback
        self._added = np.zeros_like(begin.effort)

    @property
    def stage(self) -> Stage:
        if self.at_rest:
            return Stage.HOLDING
        return Stage.FOLLOWING if self.accepts else Stage.STOPPING

    @property
    def at_rest(self) -> bool:
        """True if the reference is at rest."""
        return self._reference.at_rest(self._ticked)

    @property
    def error(self) -> Array:
        """Reference minus measured position ``(n,)`` [rad or m]."""
        return np.asarray(self._commanded(self._state.time) - self._state.position)

    def update(self, stamp: float, clock: float, now: float, position: Array, velocity: Array, effort: Array) -> None:
        """Take a joint state; see :meth:`.RobotClock.take` and :meth:`.StateMonitor.update`."""
        time = self.monitor.clock.take(stamp, clock, now)
        if self.monitor.update(time, now, position, effort, self._commanded(time), velocity):
            return
        state, before = StateSample(time, position, velocity, effort), self._state
        repeats = all((getattr(state, key) == getattr(before, key)).all() for key in ("position", "velocity", "effort"))
        self._repeats = self._repeats + 1 if repeats else 0
        self._state, self._seen = state, now
        self.largest_error = max(self.largest_error, float(np.abs(self.error).max()))

    def follow(self, sent: PiecewiseQuintic, now: float) -> None:
        """Follow the points of a trajectory from now on, in place of the previous trajectory.

        Raises
        ------
        ExcitationError
            The arm does not accept trajectories now, or :func:`.way_along` refuses this trajectory. The previous
            trajectory continues.
        """
        if not self.accepts:
            raise ExcitationError(f"reference: refused, {self.fault or 'adaptation is not active'}")
        curve = way_along(sent, self._reference.at(now), now, self._limits)
        self._reference.follow(curve, now)
        self.largest_error = 0.0

    def tick(self, now: float) -> Array | None:
        """Check the states and return the effort ``(n,)`` to command [N m or N].

        Returns None once the arm has braked without usable states. Torque without feedback cannot hold the arm, so the
        driver takes over, as after the end of this process.
        """
        step, self._ticked = now - self._ticked, now
        if step > self._options.longest_pause_s:
            self._reference.delay(step)
            self.stop(now, f"the controller was delayed by {step:.3f} s")
            self._elsewhere = True
        sees = self._sees(now)
        if self.accepts:
            problem = self.monitor.check(now, self._commanded(self._state.time))
            problem = problem or (self._watch.check(now, self._state.velocity) if sees else "")
            if problem:
                self.stop(now, self._watch.explained(problem))
        if not (sees or self.accepts):
            self._elsewhere = True
            if self._reference.at_rest(now):
                return None
        limit = self.controller.options.effort_limit
        return np.asarray(np.clip(self._effort(now, step, sees), -limit, limit))

    def stop(self, now: float, fault: str = "") -> None:
        """Come to rest and hold, without adaptation; ``fault`` is the reason if a fault stops the arm."""
        self.fault = self.fault or fault
        if not self.accepts:
            return
        self.accepts = False
        if self._sees(now) and np.abs(self.error).max() > _MAX_PATH_ERROR:
            self._reference.rest_from(self._position(now), self._state.velocity, now)
        else:
            self._reference.brake()

    def resume(self, now: float) -> str:
        """Accept trajectories again, and adapt; return the reason for a refusal, or an empty text."""
        if not self.accepts and not self.at_rest:
            return "the arm is still coming to rest; try again"
        if not self._sees(now):
            return "the arm's position is unknown without fresh joint states; check the robot's driver"
        if not self.accepts:
            self._reference.rest_from(self._asked.position, np.zeros_like(self._asked.position), now)
        self.fault, self.accepts = "", True
        return ""

    def _effort(self, now: float, step: float, sees: bool) -> Array:
        if sees and self._elsewhere:
            self._begin_here(now)
            self._elsewhere = False
        asked = self._asked = self._reference.at(now)
        if not sees:
            return self._effort_without_states()
        adapt = self.accepts and self._transition.ended(now)
        effort = self.controller.step(
            self._position(now), self._state.velocity, asked, min(step, _MAX_ADAPTATION_STEP_S), adapt)
        self._watch.saturate(now, self.controller.saturated)
        effort = self._transition.smoothed(effort, now)
        self._recent.append((now, asked, effort))
        while self._recent[0][0] < now - _TRUSTED_FEEDBACK_AGE_S:
            self._recent.popleft()
        return effort

    def _effort_without_states(self) -> Array:
        """Torque at the reference, plus the feedback torque at the last trusted states."""
        if self._recent:
            _, asked, effort = self._recent[0]
            self._added = effort - self._effort_on(asked)
            self._recent.clear()
        return self._effort_on(self._asked) + self._added

    def _effort_on(self, asked: Reference) -> Array:
        return self.controller.step(asked.position, asked.velocity, asked, 0.0, adapt=False)

    def _begin_here(self, now: float) -> None:
        """Come to rest from the arm's position, starting with the measured torque."""
        position, velocity = self._position(now), self._state.velocity
        still = np.abs(velocity).max() < _VELOCITY_NOISE
        self._reference.rest_from(position, np.zeros_like(velocity) if still else velocity, now)
        self._transition.begin(self._state.effort, self._effort_on(self._reference.at(now)), now)

    def _position(self, now: float) -> Array:
        """Measured position ``(n,)``, extrapolated to ``now``."""
        return np.asarray(self._state.position + max(now - self._state.time, 0.0) * self._state.velocity)

    def _sees(self, now: float) -> bool:
        """Return True if states are fresh and not stuck."""
        moves = np.abs(self._state.velocity).max() > _VELOCITY_NOISE or self.monitor.is_frozen(self._asked.position)
        stuck = self._repeats >= _STUCK_STATES and moves
        return now - self._seen <= self.monitor.options.state_timeout_s and not stuck

    def _commanded(self, time: float) -> Array:
        """Return the reference position ``(n,)`` at a time near the last tick."""
        return np.asarray(self._asked.position + (time - self._ticked) * self._asked.velocity)
