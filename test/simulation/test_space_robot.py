"""The space robot of the package: floats in MuJoCo as momentum predicts, is planned, recorded and identified."""

import attrs
import numpy as np
import pytest

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.planning import Workspace
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.excitation import CombinationOptions, ExcitationOptions, LimitOptions
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import RobotOptions, WheelOptions
from inertid_ros.config.simulation import DriveOptions, SensorOptions, SimulationOptions
from inertid_ros.core.errors import ExcitationError, ModelError
from inertid_ros.data.recording import Recording
from inertid_ros.robot.floating_base_motion import BaseMotion
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import packaged_urdf
from inertid_ros.simulation.simulated_robot import SimulatedRobot, simulate

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")
pytestmark = pytest.mark.xdist_group("space_robot")  # whose simulation takes seconds
WHEELS = {f"wheel_{axis}": WheelOptions() for axis in "xyz"}
OPTIONS = RobotOptions(drive_terms=(), base="free", gravity=(0.0, 0.0, 0.0), wheels=WHEELS)
QUICK = CombinationOptions(orders=1, starts=3, iterations=1, offered=24, samples=3)
EXCITATION = ExcitationOptions(kind="combinations", validation_kind="combinations", combinations=QUICK)


@pytest.fixture(scope="module")
def truth() -> RobotModel:
    return load_model(packaged_urdf("space_robot"), OPTIONS)


@pytest.fixture(scope="module")
def recordings(truth: RobotModel) -> list[Recording]:
    """Two motions one after the other, the second from where the first ended, without friction and noise."""
    quiet = SimulationOptions(drives=DriveOptions(0, 0, 0, 0, 0), sensors=SensorOptions(0, 0, 0, 0, 0, 0, 0))
    robot = SimulatedRobot(truth.commanded, quiet, floating=True)
    space, found = Workspace.of(truth, LimitOptions(), EXCITATION), []
    for name, options in (("first", EXCITATION), ("second", EXCITATION.held_out)):
        plan = space.planned(robot.desired()[0], options, lambda report: None)
        found.append(simulate(robot, plan, state_hz=100.0, name=name))
    return found


def test_the_base_moves_as_its_momentum_says(truth: RobotModel, recordings: list[Recording]) -> None:
    motion = BaseMotion(truth.tree, truth.body_prior, truth.wheels)
    for recording in recordings:
        assert recording.joint_names == truth.joint_names + truth.wheels.names and recording.velocity is not None
        q, v = recording.position[:, :6], recording.velocity
        expected = motion.twist(q, v[:, :6], v[:, 6:])
        assert recording.base_twist is not None and np.abs(recording.base_twist).max() > 0.02
        np.testing.assert_allclose(recording.base_twist, expected, atol=2e-4)
    assert np.abs(recordings[1].position[0, 6:]).max() > 1.0  # wheels go on from any angle


def test_true_bodies_predict_base_and_torque(truth: RobotModel, recordings: list[Recording]) -> None:
    """From a wrong URDF to the truth; the predictions of the report tell one from the other."""
    wrong = truth.with_prior_bodies(truth.body_prior * np.array([0.7, 1.3, 0.7, 1.3, 0.7, 1.3, 0.7])[:, None])
    configuration = Configuration(robot=OPTIONS, identify=IdentifyOptions(equations="momentum"))
    outcome = calibrate(wrong, recordings[:1], recordings[1:], configuration)
    quantities = [error.quantity for error in outcome.predictions]
    assert quantities[:2] == ["linear velocity of the base", "angular velocity of the base"]
    assert quantities[2:] == [f"torque of {name}" for name in truth.joint_names]
    for error in outcome.predictions:
        assert error.calibrated < 0.2 * error.prior and error.calibrated < 0.02 * error.measured, error
    assert outcome.report["predictions"][0]["unit"] == "m/s"
    assert outcome.report["base_parameters"]["count"] == 52  # as in [Naveen2019]_ table 5


def test_wheels_keep_their_velocity_limit(truth: RobotModel) -> None:
    slow = LimitOptions(velocity=dict.fromkeys(WHEELS, 5.0))
    space = Workspace.of(truth, slow, EXCITATION)
    plan = space.planned(np.append([0, 0.75, 0, 3.14, 0.75, 0], [50.0, -3.0, 0.0]), EXCITATION, lambda report: None)
    wheels = [plan.joint_names.index(name) for name in WHEELS]
    np.testing.assert_allclose(np.abs(plan.velocity[:, wheels]).max(), 0.95 * 0.8 * 5.0, rtol=1e-2)
    np.testing.assert_allclose(plan.start[wheels], [50.0, -3.0, 0.0])


def test_what_cannot_be_commanded_is_named(truth: RobotModel) -> None:
    wheel = WheelOptions(0.1, "L0", (1.0, 0.0, 0.0))
    other = load_model(truth.urdf, attrs.evolve(OPTIONS, wheels={"flywheel": wheel}))
    with pytest.raises(ModelError, match="wheel 'flywheel': the URDF has no joint of this name, so controllers"):
        _ = other.commanded
    space = Workspace.of(truth, LimitOptions(), EXCITATION)
    with pytest.raises(ExcitationError, match="set excitation.kind and excitation.validation_kind to combinations"):
        space.planned(np.zeros(9), attrs.evolve(EXCITATION, kind="fourier"), lambda report: None)
    without = load_model(truth.urdf, attrs.evolve(OPTIONS, wheels={}))
    with pytest.raises(ExcitationError, match="its base is free"):
        Workspace.of(without, LimitOptions(), EXCITATION)

