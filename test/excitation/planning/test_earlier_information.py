"""The next motion asks for what earlier recordings left open."""

from dataclasses import replace

import attrs
import numpy as np
import pytest
from support.robots.quick_plans import simple_limits
from support.robots.random_robots import random_model, random_states

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.samples import Samples
from inertid_ros.excitation.planning.criterion import make_criterion
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.identification.information.information import EarlierInformation, compress, earlier_information

OPTIONS = ExcitationOptions(
    duration_s=5.0, base_frequency_hz=0.2, harmonics=4, starts=8, improved=1, iterations=25, criterion_samples=50
)


def setting(seed=0, joints=3):
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints=joints)
    limits = replace(simple_limits(joints), joint_names=model.joint_names, effort=np.full(joints, 1e4))
    return rng, model, limits


def test_information_of_recordings_is_that_of_the_criterion():
    rng, model, limits = setting()
    samples = random_states(rng, model, 500)
    information = compress(model, [samples])
    deviation, seconds = np.array([0.1, 0.2, 0.4]), 5.0
    known = earlier_information(model, information, deviation, 0.25 * information.counts, seconds)
    assert known.weights == pytest.approx(np.sqrt(0.25 * 500 / seconds) / deviation)
    # 500 samples worth 125, in five seconds: rows weighted for that say the same as the recording.
    empty = EarlierInformation(np.zeros_like(known.root), known.weights)
    for options in (ExcitationOptions(), ExcitationOptions(scaling="metric")):
        alone, earlier = (make_criterion(model, limits, options, each) for each in (empty, known))
        bodies = alone.measured.columns[alone.columns] < model.layout.body_size
        rows = alone.along(_Recorded(samples), seconds / 500).rows[:, bodies]
        assert earlier.earlier_rows[:, bodies].T @ earlier.earlier_rows[:, bodies] == pytest.approx(
            rows.T @ rows, rel=1e-9, abs=1e-9 * np.abs(rows.T @ rows).max()
        )


class _Recorded:
    """Samples as a trajectory that is only asked for these very samples."""

    duration = 5.0

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def sample(self, _instants):
        return self._samples.q, self._samples.v, self._samples.a


def test_a_second_motion_complements_the_first():
    _, model, limits = setting(seed=2)
    start = np.zeros(3)
    first = plan_excitation(model, limits, start, OPTIONS)
    criterion = make_criterion(model, limits, OPTIONS)
    rows = criterion.along(first).rows
    root = np.zeros((len(rows), model.layout.size))
    root[:, criterion.measured.columns[criterion.columns]] = rows
    known = EarlierInformation(root, 1 / limits.effort)
    second = plan_excitation(model, limits, start, attrs.evolve(OPTIONS, seed=1), earlier=known)
    together = make_criterion(model, limits, OPTIONS, known)
    assert together.value(together.along(second)) < 0.98 * together.value(together.along(first))


@pytest.mark.parametrize(
    ("measured", "criterion", "scaling", "kind"),
    [(("base",), "condition", "columns", "fourier"), (("joints", "base"), "a", "metric", "bspline")],
)
def test_motions_are_planned_for_what_is_measured(measured, criterion, scaling, kind):
    _, model, limits = setting(seed=3)
    chosen = attrs.evolve(OPTIONS, measured=measured, criterion=criterion, scaling=scaling, kind=kind, intervals=8)
    criterion = make_criterion(model, limits, chosen)
    chance, improved = (
        criterion.value(
            criterion.along(plan_excitation(model, limits, np.zeros(3), attrs.evolve(chosen, improved=count)))
        )
        for count in (0, 1)
    )
    assert improved < 0.9 * chance


def test_information_of_another_robot_is_refused():
    rng, model, _ = setting()
    information = compress(model, [random_states(rng, model, 50)])
    other = setting(seed=4, joints=2)[1]
    with pytest.raises(ExcitationError, match="belongs to another robot"):
        earlier_information(other, information, np.ones(3), np.ones(3), 1.0)
    with pytest.raises(ExcitationError, match="must be positive"):
        earlier_information(model, information, np.ones(3), np.zeros(3), 1.0)
