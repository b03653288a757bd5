"""Delay between torque and motion is estimated together with the parameters, and removed."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic import random_motion
from support.robots.random_robots import random_model

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.findings import Severity
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.plausibility import plausibility
from inertid_ros.identification.assessment.validation import validate
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.delay import estimate_delay, without_delay
from inertid_ros.regressors.equations import ForceEquations


def _samples(delay: float, noise: float = 0.05, seed: int = 0):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 3, branched=False, drive_terms=("viscous", "offset"))
    truth = np.concatenate([1.3 * model.body_prior.ravel(), rng.uniform(0.5, 2, 6)])
    motion, time = random_motion(rng, 3), np.arange(0, 20, 0.01)
    every = np.ones((len(time), 3), dtype=bool)

    def at(instants: np.ndarray) -> Samples:
        q, v, a = motion.sample(instants)
        return Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0], cutoff_hz=10.0)

    rough = noise * rng.normal(size=every.shape)
    smooth = np.apply_along_axis(np.convolve, 0, rough, np.ones(9) / 3, "same")  # filtered, as prepared samples are
    tau = ForceEquations(model).predict(truth, at(time - delay)) + smooth
    return model, replace(at(time), tau=tau), truth


@pytest.mark.parametrize("delay", [-0.012, 0.0, 0.004, 0.03])
def test_delay_is_found_within_its_deviation(delay):
    model, samples, _ = _samples(delay)
    found = estimate_delay(model, [samples])
    assert found.deviation < 5e-4
    assert abs(found.seconds - delay) < 4 * 3 * found.deviation + 2e-5  # noise of nine equations is one


@pytest.mark.parametrize("delay", [-0.03, 0.003, 0.02])
def test_a_delay_is_significant_and_its_absence_is_not(delay):
    for seed in range(3):
        model, samples, _ = _samples(delay, seed=seed)
        assert estimate_delay(model, [samples]).removed == pytest.approx(delay, abs=5e-4)
        model, samples, _ = _samples(0.0, seed=seed)
        assert abs(estimate_delay(model, [samples]).removed) < 2e-4


def test_a_delay_beyond_what_drivers_have_is_told_and_nothing_is_shifted():
    model, samples, _ = _samples(0.25)
    found = estimate_delay(model, [samples])
    if not found.at_border:
        pytest.skip("an optimum inside, by chance")
    assert found.removed == 0.0
    estimate = identify(model, [samples])
    assert estimate.delay == 0.0
    (finding,) = [finding for finding in plausibility(estimate) if finding.cause == "delay"]
    assert finding.severity is Severity.CARE and "the effort was not shifted" in str(finding)


def test_blocks_without_equations_tell_nothing():
    """Most of a recording may be left out, so that one block has all that is left."""
    model, samples, _ = _samples(0.02)
    inside = samples.time < 4.5
    found = estimate_delay(model, [replace(samples, mask=samples.mask & inside[:, None])])
    assert np.isfinite(found.seconds) and np.isfinite(found.gain)


def test_removing_the_delay_recovers_the_fit():
    model, samples, truth = _samples(0.02)
    biased, removed = identify(model, [samples], IdentifyOptions(remove_delay=False)), identify(model, [samples])
    (finding,) = [finding for finding in plausibility(removed) if finding.cause == "delay"]
    assert "effort is 20 ms later than motion" in str(finding)
    assert removed.delay == pytest.approx(0.02, abs=5e-4)
    assert biased.delay == 0.0
    still = samples.usable & (samples.time < 19)
    fitted = without_delay(samples, removed.delay)

    def error(estimate, reference):
        return np.linalg.norm((estimate.torque(reference) - reference.tau)[still])

    assert error(removed, fitted) < 0.5 * error(biased, samples)
    better, worse = (validate(estimate, [samples]).calibrated.relative_error for estimate in (removed, biased))
    assert better < 0.5 * worse
    exact = ForceEquations(model).predict(truth, samples)
    assert np.linalg.norm(removed.torque(samples) - exact) < 0.01 * np.linalg.norm(exact)
