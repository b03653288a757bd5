"""A small fleet in a folder, and a cluster that works in the process of the test."""

import json
import os

from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.files.loading import write_npz
from inertid_ros.fleet.cluster import caught

JOINTS, SECONDS = 2, 5.0


class InlineCluster:
    """Cluster whose tasks run here, one after another; counts them by the name of their function."""

    dashboard = ""

    def __init__(self):
        self.done = {}

    def results(self, function, jobs):
        for key, arguments in jobs.items():
            self.done[function.__name__] = self.done.get(function.__name__, 0) + 1
            yield key, caught(function, arguments)


def write_fleet(folder, robots=1, bags=2, seed=1):
    """Recordings ``R<robot>_<bag>.npz``, ``robot.urdf`` and ``catalogue.yaml``; its content."""
    content = {"robots": [], "bags": []}
    case = synthetic_case(seed, joints=JOINTS, recordings=robots * bags, duration=SECONDS)
    (folder / "robot.urdf").write_text(case.given.urdf)
    recordings = iter(case.recordings)
    for robot in range(robots):
        content["robots"].append({"serial": f"R{robot}", "model": "arm", "urdf": "robot.urdf"})
        for bag in range(bags):
            write_npz(next(recordings), folder / f"R{robot}_{bag}.npz")
            date = f"2026-{bag + 1:02d}-01"
            content["bags"].append({"serial": f"R{robot}", "bag": f"R{robot}_{bag}.npz", "date": date})
    write_catalogue(folder, content)
    return content


def write_catalogue(folder, content):
    """Write the catalogue, in JSON, which is YAML."""
    (folder / "catalogue.yaml").write_text(json.dumps(content))
    return folder / "catalogue.yaml"


def numbered_job(number):
    """Number 3 is refused, number 5 has a fault, and number 17, long after these, ends its process."""
    if number == 3:
        raise RecordingError("three: is no recording")
    if number == 5:
        raise KeyError("five")
    if number == 17:
        os._exit(1)
    return 10 * number
