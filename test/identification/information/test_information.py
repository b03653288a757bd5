"""Information: compression, merging, and the incremental QR behind it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.robots.random_robots import random_bodies, random_model, random_states

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.base_parameters.closed_form import structural_base_parameters
from inertid_ros.identification.base_parameters.numeric import base_parameters
from inertid_ros.identification.information.information import IncrementalQR, compress
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.model import load_model


def _measured(seed: int, joints: int = 4, count: int = 300):
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints)
    samples = random_states(rng, model, count)
    truth = np.concatenate([random_bodies(rng, joints).ravel(), rng.uniform(0.1, 1, model.layout.size - 10 * joints)])
    tau = ForceEquations(model).predict(truth, samples) + rng.normal(size=samples.q.shape)
    return model, replace(samples, tau=tau), truth, rng


def _part(samples, rows):
    names = ("time", "q", "v", "a", "tau", "mask", "usable")
    return replace(samples, **{name: getattr(samples, name)[rows] for name in names})


@pytest.mark.parametrize("seed", range(4))
def test_compressed_errors_equal_errors_of_the_samples(seed):
    model, samples, _, rng = _measured(seed)
    information = compress(model, [samples])
    guess = np.concatenate([random_bodies(rng, 4).ravel(), rng.normal(size=model.layout.size - 40)])
    error = ForceEquations(model).predict(guess, samples) - samples.tau
    np.testing.assert_allclose(information.rms_error(guess), np.sqrt(np.mean(error**2, axis=0)), rtol=1e-9)
    relative = np.linalg.norm(error) / np.linalg.norm(samples.tau)
    assert information.relative_error(guess) == pytest.approx(relative, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_merging_parts_equals_the_whole(seed):
    model, samples, _, _ = _measured(seed)
    whole = compress(model, [samples])
    merged = compress(model, [_part(samples, slice(0, 90))]) + compress(model, [_part(samples, slice(90, None))])
    weights = np.array([1.0, 0.3, 2.0, 5.0])
    R, z = whole.whitened(weights)
    S, y = merged.whitened(weights)
    np.testing.assert_allclose(S.T @ S, R.T @ R, atol=1e-9 * np.abs(R.T @ R).max())
    np.testing.assert_allclose(S.T @ y, R.T @ z, atol=1e-9 * np.abs(R.T @ z).max())
    assert (merged.counts == whole.counts).all()


def test_information_of_nothing_is_neutral():
    model, samples, _, _ = _measured(1)
    one, both = compress(model, [samples]), compress(model, ()) + compress(model, [samples])
    np.testing.assert_allclose(both.rms_measured, one.rms_measured)


def test_information_does_not_grow_with_the_recording():
    model, samples, _, _ = _measured(2)
    sizes = [sum(c.r_factor.size for c in compress(model, [samples] * n).channels) for n in (1, 4)]
    assert sizes[0] == sizes[1]


def test_information_of_different_robots_does_not_merge():
    first, second = _measured(0)[0], _measured(1, joints=3)[0]
    with pytest.raises(IdentificationError, match="different robots"):
        compress(first, ()) + compress(second, ())


@pytest.mark.parametrize("seed", range(3))
def test_base_parameters_predict_as_well_as_all(seed):
    model, samples, truth, _ = _measured(seed, joints=5, count=400)
    R, _ = compress(model, [samples]).whitened(np.ones(5))
    base = base_parameters(model.layout, R)
    assert base.count == np.linalg.matrix_rank(R / np.linalg.norm(R, axis=0).clip(1e-9), tol=1e-8 * np.sqrt(base.count))
    reduced = R[:, base.independent] @ (base.projection @ truth)
    np.testing.assert_allclose(reduced, R @ truth, atol=1e-7 * np.abs(R @ truth).max())
    assert len(base.names) == base.count


def test_counts_of_known_robots(robots):
    """Seven revolute joints with skew axes: 43 base inertial parameters (Gautier's rules); UR10: 36."""
    no_drive = RobotOptions(drive_terms=())
    ur10 = load_model(robots / "ur_description/urdf/ur10_robot.urdf", no_drive)
    assert structural_base_parameters(ur10).count == 36
    locked = RobotOptions(drive_terms=(), locked_joints={"panda_finger_joint1": 0.0})
    assert structural_base_parameters(load_model(robots / "panda_description/urdf/panda.urdf", locked)).count == 43


SIZE, ROWS = 24, 64


def _taken(matrix: np.ndarray, rows: int = ROWS) -> np.ndarray:
    root = IncrementalQR(matrix.shape[1])
    for start in range(0, len(matrix), rows):
        batch = np.zeros((matrix.shape[1], rows))
        batch[:, : len(matrix[start : start + rows])] = matrix[start : start + rows].T
        root.append(batch)
    return root.r_factor()


def _expect_qr(matrix: np.ndarray, rows: int = ROWS) -> None:
    R, reference = _taken(matrix, rows), np.linalg.qr(matrix, mode="r")
    length = np.linalg.norm(matrix, axis=0)
    length[length == 0] = 1.0
    assert np.array_equal(R, np.triu(R))
    np.testing.assert_allclose((R / length).T @ (R / length), (reference / length).T @ (reference / length), atol=2e-14)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), batches=st.integers(1, 9), decades=st.floats(0, 8))
def test_equals_qr_of_all_rows(seed: int, batches: int, decades: float) -> None:
    rng = np.random.default_rng(seed)
    mixed = np.eye(SIZE) + rng.normal(size=(SIZE, SIZE))
    rows = ROWS * batches - int(rng.integers(ROWS))
    _expect_qr(rng.normal(size=(rows, SIZE)) @ mixed * 10 ** rng.uniform(-decades, decades, SIZE))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_small_residuals_keep_their_digits(seed: int) -> None:
    """The Gram matrix of ill-conditioned columns would lose all of them: condition 1e7, residual 1e-6."""
    rng = np.random.default_rng(seed)
    u, _, v = np.linalg.svd(rng.normal(size=(SIZE, SIZE)))
    A = rng.normal(size=(20 * ROWS, SIZE)) @ (u * 10 ** np.linspace(0, -7, SIZE)) @ v
    x = rng.normal(size=SIZE)
    b = A @ x + 1e-6 * rng.normal(size=len(A))
    R = _taken(np.column_stack([A, b]))
    best, residual, *_ = np.linalg.lstsq(A, b, rcond=None)
    assert R[-1, -1] ** 2 == pytest.approx(residual[0], rel=1e-6)
    deviation = 1e-6 * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    assert (np.abs(np.linalg.solve(R[:-1, :-1], R[:-1, -1]) - best) < 1e-2 * deviation).all()


@pytest.mark.parametrize("silent", [0.0, 1e-200, 1e-9])
def test_what_only_later_batches_excite(silent: float) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(10 * ROWS, SIZE))
    matrix[: 4 * ROWS, 5:12] *= silent
    _expect_qr(matrix)


def test_motion_that_grows_by_decades() -> None:
    rng = np.random.default_rng(2)
    _expect_qr(rng.normal(size=(12 * ROWS, SIZE)) * np.logspace(-9, 3, 12 * ROWS)[:, None])


def test_columns_that_are_zero_or_combinations_of_others() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(10 * ROWS, SIZE))
    matrix[:, 4], matrix[:, 9], matrix[:, -1] = 0.0, matrix[:, 2] - 3 * matrix[:, 7], 0.0
    _expect_qr(matrix)
    assert not _taken(matrix)[:, 4].any()


def test_batches_of_fewer_rows_than_columns_and_none_at_all() -> None:
    matrix = np.random.default_rng(4).normal(size=(90, SIZE))
    _expect_qr(matrix, rows=7)
    assert not IncrementalQR(SIZE).r_factor().any()


def test_zeros_alone() -> None:
    np.testing.assert_allclose(_taken(np.zeros((3 * ROWS, SIZE))), 0.0, atol=1e-90)
