"""One thread for linear algebra: the matrices are small, and threads would wait for one another longer than they work.

The command line and the nodes say so in their environment. A program that calls the library has as many threads as the
machine has cores, and would wait three times as long.
"""

import contextlib
from collections.abc import Generator
from functools import cache
from typing import Any


@contextlib.contextmanager
def one_thread() -> Generator[None]:
    """While this lasts, the process's linear algebra has one thread; decorates functions, too.

    Without effect where threadpoolctl is absent.
    """
    controller = _controller()
    with contextlib.nullcontext() if controller is None else controller.limit(limits=1):
        yield


@cache
def _controller() -> Any:
    """Finds the libraries that are loaded by now, once: it takes longer than a small fit."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
