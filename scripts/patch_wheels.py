"""Replace two paths of the build machine in the CMake files of the ROS wheels.

The exported targets of message packages name the folders of Python's and NumPy's headers. Run this with the interpreter
of the virtual environment; the argument is the folder that holds Python.h.
"""

import re
import sys
from pathlib import Path

import numpy

BUILD_MACHINE = r"/opt/(?:python|_internal)/[^;\"\s]*?"


def patch(text: str, python_include: str, numpy_include: str) -> str:
    """Return the text of a CMake file with the folders of this machine."""
    text = re.sub(BUILD_MACHINE + r"/numpy/_?core/include", lambda _: numpy_include, text)
    return re.sub(BUILD_MACHINE + r"/include/python3\.\d+", lambda _: python_include, text)


def main(python_include: str) -> None:
    changed = 0
    for path in Path(sys.prefix, "share").rglob("*.cmake"):
        before = path.read_bytes().decode(errors="surrogateescape")
        after = patch(before, python_include, numpy.get_include())
        if after != before:
            path.write_bytes(after.encode(errors="surrogateescape"))
            changed += 1
    print(f"{changed} files changed")


if __name__ == "__main__":
    main(sys.argv[1])
