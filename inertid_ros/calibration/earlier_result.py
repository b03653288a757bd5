"""Read earlier results, for the plan of the next motion and as the prior of the next identification."""

import os
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from inertid_ros.core.errors import ModelError, RecordingError
from inertid_ros.core.formats import file_checksum
from inertid_ros.core.inertial_parameters import karcher_mean
from inertid_ros.data.recording import Recording
from inertid_ros.identification.continuation import EarlierFit
from inertid_ros.identification.information.information import EarlierInformation, earlier_information
from inertid_ros.identification.provenance import EarlierSource, checksum
from inertid_ros.report.results import PARAMETERS, REPORT, Result, ResultError, as_written
from inertid_ros.robot.model import RobotModel, load_model

_MIN_MASS_SHARE = 0.8  # of the lightest body; a mean of bodies that hardly overlap has much less


def earlier_result(directory: str | Path, model: RobotModel) -> tuple[RobotModel, EarlierInformation]:
    """Read a result directory for the planner of a robot's next motion.

    Returns the model of the result (or ``model`` if the result was rejected), whose bodies predict efforts, and the
    information of the recordings. InertidError: the result or its information is missing, or belongs to another robot
    or to other drive terms.
    """
    result = _result_of(directory, model)
    report = result.report
    fitted_speeds = result.information.layout.stribeck_speeds
    model = model.with_layout(terms=result.model.layout.terms, stribeck_speeds=fitted_speeds)
    with as_written(result.directory / REPORT):
        recordings = report["provenance"]["recordings"]
        seconds = sum(recording["seconds"] for recording in recordings if recording["role"] == "train")
        information = earlier_information(model, result.information, report["residual_deviation"],
            report["effective_samples"], seconds)
    return (model if result.rejected else result.model), information


def given_prior(paths: Sequence[str], model: RobotModel,
        recordings: Sequence[Recording]) -> tuple[RobotModel, EarlierFit | None, tuple[EarlierSource, ...]]:
    """Read the prior of an identification with new ``recordings``, fitted and held out (option ``identify.prior``).

    Without ``paths`` the prior is the robot's URDF. A single result directory is continued: the second value is its
    fit. Several results and URDFs, or a single URDF, give each link the mean of their bodies (:func:`.karcher_mean`).

    Returns the robot with this prior, the fit to continue or None, and the origin of the prior.

    InertidError: a result or URDF is missing or given twice, or belongs to another robot; bodies are too different for
    a mean; or a result was rejected, or was fitted to one of ``recordings``, which would then count twice or would not
    be held out.
    """
    if len(paths) == 1 and not os.path.isfile(paths[0]):
        earlier, source = earlier_fit(paths[0], model, recordings)
        return model, earlier, (source,)
    if not paths:
        return model, None, ()
    robots, sources = zip(*(_robot_and_source(path, model, recordings) for path in paths), strict=True)
    checksums = [source.sha256 for source in sources]
    for index, path in enumerate(paths):
        if checksums[index] in checksums[:index]:
            raise ModelError(f"{path}: is given twice as a prior, and would count twice; give it once")
    # Links behind locked joints are known, and no part of the mean.
    bodies = np.array([robot.consistent_body_prior - robot.body_locked for robot in robots])
    mean = karcher_mean(bodies)
    for link, mass, least in zip(model.link_names, mean[:, 0], bodies[..., 0].min(axis=0), strict=True):
        if mass < _MIN_MASS_SHARE * least:
            raise ModelError(
                f"{', '.join(paths)}: '{link}' weighs {least:.3g} kg or more, but {mass:.3g} kg in the mean, because"
                " its shapes or places differ too much or are too flat; leave the odd one out, or correct its inertia")
    name = f"mean of {', '.join(paths)}" if len(paths) > 1 else f"bodies of {paths[0]}"
    return model.with_prior_bodies(model.body_locked + mean, name), None, sources


def _robot_and_source(path: str, model: RobotModel,
        recordings: Sequence[Recording]) -> tuple[RobotModel, EarlierSource]:
    """Robot of a URDF or of a result directory."""
    if not os.path.isfile(path):
        result, source = _good_result(path, model, recordings)
        return result.model, source
    robot = load_model(Path(path), model.options)
    _check_same_robot(path, robot, model)
    return robot, EarlierSource(directory=path, sha256=file_checksum(Path(path)), created="", recordings={})


def earlier_fit(directory: str | Path, model: RobotModel,
        recordings: Sequence[Recording]) -> tuple[EarlierFit, EarlierSource]:
    """Read a result directory, to continue its identification; arguments and errors as for :func:`given_prior`."""
    result, source = _good_result(directory, model, recordings)
    report, information = result.report, result.information
    with as_written(result.directory / REPORT):
        deviation, counts = (np.array(report[key], dtype=float) for key in ("residual_deviation", "effective_samples"))
        equations = information.independent(deviation, counts)
        prior_spread = float(report["solver"]["prior_spread"])
    estimate = (result.prior, result.parameters, result.covariance)
    name = result.model.prior_name
    return EarlierFit(information.layout, information.robot, equations, *estimate, prior_spread, name), source


def _good_result(directory: str | Path, model: RobotModel,
        recordings: Sequence[Recording]) -> tuple[Result, EarlierSource]:
    """Load a result of a robot that was not rejected, and that was fitted to none of ``recordings``."""
    result = _result_of(directory, model)
    if result.rejected:
        message = result.report.get("message")
        raise ResultError(f"{directory}: was rejected and cannot be a prior ({message}); give a good result")
    with as_written(result.directory / REPORT):
        source = EarlierSource(directory=str(result.directory), sha256=file_checksum(result.directory / PARAMETERS),
            created=result.report["provenance"]["created"], recordings=result.known_recordings)
    for recording in recordings:
        name = source.recordings.get(checksum(recording))
        if name is not None:
            raise RecordingError(
                f"{recording.name}: is part of the earlier result already ({directory}, as {name}), and would count"
                " twice; give new recordings")
    return result, source


def _result_of(directory: str | Path, model: RobotModel) -> Result:
    result = Result.load(directory)
    _check_same_robot(directory, result.model, model)
    return result


def _check_same_robot(path: str | Path, other: RobotModel, model: RobotModel) -> None:
    """Refuse a robot with other joints, links or kinematics."""
    names = zip_longest(other.joint_names + other.link_names, model.joint_names + model.link_names, fillvalue="none")
    differences = [f"{one} in place of {own}" for one, own in names if one != own]
    if differences or other.hash != model.hash:
        difference = differences[0] if differences else "other places or axes of joints"
        raise ModelError(
            f"{path}: belongs to another robot type or has other locked joints ({difference}); give a result or URDF of"
            " this robot type")
