"""Training on some domains, with all others out of distribution."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.samples.samples import OOD_PARTS, PARTS, Samples
from robust_fairness.samples.splits import require_every_class

logger = logging.getLogger(__name__)


def hold_out_domains(
    samples: Samples, train: Sequence[str], validate: Sequence[str] = ()
) -> Samples:
    """The samples with training, validation and test parts within some domains only.

    The rows of all other domains are the part ``ood_test`` of each split, those of ``validate``
    the part ``ood_val``. Rows of a unit that is trained on, validated or tested in distribution
    are in no part out of distribution.

    Args:
        samples: rows with a domain attribute.
        train: the domains that are trained on.
        validate: domains out of distribution for validation.

    Raises:
        InputError: a domain is unknown or named twice, none is left to test on, or a part within
            the training domains lacks rows or a class.
    """
    domains = _domains(samples)
    known = domains.cat.categories.astype(str)
    for name in (*train, *validate):
        if name not in known:
            raise unknown_name(f"domain ({samples.domain})", name, known)
    named = [*train, *validate]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise InputError(f"domains: {', '.join(twice)} named twice, allowed: each once")
    if not set(known) - set(named):
        raise InputError(f"domains: none of {', '.join(known)} is left to test out of distribution")
    inside = domains.isin(train).to_numpy()
    validated = domains.isin(validate).to_numpy()
    splits = pd.DataFrame(
        {
            name: _held_out(samples, samples.splits[name], inside, validated)
            for name in samples.splits
        }
    )
    if samples.classes:
        labels = pd.Series(pd.Categorical.from_codes(samples.y, pd.Index(samples.classes)))
        require_every_class(splits, labels, f"domains {', '.join(train)}: ")
    return replace(samples, splits=splits)


def _domains(samples: Samples) -> pd.Series:
    """The domain of every row, with the domains that have rows as categories."""
    if not samples.domain:
        raise InputError("domains: the dataset has none; name its column in `domain`")
    found = samples.attributes[samples.domain]
    if not isinstance(found.dtype, pd.CategoricalDtype):
        raise InputError(f"domain {samples.domain}: numbers, allowed: categories")
    domains = found.cat.remove_unused_categories()
    if len(domains.cat.categories) == 1:
        only = domains.cat.categories[0]
        raise InputError(f"domain {samples.domain}: {only!r} alone, allowed: two domains or more")
    return domains


def _held_out(
    samples: Samples, parts: pd.Series, inside: np.ndarray, validated: np.ndarray
) -> pd.Categorical:
    """The parts of one split."""
    found = parts.to_numpy(dtype=object, copy=True)
    found[~inside] = np.where(validated, "ood_val", "ood_test")[~inside]
    if samples.units is not None:
        used = samples.units[inside & parts.notna().to_numpy()]
        shared = ~inside & np.isin(samples.units, used)
        found[shared] = None
        if shared.any():
            logger.warning(
                "%s: %d rows of other domains are left out, their units are in training domains",
                parts.name,
                shared.sum(),
            )
    return pd.Categorical(found, [*PARTS, *OOD_PARTS])


def rows_by_domain(samples: Samples, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Positions in ``rows`` by domain, for every domain that has some; none without domains."""
    if not samples.domain:
        return {}
    domains = samples.attributes[samples.domain].iloc[rows].astype(str).to_numpy()
    return {name: np.flatnonzero(domains == name) for name in dict.fromkeys(sorted(domains))}
