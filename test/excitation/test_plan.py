"""Plans: what is refused, and files that give back the same numbers or a clean error."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from support.robots.quick_plans import quick_plan, simple_limits

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motions import QuinticRamp
from inertid_ros.excitation.plan import MAX_KNOTS, Plan, joined, load_motion, plan_of, plan_text, slower

CHANNELS = ("time", "position", "velocity", "acceleration")


@pytest.fixture(scope="module")
def plan() -> Plan:
    limits = simple_limits(3)
    return replace(quick_plan(limits, np.zeros(3), 1, model_hash="abc"), condition_number=42.5)


def changed(plan: Plan, channel: str, row, value) -> Plan:
    array = np.array(getattr(plan, channel))
    array[row] = value
    return replace(plan, **{channel: array})


def test_plan_follows_its_motion(plan):
    ramp = QuinticRamp(np.zeros(3), np.array([0.2, -0.1, 0.0]), 1.7)
    limits = simple_limits(3)
    made = plan_of(ramp, limits)
    times = np.linspace(0, 1.7, 500)
    for found, wanted in zip(made.sample(times), ramp.sample(times), strict=True):
        assert found == pytest.approx(wanted, abs=1e-9)
    assert made.duration == 1.7
    assert made.start == pytest.approx(np.zeros(3))


@pytest.mark.parametrize(
    ("channel", "row", "value", "words"),
    [
        ("position", (5, 1), np.nan, "position is not finite at point 5, joint 'joint1'"),
        ("velocity", (0, 2), np.inf, "velocity is not finite at point 0"),
        ("time", 7, np.nan, "time is not finite at point 7"),
        ("time", 7, 0.0, "time does not increase at point 7"),
        ("time", 0, 0.01, "time begins at 0.01"),
        ("velocity", (-1, 0), 0.3, "joint 'joint0' is not at rest at the end (velocity 0.3)"),
        ("velocity", (0, 1), -0.3, "joint 'joint1' is not at rest at the start"),
        ("acceleration", (-1, 2), 0.1, "joint 'joint2' is not at rest at the end (acceleration"),
    ],
)
def test_broken_plans_are_refused(plan, channel, row, value, words):
    with pytest.raises(ExcitationError) as caught:
        changed(plan, channel, row, value)
    assert words in str(caught.value)


def test_wrong_joints_and_sizes_are_refused(plan):
    with pytest.raises(ExcitationError, match="repeat"):
        replace(plan, joint_names=("a", "b", "a"))
    with pytest.raises(ExcitationError, match="joints of the limits differ"):
        replace(plan, joint_names=("a", "b", "c"))
    with pytest.raises(ExcitationError, match="shape"):
        replace(plan, velocity=plan.velocity[:-1])
    many = np.arange(MAX_KNOTS + 1) * 0.01
    zero = np.zeros((len(many), 3))
    with pytest.raises(ExcitationError, match="100001 points"):
        Plan(plan.joint_names, many, zero, zero, zero, plan.limits)


def test_slower_is_the_same_path(plan):
    half = slower(plan, 0.5)
    times = np.linspace(0, plan.duration, 300)
    q, v, a = plan.sample(times)
    slow = half.sample(2 * times)
    assert slow[0] == pytest.approx(q, abs=1e-12)
    assert slow[1] == pytest.approx(0.5 * v, abs=1e-12)
    assert slow[2] == pytest.approx(0.25 * a, abs=1e-10)
    for wrong in (0.0, -1.0, 1.5, np.nan):
        with pytest.raises(ExcitationError, match="speed scale"):
            slower(plan, wrong)


def test_joined_plans_follow_each_other(plan):
    ramp = plan_of(QuinticRamp(np.full(3, 0.2), plan.start, 2.0), plan.limits)
    whole = joined(ramp, plan)
    assert whole.duration == pytest.approx(2.0 + plan.duration)
    assert (whole.motion_type, whole.condition_number) == (plan.motion_type, plan.condition_number)
    times = np.linspace(0, plan.duration, 200)
    assert whole.sample(2.0 + times)[0] == pytest.approx(plan.sample(times)[0], abs=1e-9)
    with pytest.raises(ExcitationError, match="jumps by"):
        joined(plan_of(QuinticRamp(np.zeros(3), np.ones(3), 2.0), plan.limits), plan)


@pytest.mark.parametrize("kind", ["fourier", "cycloidal"])
def test_files_give_back_the_same_plan(tmp_path, kind):
    options = ExcitationOptions(kind=kind, duration_s=5.0, base_frequency_hz=0.2, intervals=5)
    plan = replace(quick_plan(simple_limits(4), np.full(4, 0.1), 3, options), model_hash="0f", seed=3)
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(plan))
    back = load_motion(path)
    for channel in CHANNELS:
        assert (getattr(back, channel) == getattr(plan, channel)).all()
    for name in ("lower", "upper", "velocity", "acceleration", "effort"):
        assert (getattr(back.limits, name) == getattr(plan.limits, name)).all()
    assert (back.joint_names, back.motion_type, back.seed, back.model_hash) == (plan.joint_names, kind, 3, "0f")
    assert np.isnan(back.condition_number)


def edited(text: str, **changes) -> str:
    content = yaml.safe_load(text)
    for key, value in changes.items():
        if value is None:
            del content[key]
        else:
            content[key] = value
    return yaml.safe_dump(content)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda text: "", "is not a plan"),
        (lambda text: "[1, 2]", "is not a plan"),
        (lambda text: "a: [", "is not YAML"),
        (lambda text: "[" * 5000, "is nested deeper than 50"),
        (lambda text: edited(text, format="inertid_plan/9"), "format is not inertid_plan/1"),
        (lambda text: edited(text, joint_names=None), "joint_names is missing"),
        (lambda text: edited(text, joint_names=["a", "b", "b"]), "repeat ['b']"),
        (lambda text: edited(text, limits=None), "limits are missing"),
        (lambda text: edited(text, limits={"lower": [0, 0, 0]}), "upper is missing"),
        (lambda text: edited(text, points=[[0, 1], [1, 2]]), "point 0 does not hold 10 numbers"),
        (lambda text: edited(text, points=[["x"] * 10, ["y"] * 10]), "does not hold numbers"),
        (lambda text: edited(text, points=[[0.0] * 10]), "has 1 points"),
        (lambda text: edited(text, points=[[0.0] * 10, [0.0] * 10]), "time does not increase"),
        (lambda text: edited(text, points=[[0.0] * 10, [float("nan")] * 10]), "not finite"),
        (lambda text: text.rpartition("points:\n")[0] + "points:\n" + "- [0]\n" * 1001, "has 1001 points"),
        (lambda text: edited(text, seed="many"), "seed is not a whole number"),
        (lambda text: text[: len(text) // 2], ""),
    ],
)
def test_broken_files_are_clean_errors(tmp_path, monkeypatch, edit, words):
    monkeypatch.setattr("inertid_ros.excitation.plan.MAX_KNOTS", 1000)
    path = tmp_path / "plan.yaml"
    ramp = QuinticRamp(np.zeros(3), np.full(3, 0.1), 1.0)
    path.write_text(edit(plan_text(plan_of(ramp, simple_limits(3), knot_step=0.2))))
    with pytest.raises(ExcitationError) as caught:
        load_motion(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_missing_and_wrong_files_are_clean_errors(tmp_path):
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(ExcitationError, match=str(path)):
            load_motion(path)
    (tmp_path / "image.yaml").write_bytes(bytes(range(256)))
    with pytest.raises(ExcitationError, match="is not text"):
        load_motion(tmp_path / "image.yaml")
