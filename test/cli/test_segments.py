"""A person whose segments' poses are measured by motion capture, on force plates, from the command line."""

import json
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.recordings.gait import FILE
from support.recordings.motion_capture import write_c3d, write_mot, write_trc
from support.robots.random_robots import random_bodies

from inertid_ros.cli import main as cli
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.inertial_parameters import geodesic_distance, transform
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.filtered_motion import pose_motion
from inertid_ros.regressors.equations import equations_of
from inertid_ros.report.results import Result
from inertid_ros.robot.model import load_model
from inertid_ros.robot.recorded_joints import POSE
from inertid_ros.robot.urdf.text import inertial_lines

NAMES, RATE_HZ, PLATE = ("pelvis", "left", "right"), 100.0, np.array([0.5, 0.0, 0.0])
CONFIG = """
robot:
  base: segments
  plates:
    one: {frame: left}
    two: {frame: right, xyz: [0.5, 0.0, 0.0]}
"""


def urdf(names, bodies) -> str:
    """Links with mass; their floating joints say nothing of the motion."""
    links = "".join(f'<link name="{name}">{"".join(inertial_lines(body))}</link>'
        for name, body in zip(names, bodies, strict=True))
    ends = [f'<parent link="{names[0]}"/><child link="{name}"/>' for name in names[1:]]
    joints = "".join(f'<joint name="j{index}" type="floating">{pair}</joint>' for index, pair in enumerate(ends))
    return f'<robot name="person">{links}{joints}</robot>'


def write(path, names, time, poses, wrenches) -> None:
    """Recording of poses ``(N, 7 nb)`` and wrenches."""
    columns = np.array([f"{name}.{part}" for name in names for part in POSE])
    np.savez(path, joint_names=columns, time=time, position=poses,
        **{f"wrench/{plate}": wrench for plate, wrench in wrenches.items()})


def recorded(path, model, rng, seconds=12.0) -> None:
    """Random motion of all segments, with noise of poses and of both plates."""
    time, poses = np.arange(0.0, seconds, 1 / RATE_HZ), []
    for _ in NAMES:
        frequency, phase = rng.uniform(0.2, 1.0, size=(3, 6, 1)), rng.uniform(0.0, 6.0, size=(3, 6, 1))
        swing = np.sin(2 * np.pi * frequency * time + phase).sum(axis=0).T
        turn = Rotation.from_rotvec(0.4 * swing[:, 3:]).as_quat()
        poses.append(np.hstack([0.1 * swing[:, :3] + [0.0, 0.0, 1.0], turn]))
    motion = map(np.hstack, zip(*(pose_motion(pose, 1 / RATE_HZ) for pose in poses), strict=True))
    every = np.ones((len(time), 6), dtype=bool)
    samples = Samples(time, *motion, np.zeros(every.shape), every, every[:, 0], "true")
    wrench = equations_of(model).predict(model.prior, samples)
    wrench[:, 3:] += np.cross(samples.q[:, :3], wrench[:, :3])  # about the origin of the world
    one, two = 0.3 * wrench, 0.7 * wrench
    two[:, 3:] -= np.cross(PLATE, two[:, :3])
    noisy = {name: values + rng.normal(size=values.shape) * ([0.1] * 3 + [0.01] * 3)
        for name, values in (("one", one), ("two", two))}
    write(path, NAMES, time, np.hstack(poses) + 2e-5 * rng.normal(size=(len(time), 21)), noisy)


@pytest.fixture(scope="module")
def person(tmp_path_factory):
    """Folder with given.urdf, true.urdf, person.yaml, train.npz and test.npz."""
    folder, rng = tmp_path_factory.mktemp("person"), np.random.default_rng(0)
    truth = random_bodies(rng, 3)
    given = [transform(rng.uniform(0.8, 1.2) * body, np.eye(3), 0.02 * rng.normal(size=3)) for body in truth]
    (folder / "given.urdf").write_text(urdf(NAMES, given))
    (folder / "true.urdf").write_text(urdf(NAMES, truth))
    (folder / "person.yaml").write_text(CONFIG)
    model = load_model(folder / "true.urdf", RobotOptions(base="segments"))
    for name in ("train", "test"):
        recorded(folder / f"{name}.npz", model, rng)
    return folder


def identify(folder, *arguments, recording="train.npz"):
    command = ["identify", str(folder / recording), "--urdf", str(folder / "given.urdf"), "--config",
        str(folder / "person.yaml"), "--quiet", *map(str, arguments)]
    return cli.main(command)


def test_the_bodies_of_all_segments_are_found(person, tmp_path, capsys):
    assert identify(person, "--validate", person / "test.npz", "--output", tmp_path / "out") == 0
    result = Result.load(tmp_path / "out")
    errors, prior = result.report["validation"], result.report["prior"]["validation"]
    assert errors["quantity"] == "wrench" and errors["relative_error"] < 0.1 * prior["relative_error"]
    truth = load_model(person / "true.urdf", RobotOptions(base="segments"))
    np.testing.assert_allclose(result.model.body_prior[:, 0], truth.body_prior[:, 0], rtol=0.05)
    given = load_model(person / "given.urdf", RobotOptions(base="segments")).body_prior
    found, before = (geodesic_distance(bodies, truth.body_prior).sum() for bodies in (result.model.body_prior, given))
    assert found < 0.4 * before
    capsys.readouterr()
    assert cli.main(["validate", str(tmp_path / "out"), str(person / "test.npz")]) == 0
    assert cli.main(["report", str(tmp_path / "out")]) == 0
    assert cli.main(["predict", str(tmp_path / "out"), str(person / "test.npz"), "--quiet"]) == 0
    told = capsys.readouterr().out
    assert "wrench error" in told and all(name in told for name in NAMES)
    assert "pelvis" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("suffix", ["trc", "c3d"])
def test_files_of_motion_capture_give_what_npz_gives(person, tmp_path, suffix):
    """Markers of every segment; forces by MOT, or on the plate of a C3D file, which measures both feet."""
    rng, markers = np.random.default_rng(3), {}
    for link in NAMES:
        markers |= {f"{link}{k}": {"link": link, "xyz": rng.uniform(-0.1, 0.1, 3).tolist()} for k in range(4)}
    for name in ("train", "test"):
        content = np.load(person / f"{name}.npz")
        time, seen = content["time"], {}
        for marker, place in markers.items():
            pose = np.split(content["position"], 3, axis=1)[NAMES.index(place["link"])]
            seen[marker] = pose[:, :3] + Rotation.from_quat(pose[:, 3:]).apply(place["xyz"])
        one, two = content["wrench/one"], content["wrench/two"].copy()
        two[:, 3:] += np.cross(PLATE, two[:, :3])  # about the origin of the world
        loads = {str(k): (wrench[:, :3], 0 * wrench[:, :3], wrench[:, 3:]) for k, wrench in enumerate((one, two), 1)}
        if suffix == "trc":
            write_trc(tmp_path / f"{name}.trc", time, seen)
            write_mot(tmp_path / f"{name}_grf.mot", time, loads)
        else:
            whole = [sum(parts) for parts in zip(*loads.values(), strict=True)]
            write_c3d(tmp_path / f"{name}.c3d", time, seen, time, whole)
    plates = {"1_ground_force": {"frame": "left"}, "2_ground_force": {"frame": "right"}}
    plates = plates if suffix == "trc" else {"plate1": {"frame": "left"}}
    config = {"robot": {"base": "segments", "plates": plates, "markers": markers}}
    (tmp_path / "person.yaml").write_text(json.dumps(config))
    assert identify(person, "--output", tmp_path / "npz") in (0, 3)
    recordings = [str(tmp_path / f"{name}.{suffix}") for name in ("train", "test")]
    command = ["identify", recordings[0], "--urdf", str(person / "given.urdf"), "--config",
        str(tmp_path / "person.yaml"), "--output", str(tmp_path / "out"), "--quiet"]
    assert cli.main([*command, "--validate", recordings[1]]) == 0
    ours, theirs = (Result.load(tmp_path / folder).model.body_prior for folder in ("out", "npz"))
    assert geodesic_distance(ours, theirs).max() < 0.02
    assert cli.main(["validate", str(tmp_path / "out"), recordings[1], "--quiet"]) == 0


def test_boards_that_measure_only_pressure_weigh_a_person(person, tmp_path, capsys):
    """Boards with axes of their own; what they do not measure is nonsense in the recordings."""
    turn = Rotation.from_euler("xyz", [np.pi, 0.0, 0.4])
    boards = {name: {"frame": frame, "measures": "pressure", "rpy": [np.pi, 0.0, 0.4], "xyz": list(place)}
        for name, frame, place in (("one", "left", np.zeros(3)), ("two", "right", PLATE))}
    for name in ("train", "test"):
        content = dict(np.load(person / f"{name}.npz"))
        for plate in boards:
            parts = [turn.inv().apply(part) for part in np.split(content[f"wrench/{plate}"], 2, axis=1)]
            content[f"wrench/{plate}"] = np.hstack(parts)
            content[f"wrench/{plate}"][:, [0, 1, 5]] = 1e3
        np.savez(tmp_path / f"{name}.npz", **content)
    settings = ["--set", f"robot.plates={json.dumps(boards)}", "--output", tmp_path / "out"]
    recorded = {"recording": tmp_path / "train.npz"}
    assert identify(person, "--validate", tmp_path / "test.npz", *settings, **recorded) == 0
    report = Result.load(tmp_path / "out").report
    counts = dict(zip(report["channels"], report["effective_samples"], strict=True))
    assert [name for name, count in counts.items() if count > 0] == ["force_z", "torque_x", "torque_y"]
    assert report["validation"]["relative_error"] < 0.1 * report["prior"]["validation"]["relative_error"]
    truth = load_model(person / "true.urdf", RobotOptions(base="segments"))
    masses = [link["mass"] for link in report["links"]]
    assert sum(masses) == pytest.approx(truth.body_prior[:, 0].sum(), rel=0.01)
    capsys.readouterr()
    assert cli.main(["predict", str(tmp_path / "out"), str(tmp_path / "test.npz"), "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    (points,) = (np.array(quantity["value"]) for quantity in told["whole_body"].values())
    measured, predicted = (np.array(told[key]) for key in ("measured", "predicted"))
    expected = np.subtract(*(wrench[:, [4, 3]] * [-1, 1] / wrench[:, 2:3] for wrench in (measured, predicted)))
    np.testing.assert_allclose(points, expected, atol=1e-9)
    assert np.sqrt(np.mean(points**2)) < 0.01  # m
    boards["two"]["xyz"][2] = 0.1
    settings[1] = f"robot.plates={json.dumps(boards)}"
    assert identify(person, *settings[:2], "--output", tmp_path / "other", **recorded) == 2
    assert "measure only a part of the wrench and do not lie in one plane" in capsys.readouterr().err


@pytest.mark.parametrize(("setting", "message"), [
    ("robot.drive_terms=[viscous]", "robot.drive_terms .* has no effect while robot.base is segments"),
    ("robot.loads={bag: {link: left, mass: 1.0, recordings: [walk]}}", "robot.loads: are not part of .*; remove them"),
    ("robot.plates={one: {frame: left}}", "wrench/two was recorded, but the robot has no contact or plate"),
    ("robot.plates={one: {frame: foot}, two: {frame: right}}", "has no frame 'foot'; its links are pelvis, left"),
])
def test_what_does_not_fit_is_refused_in_one_line(person, tmp_path, capsys, setting, message):
    assert identify(person, "--set", setting, "--output", tmp_path / "out") == 2
    told = capsys.readouterr().err.strip()
    assert "\n" not in told and re.search(message, told), told


def test_a_pose_that_was_not_recorded_is_named(person, tmp_path, capsys):
    with np.load(person / "train.npz") as file:
        content = dict(file)
    content["joint_names"] = np.char.replace(content["joint_names"], "left.", "hand.")
    np.savez(tmp_path / "hand.npz", **content)
    assert identify(person, "--output", tmp_path / "out", recording=tmp_path / "hand.npz") == 2
    told = capsys.readouterr().err
    assert "joint_names lacks left.x, left.y, left.z, left.qx and 3 more; record the world pose" in told


def test_a_walking_person_is_weighed(datasets, tmp_path):
    """44 samples at 60 Hz are fitted, and the others are predicted better than by the model of the data set."""
    if not (datasets / FILE).is_file():
        pytest.skip(f"no {FILE} in {datasets}")
    with np.load(datasets / FILE) as file:
        data = dict(file)
    names, samples = [str(name) for name in data["bodies"]], len(data["t"])
    turns = Rotation.from_matrix(data["R"].reshape(-1, 3, 3)).as_quat().reshape(samples, -1, 4)
    poses = np.concatenate([data["p"], turns], axis=2).reshape(samples, -1)
    wrenches = {side: np.hstack([data[f"force_{side}"], data[f"moment_{side}"]
        + np.cross(data[f"cop_{side}"], data[f"force_{side}"])]) for side in "rl"}
    for name, rows in (("train", slice(44)), ("test", slice(44, None))):
        parts = {side: wrench[rows] for side, wrench in wrenches.items()}
        write(tmp_path / f"{name}.npz", names, data["t"][rows], poses[rows], parts)
    (tmp_path / "given.urdf").write_text(urdf(names, data["phi_model"]))
    total = float(data["phi_model"][:, 0].sum())
    (tmp_path / "person.yaml").write_text(json.dumps({"constraints": {"total_mass": total}, "robot": {
        "base": "segments", "gravity": data["gravity"].tolist(),
        "plates": {side: {"frame": f"calcn_{side}"} for side in "rl"}}}))
    assert identify(tmp_path, "--validate", tmp_path / "test.npz", "--output", tmp_path / "out") == 0
    result = Result.load(tmp_path / "out")
    report = result.report
    assert report["validation"]["relative_error"] < report["prior"]["validation"]["relative_error"] < 0.1
    assert len(report["links"]) == 12 and result.model.body_prior[:, 0].sum() == pytest.approx(total, rel=1e-3)
