"""Samples as they were measured, of a recording as it was published."""

from inertid_ros.data.recording import Recording

from .repeated_states import without_repeated_states
from .stamp_jitter import without_stamp_jitter


def as_measured(recording: Recording) -> Recording:
    """The recording without jitter of its stamps, and without states that were published again; both are counted.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    """
    return without_repeated_states(without_stamp_jitter(recording))
