"""Held-out recordings of a motion that was fitted: the same samples are refused, the same motion is told."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic import random_motion, record
from support.robots.random_robots import random_model

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.motion_checks import check_different_samples, repeated_motion, shared_samples
from inertid_ros.robot.model import RobotModel, load_model

JOINTS = 3
MODEL = random_model(np.random.default_rng(0), JOINTS, branched=False)
RNG = np.random.default_rng(1)
MOTIONS = [random_motion(RNG, JOINTS) for _ in range(3)]


def recorded(motion: int, begin: float, end: float, rate_hz: float = 100.0, seed: int = 0, name: str = "") -> Recording:
    time, rng = np.arange(begin, end, 1 / rate_hz), np.random.default_rng(seed)
    made = record(MODEL, MOTIONS[motion], time, 1e-4, rng, name or f"motion {motion}")
    return replace(made, effort=made.effort + 0.1 * rng.normal(size=made.effort.shape), velocity=None)


def samples(*arguments, model: RobotModel = MODEL, **keywords):
    return prepare(recorded(*arguments, **keywords), model)


def test_samples_of_a_fitted_recording_are_refused_under_any_name():
    fitted = recorded(0, 0.0, 12.0)
    copy = replace(fitted, name="copy", time=fitted.time + 3.0)
    kept = {key: getattr(fitted, key)[300:900] for key in ("time", "position", "effort")}
    part = replace(fitted, name="part", **kept)
    swapped = replace(fitted, name="swapped", joint_names=fitted.joint_names[::-1], position=fitted.position[:, ::-1],
        effort=fitted.effort[:, ::-1])
    for other in (copy, part, swapped):
        assert shared_samples(other, fitted) == 1.0
        with pytest.raises(RecordingError, match=f"^{other.name}: holds the samples of motion 0 .100 % of them"):
            check_different_samples([recorded(1, 0.0, 12.0), fitted], [other])


def test_a_recording_that_is_fitted_twice_is_refused():
    fitted = [recorded(motion, 0.0, 12.0) for motion in (0, 1)]
    check_different_samples(fitted, [])
    with pytest.raises(RecordingError, match="^copy: holds the samples of motion 1 .100 % of them., which would count"):
        check_different_samples([*fitted, replace(fitted[1], name="copy", time=fitted[1].time + 3.0)], [])


def test_coarse_numbers_make_no_copy():
    """Sweeps of one joint with a coarse encoder and a drive of few values pass the same states."""
    rng, time = np.random.default_rng(0), np.arange(0.0, 20.0, 0.02)
    sweeps = []
    for name in ("first", "second"):
        position = np.round(rng.uniform(-1, 1) + 0.5 * np.sin(rng.uniform(0.5, 1.5) * time), 2)
        effort = np.round(3 * np.sign(np.cos(time)) + rng.normal(size=len(time)))
        sweeps.append(Recording(("joint",), time, position[:, None], effort[:, None], name=name))
    check_different_samples(sweeps, [])


def test_the_same_motion_recorded_again_has_other_samples():
    again = recorded(0, 0.0, 12.0, seed=1)
    assert shared_samples(again, recorded(0, 0.0, 12.0)) == 0.0
    check_different_samples([recorded(0, 0.0, 12.0)], [again])


@pytest.mark.parametrize("rate_hz", [100.0, 83.0])
def test_the_same_motion_is_recognised_after_a_shift_at_another_rate(rate_hz):
    again = samples(0, 2.345, 18.0, rate_hz=rate_hz, seed=1)
    fitted = [samples(1, 0.0, 20.0), samples(0, 0.0, 20.0)]
    repeated = repeated_motion(again, fitted)
    assert repeated.share == pytest.approx(1.0)
    assert repeated.difference < 0.02 and repeated.by == (1,) and not repeated.new
    assert repeated_motion(again, [*fitted, *fitted]).by == (1, 3)


def test_other_motions_are_new():
    fitted = [samples(0, 0.0, 20.0), samples(1, 0.0, 20.0)]
    repeated = repeated_motion(samples(2, 0.0, 20.0), fitted)
    assert repeated.share == 0.0 and repeated.difference > 0.3 and repeated.new
    assert repeated_motion(samples(2, 0.0, 5.0), fitted).new


def test_a_motion_that_is_new_in_part_is_told_by_its_share():
    first, second = recorded(0, 0.0, 10.0, seed=1), recorded(1, 0.0, 10.0, seed=1)
    time = np.concatenate([first.time, second.time + 10.0])
    position, effort = (np.concatenate([getattr(r, key) for r in (first, second)]) for key in ("position", "effort"))
    both = Recording(first.joint_names, time, position, effort)
    repeated = repeated_motion(prepare(both, MODEL), [samples(0, 0.0, 10.0)])
    assert 0.2 < repeated.share < 0.7


def test_rest_repeats_no_motion():
    moving = samples(0, 0.0, 10.0)
    rest = replace(moving, q=0 * moving.q, v=0 * moving.v)
    assert repeated_motion(rest, [moving]).new and repeated_motion(moving, [rest]).new


def test_a_scaled_motion_is_new():
    original = recorded(0, 0.0, 20.0)
    larger = prepare(replace(original, position=1.3 * original.position), MODEL)
    assert repeated_motion(larger, [prepare(original, MODEL)]).share == 0.0


def test_kuka_runs_one_and_two_are_one_motion(datasets):
    folder = datasets / "kuka_lwr4"
    model = load_model(folder / "kuka_lwr4.urdf")
    runs = {name: prepare(load_recording(folder / f"{name}.npz"), model) for name in ("run1", "run2", "run3")}
    same = repeated_motion(runs["run2"], [runs["run1"]])
    assert same.share == pytest.approx(1.0) and same.difference < 0.01
    for held_out, fitted in (("run3", ("run1", "run2")), ("run1", ("run3",)), ("run2", ("run3",))):
        assert repeated_motion(runs[held_out], [runs[name] for name in fitted]).share == 0.0
