"""``inertid payload`` on the command line: what a calibrated arm holds, and what it refuses."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic import inverse_dynamics
from support.recordings.synthetic_calibration import COULOMB, VISCOUS, synthetic_case

from inertid_ros.cli import main as cli
from inertid_ros.config.robot import LoadOptions
from inertid_ros.core.samples import Samples
from inertid_ros.data.files.loading import write_npz
from inertid_ros.regressors.force_equations import load_torque
from inertid_ros.robot.body_changes import load_bodies

LOAD = LoadOptions("link2", 1.2, ("*",), com=(0.05, -0.02, 0.1), inertia=(0.004, 0.0, 0.0, 0.005, 0.001, 0.003))


def held(case, recording, seconds, load=None):
    """The same recording, cut, with a load in the hand or none."""
    rows = recording.time < seconds
    time, q, v = recording.time[rows], recording.position[rows], recording.velocity[rows]
    every = np.ones(q.shape, dtype=bool)
    samples = Samples(time, q, v, np.gradient(v, time, axis=0), recording.effort[rows], every, every[:, 0])
    loads = {} if load is None else {"load": load}
    effort = samples.tau + load_torque(case.truth, load_bodies(case.truth, loads, "any"), samples)
    return replace(recording, time=time, position=q, velocity=v, effort=effort)


def resting(case, recording):
    """The same motion with the first joint at rest, which friction holds."""
    q, v = recording.position.copy(), recording.velocity.copy()
    q[:, 0], v[:, 0] = 0.3, 0.0
    effort = inverse_dynamics(case.truth, q, v, np.gradient(v, recording.time, axis=0))
    noise = 0.02 * np.random.default_rng(0).normal(size=q.shape)
    return replace(recording, position=q, velocity=v, effort=effort + VISCOUS * v + COULOMB * np.sign(v) + noise)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Folder with a result of an arm, and recordings with and without a load."""
    folder = tmp_path_factory.mktemp("payload")
    case, other = synthetic_case(7, recordings=3), synthetic_case(8, recordings=1)
    (folder / "given.urdf").write_text(case.given.urdf)
    first, second, third = case.recordings
    still = replace(first, position=1e-5 * first.position, velocity=0 * first.position,
        effort=first.effort[:1] + 0 * first.effort)
    recordings = {
        "day1": first,
        "day2": second,
        "loaded": held(case, third, 5.0, LOAD),
        "reference": held(case, second, 6.0),
        "heavy": held(case, third, 5.0, LoadOptions("link2", 400.0, ("*",), com=LOAD.com)),
        "other": replace(other.recordings[0], joint_names=first.joint_names),
        "still": still,
        "one_rests": held(case, resting(case, third), 5.0, LOAD),
    }
    for name, recording in recordings.items():
        write_npz(replace(recording, name=name), folder / f"{name}.npz")
    command = ["identify", str(folder / "day1.npz"), "--validate", str(folder / "day2.npz"), "--quiet"]
    assert cli.main([*command, "--urdf", str(folder / "given.urdf"), "--output", str(folder / "result")]) == 0
    return folder


def run(files, recording, *arguments):
    command = ["payload", str(files / "result"), str(files / f"{recording}.npz"), "--quiet", *map(str, arguments)]
    return cli.main(command)


def test_the_truth_is_in_the_intervals_with_and_without_a_reference(files, tmp_path, capsys):
    for index, reference in enumerate(((), ("--reference", files / "reference.npz"))):
        target = tmp_path / f"payload{index}.json"
        assert run(files, "loaded", "--output", target, *reference) == 0
        assert "set_target_payload(1." in capsys.readouterr().out
        content = json.loads(target.read_text())
        assert content["frame"] == "link2" and len(content["recordings"]) == 1 + index
        assert content["mass"]["value"] == pytest.approx(LOAD.mass, rel=0.02)
        low, high = content["mass"]["interval"]
        assert low < LOAD.mass < high
        for axis, true in zip("xyz", LOAD.com, strict=True):
            assert content["com"][axis]["value"] == pytest.approx(true, abs=0.01)
        deviations = [each["standard_deviation"] for each in content["inertia"].values()]
        errors = np.subtract([each["value"] for each in content["inertia"].values()], LOAD.inertia)
        assert (np.abs(errors) < 3.5 * np.array(deviations)).all()
    assert run(files, "loaded", "--output", target) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "recording, arguments, message",
    [
        ("heavy", (), "effort limit|no payload on link2 explains|heavier"),
        ("loaded", ("--max-mass", "1"), "holds 1.2 kg, more than the allowed 1 kg"),
        ("other", (), "other.npz: no payload on link2 explains it: .* off by"),
        ("still", (), "still.npz: no joint slides long enough to be used"),
        ("day1", (), "day1.npz: is a recording that"),
        ("loaded", ("--frame", "hand"), "has no link 'hand'"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(files, capsys, recording, arguments, message):
    assert run(files, recording, *arguments) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1 and re.search(message, errors), errors
    print(errors)


def test_a_joint_may_rest(files, capsys):
    assert run(files, "one_rests", "--json") == 0
    low, high = json.loads(capsys.readouterr().out)["mass"]["interval"]
    assert low < LOAD.mass < high


def test_an_empty_hand_may_hold_nothing(files, capsys):
    assert cli.main(["payload", str(files / "result"), str(files / "reference.npz"), "--json"]) == 0
    captured = capsys.readouterr()
    assert "there may be no payload" in captured.err
    assert json.loads(captured.out)["mass"]["interval"][0] == 0.0
