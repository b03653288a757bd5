"""The statuses of the recorder node; docs/reference/diagnostics.md describes them."""

import math
from collections.abc import Sequence

from inertid_ros.data.files.live_bag import free_space_mb
from inertid_ros.data.live.stream_watch import StreamReport
from inertid_ros.data.messages import JOINT_STATE
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN, Status, gravest, stream_values

from .parameters import RecorderOptions
from .session import RecordingSession, SessionState
from .sources import Source
from .topic_graph import TopicState

_WRENCH = ("force x", "force y", "force z", "torque x", "torque y", "torque z")
_LATE_S = 1.0  # no network delays that much; clocks differ
_EARLY_S = 0.01
_LITTLE = 2.0  # times the space without which no recording begins


def recording(session: RecordingSession) -> Status:
    """What is being recorded, and what of it was left out."""
    live = session.recording
    failed = session.message if session.state is SessionState.FAILED else ""
    level, message = gravest((ERROR, failed), (WARN, session.warning), otherwise=session.message)
    values: dict[str, object] = {"State": session.state.value, "Recording": live.name if live is not None else None}
    counts = vars(live.counts) if live is not None else {}
    values |= {
        "Samples": counts.get("accepted"),
        "Rejected": counts.get("rejected"),
        "Out of order": counts.get("out_of_order"),
        "Gaps": counts.get("gaps"),
        "Lost by the middleware": session.lost if live is not None else None,
        "Incomplete": live.incomplete if live is not None else None,
        "Duration (s)": live.seconds if live is not None else None,
        "Last fault": session.last_fault,
    }
    return Status("recording", level, message, values)


def disk(options: RecorderOptions) -> Status:
    """Whether there is space for recordings."""
    least = options.min_free_mb
    free = free_space_mb(options.directory)
    space = f"{free:.0f} MiB are free in {options.directory}"
    level, message = gravest(
        (OK, "" if options.write_bag else "no bags are written"),
        (WARN, f"free space of {options.directory} cannot be read" if math.isnan(free) else ""),
        (ERROR, f"{space}, below min_free_mb {least}; no recording begins" if free < least else ""),
        (WARN, space if free < _LITTLE * least else ""),
        otherwise=space,
    )
    values = {"Directory": options.directory, "Free space (MiB)": free, "Minimum free space (MiB)": least}
    return Status("disk", level, message, values)


def topic(source: Source, state: TopicState, report: StreamReport, joints: Sequence[str]) -> Status:
    """How the messages of a topic come; ``joints`` are those of its joint states, where they were recorded."""
    channels = joints if source.type == JOINT_STATE else _WRENCH
    values = {"Type": source.type, "Publishers": state.publishers, **stream_values(report, channels)}
    wrong_clock = ""
    if report.delay_s > _LATE_S or report.delay_s < -_EARLY_S:
        wrong_clock = f"stamped {report.delay_s:.3f} s before now; check the clocks and use_sim_time"
    saturated = f"{values['Saturated']} at the largest value; check the sensor's range" if values["Saturated"] else ""
    level, message = gravest(
        (ERROR if state.publishers else STALE, state.problem),
        (STALE, f"{source.name} is published but no message arrives" if report.silent else ""),
        (WARN, state.several),
        (WARN, wrong_clock),
        (WARN, "gaps between messages; check the network and the load of the machine" if report.gaps else ""),
        (WARN, saturated),
        otherwise=f"{report.rate_hz:.0f} Hz",
    )
    return Status(f"topic {source.name}", level, message, values)
