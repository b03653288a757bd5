"""Read bags and URDFs from paths, or by fsspec from URLs of object stores and web servers; import optional packages.

Unreadable files raise RecordingError with the URL and the reason in one line.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from inertid_ros.core.errors import InertidError, RecordingError, optional_module
from inertid_ros.core.formats import file_checksum, read_bytes

_LOCAL_SCHEME = "file://"


class FleetError(InertidError):
    """A fleet cannot be processed: its catalogue, its scheduler or its output folder is unusable."""


def optional(module: str) -> ModuleType:
    """Import a module of an optional package; raise FleetError if it is not installed."""
    package = module.partition(".")[0]
    message = f"inertid fleet needs the Python package {package}; pip install 'inertid_ros[fleet]'"
    return optional_module(module, FleetError(message))


def resolved(url: str, folder: Path) -> str:
    """Return a path relative to a folder as an absolute path, and a URL unchanged."""
    if is_url(url):
        return url
    return os.path.abspath(folder / url.removeprefix(_LOCAL_SCHEME))


def is_url(url: str) -> bool:
    """Return True for the URL of a store that fsspec opens, False for a local path."""
    return "://" in url and not url.startswith(_LOCAL_SCHEME)


@contextmanager
def fetched(url: str) -> Iterator[Path]:
    """Yield the local path of a file or folder; a copy from a store is removed afterwards."""
    if not is_url(url):
        yield Path(url)
        return
    with tempfile.TemporaryDirectory(prefix="inertid_bag_") as folder:
        target = Path(folder) / (url.rstrip("/").rpartition("/")[2] or "bag")
        with _readable(url):
            store, path = optional("fsspec.core").url_to_fs(url)
            if store.isdir(path):
                target.mkdir()
                for file in store.find(path):
                    store.get_file(file, str(target / file.rpartition("/")[2]))
            else:
                store.get_file(path, str(target))
        yield target


def file_state(url: str) -> str:
    """Return a hash of the sizes and dates of files, or of a store's version tags, without reading the content."""
    with _readable(url):
        if is_url(url):
            store, path = optional("fsspec.core").url_to_fs(url)
            names = sorted(store.find(path)) if store.isdir(path) else [path]
            states = [f"{name} {store.ukey(name)}" for name in names]
        else:
            files = [(file.name, file.stat()) for file in _files(Path(url))]
            states = [f"{name} {state.st_size} {state.st_mtime_ns} {state.st_ino}" for name, state in files]
    return hashlib.sha256("\n".join(states).encode()).hexdigest()


def content_hash(path: Path) -> tuple[str, int]:
    """Return the SHA-256 of a file, or of the names and contents of a folder's files, and the number of bytes."""
    with _readable(str(path)):
        files = _files(path)
        return file_checksum(*files, names=path.is_dir()), sum(file.stat().st_size for file in files)


def read_text(url: str) -> str:
    """Return the text of a file."""
    with fetched(url) as path, _readable(url):
        return read_bytes(path).decode("utf-8")


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file())
    path.stat()
    return [path]


@contextmanager
def _readable(url: str) -> Iterator[None]:
    """Turn errors of files and stores into a RecordingError of one line."""
    try:
        yield
    except FileNotFoundError:
        reason = "no such file; check the catalogue"
    except UnicodeDecodeError:
        reason = "is not text; check the catalogue"
    except ValueError as error:  # an unknown protocol
        reason = f"{error}; check the URL"
    except ImportError as error:  # from the store's package
        reason = f"{error}; install the package of this store"
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error or type(error).__name__}); check the path and the access"
    else:
        return
    raise RecordingError(f"{url}: {reason}")
