"""Checks that a network, a method and samples fit together, before anything is trained."""

import logging

import numpy as np
from pydantic import BaseModel

from robust_fairness.bench.estimators.base import Estimator
from robust_fairness.bench.experiment.experiment import OF_STEPS, Cell, Protocol
from robust_fairness.bench.methods.base import Method, MethodParameters
from robust_fairness.bench.training.prediction import UNSHIFTED, due_quantities
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find, names
from robust_fairness.core.samples import Samples

LOGGER = logging.getLogger(__name__)


def require_trainable(cell: Cell, protocol: Protocol) -> None:
    """Raise unless the method can train the network, which may be an estimator."""
    estimators = find("method", cell.method.name).estimators
    if protocol.scored_epochs > 1:
        require_scored_epochs(cell, protocol)
    if protocol.patience:
        require_patience(cell, protocol)
    if not issubclass(find("network", cell.network.name), Estimator):
        if estimators == "only":
            raise InputError(
                f"method {cell.method.name}: fits a classifier with other weights of rows, but "
                f"network {cell.network.name} is trained in steps, allowed: network estimator"
            )
        return
    _note_fields_of_steps(cell)
    if estimators == "only":
        require_weights(cell)
    elif estimators == "no":
        allowed = [name for name in names("method") if find("method", name).estimators == "also"]
        raise InputError(
            f"method {cell.method.name}: network {cell.network.name} is fitted in one call, "
            f"allowed: method {', '.join(allowed)}"
        )
    for setting, refused, others in (
        (f"augmentation {protocol.augmentation}", protocol.augmentation != "none", "none"),
        ("precision bfloat16", protocol.precision == "bfloat16", "float32, float64"),
    ):
        if refused:
            raise InputError(
                f"{setting}: network {cell.network.name} is fitted in one call, allowed: {others}"
            )


def require_patience(cell: Cell, protocol: Protocol) -> None:
    """Raise unless a training may keep the weights of an epoch before its last one."""
    method: type[Method] = find("method", cell.method.name)
    reasons = {
        f"method {cell.method.name} changes the weights after the last epoch": (
            method.finish is not Method.finish
        ),
        f"method {cell.method.name} trains no head, which has a validation loss": (
            not method.trains_head
        ),
        "scored_epochs averages over the last epochs": protocol.scored_epochs > 1,
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError(f"patience {protocol.patience}: {reason}, allowed: 0")


def require_scored_epochs(cell: Cell, protocol: Protocol) -> None:
    """Raise unless scores can be averaged over the last epochs."""
    scored = protocol.scored_epochs
    if scored > protocol.epochs:
        raise InputError(f"scored_epochs {scored}: allowed: at most epochs, {protocol.epochs}")
    method: type[Method] = find("method", cell.method.name)
    quantities = {*due_quantities(cell, UNSHIFTED, "test"), *due_quantities(cell, UNSHIFTED, "val")}
    reasons = {
        f"network {cell.network.name} is fitted in one call": issubclass(
            find("network", cell.network.name), Estimator
        ),
        f"method {cell.method.name} has a network that is finished after the last epoch": (
            method.finish is not Method.finish or not method.trains_head
        ),
        "post-processing decides by the network of the last epoch": cell.postprocessing is not None,
        f"{', '.join(sorted(quantities))} of rows is that of the last epoch": bool(quantities),
    }
    for reason, applies in reasons.items():
        if applies:
            raise InputError(f"scored_epochs {scored}: {reason}, allowed: scored_epochs 1")


def _note_fields_of_steps(cell: Cell) -> None:
    """Warn of settings for training in steps, which a model that one call fits ignores."""
    names = {*cell.settings, *(name for trial in cell.trials for name in trial)}
    for name in sorted((names & OF_STEPS) - cell.network.parameters.searched):
        LOGGER.warning(
            "%s: %s has no effect, since one call fits network %s",
            cell.name, name, cell.network.name,
        )  # fmt: skip


def require_head(network: BaseModel, cell: Cell) -> None:
    """Raise unless the network's head is either trained by the method or fitted afterwards."""
    deferred = find("network", cell.network.name).defers_classifier(network)
    trains = find("method", cell.method.name).trains_head
    if trains and deferred:
        raise InputError(
            f"method {cell.method.name}: trains a head, but the classifier of network "
            f"{cell.network.name} is fitted after training, allowed: classifier linear, or method "
            "metric_learning or parade"
        )
    if not trains and not deferred:
        raise InputError(
            f"method {cell.method.name}: trains no head, but network {cell.network.name} needs "
            "one, allowed: network embedding with a classifier that is fitted after training, "
            "such as logistic_regression"
        )


def require_validation_loss(cell: Cell) -> None:
    """Raise unless epochs end with a validation loss, by which trials are pruned."""
    if not find("method", cell.method.name).trains_head:
        raise InputError(
            f"search of {cell.dataset}.{cell.label}: method {cell.method.name} trains no head and "
            "has no validation loss to prune trials by, allowed: pruner none"
        )


def require_information(samples: Samples, split: str, method: MethodParameters) -> None:
    """Raise unless the samples have what the method reads and what defines its subgroups."""
    if method.subgroup_definition == "class" and not samples.classes:
        raise InputError("subgroups class: not applicable to a continuous outcome")
    if "domains" in method.sees:
        if not samples.domain:
            raise InputError(
                "the method reads domains, which the dataset does not have, allowed: subgroups "
                "other than domain, or a dataset whose domain column is named in `domain`"
            )
        trained = samples.attributes[samples.domain].iloc[samples.rows(split, "train")].dropna()
        if trained.nunique() == 1:
            raise InputError(
                f"the method reads domains, but all training rows of split {split!r} are of "
                f"{trained.iloc[0]}, allowed: two domains or more"
            )
    if "target rows" in method.sees and not len(samples.out_of_distribution_rows(split)):
        raise InputError(
            f"split {split!r} has no rows out of distribution, whose inputs the method reads, "
            "allowed: datasets with `domains`"
        )


def require_rows(samples: Samples, cell: Cell) -> None:
    """Raise if method or network would ignore weights of rows or cannot take their features.

    Features are refused that are infinite, or missing and neither imputed nor taken by the network.
    """
    weights = samples.weights()
    if not np.all(weights == weights[:1]):
        takes = [name for name in names("method") if "sample_weight" in find("method", name).reads]
        if cell.method.name not in takes:
            raise InputError(
                f"method {cell.method.name} with network {cell.network.name}: ignores "
                f"sample_weight, allowed: method {', '.join(takes)}, or rows of equal weight"
            )
        require_weights(cell)
    x = samples.arrays.get("x", np.empty(0))
    if x.dtype.kind == "f" and len(infinite := np.argwhere(np.isinf(x))):
        row, column = infinite[0]
        raise InputError(
            f"feature {samples.features[column]!r}, row {samples.id[row]}: a number that is "
            f"infinite or too large for {x.dtype}, allowed: up to {np.finfo(x.dtype).max:.1e}"
        )
    if cell.protocol.imputation != "none" or x.dtype.kind != "f" or not np.isnan(x).any():
        return
    if not find("network", cell.network.name).takes_missing(cell.network.parameters):
        raise InputError(
            f"network {cell.network.name}: features are missing and imputation is none, allowed: "
            "imputation median, mean or most_frequent, or a network that takes missing values"
        )
    if (
        cell.protocol.preprocessing not in ("standardise", "none")
        or cell.protocol.remove_correlation
    ):
        raise InputError(
            "imputation none: features are mixed, allowed: preprocessing standardise or none, "
            "without remove_correlation"
        )


def require_weights(cell: Cell) -> None:
    """Raise if the network would ignore weights of rows."""
    if not find("network", cell.network.name).takes_sample_weight(cell.network.parameters):
        raise InputError(
            f"method {cell.method.name} with network {cell.network.name}: weights rows, which the "
            "network ignores, allowed: a network that takes weights, or rows of equal weight"
        )
