"""What is proven between samples: bounds that hold, violations that are found, however short they are."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.quick_plans import quick_plan, simple_limits
from support.robots.random_robots import random_model

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.constraint import Constraint, derivative_bounds, find_violation
from inertid_ros.excitation.constraints.effort import EffortConstraint, WrenchRateBounds, prior_effort
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.motions import QuinticRamp
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.regressors.regressor_gradient import BodyWrenches
from inertid_ros.robot.kinematics import TreeKinematics


def moving(seed, joints=4):
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints=joints)
    drives = {term: np.zeros(joints) for term in model.drive_prior}
    drives |= {"rotor_inertia": rng.uniform(0, 1, joints), "viscous": rng.uniform(0, 2, joints)}
    model = replace(model, drive_prior={**drives, "coulomb": rng.uniform(0, 2, joints)})
    free = simple_limits(joints)
    limits = MotionLimits(
        model.joint_names, free.lower, free.upper, free.velocity, free.acceleration, np.full(joints, 1e5)
    )
    return model, limits, quick_plan(limits, rng.uniform(-0.5, 0.5, joints), seed, ExcitationOptions(duration_s=5.0))


@pytest.mark.parametrize("seed", range(6))
def test_rates_of_efforts_and_reaction_hold(seed):
    model, _, plan = moving(seed)
    curve = plan.curve
    effort_rates, force_rates, moment_rates = WrenchRateBounds(model).rates(derivative_bounds(curve))
    time = np.linspace(0.0, plan.duration, 20_001)[:-1] + 1e-5
    q, v, a = curve.sample(time)
    index = np.searchsorted(curve.time, time, side="right") - 1
    same, step = index[1:] == index[:-1], time[1] - time[0]
    effort = np.abs(np.diff(prior_effort(model, q, v, a), axis=0)) / step
    free = np.abs(np.abs(np.diff(np.sign(prior_effort(model, q, v, a)), axis=0))) == 0  # Coulomb friction jumps there
    assert ((effort <= effort_rates[index[1:]] * (1 + 1e-6)) | ~same[:, None] | ~free).all()
    wrench = BodyWrenches.of(TreeKinematics.of(model).state(q, v, a)).regressor @ model.body_prior.ravel()
    rate = np.abs(np.diff(wrench, axis=0)) / step
    assert ((np.linalg.norm(rate[:, :3], axis=1) <= force_rates[index[1:]] * (1 + 1e-6)) | ~same).all()
    assert ((np.linalg.norm(rate[:, 3:], axis=1) <= moment_rates[index[1:]] * (1 + 1e-6)) | ~same).all()


@pytest.mark.parametrize("seed", range(4))
def test_effort_is_proven_close_to_its_peak(seed):
    model, limits, plan = moving(seed)
    peak = np.abs(prior_effort(model, *plan.sample(np.linspace(0, plan.duration, 50_000)))).max(axis=0)
    EffortConstraint(model, 1.002 * peak).check(plan)
    for joint, name in enumerate(model.joint_names):
        weak = 1.01 * peak
        weak[joint] = 0.999 * peak[joint]
        with pytest.raises(ExcitationError, match=f"joint '{name}': the motion needs"):
            EffortConstraint(model, weak).check(plan)


class Dip(Constraint):
    """A function that is negative for a tenth of a millisecond only."""

    def __init__(self, at: float, depth: float) -> None:
        self.at, self.depth = at, depth

    def slack(self, q, v, a):
        return np.abs(q[:, :1] - self.at) - self.depth

    def rates(self, bounds):
        return bounds.velocity[:, :1]


def test_short_violations_are_found_and_near_misses_are_not():
    time = np.linspace(0.0, 1.0, 101)
    curve = PiecewiseQuintic(time, *QuinticRamp(np.zeros(1), np.ones(1), 1.0).sample(time))
    found = find_violation(curve, Dip(0.3456, 1e-4))
    assert found is not None
    assert curve.sample(np.array([found[0]]))[0][0, 0] == pytest.approx(0.3456, abs=1e-4)
    assert find_violation(curve, Dip(1.2, 0.1999)) is None
    assert find_violation(curve, Dip(-0.5, 0.4999)) is None
