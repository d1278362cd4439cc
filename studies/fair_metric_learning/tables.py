"""The tables of finDML: gaps of embeddings and of classifiers on them."""

from collections.abc import Mapping
from functools import partial

import pandas as pd

from robust_fairness.papers.fair_metric_learning import views as fair_metric_learning
from robust_fairness.report import Results
from robust_fairness.report.results import where
from studies.study import Study
from tools.pages import across

RARE = {"digits_balanced": "balanced", "digits_imbalanced": "rare"}
PICTURES = {"cifar10_balanced": "balanced", "cifar10_imbalanced": "rare"}
MORE = {"digits_more_balanced": "balanced", "digits_more_imbalanced": "rare"}
GAPS = ("recall_at", "nmi", "u_kl", "accuracy", "macro_precision", "macro_recall")
RULES = {
    ("none", "lowest"): "one classifier",
    ("oversampling", "lowest"): "oversampling",
    ("domain_independent", "lowest"): "domain-independent, lowest logit",
    ("domain_independent", "no_probability"): "domain-independent, no probability",
}


def rare_classes(data: Mapping[str, str], results: Results) -> pd.DataFrame:
    """Majority minus minority by training loss, and the accuracy of all rows."""
    names = {f"{name}_majority_gap": name for name in GAPS} | {"accuracy": "overall accuracy"}
    rows = where(results.unshifted, dataset=data, metric=names, trial="default")
    return across(rows, ["method", "dataset"], names).reset_index().replace({"dataset": data})


COLOURS = {
    "accuracy": "accuracy",
    "recall_at": "recall@1",
    "nmi": "NMI",
    "worst_group_recall_at": "recall@1 of the worst colour",
    "recall_at_worst_gap": "gap of recall@1",
    "nmi_worst_gap": "gap of NMI",
    "accuracy_worst_gap": "gap of accuracy",
}


def rare_colour(results: Results) -> pd.DataFrame:
    """Digits of six colours, of which some are rare, by loss and weights of PARADE."""
    rows = where(results.unshifted, dataset="coloured_digits", metric=COLOURS, group="")
    usual = {"classifier": "logistic_regression", "rebalancing": "none"}
    rows = results.with_hparams(rows, ["alpha", "rho", *usual])
    others = rows[[*usual]].astype(object).fillna(usual)
    keys = ["method", "alpha", "rho"]
    rows = rows[(others == pd.Series(usual)).all(axis=1)].astype(dict.fromkeys(keys, object))
    return across(rows.fillna(dict.fromkeys(keys, "")), keys, COLOURS).reset_index()


def rebalanced(results: Results) -> pd.DataFrame:
    """Accuracy, and majority minus minority of it, by how the classifier was rebalanced."""
    metrics = {"accuracy": "accuracy", "accuracy_majority_gap": "gap"}
    rows = where(results.unshifted, dataset="digits_imbalanced", metric=metrics)
    rows = results.with_hparams(rows, ["rebalancing", "absent_classes"])
    usual = {"rebalancing": "none", "absent_classes": "lowest"}
    rows = rows.astype(dict.fromkeys(usual, object)).fillna(usual)
    rule = pd.Series([*zip(rows["rebalancing"], rows["absent_classes"], strict=True)], rows.index)
    rows = rows.assign(what=rule.map(RULES) + ": " + rows["metric"].map(metrics))
    order = [f"{rule}: {name}" for rule in RULES.values() for name in metrics.values()]
    titles = dict(zip(order, order, strict=True))
    return across(rows, ["method"], titles, "what").dropna().reset_index()


def embedding(study: Study) -> str:
    """What rare classes change in the embedding."""
    claim = "Rare classes widen the gaps of the embedding"
    (recall,) = study.sizes(claim, "^digits, recall")
    (printed,) = study.sizes(claim, "^digits, recall", "published")
    nmi, u_kl = (
        study.sizes(claim, f"^digits, {name}", unit=1, digits=2)[0] for name in ("NMI", "U_KL")
    )
    return (
        f"Rare classes widen the gap of recall@1 by {recall} points (published on birds: {printed})"
        f", of NMI by {nmi} and of U_KL by {u_kl}"
    )


def downstream(study: Study) -> str:
    """What rare classes change in classifiers on balanced data."""
    claim = "Balanced data downstream do not remove the gaps"
    (accuracy,) = study.sizes(claim, "^digits, accuracy")
    (recall,) = study.sizes(claim, "^digits, macro recall", unit=1, digits=2)
    return (
        f"Logistic regression on balanced data has gaps that are larger by {accuracy} points of "
        f"accuracy and by {recall} of macro recall"
    )


def lightness(study: Study) -> str:
    """How the skin tone angle is related to lightness."""
    rows = pd.read_csv(study.folder / "skin_tone.csv")
    rows = where(rows, place="as printed", patches="both cheeks").set_index("encoding")
    angle = rows["correlation with lightness"].map("{:.2f}".format)
    return (
        f"its correlation with lightness is {angle['cielab']} (CIELAB) and {angle['eight_bits']} "
        "(8 bit codes)"
    )


STUDY = Study(
    fair_metric_learning.PAPER,
    {
        "rare_classes": partial(rare_classes, RARE),
        "rare_classes_more_rows": partial(rare_classes, MORE),
        "cifar10": partial(rare_classes, PICTURES),
        "rare_colour": rare_colour,
        "rebalanced": rebalanced,
    },
    sentences={"embedding": embedding, "downstream": downstream, "lightness": lightness},
    metrics=("accuracy", *COLOURS, *(f"{name}_majority_gap" for name in GAPS)),
)
