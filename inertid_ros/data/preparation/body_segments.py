"""Samples of bodies whose poses are each recorded, such as the segments of a person by motion capture."""

from collections.abc import Mapping

import numpy as np

from inertid_ros.config.recordings import PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError, first_few
from inertid_ros.core.rotations import checked_quaternions, rotation_matrices
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import WRENCH_PREFIX, Recording
from inertid_ros.data.screening.channel_faults import flagged_within
from inertid_ros.robot.body_segments import wrench_frame
from inertid_ros.robot.contacts import UNMEASURED
from inertid_ros.robot.model import POSE, RobotModel

from .bandwidth import Spectrum
from .filtered_motion import pose_motion
from .filtering import even_pieces, low_pass, usable_samples
from .recorded_channels import BASE_POSE, CleanChannels
from .wrenches import measured_wrenches


def segment_channels(recording: Recording, model: RobotModel, options: PrepareOptions) -> CleanChannels:
    """Clean the poses of all segments and the external wrenches.

    Raises RecordingError: a part of a pose or a wrench is missing, or most quaternions do not have the length 1.
    """
    names = model.recorded_joints.joints
    missing = [name for name in names if name not in recording.joint_names]
    if missing:
        raise RecordingError(
            f"{recording.name}: joint_names lacks {first_few(missing)}; record the pose of every link with mass in the"
            f" world, as SEGMENT.{', SEGMENT.'.join(POSE)} [m, unit quaternion]")
    poses = recording.position[:, recording.columns(names)]
    invalid = np.zeros(len(poses), dtype=bool)
    for segment, pose in zip(model.link_names, np.split(poses, len(model.link_names), axis=1), strict=True):
        pose[:, 3:], wrong = checked_quaternions(pose[:, 3:], f"{recording.name}: {segment}")
        invalid |= wrong
    clean = CleanChannels(recording.name, recording.time)
    clean.note_gaps(recording.repairs.joins)
    clean.add_joints({"position": poses}, names, np.zeros(len(names), dtype=bool), passive=True)
    for contact, wrench in measured_wrenches(recording, model, options.wrenches).items():
        clean.add_wrench(contact, wrench)
    clean.faulty[BASE_POSE] = invalid
    return clean.without_ends(options.skip_start_s, options.skip_end_s)


def segment_samples(recorded: CleanChannels, poses: Spectrum, cutoff: float, model: RobotModel,
        options: PrepareOptions) -> Samples:
    """Samples for :class:`.BodySegmentEquations`, below a cutoff [Hz]; ``poses`` is the spectrum of the poses.

    One zero-phase filter for poses and wrenches keeps them in phase. Raises RecordingError: the recording is too short.
    """
    pieces, chosen = even_pieces(recorded, float(poses.motion_hz.max()), cutoff, options)
    parts = []
    for piece, rows in zip(pieces, chosen, strict=True):
        smooth = {key: low_pass(x, piece.period, cutoff, options.filter_order) for key, x in piece.channels.items()}
        bodies = np.split(smooth["position"], len(model.link_names), axis=1)
        q, v, a = map(np.hstack, zip(*(pose_motion(pose, piece.period) for pose in bodies), strict=True))
        columns = piece.time, q, v, a, _external_wrench(model, q, smooth), usable_samples(piece, cutoff, options)
        parts.append([values[rows] for values in columns])
    time, q, v, a, tau, usable = map(np.concatenate, zip(*parts, strict=True))
    for flags in recorded.faulty.values():  # the filter mixes a fault into neighbours
        usable &= ~flagged_within(flags[:, None], recorded.time, time, 1.0 / cutoff)[:, 0]
    measured = np.ones(tau.shape, dtype=bool)
    if model.ground is not None:
        measured[:, UNMEASURED] = False
    return Samples(time, q, v, a, np.where(measured, tau, 0.0), usable[:, None] & measured, usable, name=recorded.name,
        cutoff_hz=cutoff, findings=tuple(recorded.findings), measured=None if measured.all() else measured)


def _external_wrench(model: RobotModel, q: Array, channels: Mapping[str, Array]) -> Array:
    """Sum ``(N, 6)`` of all wrenches, in the frame of :func:`.wrench_frame` [N, N m]."""
    total, (frame, origin) = np.zeros((len(q), 6)), wrench_frame(model, q)
    for contact in model.contacts:
        if contact.plate is not None:
            axes, place = contact.plate.rotation[None], np.array(contact.plate.xyz)
        else:
            first = 7 * model.link_names.index(contact.frame)
            axes, place = rotation_matrices(q[:, first + 3 : first + 7]), q[:, first : first + 3]
        wrench = channels[WRENCH_PREFIX + contact.name]
        force, torque = (np.einsum("nij,nj->ni", axes, part) for part in (wrench[:, :3], wrench[:, 3:]))
        total += np.hstack([force @ frame, (torque + np.cross(place - origin, force)) @ frame])
    return total
