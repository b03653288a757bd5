"""Force plates on running nodes: a simulated biped is recorded with its base; plates are tared, lost and told."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from support import paths
from support.nodes.ros_client import RosClient, ros_client_in
from support.package_parameters import parameters_in

from inertid_ros.config.recordings import RecordingTopics, WrenchTopic
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.msg import InertialParameters, RecorderStatus, SampleBatch
from inertid_ros.robot.model import load_model
from inertid_ros.ros.conversions import from_batch, to_joint_state, to_wrench
from inertid_ros.ros.received_parameters import from_inertial_parameters
from inertid_ros.ros.topics import BATCH
from inertid_ros.simulation.example_robots import legged_robot

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")

PLATES = ("left_plate", "right_plate")
CONFIG = paths.CONFIG / "biped.yaml"


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[RosClient]:
    with ros_client_in(tmp_path) as ros:
        yield ros


def start(ros: RosClient, **recorder) -> None:
    movement = {"legged_robot.movement.movements": 2, "legged_robot.movement.seconds": 1.0, "perturb": False}
    robot = {key: value for key, value in parameters_in("biped", "simulator").items() if "perturbation" not in key}
    ros.start("simulator", {**robot, **movement, "state_hz": 100.0})
    own = {"directory": str(ros.folder / "recordings"), "min_free_mb": 1, **recorder}
    ros.start("recorder", {**parameters_in("biped", "recorder"), **own})


def set_fault(ros: RosClient, name: str, plates: list[str]) -> None:
    value = ParameterValue(type=9, string_array_value=plates or [""])
    request = SetParameters.Request(parameters=[Parameter(name=f"fault.{name}", value=value)])
    answer = ros.call(SetParameters, "simulator/set_parameters", request)
    assert answer.results[0].successful, answer.results[0].reason


def test_a_biped_is_recorded_with_its_base_and_both_plates(ros: RosClient) -> None:
    start(ros)
    status, moving = ros.listen(RecorderStatus, "recorder/status"), ros.listen(Bool, "simulator/moving")
    truth = ros.listen(InertialParameters, "simulator/true_parameters")
    batches = ros.listen(SampleBatch, "recorder/batch", BATCH)
    ros.until(lambda: status and set(status[-1].loaded) == {f"/{plate}/wrench" for plate in PLATES}, "load", 40.0)

    def refusal() -> str:
        answer = ros.trigger("recorder/tare")
        assert not answer.success
        return str(answer.message)

    ros.until(lambda: "too few to tare" not in refusal(), "a second of wrenches")
    assert "which is a load, not a zero" in refusal()
    answer = ros.trigger("recorder/start")
    assert answer.success, answer.message
    assert ros.trigger("simulator/move").success
    ros.until(lambda: moving and moving[-1].data, "movement")
    ros.until(lambda: not moving[-1].data, "end of the movement", 40.0)
    assert ros.trigger("recorder/stop").success
    ros.until(lambda: batches and batches[-1].last, "last batch")
    blocks = [from_batch(batch) for batch in batches]
    whole = np.concatenate([block.channels["base_pose"] for block in blocks if len(block)])
    options = load_configuration(CONFIG)
    (bag,) = (ros.folder / "recordings").iterdir()
    recording = read_bag(bag, options.topics)
    assert not recording.notices, "the bag is not whole"
    assert len(recording) == len(whole) and recording.imu is not None and set(recording.wrenches) == set(PLATES)
    np.testing.assert_allclose(np.abs(recording.base_pose), np.abs(whole), atol=1e-12)
    model = load_model(legged_robot("biped").urdf, options.robot)
    np.testing.assert_allclose(from_inertial_parameters(truth[-1]).bodies, model.body_prior, atol=1e-9)
    samples = prepare(recording, model, options.prepare)
    weight = np.linalg.norm(samples.tau[samples.mask[:, 0], :3], axis=1).mean()
    assert weight == pytest.approx(41.05 * 9.81, rel=0.03)


def test_a_silent_plate_leaves_no_sample_and_is_told(ros: RosClient) -> None:
    start(ros, write_bag=False)
    status = ros.listen(RecorderStatus, "recorder/status")
    ros.until(lambda: status and len(status[-1].loaded) == 2, "load", 40.0)
    answer = ros.trigger("recorder/start")
    assert answer.success, answer.message
    set_fault(ros, "silent_plates", ["left_plate"])
    ros.until(lambda: status[-1].incomplete > 20, "incomplete samples", 30.0)
    set_fault(ros, "silent_plates", [])
    lost = status[-1].incomplete
    ros.until(lambda: status[-1].samples > lost + 50, "samples go on")
    assert ros.trigger("recorder/stop").success


def test_what_an_idle_plate_measures_becomes_its_zero(ros: RosClient) -> None:
    """In batches, and in the bag, which keeps what the sensor measured and the zero beside it."""
    rng, zero = np.random.default_rng(0), np.array([1.0, -2.0, 8.0, 0.1, 0.2, -0.3])
    status = ros.listen(RecorderStatus, "recorder/status")
    batches = ros.listen(SampleBatch, "recorder/batch", BATCH)
    own = {"directory": str(ros.folder / "recordings"), "min_free_mb": 1}
    own |= {"wrench_names": ["plate"], "wrenches.plate.topic": "plate"}
    ros.start("recorder", own)
    states = ros.node.create_publisher(JointState, "joint_states", 10)
    plate = ros.node.create_publisher(WrenchStamped, "plate", 10)

    def tick() -> None:
        stamp = ros.node.get_clock().now().to_msg()
        plate.publish(to_wrench(zero + 0.01 * rng.normal(size=6), "plate", stamp))
        states.publish(to_joint_state(("a",), stamp, np.zeros(1), np.zeros(1), np.ones(1)))

    ros.node.create_timer(0.01, tick)
    ros.until(lambda: status and plate.get_subscription_count() and states.get_subscription_count(), "discovery")

    def tared() -> str:
        message = str(ros.trigger("recorder/tare").message)
        return "" if "too few to tare" in message else message

    assert "tared /plate by 8.3" in ros.until(tared, "a second of wrenches")
    assert ros.trigger("recorder/start").success
    assert "is being recorded; stop it before taring" in ros.trigger("recorder/tare").message
    ros.until(lambda: status[-1].recording and status[-1].samples > 40, "samples")
    assert ros.trigger("recorder/stop").success
    ros.until(lambda: batches and batches[-1].last, "last batch")
    live = np.concatenate([from_batch(batch).channels["wrench/plate"] for batch in batches if len(batch.stamps)])
    (bag,) = (ros.folder / "recordings").iterdir()
    recorded = read_bag(bag, RecordingTopics(wrenches={"plate": WrenchTopic("/plate")})).wrenches["plate"]
    assert len(live) == len(recorded) > 20
    for wrenches in (live, recorded):
        assert np.abs(wrenches.mean(axis=0)).max() < 0.02
