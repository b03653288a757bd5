"""Arrays of an ``.npz`` from outside, whose sizes are checked before they are read.

NumPy allocates what a header declares, follows any compression of a zip file, and raises whatever a tokenizer, a zip
or an LZMA library raises on the way; a file of a few kilobytes may declare terabytes.
"""

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from inertid_ros.core.errors import FormatError

from .budget import Budget

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # that NumPy writes
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_MAGIC = b"\x93NUMPY"
_SUFFIX = ".npy"


def read_arrays(source: Path | BinaryIO, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, np.ndarray]:
    """Arrays of a file by their names, of any type but objects.

    Parameters
    ----------
    source : Path or binary file
        The file, or one that is open and is closed afterwards.
    wanted : callable, optional
        Whether an array of a name is read; others are not even looked at.

    Raises
    ------
    OSError
        The file cannot be read at all.
    FormatError
        It is no npz, is damaged or encrypted, repeats a name, or its arrays as float64 need more than a
        :class:`.Budget`.
    """
    with source.open("rb") if isinstance(source, Path) else source as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            raise FormatError("holds a single array")
        try:
            return _arrays(file, wanted)
        except FormatError:
            raise
        except Exception as error:  # a library meets damage with whatever its parser raises
            raise FormatError(f"cannot be read as npz ({error.__class__.__name__})") from None


def _arrays(file: BinaryIO, wanted: Callable[[str], bool]) -> dict[str, np.ndarray]:
    budget = Budget(file.seek(0, 2))
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(_SUFFIX)
            if not wanted(name):
                continue
            if name in arrays:
                raise FormatError(f"holds {name} twice")
            arrays[name] = _array(archive, member, name, budget)
    return arrays


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, budget: Budget) -> np.ndarray:
    if member.compress_type not in _METHODS:
        raise FormatError(f"holds {name} in a compression that NumPy does not write")
    budget.take(member.file_size, name)
    with archive.open(member) as file:
        try:
            version = np.lib.format.read_magic(file)
            if version not in _HEADERS:
                raise ValueError("version")
            shape, by_columns, dtype = _HEADERS[version](file)
            size = math.prod(shape)
            if dtype.hasobject or min(shape, default=0) < 0:
                raise ValueError("objects")
            budget.take(8 * size, name)
            data = file.read(size * dtype.itemsize)
            return np.ndarray(shape, dtype, data, order="F" if by_columns else "C").copy()
        except FormatError:
            raise
        except Exception as error:  # as above
            raise FormatError(f"{name} cannot be read ({error.__class__.__name__})") from None
