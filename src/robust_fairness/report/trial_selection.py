"""Views of model selection: the trial that each criterion selects, used by the run or not."""

import pandas as pd

from robust_fairness.report.results import CELL, Results


def selected_trials(results: Results) -> pd.DataFrame:
    """The trial that each criterion selects on validation rows, used or only compared."""
    used = results.choices["used"].map({True: "used", False: "compared"})
    return results.choices.assign(used=used)


def agreement(results: Results) -> pd.DataFrame:
    """In how many cells a criterion selects the trial that the first one used selects."""
    choices = results.choices
    first = choices[choices["used"]].drop_duplicates(CELL)[[*CELL, "trial"]]
    both = choices.merge(first, on=CELL, suffixes=("", " of the first"))
    same = both.assign(same=both["trial"] == both["trial of the first"])
    return same.groupby("criterion", as_index=False, sort=False).agg(
        cells=("same", "size"), same=("same", "sum")
    )


def budgets(results: Results) -> pd.DataFrame:
    """Trials of every cell, also as a share of the most of its dataset, and what its method saw."""
    trials = results.trials.assign(pruned=results.trials["state"] == "pruned")
    result = trials.groupby(CELL, as_index=False, sort=False).agg(
        trials=("trial", "size"), pruned=("pruned", "sum"), epochs=("epochs", "sum")
    )
    largest = result.groupby("dataset")["trials"].transform("max")
    result = results.with_facets(
        result.assign(share=result["trials"] / largest), ["algorithm", "sees"]
    )
    return result[[*CELL, "algorithm", "sees", "trials", "share", "pruned", "epochs"]]
