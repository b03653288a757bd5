"""The excitation node's state machine, its robot and all that can go wrong around them, under a given time.

Whatever happens, in whatever order, the invariants of :meth:`World.check` have to hold.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace

import numpy as np
from support.excitation.fake_interface import EPOCH_S, FakeInterface, FakePlanner
from support.excitation.observed_controller import Observed, ObservedController
from support.nodes.two_links import two_links
from support.robots.quick_plans import quick_plan

from inertid_ros.calibration.planning import PreparedMotion
from inertid_ros.config.excitation import ExcitationOptions, ExecutionOptions
from inertid_ros.config.nodes import MotionOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.excitation.execution.horizons import Horizon, HorizonTable
from inertid_ros.excitation.execution.plan_check import with_approach
from inertid_ros.excitation.execution.supervisor import RESTART_S
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.nodes.excitation.state_machine import State, StateMachine

TICK_S, DELAY_S = 0.005, 0.001
LEASE_S = 0.1  # between renewals
LEASE_TIMEOUT_S = MotionOptions().monitor.lease_timeout_s + 1e-9
AT_REST = np.array([0.1, -0.1])  # where motions begin
IN_MOTION = (State.APPROACHING, State.MOVING, State.STOPPING, State.WAITING)
MODEL, LIMITS = two_links()


@cache
def prepared() -> tuple[PreparedMotion, np.ndarray]:
    """A motion with its approach, and the largest jerk ``(n,)`` of it and of all its brakes."""
    options = ExcitationOptions(duration_s=4.0, base_frequency_hz=0.25)
    plan = quick_plan(LIMITS, np.zeros(2), 3, options, MODEL.hash)
    execution = ExecutionOptions(approach_speed=0.5, settle_s=0.1)
    whole, approach_s = with_approach(plan, MODEL, AT_REST, execution)
    table = HorizonTable(whole, whole.limits, execution)
    curves = [PiecewiseQuintic(*table.brakes.brake(index)) for index in range(len(table.brakes.points) - 1)]
    jerk = np.max([_jerk(curve) for curve in (table.points, *curves)], axis=0)
    return PreparedMotion(plan, approach_s, table), jerk


def _jerk(curve: PiecewiseQuintic) -> np.ndarray:
    c = curve.coefficients
    x = np.linspace(0, 1, 6)[:, None, None] * np.diff(curve.time)[None, :, None]
    return np.abs(6 * c[:, 3] + 24 * c[:, 4] * x + 60 * c[:, 5] * x**2).max(axis=(0, 1))


class World:
    """Time goes on by :meth:`run`; in between events happen, see :data:`EVENTS`.

    Attributes
    ----------
    violations : list of str
        Invariants that were broken.
    rest_s : list of float
        Times from the begin of each stop to rest [s].
    told_to_stop : float
        When the first brake was sent [s]; NaN where none has been.
    by_old_clock : int
        Commands by a robot's clock that had stepped while no state came to tell; what they do is not looked at.
    halt_untold : bool
        Whether the controller has given up and not told so yet; what commands do until then is not looked at.
    """

    def __init__(self, seed: int = 0) -> None:
        self.prepared, self.jerk = prepared()
        self.robot = FakeInterface(MODEL, self._sent)
        self.controller = ObservedController(AT_REST, self.robot.now)
        self.violations: list[str] = []
        self.rest_s: list[float] = []
        self._rng = np.random.default_rng(seed)
        self.robot_clock_offset, self._scaled, self._stepped_unseen, self._alone_until = 0.0, False, False, -np.inf
        self.by_old_clock, self._count, self._drifted, self._effort_told = 0, 0, 0.0, False
        self.planner = FakePlanner(self.prepared)
        self.machine = StateMachine(self.robot, RobotOptions(), self.planner)
        self.heal()
        self._restart_node()
        self.run(0.4)

    # Time

    def run(self, seconds: float) -> None:
        """States, ticks and the client's lease for so long."""
        for _ in range(max(round(seconds / TICK_S), 1)):
            self.robot.now += TICK_S
            self._publish()
            if self.renews and self.robot.now >= self._renewed + LEASE_S:
                self._renewed = self._client_seen = self.robot.now
                self.machine.renew_lease()
            self.machine.tick(self.cancels)
            self.check()

    def pause(self, seconds: float) -> None:
        """The node does not run for so long, then gets what lies in its queue at once."""
        waiting = []
        self._pauses.append((self.robot.now + seconds, seconds))
        for _ in range(max(round(seconds / TICK_S), 1)):
            self.robot.now += TICK_S
            waiting.append(self._state())
        for state in waiting[-10:]:
            self._deliver(state)
        self.machine.tick(self.cancels)
        self.check()

    def end(self) -> Observed:
        """What was seen from outside, after all goals had time to end."""
        self.planner.busy = False
        for _ in range(200):  # a controller at a tenth of its speed comes to rest three times before it is too often
            self.run(0.1)
            if self.machine.goal is None and not self.controller.moving(self.robot.now):
                break
        self._expect(self.machine.goal is None, "a goal does not end")
        self.controller.advance(self.robot.now)
        observed = self.controller.observed(LIMITS, self.jerk)
        # A float of seconds since 1970 is accurate to 0.2 us, so that every horizon is a tiny step.
        self._expect(not observed.outside, "a position limit was left")
        self._expect(observed.velocity <= 1.001, f"velocity is {observed.velocity:.3f} of its limit")
        self._expect(observed.acceleration <= 1.01, f"acceleration is {observed.acceleration:.3f} of its limit")
        self._expect(max(self.controller.steps) < 0.05, f"steps by {max(self.controller.steps):.3f} rad, scaled")
        lost = max(self.controller.steps_after_lost, default=0.0)
        self._expect(lost < 0.02, f"steps by {lost:.3f} rad after commands that were lost")
        self._expect(observed.jerk <= 1.05, f"jerk is {observed.jerk:.3f} of that of the plan and its brakes")
        return observed

    # Events

    def heal(self) -> None:
        """Nothing is wrong any more."""
        self.silent = self.not_finite = self.stuck = self.deaf = self.over_limit = self.halt_untold = False
        self.stamp_offset, self.loss, self.drift, self.every, self.unstamped = 0.0, 0.0, 0.0, 1, False
        self.renews, self.cancels = True, False
        self._renewed = self._client_seen = -np.inf
        self.robot.recorder_writes, self.robot.speed_scaling = True, 1.0
        self.robot.disturber = self.robot.halted = ""
        self.planner.busy = False
        self._scale(1.0)

    def arm(self) -> None:
        """As a lifecycle node that is asked to activate."""
        if self._lifecycle == "unconfigured":
            self.machine.configure()
            self._lifecycle = "inactive"
        if self._lifecycle == "inactive" and not self.machine.arm():
            self._lifecycle, self._armed = "active", True
        self.check()

    def disarm(self) -> None:
        if self._lifecycle == "active":
            self._armed, self._latched, self._lifecycle = False, False, "inactive"
            self.machine.disarm()
            self.check()

    def clean_up(self) -> None:
        if self._lifecycle == "inactive" and not self.machine.clean_up():
            self._lifecycle = "unconfigured"
            self.check()

    def shut_down(self) -> None:
        self._armed, self._latched, self._lifecycle = False, False, "finalized"
        self.machine.shut_down("asked to end")
        self.check()

    def goal(self, **fields: object) -> None:
        """A goal comes, whatever the node is at."""
        request = {
            "plan_file": "", "prior": "", "motion": "", "duration": 0.0, "seed": 0, "speed_scale": 0.0,
            "lease": True, "plan_only": False, "held_out": False, "confirm": False, **fields,
        }  # fmt: skip
        before = self.machine.goal
        self._client_seen = self._client_seen if before is not None else self.robot.now
        accepted = self.machine.begin(SimpleNamespace(**request), MotionOptions())
        self._expect(not (accepted and before is not None), "a second goal was accepted")
        if accepted:
            self.cancels, self._wants_motion = False, not fields.get("plan_only")
        self.check()

    def motion(self) -> None:
        """As an operator: all is well, the robot is brought back, armed, and moves."""
        self.heal()
        if self._lifecycle == "finalized":
            self._restart_node()
        if self.machine.goal is None:
            self.disarm()
            self.robot.clock_offset = self.robot_clock_offset
            self.controller.place(AT_REST, self.robot.now)
            self._scaled, self._drifted = False, 0.0
            self.run(0.4)
            self.arm()
            self.goal()
        self.run(0.2)

    def stop_service(self) -> None:
        self.machine.latch("stopped on request")
        self._latched |= self._armed
        self.check()

    def kill(self) -> None:
        """The node dies and is started anew."""
        self._restart_node()
        self.check()

    def scaling(self, pace: float, told: bool) -> None:
        """The controller's speed is scaled."""
        self._scale(pace)
        if told:
            self.robot.speed_scaling = pace
            self.machine.take_speed_scaling(pace)
            self.check()

    def step_clock(self, seconds: float, node: bool = True, robot: bool = True) -> None:
        """The clocks of node and robot step, or one of them; back by less than 20 ms, that is not seen."""
        seconds = float(np.copysign(max(abs(seconds), 0.025), seconds))
        self.robot.clock_offset += seconds * node
        self.robot_clock_offset += seconds * robot
        self._stepped_unseen |= robot

    def partition(self, seconds: float) -> None:
        """The network between robot and node is cut for so long."""
        self.silent = self.deaf = True
        self.run(seconds)
        self.silent = self.deaf = False

    def starve(self, seconds: float) -> None:
        """The node gets a tenth of a processor: it runs for 10 ms of every 100."""
        for _ in range(round(seconds / 0.1)):
            self.pause(0.09)
            self.run(0.01)

    def lose_a_state(self) -> None:
        """One state is garbage."""
        self.not_finite = True
        self.run(TICK_S)
        self.not_finite = False

    def foreign_states(self, count: int) -> None:
        """So many states of another node come, without stamps and at zero."""
        for _ in range(count):
            self._deliver((0.0, np.zeros(2)))

    def change_description(self) -> None:
        self.machine.stop("the robot description changed")
        self.check()

    # Invariants

    def check(self) -> None:
        """What holds after every event."""
        machine, now, moved = self.machine, self.robot.now, self._moving
        if self._sends:
            self._expect(self._wants_motion, "a command was sent though nothing was to move")
            self._expect(machine.state in IN_MOTION or self._before in IN_MOTION, "a command was sent at rest")
            begins = self._before not in IN_MOTION
            self._expect(not begins or self._armed, "a motion began without arming")
            self._expect(not begins or not self._latched, "a motion began after a fault")
            self._expect(not begins or now <= self._client_seen + LEASE_TIMEOUT_S, "a motion began for nobody")
            self._sends = 0
        moving = self._moving = self.controller.moving(now)
        # A controller that nobody knows to be scaled may go on; that is told, but for the last of the way.
        scaled = machine.outcome is not None and "may go on; deactivate the controller" in machine.outcome.fault
        watched = machine.state in IN_MOTION or now < self._alone_until
        last = self._scaled and self.controller.remaining(now) < 0.021
        self._expect(not moving or watched or scaled or last, "it moves unwatched")
        if moved and not moving and self._stopping_since is not None:
            self.rest_s.append(now - self._stopping_since)
        if machine.state is State.STOPPING and self._before is not State.STOPPING:
            self._stopping_since = now
        if machine.state is not State.STOPPING:
            self._stopping_since = None
        if machine.state not in IN_MOTION:
            self._wants_motion &= machine.state is State.PLANNING
        late = self._stopping_since is not None and now > self._stopping_since + self._longest + 0.05
        self._expect(not (late and moving and not self._scaled), "it does not come to rest")
        ended = self._before in (*IN_MOTION, State.PLANNING) and machine.goal is None
        if ended and machine.outcome is not None and machine.outcome.fault:
            self._latched |= self._armed
        if self._latched:
            self._expect(machine.state in (*IN_MOTION, State.FAULT), f"after a fault it is {machine.state.value}")
        if not self._armed:
            self._expect(machine.state not in (State.ARMED, State.PLANNING), f"unarmed it is {machine.state.value}")
        self._check_watch(now)
        self._before = machine.state

    def _check_watch(self, now: float) -> None:
        """A fault that lasts stops the motion in time."""
        execution = self.machine.supervisor.execution if self.machine.supervisor is not None else None
        begun = execution is not None and execution.phase(now) > execution.table.begin  # not so where it waits to go on
        monitored = begun and self.machine.state in (State.APPROACHING, State.MOVING) and self.machine.supervisor.moving
        unusable = self.silent or self.not_finite or abs(self.stamp_offset) > 0.15 or self.unstamped
        present = {
            "states": unusable,
            "lease": not self.renews,
            "effort": self.over_limit and self._effort_told and not unusable,
            "controller": bool(self.robot.disturber or self.robot.halted),
            "cancel": self.cancels,
            "arming": not self._armed,
        }
        horizon = self.prepared.table.options.horizon_s + TICK_S
        for name, bound in (("states", horizon), ("lease", 0.52), ("effort", 0.07), ("controller", 0.12),
                            ("cancel", 0.006), ("arming", 0.001)):  # fmt: skip
            since = self._since.setdefault(name, now) if present[name] and monitored else self._since.pop(name, now)
            # While the node does not run it cannot send; what it sent last brings the robot to rest.
            late = max((seconds for end, seconds in self._pauses if end > since), default=0.0)
            self._expect(now - since <= bound + late + 1e-6, f"it goes on for {bound + late:.2g} s: {name}")

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.violations.append(f"{what} ({self.robot.now:.3f} s)")

    # Within

    @property
    def _longest(self) -> float:
        """Longest time from the last command to rest [s]."""
        supervisor = self.machine.supervisor
        table = supervisor.execution.table if supervisor is not None else self.prepared.table
        return table.longest + (RESTART_S if table.begin else 0.0)

    def _restart_node(self) -> None:
        longest = self._longest
        self.machine = StateMachine(self.robot, RobotOptions(), self.planner)
        self._lifecycle, self._armed, self._latched = "unconfigured", False, False
        self._sends, self._wants_motion, self._moving = 0, False, False
        self.told_to_stop = np.nan
        self._before, self._stopping_since, self._since = self.machine.state, None, {}
        self._pauses: list[tuple[float, float]] = []  # when the node ran again, and how long it did not
        self._alone_until = self.robot.now + longest / max(self.controller.pace, 1e-9)

    def _sent(self, horizon: Horizon) -> None:
        self._sends += 1
        if np.isnan(self.told_to_stop) and not self.machine.supervisor.moving:
            self.told_to_stop = self.robot.now
        if self._stepped_unseen and not np.isnan(horizon.stamp):
            self.by_old_clock += 1  # nobody could know
            return
        start = horizon.stamp - EPOCH_S - self.robot_clock_offset
        start = self.robot.now + DELAY_S if np.isnan(start) else start
        if self.deaf:
            self.controller.lost |= self.machine.supervisor.moving
        elif not self.halt_untold:
            self.controller.follow(horizon, self.robot.now + DELAY_S, start)

    def _scale(self, pace: float) -> None:
        self._scaled |= pace != 1.0
        alone_s = self._alone_until - self.robot.now  # what a killed node has sent takes longer at a slower pace
        self._alone_until += max(alone_s, 0.0) * max(self.controller.pace / max(pace, 1e-9) - 1.0, 0.0)
        self.controller.scale(pace, self.robot.now)

    def _state(self) -> tuple[float, np.ndarray] | None:
        self._count += 1
        if self.silent or self._rng.random() < self.loss or self._count % self.every:
            return None
        if not self.stuck:
            self._drifted += self.drift * TICK_S
            noise = 1e-6 * self._rng.normal(size=2)
            self._measured = self.controller.state(self.robot.now)[0] + self._drifted + noise
        position = np.full(2, np.nan) if self.not_finite else self._measured
        stamp = self.robot.now - DELAY_S + EPOCH_S + self.robot_clock_offset + self.stamp_offset
        return 0.0 if self.unstamped else stamp, position

    def _publish(self) -> None:
        self._deliver(self._state())

    def _deliver(self, state: tuple[float, np.ndarray] | None) -> None:
        if state is not None:
            robot, (stamp, position) = self.robot, state
            # Without a stamp, a step is only seen on a machine whose own clock stepped.
            self._stepped_unseen &= not stamp and robot.clock_offset != self.robot_clock_offset
            self._effort_told = self.over_limit
            robot.take(stamp, position)
            effort = 1.1 * MODEL.limits.effort if self.over_limit else np.zeros(2)
            self.machine.take_state(stamp, robot.clock(), robot.now, position, effort)


def faulty(**values: object) -> Callable[[World, float], None]:
    """Something is wrong from now on."""
    return lambda world, _amount: world.__dict__.update(values)


def of_robot(**values: object) -> Callable[[World, float], None]:
    """Something that the state machine sees is wrong from now on."""
    return lambda world, _amount: world.robot.__dict__.update(values)


EVENTS: Mapping[str, Callable[[World, float], None]] = {
    "faults cleared": lambda world, _amount: world.heal(),
    "arm": lambda world, _amount: world.arm(),
    "disarm": lambda world, _amount: world.disarm(),
    "clean up": lambda world, _amount: world.clean_up(),
    "shut down": lambda world, _amount: world.shut_down(),
    "node killed": lambda world, _amount: world.kill(),
    "goal": lambda world, _amount: world.goal(),
    "goal that only plans": lambda world, _amount: world.goal(plan_only=True),
    "planning that does not end": lambda world, _amount: world.planner.__dict__.update(busy=True),
    "motion": lambda world, _amount: world.motion(),
    "cancel": faulty(cancels=True),
    "stop service": lambda world, _amount: world.stop_service(),
    "other description": lambda world, _amount: world.change_description(),
    "lease not renewed": faulty(renews=False),
    "states stop": faulty(silent=True),
    "states not finite": faulty(not_finite=True),
    "states stuck": faulty(stuck=True),
    "states late": faulty(stamp_offset=-0.2),
    "states from the future": faulty(stamp_offset=0.2),
    "states not stamped": faulty(unstamped=True),
    "states too rare": faulty(every=6),
    "a third of the states lost": faulty(loss=0.33),
    "one state not finite": lambda world, _amount: world.lose_a_state(),
    "states drift": faulty(drift=0.5),
    "effort over its limit": faulty(over_limit=True),
    "recorder stale": of_robot(recorder_writes=False),
    "controller gone": lambda world, _amount: (faulty(deaf=True)(world, 0), of_robot(disturber="gone")(world, 0)),
    "controller ignores commands": faulty(deaf=True),
    "another commander": of_robot(disturber="another"),
    "scaling reported": lambda world, amount: world.scaling(round(amount, 1), True),
    "scaling not reported": lambda world, amount: world.scaling(round(amount, 1), False),
    "node's clock steps": lambda world, amount: world.step_clock(5 * (2 * amount - 1) ** 3, robot=False),
    "robot's clock steps": lambda world, amount: world.step_clock(5 * (2 * amount - 1) ** 3, node=False),
    "both clocks step": lambda world, amount: world.step_clock(5 * (2 * amount - 1) ** 3),
    "partition": lambda world, amount: world.partition(0.6 * amount),
    "a tenth of a processor": lambda world, amount: world.starve(amount),
    "node pauses": lambda world, amount: world.pause(2 * amount**2),
}
"""What may happen, by name; an amount from 0 to 1 says how much where that matters."""
