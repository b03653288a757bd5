"""A trajectory controller as an action server: goals of follow_joint_trajectory become motions of the fake robot.

It runs as a process of its own, so that it can die. Like a JointTrajectoryController, a new goal replaces the last, a
cancelled one holds the position at once, and the motion of a goal goes on when its client dies. ``~/reject`` and
``~/abort`` make it refuse all goals, or give the current one up as if a tolerance were violated.
"""

import contextlib
import time

import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.ros.topics import COMMAND


class FakeController(Node):
    """See the module."""

    def __init__(self) -> None:
        super().__init__("controller")
        self.rejecting = False
        self.current: tuple[ServerGoalHandle, Future] | None = None
        self.ends_at = 0.0
        self.commands = self.create_publisher(JointTrajectory, "joint_trajectory", COMMAND)
        self.create_service(SetBool, "~/reject", self.reject)
        self.create_service(Trigger, "~/abort", self.abort)
        self.create_timer(0.005, self.look)
        while not self.commands.get_subscription_count():  # a controller is up once it moves its robot
            time.sleep(0.01)
        self.server = ActionServer(
            self,
            FollowJointTrajectory,
            "follow_joint_trajectory",
            self.execute,
            goal_callback=lambda goal: GoalResponse.REJECT if self.rejecting else GoalResponse.ACCEPT,
            cancel_callback=self.cancel,
            callback_group=ReentrantCallbackGroup(),
        )

    def reject(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self.rejecting, response.success = request.data, True
        return response

    def abort(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self.current is not None
        self.hold()
        self.finish("abort", FollowJointTrajectory.Result.PATH_TOLERANCE_VIOLATED)
        return response

    def cancel(self, _handle: ServerGoalHandle) -> CancelResponse:
        self.hold()
        return CancelResponse.ACCEPT

    def hold(self) -> None:
        """An empty trajectory holds the position where it is."""
        self.commands.publish(JointTrajectory())

    def finish(self, how: str, code: int) -> None:
        if self.current is not None:
            self.current[1].set_result((how, code))
            self.current = None

    def look(self) -> None:
        if self.current is None:
            return
        if self.current[0].is_cancel_requested:
            self.finish("canceled", FollowJointTrajectory.Result.SUCCESSFUL)
        elif time.monotonic() > self.ends_at:
            self.finish("succeed", FollowJointTrajectory.Result.SUCCESSFUL)

    async def execute(self, handle: ServerGoalHandle) -> FollowJointTrajectory.Result:
        self.finish("abort", FollowJointTrajectory.Result.INVALID_GOAL)  # the goal of before is replaced
        trajectory = handle.request.trajectory
        last = trajectory.points[-1].time_from_start
        begin = trajectory.header.stamp.sec + trajectory.header.stamp.nanosec * 1e-9
        late = time.time() - begin if begin else 0.0
        self.ends_at = time.monotonic() + last.sec + last.nanosec * 1e-9 - late
        self.current = (handle, Future())
        self.commands.publish(trajectory)
        how, code = await self.current[1]
        getattr(handle, how)()
        return FollowJointTrajectory.Result(error_code=code)


def main() -> None:
    rclpy.init()
    executor = SingleThreadedExecutor()
    executor.add_node(FakeController())
    with contextlib.suppress(ExternalShutdownException, KeyboardInterrupt):
        executor.spin()


if __name__ == "__main__":
    main()
