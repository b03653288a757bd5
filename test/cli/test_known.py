"""What is known before: an earlier result, loads, terms of joints, on the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support.recordings.message_bag import MessageBag
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.cli import main as cli
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.files.loading import write_npz
from inertid_ros.regressors.equations import load_torque
from inertid_ros.report.results import Result
from inertid_ros.robot.body_changes import load_bodies

CONFIG = """
robot:
  loads:
    disk: {link: link2, mass: 0.5, com: [0.1, 0.05, 0.1], recordings: [disk*]}
  terms:
    spring: {joint: joint1, expressions: ["sin(q)**3"]}
    drag: {joint: joint0, shape: quadratic_viscous}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Folder with given.urdf, known.yaml, and day1, day2, disk (with the load) and test of a joint with a spring."""
    from inertid_ros.config.configuration import Configuration
    from inertid_ros.config.yaml_files import load_configuration
    from inertid_ros.core.samples import Samples

    folder = tmp_path_factory.mktemp("known")
    case = synthetic_case(7, recordings=4)
    (folder / "given.urdf").write_text(case.given.urdf)
    (folder / "known.yaml").write_text(CONFIG)
    loads = load_configuration(folder / "known.yaml", Configuration).robot.loads
    for name, recording in zip(("day1", "day2", "disk", "test"), case.recordings, strict=True):
        effort = recording.effort + [[0.0, 2.0, 0.0]] * np.sin(recording.position) ** 3
        time, q, v = recording.time, recording.position, recording.velocity
        a, every = np.gradient(v, time, axis=0), np.ones(q.shape, dtype=bool)
        samples = Samples(time, q, v, a, effort, every, every[:, 0])
        effort = effort + load_torque(case.truth, load_bodies(case.truth, loads, name), samples)
        write_npz(replace(recording, effort=effort), folder / f"{name}.npz")
    return folder


def run(files, output, *arguments, status=0):
    command = ["identify", "--urdf", str(files / "given.urdf"), "--config", str(files / "known.yaml"), "--quiet"]
    assert cli.main([*command, "--output", str(output), *map(str, arguments)]) == status
    return output


@pytest.fixture(scope="module")
def first(files, tmp_path_factory):
    return run(files, tmp_path_factory.mktemp("first") / "result", files / "day1.npz", "--validate", files / "test.npz")


def test_terms_are_chosen_stored_and_shown(files, first, capsys):
    report = json.loads((first / "report.json").read_text())
    spring, drag = report["terms"]
    assert spring["kept"] and not drag["kept"] and drag["values"] == []
    assert abs(spring["values"][0] - 2.0) < 3 * spring["standard_deviation"][0] + 0.05
    stored = Result.load(first)
    assert [term.name for term in stored.model.layout.terms] == ["spring"]
    assert stored.information.layout.terms == stored.model.layout.terms
    capsys.readouterr()
    assert cli.main(["report", str(first)]) == 0
    printed = capsys.readouterr().out
    assert "sin(q)**3" in printed and "left out" in printed
    assert "left out" in (first / "report.html").read_text()
    assert cli.main(["validate", str(first), str(files / "test.npz"), "--quiet"]) == 0


def test_a_result_is_continued_with_a_recording_of_a_load(files, first, tmp_path, capsys):
    second = run(files, tmp_path / "second", files / "disk.npz", "--prior", first, "--validate", files / "test.npz")
    assert Result.load(second).fitted_without_load == []
    report = json.loads((second / "report.json").read_text())
    earlier = report["provenance"]["earlier"]
    assert earlier["directory"] == str(first) and len(earlier["recordings"]) == 1
    assert report["validation"]["relative_error"] < 0.2 * report["prior"]["relative_error"]
    capsys.readouterr()
    run(files, tmp_path / "twice", files / "day1.npz", "--prior", second, status=2)
    assert "is part of the earlier result already" in capsys.readouterr().err


def test_the_mean_of_several_robots_is_the_prior(files, first, tmp_path, capsys):
    second = run(files, tmp_path / "second", files / "day2.npz")
    capsys.readouterr()
    sources = [first, second, files / "given.urdf"]
    third = run(files, tmp_path / "third", files / "disk.npz", "--validate", files / "test.npz", "--prior", *sources)
    mean = f"mean of {', '.join(map(str, sources))}"
    told = capsys.readouterr().out
    assert f"prior: {mean}\n" in told and f"% of the {mean}" in told and "URDF as given" not in told
    report = json.loads((third / "report.json").read_text())
    assert report["prior"]["name"] == mean and report["validation"]["relative_error"] < 0.05
    assert f"Prior: {mean}" in (third / "report.html").read_text()
    assert cli.main(["validate", str(third), str(files / "day1.npz"), "--quiet"]) == 0
    assert mean in capsys.readouterr().out


def test_a_load_that_no_recording_carries_is_told(files, first, tmp_path, capsys):
    arguments = ("--urdf", files / "given.urdf", "--config", files / "known.yaml", "--output", tmp_path / "out")
    assert cli.main(["identify", *map(str, arguments), str(files / "day1.npz")]) == 0
    assert "robot.loads.disk: recordings disk* match none of" in capsys.readouterr().err
    assert Result.load(first).fitted_without_load == [str(files / "day1.npz")]


def test_further_recordings_are_read_with_the_topics_of_the_result(first, tmp_path):
    result, bag = Result.load(first), tmp_path / "bag"
    joints = result.model.joint_names
    with MessageBag(bag) as messages:
        for stamp in range(10**9, 2 * 10**9, 10**7):
            messages.joint_state(stamp, joints, *np.zeros((3, len(joints))), topic="/arm/joint_states")
    with pytest.raises(RecordingError, match="has no topic /joint_states"):
        result.load_recording(bag)
    report = json.loads(json.dumps(result.report))
    report["provenance"]["configuration"]["topics"]["joint_states"] = "/arm/joint_states"
    assert replace(result, report=report).load_recording(bag).joint_names == joints


def test_a_payload_starts_from_the_earlier_bodies(files, first, tmp_path):
    """The load is not declared, so that it is part of the hand."""
    undeclared = ("--set", "robot.loads={}", "--set", "identify.spread.link2=3")
    loaded = run(files, tmp_path / "loaded", files / "disk.npz", "--prior", first, *undeclared)
    before, after = (Result.load(each).parameters for each in (first, loaded))
    layout = Result.load(loaded).model.layout
    masses = layout.bodies(after)[:, 0] - layout.bodies(before)[:, 0]
    assert masses[2] == pytest.approx(0.5, abs=0.1) and np.abs(masses[:2]).max() < 0.5
