"""Coverage while a recording is made: it tells of what the result will tell, and names joints that lack motion."""

from dataclasses import replace

import attrs
import numpy as np
import pytest
from support.nodes.two_links import two_links
from support.recordings.synthetic import inverse_dynamics, random_motion

from inertid_ros.data.long_recording import Block
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.torque_confidence import torque_confidence
from inertid_ros.identification.identify import identify
from inertid_ros.monitoring.live_coverage import LiveCoverage, still_needed
from inertid_ros.robot.model import RobotModel

RATE_HZ, SECONDS = 200.0, 20.0


def model_of(**options: object) -> RobotModel:
    model, _ = two_links()
    return replace(model, options=attrs.evolve(model.options, **options))


def recording(model: RobotModel, still: tuple[int, ...] = (), seed: int = 0) -> Recording:
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, SECONDS, 1 / RATE_HZ)
    q, v, a = random_motion(rng, model.joints).sample(time)
    for joint in still:
        q[:, joint], v[:, joint], a[:, joint] = 0.3, 0.0, 0.0
    tau = inverse_dynamics(model, q, v, a) + 0.05 * rng.normal(size=q.shape)
    return Recording(model.joint_names, time, q, tau, v)


def blocks(recording: Recording, size: int = 37, velocity: bool = True):
    stamps = 10**18 + np.round(1e9 * recording.time).astype(np.int64)
    for start in range(0, len(stamps), size):
        rows = slice(start, start + size)
        names = ("position", "effort", "velocity") if velocity else ("position", "effort")
        channels = {name: recording.channels[name][rows] for name in names}
        yield Block(recording.joint_names, stamps[rows], channels)


def shares(live: LiveCoverage) -> np.ndarray:
    return np.array([each.torque_deviation for each in live.coverage()])


@pytest.mark.parametrize("velocity", [True, False])
def test_it_tells_about_what_the_result_will_tell(velocity: bool):
    model = model_of()
    made = recording(model)
    live, so_far = LiveCoverage(model), []
    assert live.coverage() == ()
    for index, block in enumerate(blocks(made, velocity=velocity)):
        live.add(block)
        if index % 30 == 29:
            so_far.append(shares(live))
    expected = torque_confidence(identify(model, [prepare(made, model)])).shares
    assert (so_far[-1] < 0.6 * so_far[0]).all()
    assert np.all((so_far[-1] > 0.3 * expected) & (so_far[-1] < 5 * expected)), (so_far[-1], expected)


def test_the_joint_that_stands_still_is_named_first():
    model = model_of()
    live = LiveCoverage(model)
    for block in blocks(recording(model, still=(1,))):
        live.add(block)
    found = live.coverage()
    assert found[1].torque_deviation > 3 * found[0].torque_deviation and not found[1].reversals
    assert still_needed(found).startswith(f"{model.joint_names[1]}: move it through more of its range and faster")


def test_other_names_sizes_and_unmeasured_efforts():
    """Names and order of a recording are its own, blocks have any size, and a joint may report no effort."""
    model = model_of(joint_names={"fer_*": "*"})
    made = recording(model)
    names = tuple(f"fer_{name}" for name in reversed(model.joint_names))
    found = []
    for size in (1, 1000):
        live = LiveCoverage(model)
        for block in blocks(made, size):
            effort = np.where(np.arange(model.joints) == 1, np.nan, block.channels["effort"])
            channels = {key: values[:, ::-1] for key, values in {**block.channels, "effort": effort}.items()}
            live.add(replace(block, joint_names=names, channels=channels))
        found.append(shares(live))
    assert found[0] == pytest.approx(found[1], rel=1e-6) and np.isfinite(found).all()


def test_a_robot_of_other_joints_is_refused():
    with pytest.raises(ValueError, match="not in tuple"):
        LiveCoverage(model_of()).add(replace(next(blocks(recording(model_of()))), joint_names=("a", "b")))
