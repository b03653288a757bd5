"""One thread for linear algebra: the matrices are small, and threads would wait for one another longer than they work.

The command line and the nodes set ``OMP_NUM_THREADS=1``. Where Python code calls the library, threadpoolctl does the
same where it is installed; elsewhere set that variable, or fits take up to three times as long.
"""

import contextlib
from collections.abc import Generator
from functools import cache
from typing import Any


@contextlib.contextmanager
def one_thread() -> Generator[None]:
    """Context, or decorator, in which the process's linear algebra has one thread.

    Without effect where threadpoolctl is absent.
    """
    controller = _controller()
    with contextlib.nullcontext() if controller is None else controller.limit(limits=1):
        yield


@cache
def _controller() -> Any:
    """Control of the loaded libraries, looked up once: that takes longer than a small fit."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
