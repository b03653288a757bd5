"""What a worker does for one bag: fetch, read, screen, prepare, and compress into information."""

import time
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from inertid_ros.app.screened_samples import FurtherSamples, cutoff_of, prepared_alike, screened
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.loading import load_any_length
from inertid_ros.data.long_recording import LongRecording, all_parts, kept_parts
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.motion_checks import check_motion
from inertid_ros.identification.assessment.gate import GateDecision, Verdict
from inertid_ros.identification.identify import identify, takes_further
from inertid_ros.identification.information.information_file import information_bytes
from inertid_ros.identification.population.bag_information import BagInformation
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import RobotModel, load_model

from .fetching import content_hash, fetched
from .fleet_configuration import key_of


@dataclass(frozen=True)
class BagJob:
    """One bag to compress.

    Attributes
    ----------
    url : str
        Path or URL.
    urdf : str
        Content of the robot's URDF.
    configuration : Configuration
        Of the fleet, with the bag's payload among its loads.
    known : frozenset of str
        Keys of results that there are already: of these nothing is computed.
    """

    url: str
    urdf: str
    configuration: Configuration
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BagResult:
    """What a bag tells of its robot.

    Attributes
    ----------
    key : str
        Hash of all that it depends on.
    summary : dict
        Verdict, reasons, deviation and effective samples per channel, and figures of the bag: plain data.
    information : bytes
        Content of its information file; empty where the result was known, or the verdict is "do not use".
    """

    key: str
    summary: dict[str, Any]
    information: bytes = b""


def bag_job(job: BagJob) -> BagResult:
    """Compress a bag.

    Raises
    ------
    InertidError
        It cannot be used.
    """
    start, processor = time.perf_counter(), time.process_time()
    with fetched(job.url) as path:
        try:
            sha256, size = content_hash(path)
            key = key_of(sha256, job.urdf, configuration=job.configuration)
            known = {"sha256": sha256, "bytes": size}
            if key in job.known:
                return BagResult(key, known)
            configuration = job.configuration
            model = load_model(job.urdf, model_options(configuration.robot))
            given = load_any_length(path, configuration.topics, model.recorded_joints, configuration.prepare.stamps)
            read = time.perf_counter() - start
            summary, information = _compressed(given, configuration, model)
        except InertidError as error:
            raise type(error)(str(error).replace(str(path), job.url)) from None
    seconds = {
        "seconds_reading": read,
        "seconds_total": time.perf_counter() - start,
        "seconds_processor": time.process_time() - processor,
    }
    return BagResult(key, {**known, **summary, **seconds}, information)


def _compressed(
    given: Recording | LongRecording, configuration: Configuration, model: RobotModel
) -> tuple[dict[str, Any], bytes]:
    """Summary of a recording and its information, of a long one in memory that does not grow with it."""
    options = configuration.identify
    pieces = [given] if takes_further(model, options) else list(all_parts(given))
    recordings = screened(kept_parts(pieces), model, configuration)
    cutoff = cutoff_of(recordings)
    recordings = prepared_alike(pieces, recordings, cutoff)
    long = [each for each in pieces if isinstance(each, LongRecording)]
    samples = [each.samples(cutoff) for each in recordings]
    findings = chain.from_iterable(each.findings for each in samples)
    decision = GateDecision.of([*findings, *check_motion(samples, model)])
    summary: dict[str, Any] = {
        "duration_s": given.duration,
        "samples": len(given),
        "cutoff_hz": cutoff,
        **decision.content(),
    }
    if decision.verdict is Verdict.REJECT:
        return summary, b""
    estimate = identify(model, samples, options, further=FurtherSamples(long, recordings, cutoff))
    summary |= {
        "deviation": estimate.residual_deviation.tolist(),
        "effective_samples": np.asarray(estimate.effective_counts, dtype=float).tolist(),
        "delay_s": estimate.delay,
    }
    return summary, information_bytes(estimate.information)


def bag_information(name: str, day: float, summary: dict[str, Any], information: Any) -> BagInformation:
    """A stored result of a bag, for the fit of its robot."""
    return BagInformation(
        name, day, information, np.array(summary["deviation"]), np.array(summary["effective_samples"])
    )
