"""Log notices on recordings, except while a recording is read or prepared again."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

_Item = TypeVar("_Item")
_silent = ContextVar("silent", default=False)  # per thread


class NoticeLogger(logging.LoggerAdapter):
    """Logger of notices on recordings, silent within :func:`without_notices`."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802
        return not _silent.get() and super().isEnabledFor(level)


@contextmanager
def without_notices() -> Iterator[None]:
    """Silence notices in this thread, for recordings whose notices are logged already."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def read_silently(items: Iterable[_Item]) -> Iterator[_Item]:
    """Iterate over items; notices are silent while an item is read, but not while the caller uses it."""
    iterator = iter(items)
    while True:
        with without_notices():
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item
