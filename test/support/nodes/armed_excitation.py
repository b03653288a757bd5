"""Judge, bench and an excitation node, for the tests that move the judge."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from support.nodes.fake_robot import FakeRobot, write_plan
from support.nodes.ros_client import Bench, NodeProcess, bench_in

from inertid_ros.action import Excite
from inertid_ros.msg import ExcitationStatus

CONFIGURE, ACTIVATE, DEACTIVATE = 1, 3, 4
HORIZON_S = 0.3
TIMEOUT_S = 0.35
# Judge, bench and node share a machine with whatever else runs; the defaults are for one that has nothing else to do.
PARAMETERS = {
    "require_recorder": False,
    "execution.settle_s": 0.1,
    "execution.horizon_s": HORIZON_S,
    "monitor.state_timeout_s": TIMEOUT_S,
    "monitor.max_age_s": 0.4,
    "monitor.min_rate_hz": 20.0,
}
SLACK_S = 0.3  # what a loaded machine may add to the bounds of the design


class Setup:
    """Judge, bench, armed excitation node and a plan."""

    def __init__(self, bench: Bench, robot: FakeRobot, node: NodeProcess, plan: Path) -> None:
        self.bench, self.robot, self.node, self.plan = bench, robot, node, plan
        self.status = bench.listen(ExcitationStatus, "excitation/status")

    def change_state(self, transition: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=transition))
        return bool(self.bench.call(ChangeState, "excitation/change_state", request).success)

    def arm(self) -> None:
        """Configured where it was not, then active."""
        state = self.bench.call(GetState, "excitation/get_state", GetState.Request()).current_state.id
        if state == State.PRIMARY_STATE_UNCONFIGURED:
            self.bench.until(lambda: self.change_state(CONFIGURE), "configuration")
        self.bench.until(lambda: self.change_state(ACTIVATE), "activation")

    def ready(self) -> "Setup":
        """Armed, at rest, without faults: for nodes that several tests share."""
        self.robot.reset()
        write_plan(self.plan)
        self.bench.spin(0.4)  # the states of before are no part of this test
        self.bench.until(lambda: self.robot.at_rest, "rest")
        if self.status and self.status[-1].state != ExcitationStatus.UNARMED:
            self.change_state(DEACTIVATE)
        self.arm()
        return self

    def excite(self, **fields):
        return self.bench.send_goal(Excite, "excitation/excite", Excite.Goal(plan_file=str(self.plan), **fields))

    def moving_fast(self, **fields):
        """A goal, once the robot is at full speed.

        A busy machine can hold up judge or node for so long that the node rightly stops before a test has begun;
        then it is armed again. What a test is about comes after this.
        """
        for _ in range(3):
            goal = self.excite(**fields)
            assert goal.accepted
            ended = goal.get_result_async()
            self.bench.until(lambda ended=ended: self.robot.speed > 0.8 or ended.done(), "fast motion", 40.0)
            if not ended.done():
                return goal
            self.bench.until(lambda: self.robot.at_rest, "rest", 5.0)
            self.change_state(DEACTIVATE)
            self.bench.until(lambda: self.change_state(ACTIVATE), "activation")
        raise AssertionError(f"stopped three times on the way to full speed: {ended.result().result.message}")

    def expect(self, goal, code: int, message: str) -> Excite.Result:
        outcome = self.bench.result(goal)
        assert outcome.result.error_code == code, outcome.result.message
        assert message in outcome.result.message
        return outcome.result

    def expect_rest(self, moment: float) -> None:
        """At rest for good, within limits all the way."""
        self.bench.until(lambda: self.robot.at_rest, "rest", 5.0)
        self.bench.spin(0.3)
        self.robot.rest_after(moment)
        self.robot.check_limits()

    def expect_refusal(self, message: str, **fields) -> None:
        goal = self.excite(**fields)
        self.expect(goal, Excite.Result.REFUSED, message)
        assert self.robot.at_rest and not self.robot.commands


@contextmanager
def armed_in(folder: Path) -> Iterator[Setup]:
    """An armed node with a plan, and a judge, that nothing else uses."""
    write_plan(folder / "plan.yaml")
    with FakeRobot() as robot, bench_in(folder) as bench:
        setup = Setup(bench, robot, bench.start("excitation", PARAMETERS), folder / "plan.yaml")
        setup.arm()
        yield setup
