"""Work on the next items of a sequence while another is used."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")

def ahead(function: Callable[[T], S], items: Iterable[T], count: int) -> Iterator[S]:
    """Results in the order of the items, of which the next are worked on by threads meanwhile.

    Threads run side by side where a library works on whole arrays, as NumPy, SciPy and decompression do. The items are
    taken by the caller's thread.

    Parameters
    ----------
    function : callable
        What is to be done with each item.
    items : iterable
        Taken one at a time.
    count : int
        How many are worked on, each by a thread; their memory is taken so often.
    """
    waiting: deque[Future[S]] = deque()
    with ThreadPoolExecutor(count) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            del item  # else the newest stays here while others are used
            if len(waiting) > count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
