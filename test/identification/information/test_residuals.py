"""Residuals: correlation, and scores of blocks."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_model

from inertid_ros.core.arrays import column_counts
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.filtering import low_pass
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.information.residuals import (
    band_fraction,
    block_sums,
    effective_fraction,
    noise_levels,
)
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.robot.model import RobotModel

LENGTHS = (1, 9, 2500, 6000)


def _moving_average(white: np.ndarray, width: int) -> np.ndarray:
    return np.apply_along_axis(lambda x: np.convolve(x, np.ones(width) / width, "same"), 0, white)


def _expected(residuals: list[np.ndarray], masks: list[np.ndarray]) -> float:
    """The same sums over all lags, without FFT."""
    longest = max(map(len, residuals))
    covariance, pairs = np.zeros(longest), np.zeros(longest)
    for residual, mask in zip(residuals, masks, strict=True):
        used, known = np.where(mask, residual, 0.0), mask.astype(float)
        covariance[: len(used)] += np.correlate(used, used, "full")[len(used) - 1 :]
        pairs[: len(used)] += np.correlate(known, known, "full")[len(used) - 1 :]
    correlation = np.divide(covariance, pairs, out=np.zeros(longest), where=pairs > 0.5)
    times = 2 * np.cumsum(correlation / correlation[0]) - 1
    for lag, time in enumerate(times):
        if lag >= 5 * max(time, 1.0):
            return 1 / max(time, 1.0)
    return 1 / max(times[-1], 1.0)


@pytest.mark.parametrize("width", [1, 10, 400])  # of the last one the first thousand lags are too few
@pytest.mark.parametrize("masked", [0.0, 0.3])
def test_share_is_that_of_sums_written_out(width, masked):
    rng = np.random.default_rng(width)
    residuals = [_moving_average(rng.normal(size=(count, 2)), width)[:count] for count in LENGTHS]
    masks = [rng.uniform(size=values.shape) >= masked for values in residuals]
    found = effective_fraction(residuals, masks)
    for joint in range(2):
        expected = _expected([r[:, joint] for r in residuals], [m[:, joint] for m in masks])
        assert found[joint] == pytest.approx(expected, rel=1e-9)


def test_without_residuals_all_count():
    every = np.ones((50, 1), dtype=bool)
    assert effective_fraction([np.zeros((50, 1))], [every]) == 1.0
    assert effective_fraction([np.ones((50, 1))], [~every]) == 1.0


@pytest.mark.parametrize("shape", [(0, 3), (7, 0), (1000, 3)])
def test_column_counts_are_sums(shape):
    mask = np.random.default_rng(0).uniform(size=shape) > 0.5
    np.testing.assert_array_equal(column_counts(mask), mask.sum(axis=0))


TERMS, RATE, CUTOFF = ("viscous", "coulomb", "offset"), 100.0, 5.0


def motion(
    model: RobotModel, seed: int, seconds: float, period: float | None = None, name: str = "r", rate: float = RATE
) -> Samples:
    """Sums of sines, which repeat after a period where one is given."""
    rng, time = np.random.default_rng(seed), np.arange(0.0, seconds, 1 / rate)
    shape = (4, model.joints)
    frequency = rng.uniform(0.1, 0.6, shape) if period is None else np.arange(1, 5)[:, None] / period * np.ones(shape)
    omega, amplitude, phase = 2 * np.pi * frequency, rng.uniform(0.1, 0.4, shape), rng.uniform(0, 2 * np.pi, shape)
    angle = time[:, None, None] * omega + phase
    q, v = np.sum(amplitude * np.sin(angle), axis=1), np.sum(amplitude * omega * np.cos(angle), axis=1)
    a = -np.sum(amplitude * omega**2 * np.sin(angle), axis=1)
    every = np.ones(q.shape, dtype=bool)
    return Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0], name)


def ratio(model: RobotModel, recordings: list[Samples]) -> tuple[np.ndarray, float]:
    """Largest noise level over the mean square of least squares' residual, and growth, where ``tau`` is all error."""
    equations = ForceEquations(model)
    information = compress(equations, recordings)
    R, z = information.whitened(np.ones(model.joints))
    scale = np.linalg.norm(R, axis=0)
    scale[scale == 0] = 1.0
    inverse = np.linalg.pinv(R / scale, rcond=1e-7) / scale[:, None]
    fit = inverse @ z
    residuals = [samples.tau - equations.predict(fit, samples) for samples in recordings]
    small, largest = noise_levels(equations, recordings, residuals, inverse @ inverse.T, np.ones(model.joints))
    return largest / information.rms_error(fit) ** 2, float(np.max(largest / small))


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return random_model(np.random.default_rng(1), 3, branched=False, drive_terms=TERMS)


def test_white_noise_is_white(model):
    found = []
    for seed in range(8):
        samples = motion(model, seed, 40.0)
        found.append(ratio(model, [replace(samples, tau=np.random.default_rng(seed).normal(size=samples.q.shape))])[0])
    assert 0.95 < np.mean(found) < 1.25  # the larger one of two that are both right on average


@pytest.mark.parametrize("counts", [[5], [12, 40], [3] * 100])
def test_recordings_of_fewer_samples_than_pieces(model, counts):
    recordings = [motion(model, seed, 1.0).select(slice(count)) for seed, count in enumerate(counts)]
    covariance, weights = np.eye(model.layout.size), np.ones(model.joints)
    residuals = [samples.q for samples in recordings]
    assert np.isfinite(noise_levels(ForceEquations(model), recordings, residuals, covariance, weights)).all()


def test_filtered_noise_counts_as_two_samples_per_period_of_the_cutoff(model):
    found = []
    for seed in range(8):
        samples = motion(model, seed, 60.0)
        noise = low_pass(np.random.default_rng(seed).normal(size=samples.q.shape), 1 / RATE, CUTOFF, 4)
        samples = replace(samples, tau=noise, cutoff_hz=CUTOFF)
        found.append(ratio(model, [samples])[0] * band_fraction([samples]))
    assert 0.9 < np.mean(found) < 1.35


@pytest.mark.parametrize("period", [None, 5.0])
def test_friction_that_depends_on_position_counts_by_what_it_does_to_parameters(model, period):
    """Truth: the error of least squares over what its residual's size alone explains. Repeats do not average it out."""
    for seed in range(3):
        samples = motion(model, seed, 40.0, period)
        error = np.sin(3 * samples.q) * np.sign(samples.v)
        level, _ = ratio(model, [replace(samples, tau=error)])
        moved = _mean_square_score(model, replace(samples, tau=error))
        assert (level > 8).all()
        assert np.median(level / moved) > 0.25


def _mean_square_score(model: RobotModel, samples: Samples) -> np.ndarray:
    """``(n,)`` mean square of the error along the directions of each joint's regressor, over that of all of it."""
    squares = []
    for A, b in next(dense_equations(ForceEquations(model), samples, len(samples))):
        left, values, _ = np.linalg.svd(A, full_matrices=False)
        along = left[:, values > 1e-7 * values[0]].T @ b
        squares.append(np.mean(along**2) / np.mean(b**2))
    return np.array(squares)


def test_what_changes_from_recording_to_recording_shows_between_them(model):
    """Viscous friction that differs by day: each day is consistent in itself."""
    rng = np.random.default_rng(0)
    days = [motion(model, seed, 30.0, name=f"day {seed}") for seed in range(3)]
    noisy = [replace(day, tau=rng.normal(size=day.q.shape)) for day in days]
    changed = [replace(day, tau=day.tau + sign * 0.5 * day.v) for day, sign in zip(noisy, (-1, 0, 1), strict=True)]
    assert ratio(model, noisy)[1] < 2.0
    assert ratio(model, changed)[1] > 4.0


def test_memory_does_not_grow_with_recordings(model):
    equations = ForceEquations(model)
    short = [motion(model, seed, 1.0) for seed in range(100)]
    many, _ = block_sums(equations, short, [samples.q for samples in short])
    long, _ = block_sums(equations, [motion(model, 0, 50.0)], [motion(model, 0, 50.0).q])
    assert len(many.grams[0]) <= 64 and len(long.grams[0]) == 16
    assert np.isfinite(many.grams[0]).all()


def test_sums_of_blocks_are_those_of_all_samples(model):
    equations, samples = ForceEquations(model), motion(model, 0, 10.0)
    mask = np.random.default_rng(0).uniform(size=samples.q.shape) > 0.3
    samples = replace(samples, mask=mask, tau=np.cos(samples.q))
    expansions = equations.writer().expansions
    for sums in block_sums(equations, [samples], [samples.tau]):
        for grams, expansion, own in zip(
                sums.grams, expansions, compress(equations, [samples]).channels, strict=True):
            whole, expected = grams.sum(axis=0), own.r_factor.T @ own.r_factor
            np.testing.assert_allclose(expansion.T @ whole[:-1, :-1] @ expansion, expected[:-1, :-1], atol=1e-8)
            np.testing.assert_allclose(expansion.T @ whole[:-1, -1], expected[:-1, -1], atol=1e-8)
