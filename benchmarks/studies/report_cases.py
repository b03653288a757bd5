"""Results for checks of report pages: two recorded arms, three simulated robots, and a recording spoilt on purpose."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from spoilt_recordings import recorded_cases
from support.recordings.biped import biped, prior
from support.recordings.simulated_arms import simulated_case
from support.robots.floating_robots import motion, satellite, with_prior
from tables import datasets

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.data.recording import Recording
from inertid_ros.report.results import CalibrationOutcome
from inertid_ros.robot.body_changes import write_urdf
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.free_floating import float_freely, measured

from .spoilt_recordings import SPOILT

DRIFT, DRIFT_S = 1.5, 7.0  # gain drift of the bad recording, and its period [s]
_WHEELS_TURN = re.compile('lower="[^"]*" upper="[^"]*"')


def cases() -> Iterator[tuple[str, Callable[[], CalibrationOutcome]]]:
    """Name of a case and function for its result; recorded robots only if their data are available."""
    folder = datasets()
    if folder is not None:
        for case in recorded_cases(folder):
            yield case.name, partial(calibrate, case.given, case.train, case.held_out)
    yield "panda", _panda
    yield "biped", _biped
    yield "space", _space
    yield "bad", _bad


def _panda() -> CalibrationOutcome:
    case = simulated_case("panda")
    return calibrate(case.given, case.train, case.held_out)


def _bad() -> CalibrationOutcome:
    """The Panda, fitted to a bag with spikes, lost and held values, gaps, and drifting gains of torque sensors."""
    case, rng = simulated_case("panda"), np.random.default_rng(0)
    bag = case.train[0]
    for name in ("spikes of effort", "NaN", "values held", "long gaps"):
        bag, _ = SPOILT[name](bag, rng)
    gain = 1 + DRIFT * np.sin(2 * np.pi * bag.time[:, None] / DRIFT_S + rng.uniform(0, 6, case.given.joints))
    bag = replace(bag, effort=gain * bag.effort, velocity=None, name="bad bag")
    return calibrate(case.given, [bag], case.held_out)


def _biped() -> CalibrationOutcome:
    held_out = replace(biped(movements=4, seed=3), name="biped, other movements")
    return calibrate(prior(), [biped()], [held_out])


def _space() -> CalibrationOutcome:
    model = satellite(np.random.default_rng(0), 3)
    text = write_urdf(model, with_prior(model, np.random.default_rng(1)).body_prior)
    given = load_model(_WHEELS_TURN.sub('lower="-6.3" upper="6.3"', text), model.options)
    recordings: list[Recording] = []
    for seed, name in enumerate(("motion 1", "motion 2")):
        found = float_freely(model, model.body_prior, motion(model, 24, seed).trajectory, 50.0)
        recordings.append(measured(model, found, (1e-4, 1e-4, 1e-4), np.random.default_rng(seed), name))
    configuration = Configuration(identify=IdentifyOptions(equations="momentum"))
    return calibrate(given, recordings[:1], recordings[1:], configuration)
