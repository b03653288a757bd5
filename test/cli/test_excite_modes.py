"""Methods of `inertid excite` by their keys: each runs, its summary names it, and the motion is what it promises.

The tables of docs/modes.md name these tests, for methods that no other test of a command or node runs.
"""

import json

import numpy as np
import pinocchio as pin
import pytest
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.cli import main as cli
from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.plan import load_motion
from inertid_ros.excitation.planning.criterion import make_criterion
from inertid_ros.robot.body_changes import write_urdf
from inertid_ros.robot.model import load_model

QUICK = {"excitation.starts": 1, "excitation.improved": 0, "excitation.duration_s": 10.0}
CRITERIA = {"a": lambda deviations: np.sqrt(np.mean(deviations**2)), "d": lambda s: np.exp(np.mean(np.log(s)))}


@pytest.fixture(scope="module")
def robot():
    return synthetic_case(7, recordings=0).given


@pytest.fixture
def excite(robot, tmp_path):
    """Function that plans a motion within limits, for settings and a multiple of the masses: summary and plan."""

    def planned(settings, heavier=1.0):
        (tmp_path / "robot.urdf").write_text(write_urdf(robot, heavier * robot.body_prior))
        command = ["excite", "--urdf", str(tmp_path / "robot.urdf"), "--output", str(tmp_path / "motion")]
        command += [f"--set={key}={json.dumps(value)}" for key, value in {**QUICK, **settings}.items()]
        assert cli.main([*command, "--force", "--quiet"]) == 0
        summary = json.loads((tmp_path / "motion/excitation.json").read_text())
        for joint in summary["joints"]:
            assert max(joint[f"{name}_used"] for name in ("range", "velocity", "acceleration", "effort")) <= 1 + 1e-9
        return summary, load_motion(tmp_path / "motion/plan.yaml")

    return planned


@pytest.mark.parametrize("criterion", CRITERIA)
def test_criteria(excite, criterion):
    """The value is that of the singular values in the summary."""
    summary, _ = excite({"excitation.criterion": criterion})
    expected = CRITERIA[criterion](1 / np.array(summary["singular_values"]["after"]))
    assert (summary["criterion"]["kind"], summary["criterion"]["scaling"]) == (criterion, "columns")
    assert summary["criterion"]["value"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scaling", ["prior", "none"])
def test_scalings(excite, scaling):
    """Twice the masses halve deviations as shares of the prior, and leave deviations in SI units as they are."""
    settings = {"excitation.criterion": "a", "excitation.scaling": scaling, "robot.drive_terms": []}
    (light, plan), (heavy, again) = excite(settings), excite(settings, 2.0)
    np.testing.assert_array_equal(plan.position, again.position)
    assert (light["criterion"]["kind"], light["criterion"]["scaling"]) == ("a", scaling)
    expected = light["criterion"]["value"] * (0.5 if scaling == "prior" else 1.0)
    assert heavy["criterion"]["value"] == pytest.approx(expected, rel=1e-6)


def test_the_condition_number_without_scaling_is_that_of_the_regressor(excite, robot):
    """[Ayusawa2017]_ eq. 7, against Pinocchio's regressor of the same base parameters, by the limits of effort."""
    summary, plan = excite({"excitation.scaling": "none", "robot.drive_terms": []})
    limits = motion_limits(robot)
    bodies = load_model(robot.urdf, RobotOptions(drive_terms=()))
    criterion = make_criterion(bodies, limits, ExcitationOptions(scaling="none"))
    data, chosen = robot.pinocchio.createData(), criterion.measured.columns[criterion.columns]
    states = zip(plan.position, plan.velocity, plan.acceleration, strict=True)
    rows = [pin.computeJointTorqueRegressor(robot.pinocchio, data, *state)[:, chosen] for state in states]
    expected = np.linalg.cond(np.concatenate(rows / limits.effort[:, None]))
    assert (summary["criterion"]["kind"], summary["criterion"]["scaling"]) == ("condition", "none")
    assert summary["criterion"]["value"] == pytest.approx(expected, rel=0.02)


def test_splines(excite):
    """Seven polynomials of degree five."""
    summary, plan = excite({"excitation.kind": "bspline", "excitation.intervals": 7})
    assert summary["kind"] == plan.motion_type == "bspline" and np.isfinite(summary["criterion"]["value"])
    breaks = np.linspace(0.0, 10.0, 8)
    for begin, end in zip(breaks[:-1], breaks[1:], strict=True):
        within = (plan.time >= begin) & (plan.time <= end)
        _, (residual, *_) = np.polynomial.Polynomial.fit(plan.time[within], plan.position[within, 0], 5, full=True)
        assert residual < 1e-16


def test_a_bound_of_the_criterion_leaves_parameters_out(excite):
    (every, _), (fewer, _) = excite({}), excite({"excitation.criterion_bound": 150.0})
    assert every["criterion"]["value"] > 150.0 >= fewer["criterion"]["value"]
    assert 0 < fewer["criterion"]["parameters"] < every["criterion"]["parameters"]


def test_the_wrench_at_the_base_is_measured(excite):
    """It shows fewer parameters than joints with friction; their deviations are in proportion to the sensor's."""
    settings, values = {"excitation.criterion": "a", "excitation.scaling": "metric"}, []
    joints, _ = excite(settings)
    for noise in ([1.0, 0.4], [2.0, 0.8]):
        base, _ = excite({**settings, "excitation.measured": ["base"], "excitation.base_deviation": noise})
        assert base["configuration"]["excitation"]["measured"] == ["base"]
        assert 0 < base["criterion"]["parameters"] < joints["criterion"]["parameters"]
        values.append(base["criterion"]["value"])
    assert values[1] == pytest.approx(2 * values[0], rel=1e-6)


def test_the_centre_of_mass_stays_above_its_area(robot, excite):
    tree, data = robot.pinocchio, robot.pinocchio.createData()

    def ground(plan):
        return np.array([pin.centerOfMass(tree, data, q)[:2] for q in plan.position])

    free = ground(excite({})[1])
    reach = 0.5 * np.abs(free - free[0]).max(axis=0)
    x, y = (free[0][:, None] + reach[:, None] * [[-1, 1, 1, -1], [-1, -1, 1, 1]]).tolist()
    summary, plan = excite({"excitation.balance.com_region.x": x, "excitation.balance.com_region.y": y})
    (told,) = [each for each in summary["constraints"] if "centre of mass" in each["words"]]
    assert 0.5 < told["used"] <= 1 and (np.abs(ground(plan) - free[0]) <= reach + 1e-9).all()
