"""Diabetes progression of 442 patients (Efron et al. 2004), bundled with scikit-learn.

Works offline and without any download: the data set of the default run.
"""

from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from robust_fairness.bench.datasets.base import TableDataset, TableParameters, TypedTable
from robust_fairness.bench.datasets.tables._tables import TopShareParameters, top_share
from robust_fairness.core.numbers import exact
from robust_fairness.core.raw_files import Files

SOURCE = "scikit-learn/diabetes"


class Diabetes(TableDataset):
    """Ten baseline variables of 442 patients, and the progression of the disease after a year.

    Attributes are ``sex`` (the codes 1 and 2; what they mean is not documented), ``age_group``
    (up to the median age, over it) and ``age`` in years.
    """

    class Parameters(TableParameters, TopShareParameters):
        """Parameters of the diabetes data.

        Attributes:
            target: progression one year after baseline, cut at its top share or as a number.
        """

        target: Literal["binary", "continuous"] = "binary"
        sensitive: tuple[Literal["sex", "age_group", "age"], ...] = ("sex",)

    feature_columns: ClassVar = {"age_group": ("age",)}

    def read(self, files: Files, splits: int) -> TypedTable:
        from sklearn.datasets import load_diabetes

        table = load_diabetes(as_frame=True, scaled=False).frame
        files.note(SOURCE, table.to_numpy(np.float64).tobytes())
        progression = table.pop("target").rename("progression")
        median = table["age"].median()
        age_groups = [f"age up to {exact(median)}", f"age over {exact(median)}"]
        older = np.where(table["age"] > median, *age_groups[::-1])
        sexes = table["sex"].map({1: "sex 1", 2: "sex 2"})
        if self.parameters.target == "binary":
            progression = top_share(progression, SOURCE, self.parameters)
        return TypedTable(
            features=table,
            target=progression,
            attributes={
                "sex": pd.Series(pd.Categorical(sexes, ["sex 1", "sex 2"])),
                "age_group": pd.Series(pd.Categorical(older, age_groups)),
                "age": table["age"],
            },
        )
