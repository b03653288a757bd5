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
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN, Status, gravest, stream_values

from .session import RecordingSession, SessionState, Source

_WRENCH_CHANNELS = ("force x", "force y", "force z", "torque x", "torque y", "torque z")
_MAX_TOPIC_DELAY_S, _MAX_TOPIC_ADVANCE_S = 1.0, 0.01  # no network delays that much; clocks differ
_SCARCE_SPACE_FACTOR = 2.0  # a warning below this multiple of the space without which no recording begins


@dataclass(frozen=True)
class TopicState:
    """The publishers of a topic.

    Attributes
    ----------
    topic : str
        Resolved name.
    publishers : int
        Their number.
    problem : str
        What is wrong with them, in one line; empty if all is well.
    """

    topic: str
    publishers: int
    problem: str

    @property
    def several(self) -> str:
        """A line if several nodes publish at once; empty otherwise."""
        if self.publishers < 2:
            return ""
        return f"{self.publishers} publishers on {self.topic}, whose data is mixed; stop all but one"


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
    """Status of the space for recordings."""
    required, free = options.min_free_mb, free_space_mb(options.directory)
    space = f"{free:.0f} MiB are free in {options.directory}"
    level, message = gravest(
        (OK, "" if options.write_bag else "no bags are written"),
        (WARN, f"free space of {options.directory} cannot be read" if math.isnan(free) else ""),
        (ERROR, f"{space}, below min_free_mb {required}; no recording begins" if free < required else ""),
        (WARN, space if free < _SCARCE_SPACE_FACTOR * required else ""),
        otherwise=space,
    )
    values = {"Directory": options.directory, "Free space (MiB)": free, "Minimum free space (MiB)": required}
    return Status("disk", level, message, values)


def topic(source: Source, state: TopicState, report: StreamReport, joints: Sequence[str]) -> Status:
    """Status of the messages of a topic; ``joints`` are those of its recorded joint states."""
    channels = joints if source.type == JOINT_STATE else _WRENCH_CHANNELS
    values = {"Type": source.type, "Publishers": state.publishers, **stream_values(report, channels)}
    wrong_clock = ""
    if report.delay_s > _MAX_TOPIC_DELAY_S or report.delay_s < -_MAX_TOPIC_ADVANCE_S:
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
