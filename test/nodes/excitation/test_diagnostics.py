"""What the excitation node's statuses say about faults, without a running node."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from inertid_ros.config.excitation import MonitorOptions  # noqa: E402
from inertid_ros.config.nodes import ExcitationNodeOptions  # noqa: E402
from inertid_ros.config.robot import RobotOptions  # noqa: E402
from inertid_ros.data.screening.live_watch import StreamReport  # noqa: E402
from inertid_ros.nodes.excitation.goal import Planning  # noqa: E402
from inertid_ros.nodes.excitation.messages import controller_status, motion_status  # noqa: E402
from inertid_ros.nodes.excitation.state_machine import StateMachine  # noqa: E402
from inertid_ros.nodes.robot_states import joint_states_status, timing_status  # noqa: E402
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN  # noqa: E402

GOOD = StreamReport(1000, False, 200.0, 0, 0.006, 0.001, 0.002, ())


def robot(report: StreamReport = GOOD, rejection: str = "", several: str = "", problem: str = "", scaling: float = 1.0):
    commander = SimpleNamespace(name="/joint_trajectory")
    return SimpleNamespace(
        joint_states=report, rejected=(int(bool(rejection)), rejection), joint_names=("shoulder", "elbow"),
        several_publishers=lambda: several, is_configured=True, commander=commander, has_controller=not problem,
        speed_scaling=scaling, controller_problem=lambda: problem, manager=SimpleNamespace(tolerance=None),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "level", "message"),
    [
        (robot(), OK, "200 Hz"),
        (robot(replace(GOOD, silent=True, rate_hz=math.nan)), STALE, "start its driver"),
        (robot(rejection="joint_states: a joint is listed twice"), ERROR, "listed twice"),
        (robot(several="several nodes publish /joint_states"), ERROR, "several nodes"),
        (robot(replace(GOOD, rate_hz=20.0)), ERROR, "20 Hz are below monitor.min_rate_hz 50"),
        (robot(replace(GOOD, delay_s=3.0)), ERROR, "stamps are off by 3.000 s"),
        (robot(replace(GOOD, delay_s=-3.0)), ERROR, "stamps are off by 3.000 s"),
        (robot(replace(GOOD, gaps=2)), WARN, "gaps"),
        (robot(replace(GOOD, saturated=(1,))), WARN, "effort of elbow"),
    ],
)
def test_joint_states(source, level: bytes, message: str) -> None:
    status = joint_states_status(source, MonitorOptions())
    assert status.level == level and message in status.message


def test_a_fault_stays_known_when_the_node_is_armed_again() -> None:
    machine = StateMachine(robot(), RobotOptions(), Planning())
    machine.configure()
    machine.arm()
    machine.latch("no joint state for 0.030 s")
    status = motion_status(machine, 0.0)
    assert status.level == ERROR and "no joint state" in status.message and status.values["State"] == "fault"
    assert machine.is_armed
    machine.disarm()
    assert not machine.is_armed
    machine.arm()
    status = motion_status(machine, 0.0)
    assert status.level == OK and "no joint state" in str(status.values["Last fault"])


def test_a_missing_controller_is_an_error_once_armed() -> None:
    source, options = robot(problem="nobody subscribes to /joint_trajectory"), ExcitationNodeOptions()
    assert controller_status(source, options, armed=False).level == WARN
    assert controller_status(source, options, armed=True).level == ERROR
    status = controller_status(robot(scaling=0.5), options, armed=True)
    assert status.level == WARN and status.values["Speed scaling (%)"] == 50.0


def test_a_process_that_is_held_up() -> None:
    assert timing_status(GOOD, 0.005).level == OK
    assert timing_status(replace(GOOD, longest_step_s=0.08), 0.005).level == WARN
