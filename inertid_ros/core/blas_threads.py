"""Limit linear algebra to one thread, and check the available address space.

The matrices are small: several threads would wait for each other longer than they work. The command line and the nodes
set ``OMP_NUM_THREADS=1``. For Python code that calls the library, threadpoolctl limits the threads if it is installed.
Without this limit, fits take up to three times as long.
"""

import contextlib
from collections.abc import Generator
from functools import cache
from typing import Any

from .errors import InertidError


@contextlib.contextmanager
def one_thread() -> Generator[None]:
    """Context manager or decorator: one thread for linear algebra; without threadpoolctl it has no effect."""
    controller = _controller()
    with contextlib.nullcontext() if controller is None else controller.limit(limits=1):
        yield


def check_address_space(whose: str, least_mib: int) -> None:
    """Raise InertidError if the address space is below ``least_mib`` MiB; ``whose`` names the program in the message.

    Without enough memory some libraries block for ever and ignore signals: OpenBLAS waits for its buffers, and Fast DDS
    waits for threads that it could not start.
    """
    try:
        import resource
    except ImportError:  # this system does not limit the address space
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < least_mib * 2**20:
        raise InertidError(
            f"the address space is limited to {limit // 2**20} MiB, and {whose} needs {least_mib}; raise ulimit -v"
        )


@cache
def _controller() -> Any:
    """Controller of the loaded libraries; cached because the search takes longer than a small fit."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
