"""Linear algebra has one thread while the library works, and what the caller had before and after."""

import numpy as np
import pytest

from inertid_ros.core.blas_threads import one_thread

threadpoolctl = pytest.importorskip("threadpoolctl")


def _threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}


def test_one_thread_within_and_as_many_as_before_afterwards() -> None:
    @one_thread()
    def work() -> set[int]:
        np.linalg.qr(np.eye(3))
        return _threads()

    with threadpoolctl.threadpool_limits(2):
        before = _threads()
        assert work() == {1}
        with pytest.raises(ValueError), one_thread():
            assert _threads() == {1}
            raise ValueError
        assert _threads() == before
