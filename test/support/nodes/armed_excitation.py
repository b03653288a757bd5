"""An armed excitation node, the fake robot that it moves, a client, and a plan."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from support.latencies import Latencies
from support.nodes.fake_robot import FakeRobot, Record
from support.nodes.processes import NodeProcess
from support.nodes.ros_client import RosClient, ros_client_in
from support.nodes.two_links import URDF, write_plan

from inertid_ros.action import Excite
from inertid_ros.msg import ExcitationStatus

CONFIGURE, ACTIVATE, DEACTIVATE = 1, 3, 4
HORIZON_S = 0.8
LONGEST_BRAKE_S = 1.2  # from full speed along the plan of these tests
# A process may be held up for most of a second before the node stops the motion, as it then must. What stops a motion
# after how long is tested under a given time in test/excitation/execution.
PARAMETERS = {
    "require_recorder": False,
    "execution.settle_s": 0.1,
    "execution.approach_speed": 1.0,
    "execution.horizon_s": HORIZON_S,
    "execution.step_s": 0.02,
    "execution.max_start_error": 2.0,
    "monitor.max_wait_s": 1.0,
    "monitor.max_age_s": 1.2,
    "monitor.min_rate_hz": 5.0,
    "monitor.rate_window_s": 1.0,
    "monitor.lease_timeout_s": 0.8,
    "monitor.progress_tolerance": 0.1,
}


class ArmedExcitation:
    """See the module; ``latencies`` keeps what the tests measure."""

    def __init__(self, ros: RosClient, robot: FakeRobot, node: NodeProcess, plan: Path, latencies: Latencies) -> None:
        self.ros, self.robot, self.node, self.plan, self.latencies = ros, robot, node, plan, latencies
        self.status = ros.listen(ExcitationStatus, "excitation/status")

    def change_state(self, transition: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=transition))
        return bool(self.ros.call(ChangeState, "excitation/change_state", request).success)

    def arm(self) -> None:
        """Configured, and active anew."""
        state = self.ros.call(GetState, "excitation/get_state", GetState.Request()).current_state.id
        if state == State.PRIMARY_STATE_UNCONFIGURED:
            assert self.change_state(CONFIGURE)
        if state == State.PRIMARY_STATE_ACTIVE:
            assert self.change_state(DEACTIVATE)
        assert self.change_state(ACTIVATE)

    def ready(self) -> "ArmedExcitation":
        """Armed, at rest, without faults: for nodes that several tests share."""
        write_plan(self.plan)
        self.robot.reset()
        self.ros.spin(0.4)  # the states of before are no part of this test
        self.arm()
        return self

    def excite(self, **fields):
        return self.ros.send_goal(Excite, "excitation/excite", Excite.Goal(plan_file=str(self.plan), **fields))

    def moving_fast(self, **fields):
        """A goal, once the robot is at full speed on the motion; between the approach and the motion it rests."""
        goal = self.excite(**fields)
        assert goal.accepted
        ended = goal.get_result_async()

        def fast() -> bool:
            return self.status[-1].state == ExcitationStatus.MOVING and self.robot.speed > 0.8

        self.ros.until(lambda: fast() or ended.done(), "fast motion", 40.0)
        assert not ended.done(), ended.result().result.message
        return goal

    def expect(self, goal, code: int, message: str) -> Excite.Result:
        outcome = self.ros.result(goal)
        assert outcome.result.error_code == code, outcome.result.message
        assert message in outcome.result.message, outcome.result.message
        return outcome.result

    def expect_stop(self, goal, message: str, cause: str, moment: float) -> None:
        """The motion is stopped for this reason, and the robot comes to rest for it.

        A cause that the node noticed stops the robot before the horizon that it follows would have.
        """
        self.expect(goal, Excite.Result.STOPPED, message)
        record = self.expect_rest()
        stop = record.stop_after(moment) - moment
        self.latencies.add(f"stop after {cause}", stop)
        assert stop < 2 * HORIZON_S

    def expect_rest(self) -> Record:
        """At rest for good, as the last command says, within limits all the way."""
        self.ros.until(lambda: self.robot.at_rest, "rest")
        self.ros.spin(0.3)
        record = self.robot.record()
        record.check_limits()
        if record.commands:
            assert record.rested_at <= record.commands[-1].end + 0.01
        for command in record.commands:
            assert np.abs(command.velocity[-1]).max() < 1e-9 and np.abs(command.acceleration[-1]).max() < 1e-9
            assert command.time_from_start[-1] <= HORIZON_S + LONGEST_BRAKE_S
        return record

    def expect_refusal(self, message: str, **fields) -> None:
        goal = self.excite(**fields)
        self.expect(goal, Excite.Result.REFUSED, message)
        assert self.robot.at_rest and not self.robot.record().commands


@contextmanager
def excitation_in(
    folder: Path, latencies: Latencies, parameters: Mapping[str, Any] = PARAMETERS, prefix: str = "", **keywords: Any
) -> Iterator[ArmedExcitation]:
    """A node with its robot and a plan, to be armed; ``keywords`` are those of :class:`NodeProcess`. The robot's own
    names of its joints have a prefix."""
    write_plan(folder / "plan.yaml")
    (folder / "robot.urdf").write_text(URDF)
    with FakeRobot(prefix) as robot, ros_client_in(folder) as ros:
        node = ros.start("excitation", {"urdf": str(folder / "robot.urdf"), **parameters}, **keywords)
        yield ArmedExcitation(ros, robot, node, folder / "plan.yaml", latencies)
