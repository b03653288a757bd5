"""The configuration of a fleet's fits: what of the options of a single identification holds for many bags."""

import hashlib
import json

import attrs

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import DRIVE_TERMS, LoadOptions
from inertid_ros.identification.information.information_file import FORMAT as INFORMATION_FORMAT
from inertid_ros.robot.bodies.layout import ParameterLayout

from .errors import FleetError

FORMAT = 1  # of stored results of bags and robots: another one computes all of them anew
CHANGING_TERMS = ("viscous", "coulomb", "offset")  # drive terms that every bag has of its own
_LEFT_OUT = "stribeck"  # single bags show it or not, and the columns of all bags must be the same
_PAYLOAD = "payload of the catalogue"


def fleet_configuration(configuration: Configuration) -> Configuration:
    """Options that every bag of a fleet is fitted with.

    Stribeck friction is left out, and user terms are kept whatever single bags show: information of bags adds up where
    all have the same parameters.

    Raises
    ------
    FleetError
        The options ask for what fleets do not have.
    """
    identify = configuration.identify
    refused = {
        "identify.equations": identify.equations != "force",
        "identify.estimator": identify.estimator != "consistent",
        "identify.prior": bool(identify.prior),
        "identify.drive_gains": identify.drive_gains,
        "identify.fit_stribeck_speed": identify.fit_stribeck_speed,
    }
    for key, given in refused.items():
        if given:
            raise FleetError(f"{key}: fleets are identified without it; leave it at its default")
    terms = tuple(term for term in configuration.robot.drive_terms if term != _LEFT_OUT)
    kept = {name: attrs.evolve(term, always=True) for name, term in configuration.robot.terms.items()}
    robot = attrs.evolve(configuration.robot, drive_terms=terms or DRIVE_TERMS[:0], terms=kept)
    return attrs.evolve(configuration, robot=robot)


def with_payload(configuration: Configuration, load: LoadOptions | None) -> Configuration:
    """Options for a bag that was recorded with a payload."""
    if load is None:
        return configuration
    loads = {**configuration.robot.loads, _PAYLOAD: load}
    return attrs.evolve(configuration, robot=attrs.evolve(configuration.robot, loads=loads))


def key_of(*parts: str, configuration: Configuration) -> str:
    """SHA-256 of all that a result depends on, its format included."""
    options = json.dumps(attrs.asdict(configuration), sort_keys=True, default=str)
    digest = hashlib.sha256(f"{FORMAT} {INFORMATION_FORMAT}".encode())
    for part in (*parts, options):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()


def changing_columns(layout: ParameterLayout) -> list[int]:
    """Columns of the drive terms that every bag has of its own, those of couplings included."""
    last = {name: name.rpartition(".")[2] for name in layout.names[layout.inertial_size : layout.term_start]}
    return [column for column, name in enumerate(layout.names) if last.get(name) in CHANGING_TERMS]
