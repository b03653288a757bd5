"""Samples of parameters are consistent, and their torque spreads as the covariance states."""

import numpy as np
import pytest
from support.recordings.synthetic_calibration import calibrated_case, synthetic_case

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.identification.assessment.posterior import sample_parameters
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.regressors.equations import ForceEquations

COUNT = 3000


@pytest.mark.parametrize(("seed", "joints", "duration"), [(3, 3, 15.0), (8, 2, 5.0), (10, 4, 8.0)])
def test_samples_are_consistent_and_spread_as_stated(seed, joints, duration):
    case = synthetic_case(seed, joints, duration=duration)
    estimate = calibrate(case.given, case.recordings[:1], case.recordings[1:]).estimate
    model, layout = estimate.model, estimate.layout
    samples = sample_parameters(
        model, estimate.parameters, estimate.covariance, COUNT, np.random.default_rng(seed))
    assert samples.shape == (COUNT, layout.size) and len(np.unique(samples[:, 0])) == COUNT
    assert is_consistent(samples[:, : layout.inertial_size].reshape(COUNT, -1, 10)).all()
    assert (samples[:, layout.non_negative] >= 0).all()
    # Torque by its equations as functions, not by the coefficients that the samples were selected with.
    equations, states = ForceEquations(model.with_layout(without_stribeck=())), sample_states(model)

    def torque(parameters):
        return equations.predict(parameters, states)

    columns = np.array([torque(column) for column in np.eye(layout.size)])
    stated = np.sqrt(np.einsum("pnj,pq,qnj->j", columns, estimate.covariance, columns) / len(states))
    centre = torque(estimate.parameters)
    spread = np.sqrt(np.mean([np.mean((torque(sample) - centre) ** 2, axis=0) for sample in samples[::3]], axis=0))
    np.testing.assert_allclose(spread, stated, rtol=0.05)
    few = sample_parameters(model, estimate.parameters, estimate.covariance, 2, np.random.default_rng(0))
    assert few.shape == (2, layout.size)


def test_an_inconsistent_estimate_is_refused():
    estimate = calibrated_case()[1].estimate
    parameters = estimate.parameters.copy()
    parameters[0] = -1.0
    with pytest.raises(IdentificationError, match="identify again with more motion"):
        sample_parameters(estimate.model, parameters, 1e-6 * estimate.covariance, 10, np.random.default_rng(0))
