"""Motions: exact derivatives, rest at both ends, limits of ramps."""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motions import (
    Concatenation,
    CycloidalBasis,
    FourierBasis,
    LinearTrajectory,
    QuinticRamp,
    SplineBasis,
    knot_times,
)

BASES = [
    FourierBasis(10.0, 2, 0.1),
    FourierBasis(10.0, 8, 0.2),
    FourierBasis(7.0, 5, 0.31),
    FourierBasis(4.0, 6, 0.25),
    CycloidalBasis(6.0, 2),
    CycloidalBasis(9.0, 7),
    CycloidalBasis(9.0, 7, closed=False),
    SplineBasis(3.0, 2),
    SplineBasis(8.0, 11),
]


def some_motion(basis, seed=0, joints=3):
    rng = np.random.default_rng(seed)
    return LinearTrajectory(basis, rng.normal(size=joints), rng.normal(size=(basis.size, joints)))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="chooses kernels of x86")
@pytest.mark.parametrize("kernels", ["Nehalem", "Sandybridge"])
def test_parameters_mean_the_same_motion_on_every_processor(kernels):
    """The null space of the rest at both ends has many bases; kernels of linear algebra find different ones."""
    bases = [basis for basis in BASES if isinstance(basis, FourierBasis)]
    code = ("import json; from inertid_ros.excitation.motions import *;"
            f" print(json.dumps([basis.evaluate([0.3, 2.0])[0].tolist() for basis in {bases}]))")  # fmt: skip
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernels}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    for basis, values in zip(bases, json.loads(done.stdout), strict=True):
        np.testing.assert_allclose(basis.evaluate([0.3, 2.0])[0], values, rtol=0, atol=1e-9)


def central(values, step):
    """Derivative along the first axis of nine equidistant values, at the middle one, of eighth order."""
    weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
    return np.tensordot(weights, values, 1) / step


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_starts_and_ends_at_rest(basis):
    motion = some_motion(basis)
    q, v, a = motion.sample(np.array([0.0, motion.duration]))
    scale = np.abs(motion.sample(np.linspace(0, motion.duration, 200))[2]).max()
    assert np.abs(v).max() < 1e-10 * scale
    assert np.abs(a).max() < 1e-10 * scale
    assert q[0] == pytest.approx(motion.start, abs=1e-12)
    if getattr(basis, "closed", True):
        assert q[1] == pytest.approx(motion.start, abs=1e-10)


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_derivatives_are_those_of_the_position(basis):
    motion, step = some_motion(basis), 1e-3
    edges = basis.breaks
    rng = np.random.default_rng(1)
    instants = [rng.uniform(a + 5 * step, b - 5 * step) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    for instant in instants:
        q, v, a = motion.sample(instant + step * np.arange(-4, 5))
        assert central(q, step) == pytest.approx(v[4], rel=1e-7, abs=1e-8)
        assert central(v, step) == pytest.approx(a[4], rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_motion_is_linear_in_its_parameters(basis):
    first, second = some_motion(basis, 1), some_motion(basis, 2)
    both = LinearTrajectory(basis, first.start, 2 * first.parameters - second.parameters)
    times = np.linspace(0, basis.duration, 50)
    for one, two, mixed, offset in zip(
        first.sample(times), second.sample(times), both.sample(times), (True, False, False), strict=True
    ):
        start_one, start_two = (first.start, second.start) if offset else (0, 0)
        assert mixed - start_one == pytest.approx(2 * (one - start_one) - (two - start_two), abs=1e-9)


def test_cycloidal_interval_is_the_published_one():
    motion = LinearTrajectory(CycloidalBasis(4.0, 2), np.array([0.3]), np.array([[1.2]]))
    t = np.linspace(0, 2, 20)
    q = motion.sample(t)[0][:, 0]
    assert q == pytest.approx(0.3 + 1.2 / 2 * (t - 2 / (2 * np.pi) * np.sin(2 * np.pi * t / 2)), abs=1e-12)


def test_cycloidal_motion_is_monotonic_between_waypoints():
    motion = some_motion(CycloidalBasis(5.0, 10), 4)
    for a, b in zip(motion.breaks[:-1], motion.breaks[1:], strict=True):
        v = motion.sample(np.linspace(a + 1e-9, b - 1e-9, 50))[1]
        assert (np.sign(v).min(axis=0) * np.sign(v).max(axis=0) >= 0).all()


@given(st.lists(st.floats(-3, 3), min_size=4, max_size=4), st.floats(0.1, 5), st.floats(0.1, 20))
@settings(max_examples=50, deadline=None)
def test_ramp_keeps_and_uses_its_limits(step, velocity, acceleration):
    end = np.array(step)
    ramp = QuinticRamp.within(np.zeros(4), end, np.full(4, velocity), np.full(4, acceleration))
    q, v, a = ramp.sample(np.linspace(0, ramp.duration, 4001))
    assert np.abs(v).max() <= velocity * (1 + 1e-12)
    assert np.abs(a).max() <= acceleration * (1 + 1e-12)
    assert q[-1] == pytest.approx(end, abs=1e-12)
    if ramp.duration > 0.1:
        assert max(np.abs(v).max() / velocity, np.abs(a).max() / acceleration) > 0.999


def test_motion_is_held_outside_its_duration():
    for motion in (some_motion(BASES[1]), some_motion(BASES[5]), QuinticRamp(np.zeros(3), np.ones(3), 2.0)):
        q, v, a = motion.sample(np.array([-1.0, motion.duration + 1.0]))
        ends = motion.sample(np.array([0.0, motion.duration]))[0]
        assert q == pytest.approx(ends)
        assert np.abs(v).max() < 1e-9
        assert np.abs(a).max() < 1e-8


def test_concatenation_runs_its_parts_in_turn():
    first = some_motion(BASES[4])
    ramp = QuinticRamp(first.start, first.start + 0.4, 1.5)
    whole = Concatenation([first, ramp])
    assert whole.duration == pytest.approx(first.duration + 1.5)
    times = np.linspace(0, whole.duration, 301)
    q, v, a = whole.sample(times)
    before = times < first.duration
    assert q[before] == pytest.approx(first.sample(times[before])[0])
    assert a[~before] == pytest.approx(ramp.sample(times[~before] - first.duration)[2])
    assert set(np.round(whole.breaks, 9)) >= {0.0, 3.0, 6.0, 7.5}


def test_knots_hold_every_break_and_are_close_enough():
    motion = some_motion(CycloidalBasis(1.0, 3))
    times = knot_times(motion, 0.02)
    assert np.diff(times).max() <= 0.02 + 1e-12
    assert np.abs(times[:, None] - motion.breaks).min(axis=0).max() < 1e-12


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FourierBasis(10.0, 1, 0.1), "1 harmonics are too few"),
        (lambda: FourierBasis(7.0, 2, 0.31), "at least 3"),
    ],
)
def test_impossible_motions_are_refused(make, words):
    with pytest.raises(ExcitationError) as caught:
        make()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
