"""Balance: centre of mass, zero-moment point and normal force, against Pinocchio's free-floating robot."""

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from support.robots.quick_plans import quick_plan, simple_limits
from support.robots.random_robots import random_urdf

from inertid_ros.config.excitation import AreaOptions, BalanceOptions, ExcitationOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.balance import CentreOfMassConstraint, ZeroMomentPointConstraint, polygon
from inertid_ros.excitation.constraints.constraint import MotionSamples
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.regressors.regressor_gradient import regressor_product_gradient
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.model import load_model

GROUND = -0.6
SQUARE = AreaOptions((-0.3, 0.4, 0.4, -0.3), (-0.3, -0.3, 0.3, 0.3))


def supported_robot(seed, joints=4, weight=30.0):
    """A random robot on a heavy root, and Pinocchio's model of it with a free base."""
    root = etree.fromstring(random_urdf(np.random.default_rng(seed), joints))
    link = root.find("link")
    for element in link.findall("inertial"):
        link.remove(element)
    inertia = 'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"'
    text = f'<inertial><origin xyz="0.05 -0.02 -0.3"/><mass value="{weight}"/><inertia {inertia}/></inertial>'
    link.append(etree.fromstring(text))
    urdf = etree.tostring(root, encoding="unicode")
    floating = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
    return load_model(urdf, RobotOptions(gravity=(0.3, -0.2, -9.7))), floating


def limits_of(model, speed=1.0):
    free = simple_limits(model.joints).scaled(speed, speed)
    return MotionLimits(
        model.joint_names, free.lower, free.upper, free.velocity, free.acceleration, np.full(model.joints, 1e5)
    )


def truth(model, floating, q, v, a):
    """Centre of mass ``(3,)`` and reaction wrench ``(6,)`` in the root frame."""
    floating.gravity.linear = np.array(model.options.gravity)
    data = floating.createData()
    pose = np.concatenate([np.zeros(6), [1.0], q])
    wrench = pin.rnea(floating, data, pose, np.concatenate([np.zeros(6), v]), np.concatenate([np.zeros(6), a]))[:6]
    return pin.centerOfMass(floating, data, pose), wrench


@pytest.mark.parametrize("seed", range(4))
def test_distances_are_those_of_pinocchio(seed):
    model, floating = supported_robot(seed)
    area = polygon(SQUARE, "area")
    com, contact = CentreOfMassConstraint(model, area, GROUND), ZeroMomentPointConstraint(model, area, GROUND, 0.2)
    q, v, a = np.random.default_rng(seed).normal(size=(3, 5, model.joints))
    for row in range(5):
        centre, wrench = truth(model, floating, q[row], v[row], a[row])
        down = np.array(model.options.gravity)
        below = centre + down * (GROUND - centre[2]) / down[2]
        every = np.arange(4)
        found = com.values(*(np.repeat(x[row : row + 1], 4, 0) for x in (q, v, a)), every)
        assert found == pytest.approx(area.distances(below[None, :2])[0], abs=1e-9)
        # The torque about the zero-moment point has no horizontal part.
        force, torque = wrench[:3], wrench[3:]
        here = contact._wrench(*(x[row : row + 1] for x in (q, v, a)))
        point = np.append(contact._zero_moment_point(here)[0], GROUND)
        assert (torque - np.cross(point, force))[:2] == pytest.approx(0.0, abs=1e-8)
        found = contact.values(*(np.repeat(x[row : row + 1], 5, 0) for x in (q, v, a)), np.arange(5))
        assert found[:4] == pytest.approx(area.distances(point[None, :2])[0] * force[2], abs=1e-8)
        whole = 9.81 * sum(inertia.mass for inertia in floating.inertias)
        assert found[4] == pytest.approx(force[2] - 0.2 * whole * np.linalg.norm(down) / 9.81)


@pytest.mark.parametrize("seed", range(3))
def test_penalties_are_differentiated_exactly(seed):
    model, _ = supported_robot(seed)
    area = polygon(AreaOptions((0.0, 0.05, 0.02), (0.0, 0.0, 0.04)), "area")
    rng = np.random.default_rng(seed)
    motion, direction = rng.normal(size=(2, 3, 12, model.joints))
    chain = TreeKinematics.of(model)
    com, contact = CentreOfMassConstraint(model, area, GROUND), ZeroMomentPointConstraint(model, area, GROUND, 0.9)
    for constraint in (com, contact):

        def value(x, constraint=constraint):
            return constraint.penalty(MotionSamples(chain, *x)).value

        penalty = constraint.penalty(MotionSamples(chain, *motion))
        along = regressor_product_gradient(chain, chain.state(*motion), base_weights=penalty.base_weights)
        names = ("position", "velocity", "acceleration")
        parts = [getattr(penalty, name) + getattr(along, name) for name in names]
        step = 1e-6
        difference = (value(motion + step * direction) - value(motion - step * direction)) / (2 * step)
        assert np.vdot(parts, direction) == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_balance_is_proven_close_to_its_border(seed):
    model, _ = supported_robot(seed)
    limits = limits_of(model, 0.5)
    start = np.zeros(model.joints)
    plan = quick_plan(limits, start, seed, ExcitationOptions(duration_s=5.0))
    fine = plan.sample(np.linspace(0, plan.duration, 20_000))
    wide = polygon(AreaOptions((-9, 9, 9, -9), (-9, -9, 9, 9)), "area")
    for of_mass, words in ((True, "centre of mass: is at"), (False, "zero-moment point: is at")):
        kind, more = (CentreOfMassConstraint, ()) if of_mass else (ZeroMomentPointConstraint, (0.0,))
        probe = kind(model, wide, GROUND, *more)
        points = probe.below(fine[0]) if of_mass else probe._zero_moment_point(probe._wrench(*fine))
        low, high = points.min(axis=0), points.max(axis=0)

        def box(room, low=low, high=high):
            corners = [(x, y) for x in (low[0] - room, high[0] + room) for y in (low[1] - room, high[1] + room)]
            return polygon(AreaOptions(*zip(*corners, strict=True)), "area")

        kind(model, box(0.01), GROUND, *more).check(plan)
        with pytest.raises(ExcitationError, match=words):
            kind(model, box(-1e-4), GROUND, *more).check(plan)


def test_a_planned_motion_stays_in_balance():
    model, _ = supported_robot(1)
    limits = limits_of(model)
    start = np.zeros(model.joints)
    centre = CentreOfMassConstraint(model, polygon(SQUARE, "area"), GROUND).below(start[None])[0]
    corners = [(centre[0] + x, centre[1] + y) for x in (-0.08, 0.08) for y in (-0.06, 0.06)]
    balance = BalanceOptions(support=AreaOptions(*zip(*corners, strict=True)), ground_m=GROUND, support_margin_m=0.01)
    options = ExcitationOptions(
        duration_s=5.0, base_frequency_hz=0.2, starts=4, improved=1, iterations=15, criterion_samples=50,
        balance=balance,
    )
    constraints = motion_constraints(model, limits, options)
    assert [type(each) for each in constraints[-2:]] == [CentreOfMassConstraint, ZeroMomentPointConstraint]
    plan = plan_excitation(model, limits, start, options)
    for constraint in constraints:
        constraint.check(plan)
        assert constraint.usage(plan).used <= 1 + 1e-9
    assert np.ptp(plan.position, axis=0).max() > 0.05


@pytest.mark.parametrize(
    ("area", "margin", "words"),
    [
        (AreaOptions(), 0.0, "has 0 corners"), (AreaOptions((0, 1), (0, 0)), 0.0, "has 2 corners"),
        (AreaOptions((0, 1, 2), (0, 1, 2)), 0.0, "on a line"),
        (SQUARE, 0.31, "has a radius of 0.3 m"),
    ],
)
def test_empty_areas_are_refused(area, margin, words):
    with pytest.raises(ExcitationError, match=f"balance.support: .*{words}"):
        polygon(area, "balance.support", margin)


def test_a_start_out_of_balance_is_refused():
    model, _ = supported_robot(0)
    away = polygon(AreaOptions((2, 3, 3, 2), (2, 2, 3, 3)), "area")
    with pytest.raises(ExcitationError, match=r"centre of mass: is at \(.*\) m in the start pose, .* m outside"):
        CentreOfMassConstraint(model, away, GROUND).check_start(np.zeros(model.joints))
    with pytest.raises(ExcitationError, match=r"zero-moment point: is at \(.*\) m in the start pose, .* m outside"):
        ZeroMomentPointConstraint(model, away, GROUND, 0.1).check_start(np.zeros(model.joints))
    light = ZeroMomentPointConstraint(model, polygon(AreaOptions((-9, 9, 9, -9), (-9, -9, 9, 9)), "area"), GROUND, 1.0)
    with pytest.raises(ExcitationError, match=r"normal force: is .* N in the start pose, less than"):
        light.check_start(np.zeros(model.joints))
