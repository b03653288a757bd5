"""Segments whose motion is each measured: against Pinocchio's free base, and a person walking over two force plates."""

import numpy as np
import pinocchio as pin
import pytest
from support.robots.random_robots import random_bodies

from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.identification.assessment.validation import torque_errors
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.regressors.whole_body_equations import BodySegmentEquations, body_segment_model, segment_samples


def test_the_wrench_on_segments_is_the_sum_of_that_on_each():
    rng, count, bodies = np.random.default_rng(0), 7, random_bodies(np.random.default_rng(1), 3)
    model = body_segment_model("three", ("a", "b", "c"), bodies, (0.0, -9.81, 0.0))
    rotation = np.linalg.qr(rng.normal(size=(count, 3, 3, 3)))[0]
    rotation *= np.linalg.det(rotation)[..., None, None]
    origin, v, w, a, alpha = rng.normal(size=(5, count, 3, 3))
    expected = np.zeros((count, 6))
    for k in range(count):
        for b, body in enumerate(bodies):
            R, inertia = rotation[k, b], pin.Inertia.FromDynamicParameters(body)
            linear = R.T @ (a[k, b] + [0, 9.81, 0] - np.cross(w[k, b], v[k, b]))
            motion = pin.Motion(R.T @ v[k, b], R.T @ w[k, b])
            force = inertia * pin.Motion(linear, R.T @ alpha[k, b]) + motion.cross(inertia * motion)
            expected[k] += pin.SE3(R, origin[k, b] - origin[k, 0]).act(force).vector
    wrench = (expected[:, :3], expected[:, 3:], origin[:, 0])
    samples = segment_samples(np.arange(count) / 60, (rotation, origin), (v, w), (a, alpha), wrench, "three")
    equations = BodySegmentEquations(model)
    np.testing.assert_allclose(equations.predict(bodies.ravel(), samples), expected, rtol=1e-10, atol=1e-9)
    assert compress(equations, [samples]).relative_error(bodies.ravel()) < 1e-10


def test_segments_with_the_same_name_are_refused():
    with pytest.raises(ModelError, match="give each its own name"):
        body_segment_model("twice", ("a", "a"), random_bodies(np.random.default_rng(0), 2))


@pytest.mark.parametrize(("part", "known"), [((0.6, 1.0), False), ((0.0, 1 / 3), True), ((1 / 3, 2 / 3), True)])
def test_a_walking_person_is_predicted_better_than_by_the_model_that_came_with_the_data(part, known, datasets):
    from support.recordings.gait import FILE, held_out, read_gait

    if not (datasets / FILE).is_file():
        pytest.skip(f"no {FILE} in {datasets}")
    equations, samples = read_gait(datasets)
    fitted, tested = held_out(samples, *part)
    total = equations.model.body_prior[:, 0].sum()
    estimate = identify(equations, fitted, constraints=Constraints(total_mass=total if known else 0.0))
    before = torque_errors(equations, equations.model.prior, [tested])
    after = torque_errors(equations, estimate.parameters, [tested])
    assert after.relative_error < before.relative_error
    assert is_consistent(estimate.bodies).all() and len(estimate.bodies) == 12
    assert estimate.bodies[:, 0].sum() == pytest.approx(total, rel=0.01)
