"""``metadata.yaml`` of bags that are written live, which states whether the bag was closed."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from .mcap_format import Topic

METADATA = "metadata.yaml"
INFORMATION = "rosbag2_bagfile_information"  # the one key of the metadata
FINALISED_KEY = "inertid_finalised"


def live_metadata(
    file: str, topics: Sequence[Topic], counts: Mapping[int, int], start_ns: int, end_ns: int, finalised: bool
) -> str:
    """Content of ``metadata.yaml`` for a bag of one MCAP file.

    Parameters
    ----------
    file : str
        Name of the MCAP file.
    topics : sequence of Topic
        Topics of the bag.
    counts : mapping of int to int
        Number of messages of each topic, by its index.
    start_ns, end_ns : int
        First and last time of recording [ns].
    finalised : bool
        Whether the bag was closed.
    """
    def extent() -> dict[str, object]:  # new objects each time: YAML would write a second use as a reference
        return {
            "starting_time": {"nanoseconds_since_epoch": start_ns},
            "duration": {"nanoseconds": end_ns - start_ns},
            "message_count": sum(counts.values()),
        }

    described = [
        {
            "topic_metadata": {
                "name": topic.name,
                "type": topic.type,
                "serialization_format": "cdr",
                "offered_qos_profiles": [],
                "type_description_hash": "",
            },
            "message_count": counts[index],
        }
        for index, topic in enumerate(topics)
    ]
    content = {
        "version": 9,
        "storage_identifier": "mcap",
        "relative_file_paths": [file],
        **extent(),
        "topics_with_message_count": described,
        "compression_format": "",
        "compression_mode": "",
        "files": [{"path": file, **extent()}],
        "custom_data": {FINALISED_KEY: str(finalised).lower()},
        "ros_distro": os.environ.get("ROS_DISTRO", "unknown"),
    }
    return yaml.safe_dump({INFORMATION: content}, sort_keys=False)


def is_unfinalised(path: Path) -> bool:
    """Whether the metadata in a bag directory was left by a live bag that was not closed."""
    metadata = path / METADATA
    text = metadata.read_text(encoding="utf-8", errors="replace") if metadata.is_file() else ""
    return re.search(rf"\b{FINALISED_KEY}: '?false", text) is not None
