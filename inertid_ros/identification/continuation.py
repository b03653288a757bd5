"""Continuation of an earlier result: its posterior, or its bodies for another robot, as the prior of a fit.

An earlier posterior is the divergence from the prior of its day plus the weighted equations of its recordings. A fit
with the same prior and these equations as further rows is the joint fit of both days, without the samples of the first.
Drive terms that change from day to day are marginalised out of the earlier equations. Bodies that may have changed
since then, as of another robot of the same type or of a hand with a payload, have their earlier estimate as the prior,
with a prior spread that was given, widened by the uncertainty of the estimate.
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

ALL_LINKS = "all"  # name that stands for every link that is not named
UNKNOWN_LOAD_SPREAD = 10.0  # prior spread of a link that may hold anything: a gripper is many times a flange


@dataclass(frozen=True)
class EarlierFit:
    """An earlier result, as far as a later fit continues it.

    Attributes
    ----------
    equations : equations of all its recordings, with the weights of its fit
    prior, parameters : (p,), before and after it
    covariance : (p, p), covariance of the parameters, by data and prior together
    """

    layout: ParameterLayout
    robot: str
    equations: EarlierEquations
    prior: Array
    parameters: Array
    covariance: Array
    prior_spread: float


@dataclass(frozen=True)
class Continuation:
    """Contribution of an earlier result to a fit of one robot under some options."""

    earlier: EarlierFit
    model: RobotModel
    options: IdentifyOptions

    def __post_init__(self) -> None:
        layout, links = self.earlier.layout, self.model.link_names
        if (layout.links, layout.rotors) != (links, self.model.layout.rotors):
            raise IdentificationError("identify.prior: is of another robot, or has other joints locked; use its own")

    @cached_property
    def changed(self) -> Mapping[int, float]:
        """Prior spread of every link that may have changed, by its index."""
        spreads = own_prior_spreads(self.model, self.options.spread)
        return {int(i): float(spreads[i]) for i in np.flatnonzero(~np.isnan(spreads))}

    @property
    def prior_model(self) -> RobotModel:
        """Robot with the prior of the earlier result; links that may have changed have its estimate."""
        layout, changed = self.earlier.layout, list(self.changed)
        bodies = layout.bodies(self.earlier.prior).copy()
        bodies[changed] = layout.bodies(self.earlier.parameters)[changed]
        return self.model.with_prior_bodies(bodies)

    def of(self, data: FitData) -> FitData:
        """Data of a fit with everything that the earlier result adds; its equations are those of
        :attr:`prior_model`.
        """
        if fingerprint(data.equations) != self.earlier.robot:
            raise IdentificationError(
                "identify.prior: its equations differ from these (kinematics, gravity or type of equations); identify"
                " with the options of that result, or identify it again")
        information = replace(data.information, earlier=self._equations(data.equations))
        return replace(data, information=information, prior_spreads=self._prior_spreads())

    def _equations(self, equations: Equations) -> EarlierEquations:
        """Earlier equations in the columns of these, with everything that may have changed marginalised out."""
        earlier, layout = self.earlier.layout, equations.model.layout
        place = {name: column for column, name in enumerate(layout.names)}
        columns = np.array([place.get(name, -1) for name in earlier.names])
        drives = range(earlier.inertial_size, earlier.size)
        changed = [c for c in drives if earlier.names[c].rpartition(".")[2] in self.options.changing_terms]
        if "stribeck" in earlier.drive_terms:  # at another speed it is another term
            first = earlier.drive("stribeck").start
            changed += [first + j for j in np.flatnonzero(earlier.stribeck_speed != layout.stribeck_speed)]
        rows = self.earlier.equations
        root = priors.prior_covariance_root(self._coordinates(self.earlier.prior), self.earlier.prior_spread)
        for span in map(earlier.body, self.changed):
            # Its earlier prior is a part of what the earlier recordings say of all others.
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
            # variance of the geodesic distance per direction, as that of the prior spread is
            spreads[link] = np.hypot(given, np.sqrt(np.trace(priors.PULLBACK @ covariance) / BODY_PARAMETERS))
        return spreads

    def _coordinates(self, parameters: Array) -> priors.Coordinates:
        layout = self.earlier.layout
        model = self.model.with_prior_bodies(layout.bodies(parameters))
        drives = np.zeros(layout.size - layout.inertial_size)
        return priors.normalised_coordinates(
            layout, model.consistent_prior, model.inertial_locked, drives, np.ones(len(drives)))


def own_prior_spreads(model: RobotModel, given: Mapping[str, float]) -> Array:
    """Prior spreads ``(nb,)`` of links and rotors from names of links; NaN without an entry for the link or all."""
    unknown = [name for name in given if name not in (*model.link_names, ALL_LINKS)]
    if unknown:
        links = ", ".join(model.link_names)
        raise IdentificationError(
            f"identify.spread: '{unknown[0]}' is no link of this robot; known are {links}, and {ALL_LINKS}")
    spreads = np.full(len(model.layout.body_names), np.nan)
    for index, link in enumerate(model.link_names):
        spreads[index] = given.get(link, given.get(ALL_LINKS, np.nan))
    return spreads
