"""The feed-forward node between a client and a controller: efforts are those of Pinocchio, or nothing is sent."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from builtin_interfaces.msg import Time  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from support.nodes.control_messages import control_messages_environment  # noqa: E402
from support.nodes.local_nodes import local_nodes, spinning  # noqa: E402
from support.nodes.two_links import TRUE_URDF, URDF, two_links  # noqa: E402
from support.recordings.synthetic_calibration import calibrated_case  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from inertid_ros.calibration.prediction import torque_along  # noqa: E402
from inertid_ros.config.robot import DRIVE_TERMS  # noqa: E402
from inertid_ros.excitation.plan import joint_trajectory_text  # noqa: E402
from inertid_ros.excitation.quintic import PiecewiseQuintic  # noqa: E402
from inertid_ros.msg import InertialParameters  # noqa: E402
from inertid_ros.report.results import Result  # noqa: E402
from inertid_ros.robot.model import load_model  # noqa: E402
from inertid_ros.ros.conversions import from_joint_trajectory, to_joint_trajectory  # noqa: E402
from inertid_ros.ros.parameter_messages import known_parameters  # noqa: E402
from inertid_ros.ros.topics import COMMAND, LATCHED  # noqa: E402

MODEL, TRUTH, NAMES = two_links()[0], load_model(TRUE_URDF), ("elbow", "shoulder")
DRIVES = dict.fromkeys(DRIVE_TERMS, np.zeros(2)) | {
    "rotor_inertia": np.array([0.3, 0.1]), "viscous": np.array([0.5, 0.4]), "coulomb": np.array([0.8, 0.6]),
    "offset": np.array([5.0, 5.0])}  # the offset belongs to the sensor
KNOTS = np.array([0.0, 0.4, 1.0])


def parameters(change: Callable[[InertialParameters], None] = lambda _: None) -> InertialParameters:
    message = known_parameters(MODEL, TRUTH.body_prior, DRIVES, Time(sec=int(time.time())))
    for joint in message.joints:
        joint.stribeck_speed, joint.transition_speed = 0.1, 0.01
    message.sequence, message.verdict = 1, InertialParameters.USE
    change(message)
    return message


def trajectory(change: Callable[[JointTrajectory], None] = lambda _: None) -> JointTrajectory:
    """Three points of a motion between two rests, with the joints in another order than in the model."""
    rest = np.zeros((1, 2))
    q, v, a = (np.concatenate(values) for values in (
        (rest, [[0.2, -0.1]], [[0.5, -0.4]]), (rest, [[0.6, -0.5]], rest), (rest, [[0.5, -0.2]], rest)))
    message = to_joint_trajectory(NAMES, PiecewiseQuintic(KNOTS, q, v, a))
    message.header.frame_id = "kept"
    change(message)
    return message


class Rig:
    """The node between a client and a controller of this process."""

    def __init__(self, nodes: dict, executor: object, interfaces: list[str]) -> None:
        self.feed, self.executor, self.received = nodes["feed_forward"], executor, list[JointTrajectory]()
        controller = nodes["arm"] = rclpy.create_node("arm")
        client = nodes["client"] = rclpy.create_node("client")
        controller.declare_parameter("command_interfaces", interfaces)
        controller.create_subscription(JointTrajectory, "~/joint_trajectory", self.received.append, 10)
        self.parameters = client.create_publisher(InertialParameters, "identifier/parameters", LATCHED)
        self.commands = client.create_publisher(JointTrajectory, "feed_forward/joint_trajectory", COMMAND)
        for node in (controller, client):
            executor.add_node(node)
        self.until(lambda: self.feed.interfaces is not None and self.commands.get_subscription_count()
            and self.feed.commands.has_controller
            and (self.feed.options.result or self.parameters.get_subscription_count()))

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + 30.0
        while not condition():
            assert time.monotonic() < end, self.feed.refusal
            self.executor.spin_once(timeout_sec=0.02)

    def publish(self, message: InertialParameters) -> None:
        self.parameters.publish(message)
        self.until(self.knows_parameters)

    def knows_parameters(self) -> bool:
        """True once parameters were accepted or refused."""
        subscriber = self.feed.parameters
        return subscriber.waiting or subscriber.stamp_ns is not None or subscriber.refused > 0

    def refusal(self, message: JointTrajectory) -> str:
        """Reason for which a trajectory is refused; nothing reaches the controller."""
        count = self.feed.refused
        self.commands.publish(message)
        self.until(lambda: self.feed.refused > count)
        assert self.received == [] and "\n" not in self.feed.refusal
        return str(self.feed.refusal)


@pytest.fixture
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    options = {"controller": "arm", **getattr(request, "param", {})}
    interfaces = options.pop("interfaces", ["effort"])
    with local_nodes(tmp_path, {"feed_forward": options}) as nodes, spinning(nodes) as executor:
        yield Rig(nodes, executor, interfaces)


def expected_effort(model: pin.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    data = model.createData()
    bodies = np.array([pin.rnea(model, data, *state).copy() for state in zip(q, v, a, strict=True)])
    return bodies + DRIVES["rotor_inertia"] * a + DRIVES["viscous"] * v + DRIVES["coulomb"] * np.tanh(v / 0.01)


def test_a_result_directory_is_published_and_gives_the_torque_of_inertid_predict(tmp_path: Path) -> None:
    directory = calibrated_case()[1].save(tmp_path / "result")
    model, rng = load_model(directory / "calibrated.urdf"), np.random.default_rng(0)
    knots = 0.1 * np.concatenate([np.zeros((3, 1, model.joints)), rng.normal(size=(3, 4, model.joints))], axis=1)
    knots[1:, -1] = 0.0
    message = to_joint_trajectory(model.joint_names, PiecewiseQuintic(np.linspace(0.0, 4.0, 5), *knots))
    options = {"urdf": str(directory / "calibrated.urdf"), "result": str(directory), "controller": "arm", "step_s": 1.0}
    with local_nodes(tmp_path, {"feed_forward": options}) as nodes, spinning(nodes) as executor:
        rig = Rig(nodes, executor, ["effort"])
        rig.until(rig.knows_parameters)
        rig.commands.publish(message)
        rig.until(lambda: rig.received)
    curve = from_joint_trajectory(message, model.joint_names)
    (tmp_path / "plan.yaml").write_text(joint_trajectory_text(curve, model.joint_names))
    expected = torque_along(Result.load(directory), tmp_path / "plan.yaml").torque
    np.testing.assert_allclose([point.effort for point in rig.received[0].points], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("rig", [{}, {"gravity": False, "interfaces": ["position", "effort"]}], indirect=True)
def test_the_controller_receives_the_torque_of_the_identified_robot(rig: Rig) -> None:
    rig.publish(parameters())
    sent = trajectory()
    rig.commands.publish(sent)
    rig.until(lambda: rig.received)
    (filled,) = rig.received
    assert filled.header.frame_id == "kept" and filled.joint_names == list(MODEL.joint_names)
    points, given = (from_joint_trajectory(message, MODEL.joint_names) for message in (filled, sent))
    assert np.diff(points.time).max() < 0.0201 and np.isin(given.time, points.time).all() and len(points.time) == 51
    time_s = np.linspace(0.0, 1.0, 401)
    for after, before in zip(points.sample(time_s), given.sample(time_s), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-9)  # times are rounded to nanoseconds
    effort = np.array([point.effort for point in filled.points])
    expected = expected_effort(TRUTH.pinocchio, points.position, points.velocity, points.acceleration)
    if not rig.feed.options.gravity:
        data = TRUTH.pinocchio.createData()
        expected -= [pin.computeGeneralizedGravity(TRUTH.pinocchio, data, q).copy() for q in points.position]
    np.testing.assert_allclose(effort, expected, rtol=1e-9, atol=1e-9)


def _without(channel: str) -> Callable[[JointTrajectory], None]:
    def change(message: JointTrajectory) -> None:
        for point in message.points[1:]:
            setattr(point, channel, [])

    return change


def _late(message: JointTrajectory) -> None:
    for point in message.points:
        point.time_from_start.sec += 1


def _set_last_time(message: JointTrajectory) -> None:
    message.points[-1].time_from_start.sec = 1_000_000


def _fast(message: JointTrajectory) -> None:
    for point in message.points:
        point.accelerations = [400.0, 0.0]


def _set(path: str, value: object) -> Callable[[object], None]:
    def change(message: object) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            message = getattr(message, parent)
        setattr(message, name, value)

    return change


def test_trajectories_that_cannot_be_filled_are_refused_and_a_stop_passes(rig: Rig) -> None:
    assert "no parameters on /identifier/parameters; start the identifier" in rig.refusal(trajectory())
    rig.publish(parameters())
    for change, reason in (
            (_without("accelerations"), "point 1 lacks accelerations"),
            (_without("velocities"), "point 1 lacks velocities"),
            (lambda message: message.points[0].effort.extend([0.0, 0.0]), "has efforts already"),
            (_set("joint_names", ["wrist", "elbow"]), "expected ['shoulder', 'elbow']"),
            (_set("points", trajectory().points[:1]), "begins with a motion to its first point"),
            (_late, "begins with a motion to its first point"),
            (_set_last_time, "needs 50000000 points, at most 100000 fit"),
            (_fast, "elbow needs"),
            (lambda message: message.points[1].positions.append(1.0), "positions do not have 2 values"),
            (lambda message: message.points.reverse(), "time_from_start does not increase")):
        assert reason in rig.refusal(trajectory(change))
    rig.commands.publish(JointTrajectory(joint_names=list(NAMES)))
    rig.until(lambda: rig.received)
    assert not rig.received[0].points


@pytest.mark.parametrize(("rig", "change", "reason"), [
    ({}, _set("model_hash", "0" * 64), "parameters 1 refused: they belong to another robot"),
    ({}, _set("verdict", InertialParameters.DO_NOT_USE), "their verdict is 'do not use'"),
    ({"only_use": True}, _set("verdict", InertialParameters.USE_WITH_CARE), "their verdict is not 'use'"),
    ({"max_age_s": 60.0}, _set("header.stamp.sec", 1), "old, more than max_age_s 60; restart their node"),
    ({"interfaces": ["position", "velocity"]}, lambda _: None, "arm has no effort command interface, but position, v"),
], indirect=["rig"])
def test_parameters_and_controllers_that_cannot_be_used_are_refused(
        rig: Rig, change: Callable[[InertialParameters], None], reason: str) -> None:
    rig.publish(parameters(change))
    assert reason in rig.refusal(trajectory())


def test_nothing_is_known_of_the_robot_or_its_controller(tmp_path: Path) -> None:
    with local_nodes(tmp_path, {"feed_forward": {"urdf": ""}}) as nodes:
        feed = nodes["feed_forward"]
        assert "no robot description has been received" in feed.problem()
        feed.receive_description(String(data=URDF))
        feed.parameters._receive(parameters())
        assert "the parameter controller is empty" in feed.problem()
        feed.receive_description(String(data=URDF.replace("elbow", "wrist")))
        assert feed.problem() == (
            "robot_description: describes another robot than before; restart feed_forward to change the robot")
        feed.receive_description(String(data=URDF))
        assert "the parameter controller is empty" in feed.problem()


PROBE = """
import json, sys, time
import numpy as np
import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.task import Future
from test_feed_forward import parameters, trajectory
from inertid_ros.excitation.plan import joint_trajectory_text  # noqa: E402
from inertid_ros.msg import InertialParameters
from inertid_ros.nodes import feed_forward
from inertid_ros.nodes.feed_forward import FeedForward
from inertid_ros.ros.topics import LATCHED

rclpy.init(args=["--ros-args", "-p", f"urdf:={sys.argv[1]}", "-p", "controller:=arm",
                 "-p", "command_interface:=follow_joint_trajectory"])
feed, arm, group, goals = FeedForward(), rclpy.create_node("arm"), ReentrantCallbackGroup(), []
arm.declare_parameter("command_interfaces", ["effort"])
rejecting, ending = [False], [Future()]

async def execute(goal):
    goals.append(goal.request)
    goal.publish_feedback(FollowJointTrajectory.Feedback(joint_names=["seen"]))
    await ending[0]
    goal.canceled() if goal.is_cancel_requested else goal.succeed()
    return FollowJointTrajectory.Result(error_string="of the controller")

def cancel(_goal):
    arm.create_timer(0.1, lambda canceled=ending[0]: canceled.done() or canceled.set_result(None))
    return CancelResponse.ACCEPT

server = ActionServer(arm, FollowJointTrajectory, "~/follow_joint_trajectory", execute, cancel_callback=cancel,
    goal_callback=lambda _: GoalResponse.REJECT if rejecting[0] else GoalResponse.ACCEPT, callback_group=group)
user = rclpy.create_node("user")
client = ActionClient(user, FollowJointTrajectory, "feed_forward/follow_joint_trajectory")
publisher = user.create_publisher(InertialParameters, "identifier/parameters", LATCHED)
executor = SingleThreadedExecutor()
for node in (feed, arm, user):
    executor.add_node(node)

def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, feed.refusal
        executor.spin_once(timeout_sec=0.02)

def outcome(message, then=lambda handle: ending[0].set_result(None)):
    ending[0], feedback, count = Future(), [], feed.sent + feed.refused
    sent = client.send_goal_async(FollowJointTrajectory.Goal(trajectory=message), feedback.append)
    until(sent.done)
    ended = sent.result().get_result_async()
    until(lambda: feed.sent + feed.refused > count and (feedback or ended.done()))
    then(sent.result())
    until(ended.done)
    answer = ended.result()
    return answer.status, answer.result.error_code, answer.result.error_string, len(feedback)

until(lambda: feed.interfaces and client.server_is_ready() and feed.client.server_is_ready())
rows = [outcome(trajectory())]
publisher.publish(parameters())
until(lambda: feed.parameters.waiting or feed.parameters.stamp_ns)
rows += [outcome(trajectory()), outcome(trajectory(), lambda handle: handle.cancel_goal_async())]
rejecting[0] = True
rows += [outcome(trajectory())]
rejecting[0], feed_forward._SILENCE_S = False, 1.5
rows += [outcome(trajectory(), lambda handle: executor.remove_node(arm)), outcome(trajectory())]
executor.add_node(arm)
until(lambda: feed.interfaces)
executor.remove_node(arm)
rows += [outcome(trajectory())]
print(json.dumps([rows, [len(goal.trajectory.points[0].effort) for goal in goals]]))
"""


@pytest.mark.xdist_group("control_msgs")
def test_goals_pass_to_the_controller_and_its_answers_back(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    extra = control_messages_environment(Path(pytestconfig.rootpath) / ".pytest_cache" / "control_msgs")
    (tmp_path / "robot.urdf").write_text(URDF)
    here, path = Path(__file__).parent, extra.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, **extra, "PYTHONPATH": os.pathsep.join([str(here), str(here.parent), path])}
    command = [sys.executable, "-c", PROBE, str(tmp_path / "robot.urdf")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    (unknown, done_well, canceled, rejected, *silent), efforts = json.loads(done.stdout.splitlines()[-1])
    assert unknown[:2] == [6, -1] and "no parameters on" in unknown[2]
    assert done_well == [4, 0, "of the controller", 1] and canceled == [5, 0, "of the controller", 1]
    assert rejected[:2] == [6, -1] and "arm rejects the filled trajectory" in rejected[2]
    after_acceptance, later, before_acceptance = silent
    for row in (after_acceptance, before_acceptance):
        assert row[:2] == [6, -1] and "arm has not answered for 1.5 s, so its goal ends here" in row[2]
    assert later[:2] == [6, -1] and "arm does not answer a request for its command interfaces" in later[2]
    assert efforts[:2] == [2, 2]
