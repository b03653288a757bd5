"""What stands in a file in place of the content that it should hold, where downloads went wrong."""

_POINTER = b"version https://git-lfs.github.com/"
_PAGE = (b"<!doctype html", b"<html")
HEAD = 512  # bytes that are enough to see it


def foreign_content(head: bytes) -> str:
    """What the first :data:`HEAD` bytes of a file show in place of its content, with the remedy; empty if nothing.

    Knows empty files, pointers of git-lfs, and web pages (of a login, say, or of a file host).
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return "is empty; copy or download it again"
    if text.startswith(_POINTER):
        return "is a pointer of git-lfs, not the file itself; fetch it with 'git lfs pull'"
    if text[:14].lower().startswith(_PAGE):
        return "is a web page (HTML), not the file itself; download the file, by its raw link"
    return ""
