"""Planning with several processes: the same motion, best so far on interrupt, nothing left running; reduced sets."""

import os
from dataclasses import replace

import attrs
import numpy as np
import pytest
from support.robots.quick_plans import simple_limits
from support.robots.random_robots import random_model

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core import worker
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.worker import WorkerProcess
from inertid_ros.excitation.execution.plan_check import check_plan
from inertid_ros.excitation.planning.criterion import make_criterion
from inertid_ros.excitation.planning.planner import plan_excitation

OPTIONS = ExcitationOptions(
    duration_s=5.0, base_frequency_hz=0.2, harmonics=4, starts=6, improved=2, iterations=10, criterion_samples=40
)


def setting(joints=3):
    model = random_model(np.random.default_rng(1), joints=joints)
    limits = replace(simple_limits(joints), joint_names=model.joint_names, effort=np.full(joints, 1e4))
    return model, limits, np.zeros(joints)


def test_the_number_of_processes_does_not_change_the_motion(capfd, monkeypatch):
    """Nor what is told: notices of the robot are those of this process, and not repeated by the others."""
    floor = -1.5
    reports, started = [], []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 1})
    monkeypatch.setattr(worker, "WorkerProcess", lambda: started.append(WorkerProcess()) or started[-1])
    one = plan_excitation(*setting(), attrs.evolve(OPTIONS, workers=1, floor_m=floor))
    two = plan_excitation(*setting(), attrs.evolve(OPTIONS, workers=0, floor_m=floor), reports.append)  # one per core
    assert len(started) == OPTIONS.improved
    assert (one.position == two.position).all() and (one.acceleration == two.acceleration).all()
    assert one.condition_number == two.condition_number
    fractions = [report.fraction for report in reports]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0
    assert reports[-1].value == pytest.approx(two.condition_number) and reports[-1].kept > 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_gives_the_best_motion_so_far(workers):
    model, limits, start = setting()
    seen = []

    def interrupt(report):
        seen.append(report)
        if len(seen) == 3:
            raise KeyboardInterrupt

    options = attrs.evolve(OPTIONS, workers=workers, iterations=100_000)  # without an end of its own
    plan = plan_excitation(model, limits, start, options, interrupt)
    check_plan(plan, model, limits)
    assert plan.condition_number < 1.05 * seen[2].value
    assert seen[-1].fraction == 1.0


def test_giving_up_ends_the_processes():
    class GaveUpError(Exception):
        pass

    def give_up(report):
        raise GaveUpError

    with pytest.raises(GaveUpError):
        plan_excitation(*setting(), attrs.evolve(OPTIONS, workers=2), give_up)


def test_what_cannot_be_excited_is_left_out():
    model, limits, start = setting()
    reports = []
    options = attrs.evolve(OPTIONS, criterion="e", scaling="metric", improved=1, iterations=15, workers=1)
    plain = plan_excitation(model, limits, start, options, reports.append)
    full = reports[-1]
    criterion = make_criterion(model, limits, options)
    values = criterion.along(plain).eigenvalues
    bound = float(values[2] ** -0.5)  # two combinations too many, unless planning for fewer helps
    plan = plan_excitation(model, limits, start, attrs.evolve(options, criterion_bound=bound), reports.append)
    last = reports[-1]
    assert full.kept == criterion.count and criterion.count - 2 <= last.kept < criterion.count
    assert last.value <= bound < full.value
    reached = criterion.along(plan).eigenvalues[-last.kept]
    assert reached**-0.5 == pytest.approx(last.value, rel=1e-6)
    with pytest.raises(ExcitationError, match="stays above it even with only one"):
        plan_excitation(model, limits, start, attrs.evolve(options, iterations=1, criterion_bound=1e-12))
