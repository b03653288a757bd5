"""Filters, derivatives and the automatic cutoff."""

import numpy as np
import pytest
from support.recordings.synthetic import random_motion

from inertid_ros.data.preparation.filters import automatic_cutoff, derivatives, low_pass, spectrum


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


@pytest.mark.parametrize("rate", [50.0, 200.0, 1000.0])
@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-4, 1e-3])
def test_automatic_cutoff_follows_the_motion_at_every_rate_and_noise(rate, noise):
    rng = np.random.default_rng(int(rate))
    time = np.arange(0, 20, 1 / rate)
    q, _, _ = random_motion(rng, 4).sample(time)  # up to 0.5 Hz
    cutoff = automatic_cutoff(spectrum(q + noise * rng.normal(size=q.shape), 1 / rate), 1 / rate)
    assert 2.0 <= cutoff <= 10.0


def test_spectrum_of_a_joint_at_rest_shows_no_motion():
    rng = np.random.default_rng(1)
    q = np.column_stack([1e-5 * rng.normal(size=2000), np.sin(np.arange(2000) * 0.01)])
    found = spectrum(q, 0.01)
    assert found.motion_hz[0] < 0.1
    assert found.motion_hz[1] == pytest.approx(0.16, abs=0.25)  # the window resolves 0.2 Hz
    assert found.noise_density[0] == pytest.approx(2e-10 * 0.01, rel=0.3)


def test_automatic_cutoff_stays_below_the_nyquist_rate():
    time = np.arange(0, 20, 0.1)
    fast = np.sin(2 * np.pi * 3.0 * time)[:, None]
    assert automatic_cutoff(spectrum(fast, 0.1), 0.1) <= 4.0
