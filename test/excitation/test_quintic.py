"""Piecewise quintics: they pass their knots, and their extremes are those of the whole curve."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from inertid_ros.excitation.quintic import PiecewiseQuintic, control_points, exceeds


def random_curve(seed: int, knots: int = 12, joints: int = 2) -> PiecewiseQuintic:
    rng = np.random.default_rng(seed)
    time = np.concatenate([[0.0], np.cumsum(rng.uniform(0.1, 0.5, knots - 1))])
    return PiecewiseQuintic(time, *rng.normal(size=(3, knots, joints)))


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_curve_passes_its_knots_and_is_smooth(seed):
    curve = random_curve(seed)
    for just in (0.0, -1e-10, 1e-10):
        for found, wanted in zip(
            curve.sample(curve.time + just), (curve.position, curve.velocity, curve.acceleration), strict=True
        ):
            assert found == pytest.approx(wanted, abs=1e-4)
    q, v, a = curve.sample(curve.time)
    assert q == pytest.approx(curve.position, abs=1e-9)
    assert v == pytest.approx(curve.velocity, abs=1e-7)
    assert a == pytest.approx(curve.acceleration, abs=1e-5)


@given(st.integers(0, 10_000), st.floats(-0.2, 1.2))
@settings(max_examples=50, deadline=None)
def test_one_time_is_as_many(seed, share):
    curve = random_curve(seed)
    for time in (share * curve.duration, float(curve.time[seed % len(curve.time)])):
        for one, many in zip(curve.at(time), curve.sample(np.array([time])), strict=True):
            assert one == pytest.approx(many[0], abs=1e-7)


@given(st.integers(0, 10_000), st.sampled_from([0, 1, 2]))
@settings(max_examples=40, deadline=None)
def test_extremes_are_reached_and_never_exceeded(seed, order):
    curve = random_curve(seed)
    dense = curve.sample(np.linspace(0, curve.duration, 40_001))[order]
    values, times = curve.extremes(order)
    scale = np.abs(dense).max()
    for joint in range(2):
        assert values[1, joint] >= dense[:, joint].max() - 1e-9 * scale
        assert values[0, joint] <= dense[:, joint].min() + 1e-9 * scale
        at = curve.sample(times[:, joint])[order][:, joint]
        assert at == pytest.approx(values[:, joint], abs=1e-6 * scale)


def test_a_peak_between_knots_is_found():
    # At rest on both knots, 1 rad apart in a tenth of a second: the peak velocity lies in the middle.
    zero = np.zeros((2, 1))
    curve = PiecewiseQuintic(np.array([0.0, 0.1]), np.array([[0.0], [1.0]]), zero, zero)
    values, times = curve.extremes(1)
    assert values[1, 0] == pytest.approx(18.75, rel=1e-9)
    assert times[1, 0] == pytest.approx(0.05, abs=1e-6)
    assert curve.extremes(2)[0][1, 0] == pytest.approx(10 / np.sqrt(3) / 0.01, rel=1e-9)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_exceeds_decides_for_the_whole_segment(seed):
    curve = random_curve(seed, knots=2, joints=1)
    top = curve.extremes(2)[0][1, 0]
    points = curve.control_points(2)[:, :, 0]
    margin = 1e-6 * np.abs(points).max()
    assert exceeds(points, top - margin).all()
    assert not exceeds(points, top + margin).any()


def test_control_points_bound_the_curve():
    curve = random_curve(3, knots=30)
    ends = (curve.position, curve.velocity, curve.acceleration)
    h = np.diff(curve.time)[:, None]
    for order in (0, 1, 2):
        points = control_points(h, [x[:-1] for x in ends], [x[1:] for x in ends], order)
        for segment in range(29):
            times = np.linspace(curve.time[segment], curve.time[segment + 1], 50)[:-1]
            values = curve.sample(times)[order]
            slack = 1e-8 * np.abs(points).max()
            assert (values <= points[segment].max(axis=0) + slack).all()
            assert (values >= points[segment].min(axis=0) - slack).all()
