"""Nodes whose action serves one long goal at a time."""

import traceback
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from inertid_ros.core.errors import InertidError, one_line, path_error

from .topics import STEADY

_POLL_PERIOD_S = 0.05


class GoalNode(Node):
    """Node with an action that serves one goal at a time; its results have the fields ``success`` and ``message``.

    Attributes
    ----------
    work : task of the present goal, in another process or driven by messages; None without a goal. ``work.poll()``
        returns True once the task has ended, successfully or not; ``work.cancel()`` ends the task.
    """

    work: Any = None
    _ended: Future | None = None  # completed at the end of the present goal; None without a goal
    _goal: ServerGoalHandle | None = None

    def begin(self, request: Any) -> Any:
        """Begin and return the task of a goal; raise InertidError if the goal is impossible."""
        raise NotImplementedError

    def conclude(self, work: Any) -> Any:
        """Return the action's result for an ended task; raise InertidError if the task failed."""
        raise NotImplementedError

    def failed(self, reason: str) -> Any:
        """Return the action's result for a failed goal."""
        raise NotImplementedError

    def feedback(self, work: Any) -> Any:
        """Return the feedback to publish now, or None."""

    def serve_goals(self, action_type: Any, name: str, busy: str) -> None:
        """Begin to serve an action; ``busy`` is the logged reason for refusing a second goal."""
        self._busy = busy
        self._server = ActionServer(
            self, action_type, name, self._execute, goal_callback=self._accept,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT, callback_group=ReentrantCallbackGroup())
        self._timer = self.create_timer(_POLL_PERIOD_S, self.poll_goal, clock=STEADY)
        self._timer.cancel()  # it runs only during a goal

    @property
    def is_serving(self) -> bool:
        """True if a goal is active."""
        return self._ended is not None

    async def serve(self, request: Any) -> Any:
        """Serve a goal and return the action's result; the goal need not come from a client."""
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
            reason = path_error(error)
        except Exception as error:  # rclpy's action server would answer without a reason
            traceback.print_exc()
            reason = one_line(f"internal error: {type(error).__name__}: {error}")
        # Not in a finally clause: a node that was destroyed meanwhile no longer has a timer.
        self._timer.cancel()
        self.work = self._goal = self._ended = None
        if answer is not None:
            return answer
        self.get_logger().error(reason)
        return self.failed(reason)

    def poll_goal(self) -> None:
        """Poll the task of the present goal; cancel it on request, end the goal with it, or publish feedback."""
        if self.work is None or self._ended is None or self._ended.done():
            return
        if self._goal is not None and self._goal.is_cancel_requested:
            self.work.cancel()
        if self.work.poll():
            self._ended.set_result(None)
        elif self._goal is not None and (feedback := self.feedback(self.work)) is not None:
            self._goal.publish_feedback(feedback)

    def begin_shutdown(self) -> None:
        """Cancel the present goal after a signal, or after an exception in a callback."""
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
