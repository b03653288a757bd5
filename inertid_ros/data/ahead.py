"""Work on the next items of a sequence while another is used."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")

AHEAD = 1  # items that are worked on meanwhile


def ahead(function: Callable[[T], S], items: Iterable[T]) -> Iterator[S]:
    """Results in the order of the items, of which the next are worked on by threads meanwhile.

    Threads run side by side where a library works on whole arrays, as NumPy, SciPy and decompression do. The items are
    taken by the caller's thread.
    """
    waiting: deque[Future[S]] = deque()
    with ThreadPoolExecutor(AHEAD) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            del item  # else the newest stays here while others are used
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
