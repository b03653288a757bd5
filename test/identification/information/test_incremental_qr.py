"""The R of QR, batch by batch: as precise as the QR of all rows at once, whatever the batches hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inertid_ros.identification.information.information import IncrementalQR

SIZE, ROWS = 24, 64


def _taken(matrix: np.ndarray, rows: int = ROWS) -> np.ndarray:
    root = IncrementalQR(matrix.shape[1])
    for start in range(0, len(matrix), rows):
        batch = np.zeros((matrix.shape[1], rows))
        batch[:, : len(matrix[start : start + rows])] = matrix[start : start + rows].T
        if not root.append(batch.copy()):
            root.append_by_reflections(batch)
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
