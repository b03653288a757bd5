"""A ROS domain that no other process of this user claims at the moment."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inertid_ros.core.errors import InertidError

_DOMAINS = range(101, 0, -1)  # 1 to 101 is safe on every system


@contextmanager
def claim_domain() -> Iterator[int]:
    """Reserve a domain by a lock on a file until the context is left, and give its number.

    Raises
    ------
    InertidError
        All are claimed.
    """
    folder = Path(tempfile.gettempdir()) / f"inertid_ros_domains_{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for domain in _DOMAINS:
        with (folder / str(domain)).open("w") as candidate:
            try:
                fcntl.flock(candidate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield domain
            return
    raise InertidError(f"all ROS domains are claimed by locks in {folder}; end some of their owners")
