"""Catalogue of a fleet: its robots, their bags, and known payloads, from a YAML or Parquet file; reading of its files.

YAML has the lists ``robots`` and ``bags`` and the mapping ``payloads``. Parquet has one row per bag, with columns for
its robot and for its payload: ``payload_link``, ``payload_mass``, ``payload_com`` and ``payload_inertia``.

Bags and URDFs are read from paths, or by fsspec from URLs of object stores and web servers. Unreadable files raise
RecordingError with the URL and the reason in one line.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import attrs

from inertid_ros.config.option_fields import REQUIRED, option
from inertid_ros.config.robot import LoadOptions
from inertid_ros.config.structuring import structure
from inertid_ros.core import errors
from inertid_ros.core.formats import file_checksum, open_file, read_bytes, read_text, read_yaml
from inertid_ros.data.files.foreign_files import from_parquet

_LOCAL_SCHEME = "file://"
T = TypeVar("T")
_PARQUET_MAGIC = b"PAR1"
_KEYS: dict[str, type] = {"robots": list, "bags": list, "payloads": dict}
_PAYLOAD_PREFIX = "payload_"  # prefix of columns
_TEXT_FIELDS = ("serial", "model", "date", "payload")


class FleetError(errors.InertidError):
    """A fleet cannot be processed: its catalogue, its scheduler or its output folder is unusable."""


def optional(module: str) -> ModuleType:
    """Import a module of an optional package; raise FleetError if it is not installed."""
    package = module.partition(".")[0]
    message = f"inertid fleet needs the Python package {package}; pip install 'inertid_ros[fleet]'"
    return errors.optional_module(module, FleetError(message))


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


def fetched_text(url: str) -> str:
    """Return the text of a file or URL."""
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
    raise errors.RecordingError(f"{url}: {reason}")


@attrs.frozen
class FleetRobot:
    """A robot of a fleet in a catalogue."""

    serial: str = option(REQUIRED, "serial number, unique in the fleet", of=str)
    model: str = option(REQUIRED, "name of its model; robots of a model have the same kinematics", of=str)
    urdf: str = option(REQUIRED, "path or URL of its URDF", of=str)


@attrs.frozen
class BagFields:
    """A bag in a catalogue."""

    serial: str = option(REQUIRED, "serial number of the robot", of=str)
    bag: str = option(REQUIRED, "path or URL of the recording", of=str)
    date: str = option(REQUIRED, "ISO 8601 date, or date and time, at which it was recorded", of=str)
    payload: str = option("", "name of the payload that the robot held; empty without payload")


@dataclass(frozen=True)
class FleetBag:
    """A bag of a robot, at a path or URL; a date without a time zone is in UTC."""

    serial: str
    url: str
    date: datetime
    payload: str = ""
    load: LoadOptions | None = None

    @property
    def day(self) -> float:
        """Days since 1970."""
        return self.date.timestamp() / 86400.0


@dataclass(frozen=True)
class FleetProblem:
    """Unusable robot or bag; the rest of the fleet is processed.

    ``serial`` and ``bag`` are empty for several robots or bags; ``input`` is False if the bag was read but rejected.
    """

    message: str
    serial: str = ""
    bag: str = ""
    input: bool = True

    def __str__(self) -> str:
        message = self.message if self.bag in self.message else f"{self.bag}: {self.message}"
        named = not self.serial or message.startswith(f"{self.serial}: ")
        return errors.one_line(message if named else f"{self.serial}: {message}")


@dataclass(frozen=True)
class Catalogue:
    """Robots of a fleet by serial number, their bags sorted by serial number and date, and unusable entries."""

    robots: Mapping[str, FleetRobot]
    bags: tuple[FleetBag, ...]
    problems: tuple[FleetProblem, ...] = field(default=())


def read_catalogue(path: str | Path) -> Catalogue:
    """Read a catalogue; its paths are relative to its folder. Unusable entries become :attr:`.Catalogue.problems`.

    Raises FleetError: the file does not exist, is neither YAML nor Parquet, or lacks robots and bags.
    """
    path = Path(path)
    try:
        with open_file(path) as file:
            head = file.read(len(_PARQUET_MAGIC))
        content = _parquet(path) if head == _PARQUET_MAGIC else _yaml(path)
    except FileNotFoundError:
        raise FleetError(f"{path}: no such catalogue; give a YAML or Parquet file") from None
    except OSError as error:
        raise FleetError(f"{path}: cannot be read ({error.strerror or error}); give a YAML or Parquet file") from None
    return _Reader(path).catalogue(content)


def _yaml(path: Path) -> dict[str, Any]:
    try:
        content = read_yaml(read_text(path))
    except errors.FormatError as error:
        raise FleetError(f"{path}: {error}; give a catalogue in YAML or Parquet") from None
    if not isinstance(content, Mapping) or not {"robots", "bags"} <= set(content):
        raise FleetError(f"{path}: has no robots and bags; list both (docs/fleet.md)")
    for key, value in content.items():
        if key not in _KEYS:
            raise FleetError(f"{path}: '{key}' is not known; known keys are {', '.join(_KEYS)}")
        if not isinstance(value, _KEYS[key]):
            name = "list" if _KEYS[key] is list else "mapping"
            raise FleetError(f"{path}: {key} is not a {name}; see docs/fleet.md")
    return dict(content)


def _rows(table: Any) -> list[dict[str, Any]]:
    return list(table.to_pylist())


def _parquet(path: Path) -> dict[str, Any]:
    """Content of a Parquet file in the structure of a YAML catalogue."""
    (rows,) = from_parquet([path], _rows)
    robots, bags, payloads = dict[str, dict[str, Any]](), list[dict[str, Any]](), dict[str, Any]()
    for row in rows:
        bag = {key: value.isoformat() if hasattr(value, "isoformat") else value
            for key, value in row.items() if value is not None}
        prefixed = [key for key in bag if key.startswith(_PAYLOAD_PREFIX)]
        load = {key.removeprefix(_PAYLOAD_PREFIX): bag.pop(key) for key in prefixed}
        robot = {key: bag.pop(key) for key in ("model", "urdf") if key in bag}
        if "serial" in bag:
            robot["serial"] = bag["serial"]
        robots.setdefault(repr(sorted(robot.items())), robot)
        payload = str(bag.get("payload") or "")
        if load and not payload:
            raise FleetError(f"{path}: {bag.get('bag')}: has a payload without a name; name it in the column payload")
        if load and payloads.setdefault(payload, load) != load:
            raise FleetError(f"{path}: payload '{payload}' is given twice with different values; keep one")
        bags.append(bag)
    return {"robots": list(robots.values()), "bags": bags, "payloads": payloads}


class _Reader:
    """Check robots and bags one by one, and collect their problems."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[FleetProblem] = []

    def catalogue(self, content: Mapping[str, Any]) -> Catalogue:
        payloads = dict(self._payloads(content.get("payloads", {})))
        robots = self._robots(content["robots"])
        bags = self._bags(content["bags"], robots, payloads)
        return Catalogue(robots, tuple(sorted(bags, key=lambda bag: (bag.serial, bag.date, bag.url))),
            tuple(self.problems))

    def _payloads(self, entries: Mapping[str, Any]) -> Iterator[tuple[str, LoadOptions]]:
        """Yield payloads by name, each as load options that apply to all recordings."""
        for name, fields in entries.items():
            load = {**fields, "recordings": ["*"]} if isinstance(fields, Mapping) else fields
            entry = self._structured(LoadOptions, load, f"payloads.{name}")
            if entry is not None:
                yield str(name), entry

    def _robots(self, entries: Sequence[Any]) -> dict[str, FleetRobot]:
        """Return robots by serial number, without serial numbers that two different robots have."""
        robots: dict[str, FleetRobot] = {}
        twice: set[str] = set()
        for number, fields in enumerate(entries, 1):
            entry = self._structured(FleetRobot, fields, f"robots, number {number}")
            if entry is None:
                continue
            robot = attrs.evolve(entry, urdf=resolved(entry.urdf, self.path.parent))
            if entry.serial in robots and robot != robots[entry.serial]:
                twice.add(entry.serial)
            robots[entry.serial] = robot
        for serial in sorted(twice):
            del robots[serial]
            message = f"{self.path}: two robots have the serial {serial}; correct one, the bags of both are skipped"
            self.problems.append(FleetProblem(message, serial))
        self._without = twice
        return robots

    def _bags(self, entries: Sequence[Any], robots: Mapping[str, FleetRobot],
            payloads: Mapping[str, LoadOptions]) -> Iterator[FleetBag]:
        seen: set[tuple[str, str]] = set()
        for number, fields in enumerate(entries, 1):
            entry = self._structured(BagFields, fields, f"bags, number {number}")
            if entry is None or entry.serial in self._without:
                continue
            date, url = _date(entry.date), resolved(entry.bag, self.path.parent)
            if entry.serial not in robots:
                message = f"{entry.bag}: serial {entry.serial} is not in robots; add it"
            elif date is None:
                message = f"{entry.bag}: date '{entry.date}' is not ISO 8601, such as 2026-05-31; correct it"
            elif (entry.serial, url) in seen:
                message = f"{entry.bag}: is listed twice for {entry.serial} and would count twice; remove one entry"
            elif entry.payload and entry.payload not in payloads:
                message = f"{entry.bag}: payload '{entry.payload}' is not known; describe it in payloads"
            else:
                seen.add((entry.serial, url))
                yield FleetBag(entry.serial, url, date, entry.payload, payloads.get(entry.payload))
                continue
            self.problems.append(FleetProblem(message, entry.serial, entry.bag))

    def _structured(self, tree: type[T], fields: Any, where: str) -> T | None:
        names = [field.name for field in attrs.fields(tree)]  # type: ignore[arg-type]
        try:
            if not isinstance(fields, Mapping):
                raise errors.ConfigurationError(f"{self.path}: {where} is not a mapping; give {', '.join(names)}")
            numbers = {key for key in _TEXT_FIELDS if type(fields.get(key)) is int}  # such as a serial number
            texts = {str(key): str(value) if key in numbers else value for key, value in fields.items()}
            return structure(tree, texts, f"{self.path}: {where}")
        except errors.ConfigurationError as error:
            serial = str(fields.get("serial", "")) if isinstance(fields, Mapping) else ""
            self.problems.append(FleetProblem(str(error), serial))
            return None


def _date(text: str) -> datetime | None:
    try:
        date = datetime.fromisoformat(text.removesuffix("Z") + ("+00:00" if text.endswith("Z") else ""))
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=timezone.utc)
