"""Curves of a result, which its page plots: kept in curves.npz, so that a page can be made again from the directory."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.data.health.effort_spectrum import EffortSpectrum
from inertid_ros.identification.details.friction_curves import FrictionCurve
from inertid_ros.identification.details.prediction_curves import PredictionCurves
from inertid_ros.identification.outcome import IdentificationOutcome

T = TypeVar("T")


@dataclass(frozen=True)
class Curves:
    """What a page plots.

    Attributes
    ----------
    predictions : tuple of PredictionCurves
        Of every held-out recording, or of those fitted where nothing was held out.
    friction : tuple of FrictionCurve
        Of every joint whose friction was identified.
    spectra : tuple of EffortSpectrum
        Of every recording with efforts.
    """

    predictions: tuple[PredictionCurves, ...] = ()
    friction: tuple[FrictionCurve, ...] = ()
    spectra: tuple[EffortSpectrum, ...] = ()

    @classmethod
    def of(cls, outcome: IdentificationOutcome) -> "Curves":
        """Curves of an outcome, in the precision of the file, so that pages made now and from it are the same."""
        spectra = [each.spectrum for each in outcome.health if each.spectrum is not None]
        predictions, friction = outcome.details.predictions, outcome.details.friction
        return cls(*(tuple(map(_rounded, group)) for group in (predictions, friction, spectra)))  # type: ignore

    def to_bytes(self) -> bytes:
        """Content of ``curves.npz``: arrays named ``<group>/<index>/<attribute>``, in single precision."""
        arrays: dict[str, Any] = {}
        for group in fields(self):
            for index, curve in enumerate(getattr(self, group.name)):
                for name, value in vars(curve).items():
                    kept = np.float32(value) if isinstance(value, np.ndarray) else np.array(value)
                    arrays[f"{group.name}/{index}/{name}"] = kept
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        return buffer.getvalue()


def read_curves(path: Path) -> Curves:
    """Curves of a result directory; none where it has no file of them, or one that cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
        return Curves(
            _read(content, "predictions", PredictionCurves),
            _read(content, "friction", FrictionCurve),
            _read(content, "spectra", EffortSpectrum),
        )
    except (OSError, ValueError, KeyError, TypeError, BadZipFile):
        return Curves()


def _read(content: Mapping[str, Array], group: str, kind: type[T]) -> tuple[T, ...]:
    count = len({name.split("/")[1] for name in content if name.startswith(f"{group}/")})
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return tuple(kind(**{name: _plain(content[f"{group}/{k}/{name}"]) for name in names}) for k in range(count))


def _rounded(curve: T) -> T:
    """A curve with arrays in single precision."""
    arrays = {name: value for name, value in vars(curve).items() if isinstance(value, np.ndarray)}
    return replace(curve, **{name: np.float64(np.float32(value)) for name, value in arrays.items()})  # type: ignore


def _plain(value: Array) -> Any:
    """An array, or the text or number that was stored as one."""
    return np.float64(value) if value.ndim else value.item()
