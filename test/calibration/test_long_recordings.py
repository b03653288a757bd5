"""A long recording, of which some parts are kept, gives the parameters of all its parts."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import Case, synthetic_case
from support.without_blocks import without_blocks  # noqa: F401 - for all tests of this module

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.dataset import Dataset, FurtherSamples, ScreenedRecording
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.recordings import PrepareOptions
from inertid_ros.core.errors import IdentificationError, RecordingError
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.data.preparation.prepare import Preparation
from inertid_ros.data.recording import Recording
from inertid_ros.identification.identify import StreamedSamples, identify, takes_further
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import equations_of

PARTS, CUTOFF = 6, 8.0


@pytest.fixture(scope="module")
def case() -> Case:
    return synthetic_case(3, recordings=2, duration=60.0)


def parts_of(recording: Recording) -> list[Recording]:
    rows = np.array_split(np.arange(len(recording)), PARTS)
    channels = ("time", "position", "velocity", "effort")
    return [replace(recording, **{key: getattr(recording, key)[own] for key in channels},
        continued=(k > 0, k < PARTS - 1)) for k, own in enumerate(rows)]


@pytest.fixture(scope="module")
def long(case) -> LongRecording:
    return LongRecording.from_parts(lambda: iter(parts_of(case.recordings[0])), most=2)


def test_all_parts_count_and_few_are_held(case, long):
    outcome = calibrate(case.given, [long], case.recordings[1:])
    whole = calibrate(case.given, case.recordings[:1], case.recordings[1:])
    source, of_whole = outcome.provenance.recordings[0], whole.provenance.recordings[0]
    assert (source.samples, source.name) == (of_whole.samples, of_whole.name)
    assert source.used_samples == pytest.approx(of_whole.used_samples, rel=0.05)  # ends of parts are filter transient
    assert any("read in 6 parts" in notice for notice in source.notices)
    assert len(outcome.train) == 2 == len(outcome.provenance.recordings)
    known = np.diag(whole.estimate.covariance) > 0
    deviation = np.sqrt(np.diag(whole.estimate.covariance))[known]
    difference = np.abs(outcome.estimate.parameters - whole.estimate.parameters)[known]
    assert (difference < 0.5 * deviation).all()
    assert outcome.gate.verdict == whole.gate.verdict


def test_information_is_that_of_all_samples_in_memory(case, long):
    configuration = Configuration(identify=IdentifyOptions(outlier_threshold=0, remove_delay=False))
    kept = [ScreenedRecording.of(part, case.given, configuration) for part in long.parts]
    cutoff = 8.0
    samples = [each.samples(cutoff) for each in kept]
    further = FurtherSamples([long], kept, cutoff)
    estimate = identify(case.given, StreamedSamples(samples, further), configuration.identify)
    together = compress(estimate.equations, [*samples, *further])
    assert list(together.counts) == list(estimate.information.counts)
    rng = np.random.default_rng(0)
    for own, other in zip(estimate.information.channels, together.channels, strict=True):
        for parameters in rng.normal(size=(5, case.given.layout.size)):
            assert own.squared_error(parameters) == pytest.approx(other.squared_error(parameters), rel=1e-9)
    again = identify(case.given, StreamedSamples(samples, tuple(further)), configuration.identify)  # in memory
    np.testing.assert_allclose(estimate.parameters, again.parameters, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_samples_and_parameters_of_parts_are_those_of_the_whole(case, jitter):
    rng, recording = np.random.default_rng(5), case.recordings[0]
    period = float(np.median(np.diff(recording.time)))
    recording = replace(recording, time=recording.time + jitter * period * rng.uniform(-0.5, 0.5, len(recording)))
    parts = parts_of(recording)
    long = LongRecording.from_parts(lambda: iter(parts), most=2)
    dataset = Dataset.screened(case.given, Configuration(), [long]).prepared(CUTOFF)
    of_parts = [*dataset.samples(), *dataset.further_samples()]
    of_parts.sort(key=lambda samples: float(samples.time[0]))
    shared = dataset.parts()[0].preparation.shared
    assert shared is not None
    whole = replace(Preparation(recording, case.given), shared=shared).samples(CUTOFF)
    for channel in ("time", "q", "v", "a", "tau", "mask", "usable", "sliding"):
        of_whole = getattr(whole, channel)
        joined = np.concatenate([getattr(samples, channel) for samples in of_parts])
        np.testing.assert_allclose(joined, of_whole, rtol=0, atol=1e-9 * np.abs(of_whole).max(), err_msg=channel)
    equations = equations_of(case.given)
    one, other = (identify(case.given, compress(equations, own)).parameters for own in ([whole], of_parts))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * np.abs(other).max())


def test_outliers_of_parts_that_are_not_held_are_left_out(case, long):
    parts = parts_of(case.recordings[0])
    effort = parts[1].effort.copy()
    effort[200:205] += 3.0  # five in a row are no spike
    spoilt = [parts[0], replace(parts[1], effort=effort), *parts[2:]]
    assert 1 not in long.kept
    every = Configuration(identify=IdentifyOptions(outlier_threshold=0))

    def estimate(own, configuration=None):
        return calibrate(case.given, [replace(long, read=lambda: iter(own))], (), configuration).estimate

    clean, found, kept = estimate(parts), estimate(spoilt), estimate(spoilt, every)
    assert clean.outliers is not None and found.outliers is not None
    assert (found.outliers > clean.outliers).all()
    known = np.diag(clean.covariance) > 0
    deviation = np.sqrt(np.diag(clean.covariance))[known]
    error, with_outliers = (np.abs(each.parameters - clean.parameters)[known] / deviation for each in (found, kept))
    assert error.max() < 0.5 * with_outliers.max()


def test_a_part_without_effort_is_left_out(case, long):
    parts = parts_of(case.recordings[0])
    silent = [parts[0], replace(parts[1], effort=np.zeros_like(parts[1].effort)), *parts[2:]]
    source = calibrate(case.given, [replace(long, read=lambda: iter(silent))]).provenance.recordings[0]
    assert any("left out 1 parts" in notice and "effort is zero" in notice for notice in source.notices)


def test_classical_estimators_take_every_sample(case, long):
    options = IdentifyOptions(estimator="ols")
    assert not takes_further(case.given, options) and takes_further(case.given, IdentifyOptions())
    outcome = calibrate(case.given, [long], case.recordings[1:], Configuration(identify=options))
    assert len(outcome.train) == PARTS
    with pytest.raises(IdentificationError, match="need every sample"):
        identify(case.given, StreamedSamples(outcome.train[:1], outcome.train[1:]), options)


def test_ends_are_skipped_once_and_may_be_longer_than_a_part(case, long):
    whole = case.recordings[0]
    start, end = 0.3 * whole.duration, 0.2 * whole.duration  # more than a part of six
    skipping = Configuration(prepare=PrepareOptions(skip_start_s=start, skip_end_s=end))
    dataset = Dataset.screened(case.given, skipping, [long]).prepared(CUTOFF)
    time = np.concatenate([samples.time for samples in (*dataset.samples(), *dataset.further_samples())])
    (of_whole,) = Dataset.screened(case.given, skipping, [whole]).prepared(CUTOFF).samples()
    period = float(np.median(np.diff(of_whole.time)))
    assert [time.min(), time.max()] == pytest.approx([of_whole.time[0], of_whole.time[-1]], abs=2 * period)
    assert len(time) == pytest.approx(len(of_whole.time), rel=0.02)
    every = Dataset.screened(case.given, skipping, [long], every_sample=True)
    assert sum(len(part) for part in every.first_parts) == pytest.approx(0.5 * len(whole), rel=0.01)


def test_ends_longer_than_the_recording_are_refused(case, long):
    skipping = Configuration(prepare=PrepareOptions(skip_start_s=40.0, skip_end_s=20.0))
    with pytest.raises(RecordingError, match=r"time spans .* too short to skip 60 s"):
        Dataset.screened(case.given, skipping, [long])


def test_transients_are_trimmed_at_the_ends_of_the_whole_recording(case):
    first, middle = (parts_of(case.recordings[0])[k] for k in (0, 2))
    trimming = Configuration(prepare=PrepareOptions(trim_transients=True))
    options = [ScreenedRecording.unscreened(own, case.given, trimming).preparation.options for own in (first, middle)]
    assert [own.trim_transients for own in options] == [True, False]
