"""Methods of `inertid identify` by their keys: each runs, its report names it, and its result is what it promises.

The tables of docs/modes.md name these tests, for methods that no other test of a command or node runs.
"""

import json
from dataclasses import replace
from functools import cache

import attrs
import numpy as np
import pinocchio as pin
import pytest
from support.recordings.synthetic import random_motion
from support.recordings.synthetic_calibration import Case, synthetic_case
from support.robots.floating_robots import motion, satellite, with_prior

from inertid_ros.cli import main as cli
from inertid_ros.config.robot import WheelOptions
from inertid_ros.core.inertial_parameters import (
    Ellipsoid,
    geodesic_distance,
    is_consistent,
    mass_com_inertia,
    pseudo_inertia,
    uniform_ellipsoid,
)
from inertid_ros.data.files.loading import write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.robot.body_changes import write_urdf
from inertid_ros.robot.floating_base_motion import predict_floating
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.free_floating import float_freely, measured

SOLVERS = {
    "euclidean": "interior_point",
    "pullback": "interior_point",
    "relative": "interior_point",
    "riemannian": "interior_point, successive convex models",
    "point_mass": "osqp",
    "geodesic": "geodesic least squares",
}
# Of link0, whose mass and centre of mass the recordings do not show: size, places and use of ellipsoids.
ELLIPSOIDS = {"mass": (0.8,), "com": (0.1, (0.0,), "com"), "union": (0.64, (-1.0, 1.0)), "collision_shapes": (0.8,)}
ROTOR = {"joint": "joint1", "link": "link0", "ratio": 50.0, "mass": 0.5, "inertia": [4e-4, 0.0, 0.0, 4e-4, 0.0, 6e-4]}
BELT = {"joints": ["joint1", "joint2"], "ratios": [1.0, -0.7]}
MOTOR = """<link name="motor"><inertial><mass value="0.5"/><inertia ixx="4e-4" ixy="0" ixz="0" iyy="4e-4" iyz="0"
 izz="6e-4"/></inertial></link><joint name="shaft" type="revolute"><parent link="link0"/><child link="motor"/>
<axis xyz="0 0 1"/><limit lower="-300" upper="300" velocity="300" effort="1"/></joint></robot>"""


@cache
def case() -> Case:
    """A robot of three links."""
    return synthetic_case(7, duration=10.0)


def identify(folder, settings, status=0, urdf="given.urdf"):
    """Report of the fit of a, validated with b; ``settings`` by key, ``status`` None for a verdict of any kind."""
    command = ["identify", str(folder / "a.npz"), "--validate", str(folder / "b.npz"), "--urdf", str(folder / urdf)]
    command += ["--output", str(folder / "result"), "--force", "--quiet"]
    ended = cli.main([*command, *(f"--set={key}={json.dumps(value)}" for key, value in settings.items())])
    assert ended == status or (status is None and ended in (0, 3))
    report = json.loads((folder / "result/report.json").read_text())
    assert (ended == 3) == (report["verdict"] == "do not use")
    return report


def used(report, section="identify"):
    """Section of the configuration in a report."""
    return report["provenance"]["configuration"][section]


def bodies_of(report):
    return np.array([link["parameters"] for link in report["links"]])


def error(report):
    """Held-out error as a share of that of the URDF."""
    return report["validation"]["relative_error"] / report["prior"]["relative_error"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with given.urdf and the recordings a and b."""
    folder = tmp_path_factory.mktemp("modes")
    (folder / "given.urdf").write_text(case().given.urdf)
    for name, recording in zip("ab", case().recordings, strict=True):
        write_npz(recording, folder / f"{name}.npz")
    return folder


@pytest.fixture(scope="module")
def default(folder):
    return identify(folder, {})


@pytest.fixture(scope="module")
def entropic(folder):
    return identify(folder, {"identify.prior_spread": 1.0})


def distance(regularizer, bodies):
    """From the URDF, as [Lee2019]_ and [vanDerGaag2024]_ define it."""
    prior = case().given.body_prior
    if regularizer in ("entropic", "riemannian"):
        return np.sum(geodesic_distance(bodies, prior) ** 2)
    if regularizer == "pullback":
        change = np.linalg.solve(pseudo_inertia(prior), pseudo_inertia(bodies - prior))
        return np.einsum("bij,bji->", change, change)
    return np.sum((bodies - prior) ** 2 / (1.0 if regularizer == "euclidean" else prior**2))


@pytest.mark.parametrize("regularizer", SOLVERS)
def test_regularizers(folder, default, entropic, regularizer):
    """Of bodies that fit alike, those of a regularizer are the nearest to the URDF by its own distance."""
    if regularizer == "point_mass":
        pytest.importorskip("cvxpy")
    spread = {} if regularizer == "geodesic" else {"identify.prior_spread": 1.0}
    report = identify(folder, {"identify.regularizer": regularizer, **spread})
    bodies, other = bodies_of(report), bodies_of(entropic if spread else default)
    assert used(report)["regularizer"] == regularizer and report["solver"]["status"] == "optimal"
    assert report["solver"]["name"].startswith(SOLVERS[regularizer])
    assert is_consistent(bodies).all() and error(report) < 0.02 and geodesic_distance(bodies, other).max() > 1e-3
    if regularizer == "point_mass":  # which lie in ellipsoids around the bodies of the URDF
        pairs = zip(case().given.body_prior, bodies, strict=True)
        assert all(Ellipsoid.from_body(prior, 1.5).row @ body > 0 for prior, body in pairs)
    elif regularizer != "geodesic":  # which also weighs how far the equation of each sample is
        assert distance(regularizer, bodies) < distance(regularizer, other)


@pytest.mark.parametrize("regularizer", ["entropic", "euclidean"])
def test_a_smaller_spread_of_the_prior_keeps_bodies_nearer(folder, regularizer):
    distances = []
    for spread in (0.01, 2.0):
        report = identify(folder, {"identify.regularizer": regularizer, "identify.prior_spread": spread})
        assert (report["solver"]["prior_spread"], used(report)["prior_spread"]) == (spread, spread)
        assert is_consistent(bodies_of(report)).all() and error(report) < 0.05
        distances.append(distance(regularizer, bodies_of(report)))
    assert distances[0] < distances[1]


def test_clarabel_finds_what_the_built_in_solver_finds(folder, default):
    pytest.importorskip("cvxpy")
    report = identify(folder, {"identify.solver": "clarabel"})
    assert (used(report)["solver"], report["solver"]["name"]) == ("clarabel", "clarabel")
    assert report["solver"]["objective"] == pytest.approx(default["solver"]["objective"], rel=1e-2)
    assert geodesic_distance(bodies_of(report), bodies_of(default)).max() < 1e-3 and error(report) < 0.02


@pytest.mark.parametrize("estimator", ["wls", "wls_r", "wls_c", "wls_rc", "truncated", "reduced", "auto"])
def test_classical_estimators(folder, estimator):
    """Their bodies may be inconsistent; only then the result is rejected."""
    report = identify(folder, {"identify.estimator": estimator}, status=None)
    assert (used(report)["estimator"], report["solver"]["name"]) == (estimator, estimator) and error(report) < 0.02
    assert (report["verdict"] == "do not use") == (not is_consistent(bodies_of(report)).all())


def test_sensors_of_known_noise_weight_the_joints(folder):
    """The joints are measured equally well; a deviation that says otherwise costs accuracy of the others."""
    settings, joints = {"identify.estimator": "wls"}, case().truth.joint_names
    equal, other = ({"identify.sensor_deviation": dict(zip(joints, values, strict=True))}
        for values in ([0.02] * len(joints), [1e-5, *[1e3] * (len(joints) - 1)]))
    reports = [identify(folder, {**settings, **stated}, status=None) for stated in (equal, other)]
    assert used(reports[0])["sensor_deviation"] == equal["identify.sensor_deviation"]
    assert error(reports[0]) < 0.02 and error(reports[0]) < error(reports[1])


def test_a_lower_limit_of_variance_leaves_more_at_the_prior(folder):
    settings, reports = {"identify.estimator": "reduced"}, []
    for limit in (1e-5, 1e-2):
        reports.append(identify(folder, {**settings, "identify.variance_limit": limit}))
        assert used(reports[-1])["variance_limit"] == limit and reports[-1]["solver"]["name"] == "reduced"
        assert is_consistent(bodies_of(reports[-1])).all() and error(reports[-1]) < 0.5
    less, more = (distance("pullback", bodies_of(report)) for report in reports)
    assert less < 0.9 * more and error(reports[0]) > error(reports[1])


def test_as_many_parameters_are_fitted_as_the_motion_excites(folder, capsys):
    """In place of a limit of variance, which would have no effect beside the number."""
    settings, reports = {"identify.estimator": "reduced"}, []
    for count in (5, 20):
        reports.append(identify(folder, {**settings, "identify.kept_parameters": count}))
        assert used(reports[-1])["kept_parameters"] == count and reports[-1]["solver"]["name"] == "reduced"
        assert reports[-1]["base_parameters"]["count"] > count
    less, more = (distance("pullback", bodies_of(report)) for report in reports)
    assert less < 0.9 * more and error(reports[0]) > error(reports[1])
    for wrong, message in (
        ({"identify.kept_parameters": 1000}, "identify.kept_parameters is 1000, but only"),
        ({"identify.kept_parameters": 5, "identify.variance_limit": 0.1}, "identify.variance_limit"),
    ):
        identify(folder, {**settings, **wrong}, status=2)
        assert message in capsys.readouterr().err


def ellipsoids(size, sides=(0.0,), holds="mass"):
    """Settings of ellipsoids along the longest axis of the true first body.

    Of size 1, an ellipsoid is the homogeneous one of the body; ``sides`` are in standard deviations of its mass.
    """
    centre, axes, radii = uniform_ellipsoid(case().truth.body_prior[0])
    axes = axes * np.linalg.det(axes)
    step = radii.max() / np.sqrt(5) * axes[:, np.argmax(radii)]
    common = {"link": "link0", "holds": holds, "rpy": pin.rpy.matrixToRpy(axes).tolist()}
    common["semi_axes"] = (size * radii).tolist()
    return {f"part{k}": {**common, "centre": (centre + side * step).tolist()} for k, side in enumerate(sides)}


def outside(report, given):
    """Share of the first body's mass, or distance of its centre of mass, outside of ellipsoids that should hold it."""
    cp = pytest.importorskip("cvxpy")
    body = bodies_of(report)[0]
    shapes = [
        Ellipsoid.from_axes(np.array(each["centre"]), pin.rpy.rpyToMatrix(*each["rpy"]), each["semi_axes"])
        for each in given.values()
    ]
    if given["part0"]["holds"] == "com":
        apart = body[1:4] / body[0] - shapes[0].centre
        return max(0.0, apart @ np.linalg.solve(shapes[0].shape, apart) - 1.0)
    # Parts of the body, each inside of one ellipsoid ([Wensing2018]_ thm. 4, cor. 2)
    J = pseudo_inertia(body)
    size = np.sqrt(np.outer(np.diagonal(J), np.diagonal(J)))
    parts = [cp.Variable((4, 4), PSD=True) for _ in shapes]
    excess = [cp.pos(-cp.trace((each.quadric * size) @ part)) for each, part in zip(shapes, parts, strict=True)]
    return cp.Problem(cp.Minimize(sum(excess)), [sum(parts) == J / size]).solve(solver=cp.CLARABEL) / body[0]


@pytest.mark.parametrize("kind", ELLIPSOIDS)
def test_ellipsoids_hold_mass_or_centre_of_mass(folder, default, kind):
    """They hold the true link; a fit without them leaves them."""
    given, urdf = ellipsoids(*ELLIPSOIDS[kind]), "given.urdf"
    key, value = "ellipsoids", given
    if kind == "collision_shapes":  # a box, whose corners are on the ellipsoid
        key, value, urdf = kind, True, "boxed.urdf"
        (part,) = given.values()
        xyz, rpy, size = (
            " ".join(map(str, each))
            for each in (part["centre"], part["rpy"], 2 / np.sqrt(3) * np.array(part["semi_axes"]))
        )
        box = f'<collision><origin xyz="{xyz}" rpy="{rpy}"/><geometry><box size="{size}"/></geometry></collision>'
        (folder / urdf).write_text(case().given.urdf.replace("</inertial>", f"</inertial>{box}", 1))
    report = identify(folder, {f"constraints.{key}": value}, urdf=urdf)
    assert used(report, "constraints")[key] and is_consistent(bodies_of(report)).all() and error(report) < 0.02
    assert outside(default, given) > 0.02 and outside(report, given) < 1e-6


def test_the_total_mass_is_met(folder, default):
    mass = float(case().truth.body_prior[:, 0].sum())
    report = identify(folder, {"constraints.total_mass": mass})
    assert used(report, "constraints")["total_mass"] == mass and error(report) < 0.02
    assert bodies_of(report)[:, 0].sum() == pytest.approx(mass, rel=1e-6)
    assert abs(bodies_of(default)[:, 0].sum() / mass - 1) > 0.01


@pytest.mark.parametrize("key", ["com_distance.link0", "com_box.link0", "total_mass_range"])
def test_centres_of_mass_and_the_total_mass_keep_bounds(folder, default, key):
    """Bounds around the truth, or around the URDF's centre of mass, that a fit without them leaves."""
    true, given = case().truth.body_prior, case().given.body_prior
    centre, mass = true[0, 1:4] / true[0, 0], float(true[:, 0].sum())
    com_of_urdf = given[0, 1:4] / given[0, 0]
    free = bodies_of(default)[0]
    bounds = {
        "com_distance.link0": float(0.5 * np.linalg.norm(free[1:4] / free[0] - com_of_urdf)),
        "com_box.link0": [*(centre - 1e-3), *(centre + 1e-3)],
        "total_mass_range": [0.999 * mass, 1.001 * mass],
    }
    report = identify(folder, {f"constraints.{key}": bounds[key]})
    assert error(report) < 0.02 and is_consistent(bodies_of(report)).all()

    def excess(report):
        body, whole = bodies_of(report)[0], bodies_of(report)[:, 0].sum()
        com = body[1:4] / body[0]
        return {
            "com_distance.link0": np.linalg.norm(com - com_of_urdf) - bounds["com_distance.link0"],
            "com_box.link0": np.abs(com - centre).max() - 1e-3,
            "total_mass_range": abs(whole - mass) - 1e-3 * mass,
        }[key]

    assert excess(report) < 1e-8 < 1e-4 < excess(default)


def test_bounds_that_contradict_one_another_are_named(folder, capsys):
    part = {"link": "link0", "semi_axes": [0.1, 0.1, 0.1], "holds": "com"}
    for settings, message in (
        ({"total_mass": 3.0, "total_mass_range": [2.0, 4.0]}, "total_mass and total_mass_range are both given"),
        ({"total_mass_range": [4.0, 4.0]}, "give the lowest first, or set total_mass"),
        ({"com_box.link0": [0.0, 0.0, 0.0, 0.1, 0.0, 0.1]}, "give the lowest x, y, z, then the highest"),
        ({"com_distance.link0": 0.1, "ellipsoids.part": part}, "hold the centre of mass of 'link0' twice"),
        ({"com_distance.nowhere": 0.1}, "no moving link 'nowhere'"),
    ):
        identify(folder, {f"constraints.{key}": value for key, value in settings.items()}, status=2)
        assert message in capsys.readouterr().err


def test_semi_consistency_is_weaker_and_the_result_says_so(folder, capsys):
    settings = {"identify.regularizer": "euclidean", "identify.prior_spread": 3.0}
    full = identify(folder, settings)
    identify(folder, {"constraints.consistency": "semi"}, status=2)
    assert "set identify.regularizer=euclidean, or constraints.consistency=full" in capsys.readouterr().err
    semi = identify(folder, settings | {"constraints.consistency": "semi"}, status=None)
    mass, _, inertia = mass_com_inertia(bodies_of(semi))
    assert (mass > 0).all() and (np.linalg.eigvalsh(inertia) > -1e-9).all()
    assert is_consistent(bodies_of(full)).all() and used(semi, "constraints")["consistency"] == "semi"
    assert max(report["train"]["relative_error"] for report in (semi, full)) < 0.01
    assert semi["verdict"] == "do not use" and "only semi-consistent" in semi["reasons"][0]["message"]


@pytest.fixture(scope="module")
def geared(tmp_path_factory):
    """As folder: the motor of the second joint is a body on the first link, and a belt turns with the last two."""
    folder, joints = tmp_path_factory.mktemp("geared"), case().truth.joint_names
    whole = pin.buildModelFromXML(case().truth.urdf.replace("</robot>", MOTOR))
    data, order = whole.createData(), [whole.joints[whole.getJointId(name)].idx_v for name in (*joints, "shaft")]
    gear, belt = np.vstack([np.eye(3), [0.0, ROTOR["ratio"], 0.0]]), np.array([0.0, *BELT["ratios"]])
    (folder / "given.urdf").write_text(case().given.urdf)
    for seed, name in enumerate("ab"):
        rng, time = np.random.default_rng(seed), np.arange(0.0, 10.0, 0.01)
        q, v, a = random_motion(rng, 3).sample(time)
        states = np.zeros((len(time), 3, 4))
        states[:, :, order] = np.stack([q, v, a], axis=1) @ gear.T
        effort = np.array([pin.rnea(whole, data, *state) for state in states])[:, order] @ gear
        effort += np.outer(0.3 * a @ belt + 2.0 * v @ belt + 1.5 * np.sign(v @ belt), belt) + 0.3 * v
        effort += 0.01 * rng.normal(size=v.shape)
        write_npz(Recording(joints, time, q, effort, velocity=v, name=name), folder / f"{name}.npz")
    return folder


def test_motors_are_bodies_and_drives_turn_with_several_joints(geared):
    """The inertia of the motor about its shaft is given a third too large."""
    wrong = {**ROTOR, "inertia": [4e-4, 0.0, 0.0, 4e-4, 0.0, 7.9e-4]}
    settings = {"robot.rotors": {"motor": wrong}, "robot.couplings": {"belt": BELT}, "robot.drive_terms": ["viscous"]}
    report = identify(geared, settings)
    (rotor,), (belt,) = report["rotors"], report["couplings"]
    assert (rotor["name"], rotor["joint"], rotor["link"], rotor["ratio"]) == ("motor", "joint1", "link0", 50.0)
    assert rotor["inertia"][2][2] == pytest.approx(6e-4, rel=0.01) and is_consistent(np.array(rotor["parameters"]))
    assert (belt["name"], belt["joints"], belt["ratios"]) == ("belt", BELT["joints"], BELT["ratios"])
    assert [belt[term] for term in ("rotor_inertia", "viscous", "coulomb")] == pytest.approx([0.3, 2.0, 1.5], rel=0.01)
    assert is_consistent(bodies_of(report)).all() and error(report) < 0.02


def test_a_rotor_has_its_own_spread_around_its_drawing(geared):
    wrong = {**ROTOR, "inertia": [4e-4, 0.0, 0.0, 4e-4, 0.0, 7.9e-4]}
    settings = {"robot.rotors": {"motor": wrong}, "robot.couplings": {"belt": BELT}, "robot.drive_terms": ["viscous"]}
    (rotor,) = identify(geared, {**settings, "identify.spread": {"motor": 1e-3}}, status=None)["rotors"]
    assert rotor["inertia"][2][2] == pytest.approx(7.9e-4, rel=0.1)


def test_a_motor_turns_with_joints_at_ratios_that_depend_on_the_pose(tmp_path, capsys):
    """A crank between the last two joints, whose rotor needs the derivative of its ratios, too."""
    joints = case().truth.joint_names
    (tmp_path / "given.urdf").write_text(case().given.urdf)
    model, data = case().truth.pinocchio, case().truth.pinocchio.createData()
    for seed, name in enumerate("ab"):
        rng, time = np.random.default_rng(seed), np.arange(0.0, 10.0, 0.01)
        q, v, a = random_motion(rng, 3).sample(time)
        (_, one, two), (_, v1, v2) = q.T, v.T
        ratios = np.stack([0 * one, 2 + np.cos(one) * two, np.sin(one)], axis=1)
        speed = np.sum(ratios * v, axis=1)
        bend = 2 * np.cos(one) * v1 * v2 - np.sin(one) * two * v1**2
        motor = 0.3 * (np.sum(ratios * a, axis=1) + bend) + 2.0 * speed + 1.5 * np.sign(speed)
        effort = np.array([pin.rnea(model, data, *state) for state in zip(q, v, a, strict=True)])
        effort += ratios * motor[:, None] + 0.3 * v + 0.01 * rng.normal(size=v.shape)
        write_npz(Recording(joints, time, q, effort, velocity=v, name=name), tmp_path / f"{name}.npz")
    position = f'2*q["{joints[1]}"] + sin(q["{joints[1]}"])*q["{joints[2]}"]'
    settings = {"robot.couplings": {"crank": {"position": position}}, "robot.drive_terms": ["viscous"]}
    report = identify(tmp_path, settings)
    (crank,) = report["couplings"]
    assert crank["position"] == position and crank["joints"] == list(joints[1:]) and report["terms"] == []
    assert [crank[term] for term in ("rotor_inertia", "viscous", "coulomb")] == pytest.approx([0.3, 2.0, 1.5], rel=0.02)
    assert is_consistent(bodies_of(report)).all() and error(report) < 0.03
    capsys.readouterr()
    assert cli.main(["validate", str(tmp_path / "result"), str(tmp_path / "b.npz"), "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["validation"]["relative_error"] < 0.02


@pytest.mark.parametrize("regularizer", ["entropic", "pullback", "riemannian"])
def test_a_rotor_inertia_stays_near_its_data_sheet(folder, default, regularizer):
    """That of the first joint, which the data do not tell from the inertia of its link; others follow the data."""
    given = {"robot.rotor_inertias.joint0": 0.05, "identify.regularizer": regularizer}
    report = identify(folder, given)
    first, *others = (joint["rotor_inertia"] for joint in report["joints"])
    assert first == pytest.approx(0.05, rel=0.2) and max(others) < 0.002 and error(report) < 0.02
    lower, upper = report["joints"][0]["interval"]["rotor_inertia"]
    assert 0 < lower < first < upper and default["joints"][0]["rotor_inertia"] == 0.0


def test_the_rotor_inertia_of_a_coupling_has_a_prior(geared):
    settings = {"robot.couplings": {"belt": BELT}, "robot.drive_terms": ["viscous"], "robot.rotor_inertias.belt": 0.4}
    (free,) = identify(geared, settings)["couplings"]
    (held,) = identify(geared, {**settings, "identify.prior_spread": 0.01}, status=None)["couplings"]
    assert free["rotor_inertia"] == pytest.approx(0.3, rel=0.01) and 0.37 < held["rotor_inertia"] < 0.4


def test_a_rotor_inertia_that_belongs_to_no_drive_is_refused(folder, capsys):
    for settings, message in (
        ({"robot.rotor_inertias.elbow": 0.1}, "rotor_inertias: no joint or coupling 'elbow'"),
        ({"robot.rotor_inertias.joint0": 0.1, "robot.drive_terms": ["viscous"]}, "needs rotor_inertia in drive_terms"),
    ):
        identify(folder, settings, status=2)
        assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """As folder: the biped on two plates, with friction in its joints; and its plates."""
    pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")
    from support.recordings.biped import biped, prior

    folder = tmp_path_factory.mktemp("standing")
    (folder / "given.urdf").write_text(prior().urdf)
    for name, recording in zip("ab", (biped(), biped(movements=4, seed=2)), strict=True):
        friction = 4.0 * recording.velocity + 2.0 * np.sign(recording.velocity)
        write_npz(replace(recording, effort=recording.effort + friction), folder / f"{name}.npz")
    return folder, {name: attrs.asdict(plate) for name, plate in prior().options.plates.items()}


@pytest.mark.xdist_group("biped")
@pytest.mark.parametrize("measures", ["wrench", "pressure"])
def test_a_biped_is_weighed(standing, measures, capsys):
    """Plates that measure wrenches show the efforts of the legs, with friction; balance boards do not."""
    folder, plates = standing
    settings = {
        "robot.base": "free",
        "prepare.base.motion_from": "imu",
        "prepare.base.imu_frame": "imu",
        "robot.plates": {name: {**plate, "measures": measures} for name, plate in plates.items()},
        "robot.drive_terms": ["viscous", "coulomb"] if measures == "wrench" else [],
    }
    report = identify(folder, settings)
    assert {plate["measures"] for plate in used(report, "robot")["plates"].values()} == {measures}
    assert used(report, "prepare")["base"]["motion_from"] == "imu" and used(report, "robot")["base"] == "free"
    assert bodies_of(report)[:, 0].sum() == pytest.approx(41.05, rel=0.005)
    assert is_consistent(bodies_of(report)).all() and error(report) < 0.3
    counts = dict(zip(report["channels"], report["effective_samples"], strict=True))
    assert all(counts[f"base.{channel}"] > 0 for channel in ("force_z", "torque_x", "torque_y"))
    assert (counts["base.force_x"] > 0) == (counts["left_knee"] > 0) == (measures == "wrench")
    if measures == "wrench":
        viscous, coulomb = ([joint[term] for joint in report["joints"]] for term in ("viscous", "coulomb"))
        assert np.median(viscous) == pytest.approx(4.0, rel=0.1) and coulomb == pytest.approx([2.0] * 10, rel=0.1)
    check_whole_body(folder, measures, capsys)


def check_whole_body(folder, measures, capsys):
    """`inertid predict` tells where the centre of mass is, and how well joint torques predict whole wrenches."""
    capsys.readouterr()
    command = ["predict", str(folder / "result"), str(folder / "b.npz"), "--json", "--quiet", "--table"]
    assert cli.main([*command, str(folder / f"{measures}.csv")]) == 0
    quantities = json.loads(capsys.readouterr().out)["whole_body"]
    assert len(quantities) == (3 if measures == "wrench" else 2)
    height = np.array(quantities["centre of mass, world [m]"]["value"])[:, 2]
    assert (height > 0.7).all() and (height < 1.2).all()
    if measures == "wrench":
        missed = np.array(quantities["measured minus predicted wrench [N, N m]"]["value"], dtype=float)
        assert np.sqrt(np.nanmean(missed[:, :3] ** 2)) < 5.0
        lame = dict(np.load(folder / "b.npz"))
        lame["effort"][:, 3] = np.nan
        np.savez(folder / "lame.npz", **lame)
        assert cli.main(["predict", str(folder / "result"), str(folder / "lame.npz"), "--quiet"]) == 0
        shown = capsys.readouterr().out
        assert "wrench [N, N m]: unknown, because every sample lacks" in shown and "[N s, N m s]" in shown
    header = (folder / f"{measures}.csv").read_text().split("\n", 1)[0]
    assert "centre of mass, world [m].z.standard_deviation" in header


@pytest.fixture(scope="module")
def floating(tmp_path_factory):
    """As folder: a satellite with an arm and three wheels, one of them on the arm; and its wheels."""
    folder, robot = tmp_path_factory.mktemp("floating"), satellite(np.random.default_rng(0), 3)
    wheels = {**robot.options.wheels, "wheel_x": WheelOptions(0.1, "L1", (1.0, 0.0, 0.0))}
    robot = load_model(robot.urdf, attrs.evolve(robot.options, wheels=wheels))
    (folder / "given.urdf").write_text(write_urdf(robot, with_prior(robot, np.random.default_rng(1)).body_prior))
    for seed, name in enumerate("ab"):
        path = motion(robot, 24, seed, speed=0.25).trajectory
        found = float_freely(robot, robot.body_prior, path, 50.0)
        recording = measured(robot, found, (1e-4, 1e-4, 1e-4), np.random.default_rng(seed), name)
        torque = predict_floating(robot, robot.body_prior, *path.sample(found.time)).torque
        write_npz(replace(recording, effort=np.hstack([torque, np.zeros_like(found.speeds)])), folder / f"{name}.npz")
    return folder, {name: attrs.asdict(wheel) for name, wheel in wheels.items()}


@pytest.mark.parametrize("estimator", ["consistent", "ols"])
def test_momentum_predicts_twist_and_torque(floating, estimator):
    """The fit does not use the torque."""
    folder, wheels = floating
    settings = {
        "robot.base": "free",
        "robot.wheels": wheels,
        "robot.gravity": [0.0, 0.0, 0.0],
        "identify.equations": "momentum",
        "identify.estimator": estimator,
    }
    report = identify(folder, settings, status=None)
    assert (used(report)["equations"], used(report)["estimator"]) == ("momentum", estimator) and error(report) < 0.01
    assert (report["solver"]["name"] == "ols") == (estimator == "ols")
    assert (report["verdict"] == "do not use") == (not is_consistent(bodies_of(report)).all())
    quantities = [each["quantity"] for each in report["predictions"]]
    assert quantities[2:] == [f"torque of J{number}" for number in (1, 2, 3)] and len(quantities) == 5
    for each in report["predictions"]:
        assert each["calibrated"] < 0.05 * each["prior"] and each["calibrated"] < 0.02 * each["measured"]
