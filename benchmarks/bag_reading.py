"""Speed of reading bags by columns, compared with the loop of the library rosbags on equal files."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rosbags import rosbag2
from rosbags.typesys import Stores, get_typestore
from tables import machine, publish, table

from inertid_ros.data.files.bag_reading import read_bag

JOINTS = 7
TYPE = "sensor_msgs/msg/JointState"
STORE = get_typestore(Stores.ROS2_JAZZY)
STORAGES = {
    "MCAP": (rosbag2.StoragePlugin.MCAP, None),
    "MCAP, zstd chunks": (rosbag2.StoragePlugin.MCAP, rosbag2.CompressionFormat.ZSTD),
    "SQLite": (rosbag2.StoragePlugin.SQLITE3, None),
}


def write(path: Path, messages: int, storage: str) -> None:
    """Write a bag of joint states at 1 kHz with the library's own writer."""
    plugin, compression = STORAGES[storage]
    rng, types = np.random.default_rng(0), STORE.types
    writer = rosbag2.Writer(path, version=9, storage_plugin=plugin)
    if compression is not None:
        writer.set_compression(rosbag2.CompressionMode.STORAGE, compression)
    names = [f"joint_{k}" for k in range(JOINTS)]
    with writer:
        connection = writer.add_connection("/joint_states", TYPE, typestore=STORE)
        for index in range(messages):
            stamp = 10**18 + index * 10**6
            time_type = types["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9)
            header = types["std_msgs/msg/Header"](stamp=time_type, frame_id="")
            values = rng.normal(size=(3, JOINTS))
            message = types[TYPE](header=header, name=names, position=values[0], velocity=values[1], effort=values[2])
            writer.write(connection, stamp, STORE.serialize_cdr(message, TYPE))


def by_library(path: Path) -> np.ndarray:
    """Read positions into an array with the reader and decoder of rosbags, as its users do."""
    rows = []
    with rosbag2.Reader(path) as reader:
        for connection, _, data in reader.messages():
            message = STORE.deserialize_cdr(data, connection.msgtype)
            stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
            rows.append((stamp, message.position, message.velocity, message.effort))
    return np.array([row[1] for row in rows])


def main() -> None:
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    ways: dict[str, Callable[[Path], np.ndarray]] = {
        "rosbags": by_library, "by columns": lambda path: read_bag(path).position,
    }  # fmt: skip
    rows = []
    for storage in STORAGES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bag"
            write(path, messages, storage)
            size = sum(file.stat().st_size for file in path.iterdir())
            rates, found = {}, {}
            ways["by columns"](path)  # imports the decompression library, fills the file cache
            for name, way in ways.items():
                began = time.process_time()
                found[name] = way(path)
                rates[name] = messages / (time.process_time() - began)
            same = np.array_equal(found["rosbags"], found["by columns"])
            ratio = f"{rates['by columns'] / rates['rosbags']:.1f}"
            own = [f"{rate / 1e3:.0f}" for rate in rates.values()]
            rows.append([storage, f"{size / 1e6:.0f} MB", *own, ratio, "equal" if same else "different"])
    header = ["storage", "size", *(f"{name} [1000/s]" for name in ways), "columns / rosbags", "positions"]
    text = f"""## Reading of bags

`sensor_msgs/JointState` of {JOINTS} joints, {messages} messages, written by rosbags; messages per second
of processor time. rosbags: reader and decoder of the library, fields copied into arrays. By columns:
`read_bag`, with assembly and checks of the recording.

{table(header, rows)}

{machine()}"""
    publish("bag-reading", text)


if __name__ == "__main__":
    main()
