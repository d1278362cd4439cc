"""Diabetes progression of 442 patients (Efron et al. 2004), bundled with scikit-learn.

Works offline and without any download: the data set of the default run.
"""

import hashlib
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.datasets.base import TableDataset
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.tables._tables import TopShareParameters, to_samples, top_share
from robust_fairness.samples import Samples
from robust_fairness.samples.splits import SplitParameters

SOURCE = "scikit-learn/diabetes"


class Parameters(SplitParameters, TopShareParameters, extra="forbid", frozen=True):
    """Parameters of the diabetes data.

    Attributes:
        target: progression one year after baseline, cut at its top share or as a number.
        sensitive: attributes that methods mitigate.
        drop_sensitive: leave the columns of the sensitive attributes out of the features.
    """

    target: Literal["binary", "continuous"] = "binary"
    sensitive: tuple[Literal["sex", "age_group", "age"], ...] = ("sex",)
    drop_sensitive: bool = False


def load(parameters: Parameters, files: Files, splits: int) -> Samples:
    """Ten baseline variables of 442 patients, and how far the disease was a year later.

    Attributes are ``sex`` (the codes 1 and 2; what they mean is not documented), ``age_group``
    (up to the median age, over it) and ``age`` in years.

    Args:
        parameters: target, sensitive attributes and splits.
        files: records the checksum of the bundled data; no file is read below its root.
        splits: number of named splits.

    Raises:
        InputError: a part of a split lacks rows or a class.
    """
    from sklearn.datasets import load_diabetes

    table = load_diabetes(as_frame=True, scaled=False).frame
    files.sources[SOURCE] = hashlib.sha256(table.to_numpy(np.float64).tobytes()).hexdigest()
    progression = table.pop("target").rename("progression")
    median = table["age"].median()
    age_groups = [f"age up to {median:g}", f"age over {median:g}"]
    attributes = {
        "sex": pd.Series(
            pd.Categorical(table["sex"].map({1: "sex 1", 2: "sex 2"}), ["sex 1", "sex 2"])
        ),
        "age_group": pd.Series(
            pd.Categorical(np.where(table["age"] > median, *age_groups[::-1]), age_groups)
        ),
        "age": table["age"],
    }
    targets = {"binary": top_share(progression, SOURCE, parameters), "continuous": progression}
    dropped = {name.removesuffix("_group") for name in parameters.sensitive}
    return to_samples(
        features=table.drop(columns=dropped) if parameters.drop_sensitive else table,
        target=targets[parameters.target],
        attributes=attributes,
        sensitive=parameters.sensitive,
        parameters=parameters,
        splits=splits,
        sources=files.sources,
    )


class Diabetes(TableDataset):
    """``load`` with parameters."""

    Parameters = Parameters

    def load(self, files: Files, splits: int) -> Samples:
        """The samples."""
        return load(self.parameters, files, splits)
