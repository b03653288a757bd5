"""A robot on one foot is planned and fitted by one configuration, with the URDF as published."""

import json

import numpy as np
import pinocchio as pin
import yaml

from inertid_ros.cli import main as cli
from inertid_ros.config.robot import RobotOptions
from inertid_ros.data.files.loading import write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.plan import load_motion
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import packaged_urdf

# The sole, from the origin of the foot: x forward, y left, and its height.
LENGTH, WIDTH, HEIGHT = (-0.085, 0.185), (-0.055, 0.055), -0.09
CORNERS = {"x": [LENGTH[0], LENGTH[1], LENGTH[1], LENGTH[0]], "y": [WIDTH[0], WIDTH[0], WIDTH[1], WIDTH[1]]}
HELD = {f"left_{joint}": 0.0 for joint in ("knee", "ankle_flexion", "ankle_eversion")}
CONFIGURATION = {
    "robot": {"base": "free", "locked_joints": HELD, "plates": {"plate": {"frame": "right_foot"}}, "drive_terms": []},
    "excitation": {
        "measured": ["base"], "starts": 1, "improved": 0, "duration_s": 10.0,
        "balance": {"support": CORNERS, "support_margin_m": 0.01, "ground_m": HEIGHT},
    },
    "limits": {"effort": {"right_ankle_eversion": 50.0}},
}
FREE, STEP_S = RobotOptions(base="free", locked_joints=HELD), 1e-4


def stand(model: pin.Model, plan, name: str, rng: np.random.Generator) -> Recording:
    """Recording of the motion, with the foot at the origin of the world and the axes of the base in the zero pose."""
    plan = plan.ordered(tuple(model.names)[2:])
    data, foot = model.createData(), model.getFrameId("right_foot")
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    standing = pin.SE3(data.oMf[foot].rotation, np.zeros(3))
    times = np.arange(STEP_S, plan.duration - STEP_S, 0.02)

    def whole(joints: np.ndarray) -> np.ndarray:
        pin.framesForwardKinematics(model, data, np.concatenate([pin.neutral(model)[:7], joints]))
        return np.concatenate([pin.SE3ToXYZQUAT(standing * data.oMf[foot].inverse()), joints])

    poses, wrenches = [], []
    for before, now, after in zip(*(plan.sample(times + shift)[0] for shift in (-STEP_S, 0.0, STEP_S)), strict=True):
        before, now, after = map(whole, (before, now, after))
        earlier, later = (pin.difference(model, *pair) / STEP_S for pair in ((before, now), (now, after)))
        force = pin.rnea(model, data, now, (earlier + later) / 2, (later - earlier) / STEP_S)[:6]
        wrenches.append(pin.XYZQUATToSE3(now[:7]).act(pin.Force(force)).vector)
        poses.append(now)
    poses, noise = np.array(poses), rng.normal(size=(len(times), 6)) * np.repeat([0.5, 1.5], 3)
    return Recording(plan.joint_names, times, poses[:, 7:], np.full(poses[:, 7:].shape, np.nan), name=name,
                     base_pose=poses[:, :7], wrenches={"plate": np.array(wrenches) + noise})  # fmt: skip


def test_one_configuration_plans_and_fits(tmp_path):
    """The zero-moment point, computed from the published URDF, stays over the sole; the fit predicts the plate."""
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(CONFIGURATION))
    true, rng = load_model(packaged_urdf("exoskeleton"), FREE), np.random.default_rng(0)
    (tmp_path / "given.urdf").write_text(write_urdf(true, perturb(true, rng)))
    usual = ["--urdf", str(tmp_path / "given.urdf"), "--config", str(tmp_path / "robot.yaml"), "--quiet", "--json"]
    assert cli.main(["excite", *usual, "--output", str(tmp_path / "motion")]) == 0
    given = load_model(tmp_path / "given.urdf", FREE)
    for name, file in (("a", "plan.yaml"), ("b", "validation_plan.yaml")):
        plan = load_motion(tmp_path / "motion" / file)
        write_npz(stand(true.pinocchio, plan, name, rng), tmp_path / f"{name}.npz")
        force, torque = np.hsplit(stand(given.pinocchio, plan, name, rng).wrenches["plate"], 2)
        ahead = (HEIGHT * force[:, 0] - torque[:, 1]) / force[:, 2]
        left = (torque[:, 0] + HEIGHT * force[:, 1]) / force[:, 2]
        for point, (low, high) in ((ahead, LENGTH), (left, WIDTH)):  # the noise of the torque is a hundredth of a metre
            assert low - 0.02 < point.min() and point.max() < high + 0.02
    paths = [str(tmp_path / "a.npz"), "--validate", str(tmp_path / "b.npz"), "--output", str(tmp_path / "result")]
    assert cli.main(["identify", *paths, *usual]) == 0
    report = json.loads((tmp_path / "result/report.json").read_text())
    assert report["validation"]["relative_error"] < 0.4 * report["prior"]["relative_error"]
