"""Nodes whose action serves one long goal at a time."""

import traceback
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from inertid_ros.core.errors import InertidError, one_line
from inertid_ros.ros.topics import STEADY

_POLL_PERIOD_S = 0.05


class GoalNode(Node):
    """Node with an action of one goal at a time; answers have the fields ``success`` and ``message``.

    Attributes
    ----------
    work : on the present goal, in another process or as messages come; None without a goal. Its ``poll()`` returns
        whether it is over, successful or not; it has ``cancel()``.
    """

    work: Any = None
    _ended: Future | None = None  # of the present goal
    _goal: ServerGoalHandle | None = None

    def begin(self, request: Any) -> Any:
        """Begin what a goal asks for; raise InertidError if that is impossible."""
        raise NotImplementedError

    def conclude(self, work: Any) -> Any:
        """Return the answer of work that is over; raise InertidError if it failed."""
        raise NotImplementedError

    def failed(self, reason: str) -> Any:
        """Return the answer of a goal that failed."""
        raise NotImplementedError

    def feedback(self, work: Any) -> Any:
        """Return the feedback to publish now, if any."""

    def serve_goals(self, action_type: Any, name: str, busy: str) -> None:
        """Begin to serve an action; ``busy`` says in the log why a second goal is refused."""
        self._busy = busy
        self._server = ActionServer(
            self, action_type, name, self._execute, goal_callback=self._accept,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT, callback_group=ReentrantCallbackGroup())
        self._timer = self.create_timer(_POLL_PERIOD_S, self.poll_goal, clock=STEADY)
        self._timer.cancel()  # while there is no goal

    @property
    def is_serving(self) -> bool:
        """Whether a goal is active."""
        return self._ended is not None

    async def serve(self, request: Any) -> Any:
        """Serve a goal, also without a client, and return its answer."""
        ended = self._ended = self._ended or Future()
        answer, reason = None, ""
        try:
            self.work = self.begin(request)
            self._timer.reset()
            await ended
            answer = self.conclude(self.work)
        except InertidError as error:
            reason = str(error)
        except OSError as error:
            reason = one_line(f"{error.filename or 'input or output'}: {error.strerror or error}; correct the path")
        except Exception as error:  # rclpy's action server would answer without a reason
            traceback.print_exc()
            reason = one_line(f"internal error: {type(error).__name__}: {error}")
        # Not in a finally clause: a node that is destroyed meanwhile has no timer any more.
        self._timer.cancel()
        self.work = self._goal = self._ended = None
        if answer is not None:
            return answer
        self.get_logger().error(reason)
        return self.failed(reason)

    def poll_goal(self) -> None:
        """Look after the work on the present goal."""
        if self.work is None or self._ended is None or self._ended.done():
            return
        if self._goal is not None and self._goal.is_cancel_requested:
            self.work.cancel()
        if self.work.poll():
            self._ended.set_result(None)
        elif self._goal is not None and (feedback := self.feedback(self.work)) is not None:
            self._goal.publish_feedback(feedback)

    def begin_shutdown(self) -> None:
        """Give up the present goal after a signal, or after a callback raised."""
        if self.work is not None:
            self.work.cancel()

    def _accept(self, _request: Any) -> GoalResponse:
        if self.is_serving:
            self.get_logger().error(f"goal refused: {self._busy}")
            return GoalResponse.REJECT
        self._ended = Future()
        return GoalResponse.ACCEPT

    async def _execute(self, goal: ServerGoalHandle) -> Any:
        self._goal = goal
        answer = await self.serve(goal.request)
        if answer.success:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return answer
