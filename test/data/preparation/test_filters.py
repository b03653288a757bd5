"""Low-pass filter and derivatives."""

import numpy as np
import pytest

from inertid_ros.data.preparation.filtering import derivatives, low_pass


def test_low_pass_keeps_phase_and_halves_the_cutoff():
    period, cutoff = 1e-3, 20.0
    time = period * np.arange(4000)
    for frequency, gain in ((2.0, 1.0), (cutoff, 0.5), (100.0, 0.0)):
        wave = np.sin(2 * np.pi * frequency * time)[:, None]
        filtered = low_pass(wave, period, cutoff, order=4)[500:-500]
        reference = np.exp(2j * np.pi * frequency * time[500:-500])[:, None]
        response = 2 * np.mean(filtered * reference.conj()) * 1j
        assert abs(response) == pytest.approx(gain, abs=2e-3)
        if gain:
            assert np.angle(response) == pytest.approx(0.0, abs=2e-3)


@pytest.mark.parametrize("samples_per_period", [10, 20, 50])
def test_derivatives_of_a_sinusoid(samples_per_period):
    period = 0.01
    rate = 2 * np.pi / (samples_per_period * period)
    time = period * np.arange(40 * samples_per_period)
    first, second = derivatives(np.sin(rate * time)[:, None], period, (1, 2))
    inner = slice(samples_per_period, -samples_per_period)
    assert np.abs(first[inner, 0] / rate - np.cos(rate * time[inner])).max() < 1e-3
    assert np.abs(second[inner, 0] / rate**2 + np.sin(rate * time[inner])).max() < 1e-2


def test_derivatives_are_exact_for_polynomials():
    time = 0.02 * np.arange(50)
    first, second, third = derivatives((time**4)[:, None], 0.02, (1, 2, 3))
    assert np.allclose(first[:, 0], 4 * time**3, atol=1e-9)
    assert np.allclose(second[:, 0], 12 * time**2, atol=1e-6)
    assert np.allclose(third[:, 0], 24 * time, atol=1e-3)


@pytest.mark.parametrize("periods", [0.0, 1.0])
def test_low_pass_keeps_the_curvature_of_a_motion_at_its_ends(periods):
    """One period of the cutoff from an end the acceleration is right, and at the end itself it has its sign."""
    period, cutoff = 4e-3, 40.0
    time = np.arange(0, 5, period)
    motion, acceleration = np.cos(3.0 * time)[:, None], -9.0 * np.cos(3.0 * time)[:, None]
    (found,) = derivatives(low_pass(motion, period, cutoff), period, (2,))
    row = int(np.ceil(periods / (cutoff * period)))
    error = np.abs(found - acceleration)[row : len(time) - row].max() / np.abs(acceleration).max()
    assert error < (3e-4 if periods else 0.1)


def test_noise_at_the_ends_of_a_low_pass_is_hardly_more_than_elsewhere():
    rng = np.random.default_rng(0)
    ends, middle = [], []
    for _ in range(200):
        low = low_pass(rng.normal(size=(300, 1)), 0.01, 5.0)[:, 0]
        ends.append(low[20])
        middle.append(low[150])
    assert np.std(ends) < 1.5 * np.std(middle)
