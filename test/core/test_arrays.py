"""Roots of matrices and of their inverses, without squares; linear algebra with one thread."""

import numpy as np
import pytest

from inertid_ros.core.arrays import inverse_root, one_thread, r_factor, r_factor_of_blocks, semidefinite_root


def test_semidefinite_root_of_columns_of_very_different_size():
    rng = np.random.default_rng(0)
    scale = 10.0 ** np.linspace(-8, 8, 6)
    rows = rng.normal(size=(4, 6)) * scale
    root = semidefinite_root(rows.T @ rows)
    change = root.T @ root - rows.T @ rows
    np.testing.assert_allclose(change / scale / scale[:, None], 0.0, atol=1e-12)


def test_inverse_keeps_what_a_prior_says_beside_rows_of_1e10():
    """Data along one direction: in all others the covariance is that of the prior."""
    rng = np.random.default_rng(0)
    direction = np.linalg.qr(rng.normal(size=(5, 1)))[0][:, 0]
    root = inverse_root(np.vstack([1e10 * direction, np.eye(5)]))
    expected = np.eye(5) - np.outer(direction, direction)
    np.testing.assert_allclose(root @ root.T, expected, atol=1e-5)


def test_directions_without_rows_count_as_certain():
    rows = np.array([[2.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    root = inverse_root(rows)
    assert root @ root.T == pytest.approx(np.diag([1 / 4, 1 / 16, 0.0]))


def test_a_root_passes_over_columns_that_are_zero_up_to_rounding():
    matrix = np.array([[4.0, 1e-17, 2.0], [1e-17, -1e-18, 0.0], [2.0, 0.0, 3.0]])
    root = semidefinite_root(matrix)
    np.testing.assert_allclose(root.T @ root, [[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 3.0]], atol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_blocks_of_columns_give_the_r_factor_of_all_rows(seed: int):
    """Columns of subtrees, of subtrees that share some, and any others; blocks without rows, and rows of zeros."""
    rng = np.random.default_rng(seed)
    size, blocks, rows = 30, [], [np.zeros((0, 31))]
    for _ in range(rng.integers(0, 9)):
        columns = np.sort(rng.choice(size, rng.integers(0, size), replace=False))
        own = rng.normal(size=(rng.integers(0, 40), len(columns) + 1)) * 10.0 ** rng.uniform(-4, 4)
        own[rng.random(len(own)) < 0.3] = 0.0
        blocks.append((columns, own))
        whole = np.zeros((len(own), size + 1))
        whole[:, np.append(columns, size)] = own
        rows.append(whole)
    R, expected = r_factor_of_blocks(blocks, size), r_factor(np.vstack(rows))
    scale = np.maximum(np.linalg.norm(expected, axis=0), 1e-300)
    np.testing.assert_array_equal(np.tril(R, -1), 0.0)
    np.testing.assert_allclose((R / scale).T @ (R / scale), (expected / scale).T @ (expected / scale), atol=1e-13)


def _threads(threadpoolctl):
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}


def test_one_thread_within_and_as_many_as_before_afterwards():
    threadpoolctl = pytest.importorskip("threadpoolctl")

    @one_thread()
    def work():
        np.linalg.qr(np.eye(3))
        return _threads(threadpoolctl)

    with threadpoolctl.threadpool_limits(2):
        before = _threads(threadpoolctl)
        assert work() == {1}
        with pytest.raises(ValueError), one_thread():
            assert _threads(threadpoolctl) == {1}
            raise ValueError
        assert _threads(threadpoolctl) == before
