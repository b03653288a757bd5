"""Continuation of an earlier result: a fit takes the earlier posterior, or the earlier bodies, as its prior.

The earlier posterior consists of the divergence from the first prior and the weighted equations of the earlier
recordings. A fit with the first prior and these equations as further rows is the joint fit of all recordings, without
the earlier samples. Drive terms that change from day to day are marginalised out of the earlier equations. For bodies
that may have changed, as for another robot of the same type or for a hand with a payload, the earlier estimate becomes
the prior. The spread of this prior is the configured spread, widened by the uncertainty of the earlier estimate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.identification.information.information import EarlierEquations, fingerprint
from inertid_ros.identification.solvers import coordinates as priors
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .map_fit import FitData

ALL_LINKS = "all"  # stands for every link without its own entry
UNKNOWN_LOAD_SPREAD = 10.0  # prior spread of a link with an unknown load: a gripper is much heavier than a flange


@dataclass(frozen=True)
class EarlierFit:
    """Parts of an earlier result that a later fit continues.

    Attributes
    ----------
    equations : weighted equations of all recordings of the earlier result
    prior, parameters : (p,), parameters before and after the earlier fit
    covariance : (p, p), covariance of the parameters, from data and prior together
    prior_name : what ``prior`` was made from
    """

    layout: ParameterLayout
    robot: str
    equations: EarlierEquations
    prior: Array
    parameters: Array
    covariance: Array
    prior_spread: float
    prior_name: str


@dataclass(frozen=True)
class Continuation:
    """Contribution of an earlier result to a fit of one robot."""

    earlier: EarlierFit
    model: RobotModel
    options: IdentifyOptions

    def __post_init__(self) -> None:
        layout, links = self.earlier.layout, self.model.link_names
        if (layout.links, layout.rotors) != (links, self.model.layout.rotors):
            raise IdentificationError(
                "identify.prior: belongs to another robot, or has other locked joints; use a result of this robot")

    @cached_property
    def changed(self) -> Mapping[int, float]:
        """Prior spread of every body that may have changed, by its index in the layout."""
        spreads = own_prior_spreads(self.model, self.options.spread)
        return {int(i): float(spreads[i]) for i in np.flatnonzero(~np.isnan(spreads))}

    @property
    def prior_model(self) -> RobotModel:
        """Robot with the prior of the earlier result, or with its estimate for links that may have changed."""
        layout = self.earlier.layout
        changed = [body for body in self.changed if body < len(layout.links)]
        bodies = layout.bodies(self.earlier.prior).copy()
        bodies[changed] = layout.bodies(self.earlier.parameters)[changed]
        estimate = f"estimate of {', '.join(self.options.prior)}"
        return self.model.with_prior_bodies(bodies, estimate if changed else self.earlier.prior_name)

    def of(self, data: FitData) -> FitData:
        """Add the earlier result to the data of a fit; ``data`` must use the equations of :attr:`prior_model`."""
        if fingerprint(data.equations) != self.earlier.robot:
            raise IdentificationError(
                "identify.prior: its equations differ from this fit (kinematics, gravity or type of equations); use the"
                " options of the earlier result, or run its identification again")
        information = replace(data.information, earlier=self._equations(data.equations))
        return replace(data, information=information, prior_spreads=self._prior_spreads())

    def _equations(self, equations: Equations) -> EarlierEquations:
        """Convert earlier equations to the columns of ``equations``, without parameters that may have changed."""
        earlier, layout = self.earlier.layout, equations.model.layout
        place = {name: column for column, name in enumerate(layout.names)}
        columns = np.array([place.get(name, -1) for name in earlier.names])
        drives = range(earlier.inertial_size, earlier.size)
        changed = [c for c in drives if earlier.names[c].rpartition(".")[2] in self.options.changing_terms]
        if "stribeck" in earlier.drive_terms:  # Stribeck friction at another speed is another term
            first = earlier.drive("stribeck").start
            changed += [first + j for j in np.flatnonzero(earlier.stribeck_speed != layout.stribeck_speed)]
        rows = self.earlier.equations
        root = priors.prior_covariance_root(self._coordinates(self.earlier.prior), self.earlier.prior_spread)
        for span in map(earlier.body, self.changed):
            # Marginalise under the body's earlier prior: a flat prior would lose information about all other
            # parameters.
            R = np.zeros((BODY_PARAMETERS, earlier.size))
            R[:, span] = np.linalg.inv(root[span, span])
            rows = rows + EarlierEquations(R, R @ self.earlier.prior)
            changed += range(span.start, span.stop)
        columns[np.array(changed, dtype=int)] = -1
        return rows.without(np.flatnonzero(columns < 0)).in_columns(columns, layout.size)

    def _prior_spreads(self) -> Array:
        coordinates = self._coordinates(self.earlier.parameters)
        spreads = np.full(len(self.model.layout.body_names), np.nan)
        for link, given in self.changed.items():
            span = self.earlier.layout.body(link)
            inverse = np.linalg.inv(coordinates.matrix[span, span])
            covariance = inverse @ self.earlier.covariance[span, span] @ inverse.T
            # variance of the geodesic distance per direction, like the squared prior spread
            spreads[link] = np.hypot(given, np.sqrt(np.trace(priors.PULLBACK @ covariance) / BODY_PARAMETERS))
        return spreads

    def _coordinates(self, parameters: Array) -> priors.Coordinates:
        layout = self.earlier.layout
        model = self.model.with_prior_bodies(layout.bodies(parameters))
        drives = np.zeros(layout.size - layout.inertial_size)
        return priors.normalised_coordinates(
            layout, model.consistent_prior, model.inertial_locked, drives, np.ones(len(drives)))


def own_prior_spreads(model: RobotModel, given: Mapping[str, float]) -> Array:
    """Prior spreads ``(nb,)`` from entries by name of link or rotor, or ``all`` links; NaN for bodies without an entry.

    A link of a gravity compensation has the spread of the link.
    """
    rotors = [rotor.name for rotor in model.layout.rotors]
    unknown = [name for name in given if name not in (*model.link_names, *rotors, ALL_LINKS)]
    if unknown:
        bodies = ", ".join((*model.link_names, *rotors))
        raise IdentificationError(
            f"identify.spread: '{unknown[0]}' is not a link of this robot; choose from {bodies}, or {ALL_LINKS}")
    spreads = np.full(len(model.layout.body_names), np.nan)
    spreads[len(model.link_names) :][: len(rotors)] = [given.get(rotor, np.nan) for rotor in rotors]
    for index, link in enumerate(model.link_names):
        of_link = [index, len(spreads) - len(model.link_names) + index] if model.layout.compensation else [index]
        spreads[of_link] = given.get(link, given.get(ALL_LINKS, np.nan))
    return spreads
