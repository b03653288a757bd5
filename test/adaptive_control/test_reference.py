"""References: what is followed, what is refused, and brakes on the path."""

from dataclasses import replace

import numpy as np
import pytest
from support.nodes.two_links import two_links

from inertid_ros.adaptive_control.controller import Reference
from inertid_ros.adaptive_control.reference import ReferenceMotion, way_along
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.quintic import PiecewiseQuintic

LIMITS = two_links()[1]
ZERO, NOW = np.zeros(2), 50.0
HERE = Reference(np.array([0.1, -0.2]), ZERO, ZERO)


def ramp(start: float = NOW, begin: float = 0.0, seconds: float = 2.0, size: float = 0.5) -> PiecewiseQuintic:
    """Minimum jerk from where the reference is, in 30 points."""
    time = begin + np.linspace(0.0, seconds, 30)
    s = (time - begin) / seconds
    shape = [10 * s**3 - 15 * s**4 + 6 * s**5, 30 * s**2 - 60 * s**3 + 30 * s**4, 60 * s - 180 * s**2 + 120 * s**3]
    q, v, a = (np.outer(each, [size, -size]) / seconds**k for k, each in enumerate(shape))
    return PiecewiseQuintic(start + time, HERE.position + q, v, a)


@pytest.mark.parametrize("late", [-0.5, 0.0, 0.05, 0.15])
def test_a_trajectory_is_joined_where_it_is_by_now(late):
    sent = ramp(NOW - late)
    curve = way_along(sent, HERE, NOW, LIMITS)
    q, v, a = curve.sample(np.array([0.0, curve.duration]))
    np.testing.assert_allclose(q, [HERE.position, sent.position[-1]])
    np.testing.assert_allclose([v, a], 0.0, atol=1e-12)
    assert curve.duration == pytest.approx(2.0 - late)
    halfway = curve.sample(np.array([1.0 - late]))[0]
    np.testing.assert_allclose(halfway[0], HERE.position + [0.25, -0.25], atol=1e-4)


def test_positions_alone_are_passed_at_rest():
    far = HERE.position + [0.3, 0.3]
    curve = way_along(PiecewiseQuintic(NOW + np.array([2.0]), far[None], ZERO[None], ZERO[None]), HERE, NOW, LIMITS)
    np.testing.assert_allclose(curve.position[-1], far)


LAST_MOVES = np.vstack([ramp().velocity[:-1], [0.1, 0.0]])
REFUSED = {
    "position": (ramp(size=2.5, seconds=10.0), "position .* is beyond"),
    "velocity": (ramp(size=1.6, seconds=1.5), "velocity"),
    "acceleration": (ramp(size=0.3, seconds=0.3), "acceleration"),
    "elsewhere": (replace(ramp(), position=ramp().position + 0.3), "on the way to it joint 'shoulder'"),
    "past": (ramp(NOW - 0.5), "began 0.500 s ago"),
    "future": (ramp(NOW + 3600.0), "begins only in 3600 s"),
    "moving at its end": (replace(ramp(), velocity=LAST_MOVES), "moves at the last point"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    sent, words = REFUSED[what]
    with pytest.raises(ExcitationError, match=words) as refusal:
        way_along(sent, HERE, NOW, LIMITS)
    assert str(refusal.value).startswith("reference: ") and "\n" not in str(refusal.value)


@pytest.mark.parametrize("at", [0.2, 0.7, 1.0, 1.6])
def test_a_brake_keeps_the_path_and_all_limits(at):
    limits = replace(LIMITS, acceleration=np.array([2.0, 2.0]))
    sent = ramp(size=0.6, seconds=1.8)
    motion = ReferenceMotion(limits, HERE.position, ZERO, NOW)
    motion.follow(way_along(sent, HERE, NOW, limits), NOW)
    times = NOW + np.arange(0.0, 4.0, 0.002)
    asked = []
    for time in times:
        if time >= NOW + at:
            motion.brake()
        asked.append(motion.at(time))
    q, v, a = (np.array([getattr(each, key) for each in asked]) for key in ("position", "velocity", "acceleration"))
    assert motion.at_rest(times[-1]) and not v[-1].any() and not a[-1].any()
    np.testing.assert_allclose(q[:, 0] - HERE.position[0], HERE.position[1] - q[:, 1], atol=1e-9)  # its straight path
    assert (np.abs(a) <= 1.01 * limits.acceleration).all() and (np.abs(v) <= limits.velocity).all()
    np.testing.assert_allclose(np.gradient(q, times, axis=0)[2:-2], v[2:-2], atol=0.02)
    stopped = times[np.argmax(~v.any(axis=1) & (times > NOW + at))] - NOW - at
    assert stopped < 1.0


def test_it_comes_to_rest_from_a_state_within_limits_and_range():
    motion = ReferenceMotion(LIMITS, np.array([1.9, 0.0]), np.array([1.5, -0.5]), NOW)
    times = NOW + np.arange(0.0, 1.5, 0.002)
    asked = [motion.at(time) for time in times]
    np.testing.assert_allclose(asked[0].velocity, [1.5, -0.5])
    assert motion.at_rest(times[-1])
    assert max(each.position[0] for each in asked) <= LIMITS.upper[0] + 0.15
    assert asked[-1].position[0] <= LIMITS.upper[0] and abs(asked[-1].position[1] + 0.1125) < 0.05


def test_a_pause_leaves_the_reference_where_it_was():
    motion = ReferenceMotion(LIMITS, HERE.position, ZERO, NOW)
    motion.follow(way_along(ramp(), HERE, NOW, LIMITS), NOW)
    before = motion.at(NOW + 0.5).position
    motion.delay(3.0)
    np.testing.assert_allclose(motion.at(NOW + 3.5).position, before)
