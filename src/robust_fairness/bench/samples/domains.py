"""Training on some domains, with all others out of distribution."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.bench.samples.splits import require_every_class
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.samples import OOD_PARTS, PARTS, Samples

logger = logging.getLogger(__name__)


def hold_out_domains(
    samples: Samples,
    train: Sequence[str] = (),
    validation: Sequence[str] = (),
    test: Sequence[str] = (),
    rows: Literal["all", "test"] = "all",
) -> Samples:
    """The samples with training, validation and test parts within some domains only.

    In each split, rows of the domains of ``validation`` are the part ``ood_val``, those of
    ``test`` the part ``ood_test``. Rows of a unit that is trained on, validated or tested in
    distribution are in no part out of distribution.

    Args:
        samples: rows with a domain attribute.
        train: the domains that are trained on; by default all but those of ``validation`` and
            ``test``.
        validation: domains out of distribution for validation.
        test: domains out of distribution for testing; by default all others.
        rows: the rows of domains out of distribution that are used: all, or those of their test
            parts.

    Raises:
        InputError: a domain is unknown or named twice, none is left to train or test on, or a part
            within the training domains lacks rows or a class.
    """
    domains = _domains(samples)
    known = list(domains.cat.categories.astype(str))
    named = [*train, *validation, *test]
    for name in named:
        if name not in known:
            raise unknown_name(f"domain ({samples.domain})", name, known)
        if named.count(name) > 1:
            raise InputError(f"domains: {name} is named twice, allowed: each once")
    others = [name for name in known if name not in named]
    train, test = train or others, test or others
    for use, left in {"train on": train, "test out of distribution": test}.items():
        if not left:
            raise InputError(f"domains: none of {', '.join(known)} is left to {use}")
    inside = domains.isin(train).to_numpy()
    part_of = dict.fromkeys(validation, "ood_val") | dict.fromkeys(test, "ood_test")
    outside = domains.astype(object).map(part_of)
    splits = samples.splits.apply(
        lambda parts: _held_out(
            samples, parts, inside, outside if rows == "all" else outside.where(parts == "test")
        )
    )
    if samples.classes:
        require_every_class(splits, samples.labels, f"domains {', '.join(train)}: ")
        _warn_of_missing(domains, samples.labels, "class", test)
    for split, parts in splits.items():
        tested = set(domains[parts.isin(OOD_PARTS)])
        for name in part_of:
            if name not in tested:
                raise InputError(
                    f"domains: {split} has no row of {name} to test, allowed: rows whose units are "
                    f"in no training domain"
                )
    _require_groups(samples, splits, domains, test)
    return replace(samples, splits=splits)


def domain_names(samples: Samples) -> list[str]:
    """The domains that have rows."""
    return list(_domains(samples).cat.categories.astype(str))


def _require_groups(
    samples: Samples, splits: pd.DataFrame, domains: pd.Series, test: Sequence[str]
) -> None:
    """Check that training rows have several groups; warn of tested domains that lack one."""
    for attribute in samples.sensitive:
        values = samples.attributes.get(attribute)
        if values is None or not isinstance(values.dtype, pd.CategoricalDtype):
            continue
        for split, parts in splits.items():
            groups = values[parts == "train"].dropna().unique()
            if len(groups) == 1:
                raise InputError(
                    f"domains: all training rows of {split} have {attribute} {groups[0]}, "
                    f"allowed: rows of two groups or more"
                )
        _warn_of_missing(domains, values, attribute, test)


def _warn_of_missing(
    domains: pd.Series, values: pd.Series, column: str, test: Sequence[str]
) -> None:
    """Warn of tested domains that have no row of a group or class."""
    counts = pd.crosstab(domains, values)
    for place, number in np.argwhere(counts.to_numpy() == 0):
        name, value = counts.index[place], counts.columns[number]
        if name in test:
            logger.warning(
                "domain %s has no row of %s %s: metrics that need some are missing there",
                name, column, value,
            )  # fmt: skip


def _domains(samples: Samples) -> pd.Series:
    """The domain of every row, with the domains that have rows as categories."""
    if not samples.domain:
        raise InputError("domains: the dataset has none; name its column in `domain`")
    result = samples.attributes[samples.domain]
    if not isinstance(result.dtype, pd.CategoricalDtype):
        raise InputError(f"domain {samples.domain}: numbers, allowed: categories")
    domains = result.cat.remove_unused_categories()
    if len(domains.cat.categories) == 1:
        only = domains.cat.categories[0]
        raise InputError(f"domain {samples.domain}: {only!r} alone, allowed: two domains or more")
    return domains


def _held_out(
    samples: Samples, parts: pd.Series, inside: np.ndarray, outside: pd.Series
) -> pd.Series:
    """Parts of one split: those of the training domains stay, others are as in ``outside``."""
    result = parts.astype(object).where(inside, outside)
    if samples.units is not None:
        units = samples.units[inside & parts.notna().to_numpy()]
        shared = ~inside & np.isin(samples.units, units) & result.notna().to_numpy()
        result = result.mask(shared)
        if shared.any():
            logger.warning(
                "%s: rows left out since training domains (%s) have their units: %d",
                parts.name,
                ", ".join(sorted(set(samples.attributes[samples.domain][inside]))),
                shared.sum(),
            )
    return result.astype(pd.CategoricalDtype([*PARTS, *OOD_PARTS]))


def rows_by_domain(samples: Samples, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Positions in ``rows`` by domain, for every domain that has some; none without domains."""
    if not samples.domain:
        return {}
    domains = samples.attributes[samples.domain].iloc[rows].astype(str).to_numpy()
    return {name: np.flatnonzero(domains == name) for name in dict.fromkeys(sorted(domains))}
