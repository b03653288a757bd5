"""Base parameters of a robot that floats, through running nodes: twist and wheel speeds by topics, momentum fitted."""

from dataclasses import replace
from pathlib import Path

import attrs
import numpy as np
from support.nodes.ros_client import FLOWS, ros_client_in
from support.robots.floating_robots import motion, satellite, with_prior

from inertid_ros.action import Identify
from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.config.robot import RobotOptions, WheelOptions
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.loading import load_recording
from inertid_ros.msg import IdentifierStatus, InertialParameters
from inertid_ros.robot.body_changes import write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.ros.received_parameters import from_inertial_parameters
from inertid_ros.simulation.free_floating import float_freely, measured

pytestmark = FLOWS
WHEELS = {f"wheel_{axis}": WheelOptions(0.1, "L0", tuple(row)) for axis, row in zip("xyz", np.eye(3), strict=True)}


def bag_of(truth: RobotModel, path: Path, **changes: None) -> Path:
    """A bag of a motion; ``changes`` leave channels out."""
    found = float_freely(truth, truth.body_prior, motion(truth, 24, 0).trajectory, 50.0)
    recording = measured(truth, found, (1e-4, 1e-4, 1e-4), np.random.default_rng(0), "float")
    return write_bag(replace(recording, **changes), path)


def test_odometry_is_recorded_as_it_was_replayed(tmp_path: Path) -> None:
    bag = bag_of(satellite(np.random.default_rng(0), 3), tmp_path / "bag")
    with ros_client_in(tmp_path) as ros:
        own = {"directory": str(tmp_path / "recordings"), "odometry": "/odometry", "min_free_mb": 1}
        ros.start("recorder", own)
        replay = ros.start("replay", {"bag": str(bag), "rate": 8.0, "record": True})
        ros.until(lambda: replay.ended, "end of the replay", 40.0)
        assert replay.process.returncode == 0, replay.log()
    topics = RecordingTopics(odometry="/odometry")
    recorded, replayed = (
        load_recording(path, topics) for path in (tmp_path / "recordings" / "recording_001", bag)
    )
    for channel in ("position", "velocity", "base_pose", "base_twist"):
        np.testing.assert_array_equal(getattr(recorded, channel), getattr(replayed, channel))


def test_momentum_through_topics_gives_what_the_bag_gives(tmp_path: Path) -> None:
    truth = satellite(np.random.default_rng(0), 3)
    given = with_prior(truth, np.random.default_rng(1))
    urdf = tmp_path / "given.urdf"
    urdf.write_text(write_urdf(truth, given.body_prior))
    bag = bag_of(truth, tmp_path / "bag", base_pose=None)
    robot = {"robot.base": "free", "robot.wheel_names": list(WHEELS), "robot.gravity": (0.0, 0.0, 0.0)}
    for name, wheel in WHEELS.items():
        robot |= {f"robot.wheels.{name}.{key}": value for key, value in attrs.asdict(wheel).items()}
    momentum = {"identify.equations": "momentum"}
    with ros_client_in(tmp_path) as ros:
        ros.start("identifier", {"urdf": str(urdf), "output_directory": "", **robot, **momentum})
        ros.start("recorder", {"write_bag": False, "twist": "/twist"})
        parameters = ros.listen(InertialParameters, "identifier/parameters")
        status = ros.listen(IdentifierStatus, "identifier/status")
        replay = ros.start("replay", {"bag": str(bag), "rate": 8.0, "record": True})
        ros.until(lambda: status and status[-1].recordings, "recording at the identifier", 40.0)
        assert replay.process.wait(10) == 0, replay.log()
        outcome = ros.result(ros.send_goal(Identify, "identifier/identify", Identify.Goal())).result
        assert outcome.success, outcome.message
        ros.until(lambda: parameters, "parameters")
    options = RobotOptions(base="free", wheels=WHEELS, gravity=(0.0, 0.0, 0.0))
    wanted = Configuration(robot=options, identify=IdentifyOptions(equations="momentum"))
    read = load_recording(bag, RecordingTopics(twist="/twist"))
    offline = calibrate(load_model(urdf, options), [read], configuration=wanted)
    received = from_inertial_parameters(parameters[-1])
    expected = offline.estimate.bodies
    np.testing.assert_allclose(received.bodies, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
