"""Read changed mesh files like the package: ``python -m studies.read_meshes FOLDER``; prints counts as JSON."""

import json
import logging
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from inertid_ros.core.errors import ModelError
from inertid_ros.excitation.constraints.collision_objects import CollisionObject
from inertid_ros.excitation.constraints.scene import ExactDistances
from inertid_ros.robot.urdf.shapes import CollisionShape, convex_hull, corners, shape_capsules, with_surfaces


def main(folder: str) -> None:
    """Read all files of a folder, and process readable files as in planning and identification."""
    files = sorted(Path(folder).iterdir())
    shapes = [CollisionShape(file.name, 0, np.eye(4), "mesh", mesh=file) for file in files]
    usable, problems = with_surfaces(shapes)
    far = np.eye(4)
    far[:3, 3] = 0.3
    for shape in usable:
        capsules = shape_capsules(shape)
        item, one = CollisionObject(shape.link, 0, (shape,)), np.zeros(1, dtype=int)
        pair, poses = np.array([[0, 1]]), np.array([[np.eye(4), far]])
        found = ExactDistances((item, item)).closest(pair, one, pair, poses, np.full(1, np.inf), exact=True)
        assert not np.isnan(found.distance).any() and np.isfinite([capsule.radius for capsule in capsules]).all()
        try:
            convex_hull(corners(shape), 1000.0)
        except ModelError as error:
            problems[shape.link] = str(error)
    why = (problem.split("(")[-1].split(")")[0] for problem in problems.values())
    reasons = Counter(re.sub(r"[-\d.e+]{2,}|\d", "N", reason)[:40] for reason in why)
    lines = all("\n" not in problem and ";" in problem for problem in problems.values())
    print(json.dumps({"read": len(usable), "told": len(problems), "lines": lines, "reasons": reasons}))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(sys.argv[1])
