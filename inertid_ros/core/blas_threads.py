"""One thread for linear algebra, and the address space that it needs.

The matrices are small: threads would wait for one another longer than they work. The command line and the nodes set
``OMP_NUM_THREADS=1``; for Python code that calls the library, threadpoolctl does the same if it is installed. Without
either, fits take up to three times as long.
"""

import contextlib
from collections.abc import Generator
from functools import cache
from typing import Any

from .errors import InertidError


@contextlib.contextmanager
def one_thread() -> Generator[None]:
    """Context, or decorator, with one thread for linear algebra; without effect if threadpoolctl is absent."""
    controller = _controller()
    with contextlib.nullcontext() if controller is None else controller.limit(limits=1):
        yield


def check_address_space(whose: str, least_mib: int) -> None:
    """Refuse to start with less than ``least_mib`` MiB of address space, naming in the message ``whose`` need it is.

    Libraries wait for ever for memory they do not get, and no signal comes through: OpenBLAS for its buffers, and Fast
    DDS for threads that it could not start.
    """
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < least_mib * 2**20:
        raise InertidError(
            f"the address space is limited to {limit // 2**20} MiB, and {whose} needs {least_mib}; raise ulimit -v"
        )


@cache
def _controller() -> Any:
    """Control of the loaded libraries, found once because that takes longer than a small fit."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
