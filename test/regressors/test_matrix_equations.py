"""Equations given as matrices: as those of a robot, and the example of the documentation on a set of sixteen bodies."""

import re

import numpy as np
import pytest
from support.paths import ROOT
from support.robots.random_robots import random_bodies, random_model, random_states

from inertid_ros.core.errors import IdentificationError, ModelError
from inertid_ros.core.inertial_parameters import Ellipsoid, is_consistent
from inertid_ros.identification.assessment.validation import torque_errors
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.regressors.whole_body_equations import MatrixEquations


def test_a_robot_s_own_matrix_gives_its_own_information():
    rng = np.random.default_rng(0)
    model = random_model(rng, 3, branched=False)
    samples = random_states(rng, model, 60)
    samples.tau[:] = rng.normal(size=samples.tau.shape)
    own = ForceEquations(model)
    A = np.zeros((60, 3, model.layout.size))
    (chunk,) = dense_equations(own, samples)
    for channel, (rows, _) in enumerate(chunk):
        A[:, channel, own.columns[channel]] = rows
    equations, given = MatrixEquations.from_matrix(A, samples.tau, model, channels=model.joint_names)
    weights = rng.uniform(1, 2, 3)
    expected, found = (each.whitened(weights)[0] for each in (compress(own, [samples]), compress(equations, [given])))
    np.testing.assert_allclose(found.T @ found, expected.T @ expected, rtol=1e-9, atol=1e-9)
    parameters = rng.normal(size=model.layout.size)
    np.testing.assert_allclose(equations.predict(parameters, given), own.predict(parameters, samples), atol=1e-9)


def bodies_of_a_person(seed=0, count=300):
    """Sixteen bodies, six channels, coefficients of a rank that leaves much open, a wrong prior, and ellipsoids."""
    rng = np.random.default_rng(seed)
    truth, prior = random_bodies(rng, 16), random_bodies(rng, 16)
    prior = truth + 0.2 * (prior * truth[:, :1] / prior[:, :1] - truth)
    rank = rng.normal(size=(90, 160))
    A = rng.normal(size=(count, 6, 90)) @ rank / 10
    b = A @ truth.ravel() + 0.1 * rng.normal(size=(count, 6))
    Q = [rng.uniform(0.5, 5) * Ellipsoid.from_body(body, 2.5).quadric for body in truth]
    return A, b, prior, np.array(Q), truth


def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch, capsys):
    A, b, prior, Q, _ = bodies_of_a_person()
    np.savez(tmp_path / "bodies.npz", A=A, b=b, prior=prior, Q=Q)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "matrices.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    content = {}
    exec(code, content)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == ["euclidean", "entropic", "riemannian"]
    residuals = [fit.residual for fit in content["fits"].values()]
    np.testing.assert_allclose(residuals, content["residual"], rtol=1e-4)
    distance = {name: fit.distance for name, fit in content["fits"].items()}
    assert distance["riemannian"] <= distance["entropic"] * (1 + 1e-6)
    assert distance["riemannian"] < distance["euclidean"]
    for fit in content["fits"].values():
        assert is_consistent(fit.parameters.reshape(-1, 10)).all()


def test_parts_that_were_not_measured_are_left_out_and_others_validate():
    A, b, prior, _, truth = bodies_of_a_person()
    b[10:20, 2], A[10:20, 2] = np.nan, np.nan
    equations, samples = MatrixEquations.from_matrix(A[:200], b[:200], prior, names=[f"segment {k}" for k in range(16)])
    assert samples.mask.sum() == 1200 - 10 and equations.model.link_names[3] == "segment 3"
    estimate = identify(equations, [samples])
    tested = equations.samples(A[200:], b[200:], "tested")
    candidates = estimate.parameters, equations.model.prior
    errors = [torque_errors(equations, parameters, [tested]).relative_error for parameters in candidates]
    assert errors[0] < 0.2 * errors[1]
    single, one = MatrixEquations.from_matrix(A[:, 0], np.nan_to_num(b[:, 0]), prior)
    assert single.count == 1 and one.tau.shape == (300, 1)
    assert torque_errors(equations, truth.ravel(), [tested]).relative_error < errors[0] * 1.5


def test_what_does_not_fit_is_refused():
    A, b, prior, _, _ = bodies_of_a_person(count=10)
    for wrong in ((A[:, :, :-1], b), (A, b[:, :3]), (A[:5], b), (np.full_like(A, np.nan), b)):
        with pytest.raises(IdentificationError):
            MatrixEquations.from_matrix(*wrong, prior)
    with pytest.raises(ModelError, match="no mass"):
        MatrixEquations.from_matrix(A, b, np.zeros((16, 10)))
    equations, samples = MatrixEquations.from_matrix(A, b, prior)
    with pytest.raises(IdentificationError, match="other equations"):
        MatrixEquations.from_matrix(A[:, 0], b[:, 0], prior)[0].predict(prior.ravel(), samples)
    assert equations.predict(prior.ravel(), samples).shape == (10, 6)


def test_ellipsoids_from_their_matrix():
    rng = np.random.default_rng(4)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    ellipsoid = Ellipsoid.from_axes(rng.normal(size=3), rotation, rng.uniform(0.1, 0.5, 3))
    for scale in (1.0, 37.0):
        copy = Ellipsoid.from_quadric(scale * ellipsoid.quadric)
        np.testing.assert_allclose(copy.centre, ellipsoid.centre, rtol=1e-9)
        np.testing.assert_allclose(copy.shape, ellipsoid.shape, rtol=1e-8, atol=1e-12)
    with pytest.raises(ModelError, match="change its sign"):
        Ellipsoid.from_quadric(-ellipsoid.quadric)
    with pytest.raises(ModelError, match="no point is inside"):
        Ellipsoid.from_quadric(ellipsoid.quadric - 10 * np.diag([0, 0, 0, 1.0]))
