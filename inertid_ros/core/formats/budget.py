"""How far a compressed file may expand, so that a few kilobytes cannot fill the memory."""

from inertid_ros.core.errors import FormatError

MOST_BYTES = 8 * 2**20  # which any file may expand to, and beyond it
MOST_GROWTH = 100  # times its size; motion compresses by less than ten


class Budget:
    """Bytes that may still be used of those that a file may expand to.

    Parameters
    ----------
    size : int
        Of the file.
    """

    def __init__(self, size: int) -> None:
        self.left = MOST_BYTES + MOST_GROWTH * size

    def take(self, size: int, where: str) -> None:
        """Use some.

        Raises
        ------
        FormatError
            So many are not left.
        """
        self.left -= size
        if self.left < 0:
            raise FormatError(f"expands to more than {MOST_GROWTH} times its size at {where}, as no recording does")
