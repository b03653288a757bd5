"""A sample of ``benchmarks/solver_accuracy.py``: channels whose weights lie ten orders apart."""

import importlib

import numpy as np
import pytest
from support.paths import ROOT

from inertid_ros.identification.solvers.interior_point import solve

DIFFICULT = 68, 144, 279, 289, 448, 735, 773, 821  # a start that was not centred ended without an optimum


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("solver_accuracy")


@pytest.mark.parametrize("seed", [*DIFFICULT, *range(8)])
def test_channels_of_very_different_scale(benchmark, seed):
    found = benchmark.compare(benchmark.random_case(seed))
    assert not found.failure
    assert not np.nanmax([found.excess, found.decrement, 0.0]) > benchmark.ACCURACY


def test_data_without_noise_keeps_the_prior(benchmark, monkeypatch):
    """Weights of up to 1e12, whose squares hold nothing of a prior of one."""
    monkeypatch.setattr(benchmark, "SCALES", (2.0, 12.0))
    cases = [case for case in map(benchmark.random_case, range(30)) if case.data == benchmark.DATA[0]]
    for case in cases:
        solution = solve(case.convex_program, case.start)
        if case.regularizer == "entropic" and not case.ellipsoids:
            assert benchmark.extended_decrement(case.convex_program, solution.x) < 1e-6
    assert len(cases) > 5
