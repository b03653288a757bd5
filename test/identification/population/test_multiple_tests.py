"""Levels of many tests together, against their definitions and on random p-values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inertid_ros.fleet.model_distribution import benjamini_hochberg, holm

P_VALUES = st.lists(st.floats(0.0, 1.0), max_size=30).map(np.array)


@given(P_VALUES)
def test_benjamini_hochberg_is_the_largest_set_of_its_definition(p_values):
    m = len(p_values)
    largest = max((k for k in range(m + 1) if k == 0 or (p_values <= 0.1 * k / m).sum() >= k), default=0)
    rejected = benjamini_hochberg(p_values, 0.1)
    assert rejected.sum() == largest
    assert p_values[rejected].max(initial=0.0) <= p_values[~rejected].min(initial=1.0)


@given(P_VALUES)
def test_holm_compares_the_next_p_value_with_those_that_are_left(p_values):
    left = list(np.sort(p_values))
    while left and left[0] <= 0.1 / len(left):
        left.pop(0)
    assert holm(p_values, 0.1).sum() == len(p_values) - len(left)


@pytest.mark.parametrize("tests", [1, 10, 200])
def test_holm_names_nothing_of_nothing(tests):
    rng = np.random.default_rng(tests)
    alarms = np.mean([holm(rng.uniform(size=tests), 0.05).any() for _ in range(2000)])
    assert alarms == pytest.approx(0.05, abs=0.02)
