"""ExciteGoals: one goal of the excitation node from its request to the robot at rest."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite
from inertid_ros.app.excitation_job import ExcitationJob, PreparationProgress, PreparedMotion, prepare_motion
from inertid_ros.core.errors import ExcitationError, InertidError
from inertid_ros.core.worker import Worker
from inertid_ros.excitation.execution.plan_check import check_start
from inertid_ros.msg import ExcitationStatus
from inertid_ros.nodes.feedback import excite_feedback
from inertid_ros.ros.conversions import JointSample, TrajectoryArrays, to_joint_trajectory
from inertid_ros.ros.parameters import read
from inertid_ros.ros.qos import LATCHED

from .motion_run import MotionRun
from .parameters import ExcitationNodeOptions, MotionOptions
from .robot_side import RobotSide

_START_TOLERANCE = 0.01  # rad or m; the robot must not have moved while the motion was planned
_LISTEN_S, _LONGEST_LISTEN_S = 1.0, 5.0
_STALL_S = 0.1  # a thread that was held up for this long has missed joint states
_NAN = float("nan")


class ExciteGoals:
    """Serves ``~/excite``. Everything but planning runs in the node's own thread.

    Parameters
    ----------
    say: tells the node's new state (a constant of ExcitationStatus) and one line about it.
    objection: why no goal may begin now; empty where one may.
    """

    def __init__(
        self,
        node: Node,
        fixed: ExcitationNodeOptions,
        say: Callable[[int, str], None],
        objection: Callable[[], str],
    ) -> None:
        self._node, self._fixed, self._say, self._objection = node, fixed, say, objection
        self._log = node.get_logger()
        self._options = MotionOptions()
        self._worker: Worker[PreparationProgress, PreparedMotion] | None = None
        self._step: Future | None = None  # what the goal awaits; None while there is no goal
        self._handle: ServerGoalHandle | None = None
        self.ended_at = self._ticked = -np.inf
        self._interrupted = ""
        self._listening_since = self._listening_until = 0.0  # while it is ahead, the goal waits for joint states
        self.run: MotionRun | None = None
        self.robot = RobotSide(node, fixed, self._take_state, lambda: self.stop("the robot description changed"))
        self._plan_publisher = node.create_publisher(JointTrajectory, "~/plan", LATCHED)
        self._server = ActionServer(
            node,
            Excite,
            "~/excite",
            self._execute,
            goal_callback=self._accept,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT,
            callback_group=ReentrantCallbackGroup(),
        )

    @property
    def busy(self) -> bool:
        """Whether a goal is active; at its end the robot is at rest."""
        return self._step is not None

    def stop(self, reason: str) -> None:
        """Brake now because of a fault; while planning, nothing will move."""
        self._interrupted = self._interrupted or reason
        if self.run is not None:
            self.run.stop(reason)

    def tick(self) -> None:
        """Watch and send; to be called every ``tick_s`` on the steady clock."""
        now, run, step = time.monotonic(), self.run, self._step
        if step is None or step.done():
            return
        stalled, self._ticked = now - self._ticked > _STALL_S, now
        if self._listening_until:
            if stalled:
                self._listening_until = min(now + _LISTEN_S, self._listening_since + _LONGEST_LISTEN_S)
            discovering = self._lacks_recorder() and now < self._listening_since + _LONGEST_LISTEN_S
            if not discovering and (self.robot.heard or now > self._listening_until):
                self._listening_until = 0.0
                step.set_result(None)
            return
        asked = self._handle is not None and self._handle.is_cancel_requested
        if self._worker is not None:
            self._poll_worker(self._worker, step, asked)
        if run is not None and run.tick(asked):
            step.set_result(None)

    def look_around(self) -> None:
        """Ten times a second: who else commands or publishes, and feedback."""
        if self.run is not None and self.run.moving:
            problem = self.robot.intruder()
            if problem:
                self.stop(problem)
        if self._handle is None or not self._handle.is_active:
            return
        if self.run is not None:
            self._handle.publish_feedback(excite_feedback(self.run.progress()))
        else:
            self._handle.publish_feedback(excite_feedback(self._worker.progress if self._worker is not None else None))

    def brake_without_executor(self, reason: str) -> None:
        """A callback raised and nothing spins any more: bring the robot to rest, then return."""
        if self.run is not None:
            self.run.brake_without_executor(reason, self._fixed.tick_s)

    # The goal

    def _accept(self, _goal: Excite.Goal) -> GoalResponse:
        if self.busy:
            self._log.error("goal refused: another one is active")
            return GoalResponse.REJECT
        self._step, self._interrupted = Future(), ""
        return GoalResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle) -> Excite.Result:
        result = Excite.Result(condition_number=_NAN, duration=0.0, max_tracking_error=_NAN)
        self._handle = handle
        try:
            await self._serve(handle.request, result)
        except InertidError as error:
            canceled = handle.is_cancel_requested
            result.error_code = Excite.Result.CANCELED if canceled else Excite.Result.REFUSED
            result.message = "canceled; nothing moved" if canceled else f"{error} (nothing moved)"
            if not self._objection():
                self._say(ExcitationStatus.READY, result.message)
        finally:
            self.run = self._worker = self._handle = self._step = None
            self.ended_at = time.monotonic()
        if result.error_code == Excite.Result.CANCELED:
            handle.canceled()
        elif result.error_code == Excite.Result.SUCCEEDED:
            handle.succeed()
        else:
            self._log.error(result.message)
            handle.abort()
        return result

    async def _serve(self, goal: Excite.Goal, result: Excite.Result) -> None:
        self._options = read(self._node, MotionOptions)
        await self._listen()
        self._check(goal)
        self._say(ExcitationStatus.PLANNING, "planning")
        self._worker = Worker(
            "planning", prepare_motion, (self._job(goal),), timeout_s=10 * self._options.excitation.time_limit_s
        )
        prepared: PreparedMotion = await self._next_step()
        self._publish_plan(prepared)
        result.condition_number = float(prepared.plan.condition_number)
        if goal.plan_only:
            result.message = f"planned {prepared.plan.duration:.1f} s; nothing moved"
            self._say(ExcitationStatus.READY, result.message)
            return
        await self._listen()  # taking over a large plan may have held up this thread
        self._begin(prepared, goal)
        await self._next_step()
        self._conclude(result)

    def _listen(self) -> Future:
        """Until enough joint states have come of late to judge them."""
        self._listening_since = time.monotonic()
        self._listening_until = self._listening_since + _LISTEN_S
        return self._next_step()

    def _lacks_recorder(self) -> bool:
        """Whether a recorder is needed and has not been discovered yet."""
        moves = self._handle is not None and not self._handle.request.plan_only
        return moves and self._options.require_recorder and not self._objection() and not self.robot.recorder_heard

    def _next_step(self) -> Future:
        """What :meth:`tick` completes when the step is over."""
        step = self._step = Future()
        return step

    def _check(self, goal: Excite.Goal) -> None:
        """Refuse what must not move, before any planning."""
        objection = self._objection()
        if objection:
            raise ExcitationError(objection)
        self.robot.commander.begin()
        if not 0 <= goal.speed_scale <= 1:
            raise ExcitationError(f"speed_scale is {goal.speed_scale:g}; give a value above 0, at most 1")
        if not 0 <= goal.duration < np.inf:
            raise ExcitationError(f"duration is {goal.duration:g} s; give a positive one, or 0 for the parameter")
        self._check_surroundings(goal)

    def _check_surroundings(self, goal: Excite.Goal) -> None:
        self.robot.check_states(self._options.monitor)
        if goal.plan_only:
            return
        problem = self.robot.intruder()
        if problem:
            raise ExcitationError(problem)
        if self._options.require_recorder:
            self.robot.check_recorder()

    def _job(self, goal: Excite.Goal) -> ExcitationJob:
        given = self._options.excitation
        excitation = replace(
            given, kind=goal.motion or given.kind, duration_s=goal.duration or given.duration_s, seed=goal.seed
        )
        return ExcitationJob(
            urdf=self.robot.model.urdf,
            measured_position=self.robot.position(),
            start=np.array(self._options.start) if self._options.start else None,
            plan_file=goal.plan_file,
            speed_scale=goal.speed_scale or 1.0,
            prior=goal.prior,
            robot=self._fixed.robot,
            limits=self._options.limits,
            excitation=excitation,
            execution=self._options.execution,
        )

    def _begin(self, prepared: PreparedMotion, goal: Excite.Goal) -> None:
        """Last checks, then the first horizon."""
        if self._interrupted or self._objection():
            raise ExcitationError(self._interrupted or self._objection())
        self._check_surroundings(goal)
        check_start(prepared.table.plan, self.robot.position(), _START_TOLERANCE)
        self.run = MotionRun(self.robot, prepared, self._options.monitor, goal.lease)

    def _conclude(self, result: Excite.Result) -> None:
        run, self.run = self.run, None  # what is said from here on is the node's own state
        if run is None:
            return
        ending = run.ending
        result.max_tracking_error, result.duration = ending.max_tracking_error, ending.seconds
        if ending.fault:
            result.error_code, result.message = Excite.Result.STOPPED, f"{ending.fault}; arm again before the next goal"
            self._say(ExcitationStatus.LATCHED, f"stopped: {ending.fault}; deactivate and activate to arm again")
            return
        if ending.canceled:
            result.error_code, result.message = Excite.Result.CANCELED, "canceled; the robot is at rest"
        else:
            result.message = f"done; largest tracking error {ending.max_tracking_error:.4g}"
        self._say(ExcitationStatus.READY, result.message)

    def _publish_plan(self, prepared: PreparedMotion) -> None:
        plan = prepared.plan
        arrays = TrajectoryArrays(plan.joint_names, plan.time, plan.position, plan.velocity, plan.acceleration)
        self._plan_publisher.publish(to_joint_trajectory(arrays, self._node.get_clock().now().to_msg()))

    # Input and output

    def _take_state(self, sample: JointSample, now: float) -> None:
        if self.run is not None:
            self.run.update(sample, now)

    def _poll_worker(self, worker: Worker, step: Future, canceled: bool) -> None:
        if canceled or self._interrupted:
            worker.cancel()
        if not worker.poll():
            return
        self._worker = None
        try:
            step.set_result(worker.result())
        except InertidError as error:
            step.set_exception(error)
