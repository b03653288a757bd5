"""Publishers of the recorded topics, and statuses of the recorder node (docs/reference/diagnostics.md)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from inertid_ros.config.nodes import RecorderOptions
from inertid_ros.data.files.live_bag import free_space_mb
from inertid_ros.data.messages import JOINT_STATE
from inertid_ros.data.screening.live_watch import StreamReport
from inertid_ros.ros import diagnostics
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN, Status, gravest

from .session import RecordingSession, SessionState, Source

_WRENCH_CHANNELS = ("force x", "force y", "force z", "torque x", "torque y", "torque z")
_SCARCE_SPACE_FACTOR = 2.0  # a warning below this multiple of the space without which no recording begins


@dataclass(frozen=True)
class TopicState:
    """Number of publishers of a topic, and what is wrong with them in one line; empty if all is well."""

    topic: str
    publishers: int
    problem: str


def inspect_topic(node: Node, topic: str, type_name: str, profile: QoSProfile) -> TopicState:
    """Compare the publishers of a resolved topic with a subscription of type ``type_name`` and ``profile``."""
    offers = node.get_publishers_info_by_topic(topic)
    if not offers:
        return TopicState(topic, 0, f"nobody publishes {topic}; start the robot's driver, or remap the topic")
    for offer in offers:
        who = f"{offer.node_namespace.rstrip('/')}/{offer.node_name} publishes {topic}"
        if offer.topic_type != type_name:
            return TopicState(topic, len(offers), f"{who} as {offer.topic_type}, expected {type_name}")
        wants_reliable = profile.reliability == ReliabilityPolicy.RELIABLE
        if wants_reliable and offer.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT:
            remedy = "set the parameter reliability to best_effort"
            return TopicState(topic, len(offers), f"{who} best effort; {remedy}")
    return TopicState(topic, len(offers), "")


def recording(session: RecordingSession) -> Status:
    """Status of the recording and of the samples that were left out."""
    live = session.recording
    counts = vars(live.counts) if live is not None else {}
    values: dict[str, object] = {
        "State": session.state.value,
        "Recording": live.name if live is not None else None,
        "Samples": counts.get("accepted"),
        "Rejected": counts.get("rejected"),
        "Out of order": counts.get("out_of_order"),
        "Gaps": counts.get("gaps"),
        "Lost by the middleware": session.lost if live is not None else None,
        "Incomplete": live.incomplete if live is not None else None,
        "Duration (s)": live.seconds if live is not None else None,
        "Last fault": session.last_fault,
    }
    failed = session.message if session.state is SessionState.FAILED else ""
    return Status("recording", *gravest((ERROR, failed), (WARN, session.warning), otherwise=session.message), values)


def disk(options: RecorderOptions) -> Status:
    """Status of the space for recordings."""
    required, free = options.min_free_mb, free_space_mb(options.directory)
    space = f"{free:.0f} MiB are free in {options.directory}"
    level_and_message = gravest(
        (OK, "" if options.write_bag else "no bags are written"),
        (WARN, f"free space of {options.directory} cannot be read" if math.isnan(free) else ""),
        (ERROR, f"{space}, below min_free_mb {required}; no recording begins" if free < required else ""),
        (WARN, space if free < _SCARCE_SPACE_FACTOR * required else ""),
        otherwise=space,
    )
    values = {"Directory": options.directory, "Free space (MiB)": free, "Minimum free space (MiB)": required}
    return Status("disk", *level_and_message, values)


def topic(source: Source, state: TopicState, report: StreamReport, joints: Sequence[str]) -> Status:
    """Status of the messages of a topic; ``joints`` are those of its recorded joint states."""
    channels = joints if source.type == JOINT_STATE else _WRENCH_CHANNELS
    values = {"Type": source.type, "Publishers": state.publishers, **diagnostics.stream_values(report, channels)}
    saturated = values["Saturated"]
    mixed = f"{state.publishers} publishers on {state.topic}, whose data is mixed; stop all but one"
    level_and_message = gravest(
        (ERROR if state.publishers else STALE, state.problem),
        (STALE, f"{source.name} is published but no message arrives" if report.silent else ""),
        (WARN, mixed if state.publishers > 1 else ""),
        (WARN, diagnostics.wrong_clock(report)),
        (WARN, diagnostics.gaps_between("messages", report)),
        (WARN, f"{saturated} at the largest value; check the sensor's range" if saturated else ""),
        otherwise=f"{report.rate_hz:.0f} Hz",
    )
    return Status(f"topic {source.name}", *level_and_message, values)
