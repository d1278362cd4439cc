"""The tables of Control+Shift: accuracy by severity, slopes and linearity."""

from functools import partial

import numpy as np
import pandas as pd

from robust_fairness.papers.latent_shift import views as latent_shift
from robust_fairness.report import Results
from robust_fairness.report.results import UNSHIFTED, where
from studies.study import Study, ends

GENERATED = {
    "digits_extend": "first run",
    "digits_extend_direction_1": "another direction",
    "digits_extend_generator_1": "another generator",
    "digits_overlap": "first run",
    "digits_overlap_direction_1": "another direction",
    "digits_overlap_generator_1": "another generator",
    "digits_overlap_large": "twice as many training images",
    "digits_overlap_more_rows": "5,000 other test images",
    "digits_overlap_large_more_rows": "the same, twice as many training images",
    "digits_overlap_full": "training images of the whole space",
    "digits_truncation": "first run",
    "digits_truncation_generator_1": "another generator",
}
REFERENCE = "(reference classifier)"


def accuracies(shift: str, results: Results) -> pd.DataFrame:
    """Accuracy in percent by severity, also of the classifier of real images."""
    generated = where(latent_shift.accuracies(results), shift=shift).drop(columns="severity")
    generated = generated.rename(columns={"position": "severity"})
    generated = generated.dropna(subset="severity")
    places = generated[["dataset", "severity"]].drop_duplicates()
    reference = where(results.generator_quality, shift=[shift, UNSHIFTED]).merge(places)
    both = pd.concat([generated, reference.assign(method=REFERENCE)])
    keys = ["dataset", "method"]
    wide = both.pivot_table("accuracy", keys, "severity", sort=False).sort_index(axis=1)
    shown = (100 * wide).map("{:.1f}".format).replace("nan", "")
    return _in_words(shown.rename(columns="{:g}".format).reset_index())


def slopes(results: Results) -> pd.DataFrame:
    """Slopes of the accuracy in points by degree, or by .1 of R, and net of the reference."""
    lines = where(latent_shift.slopes(results), dataset=GENERATED)
    axis = lines["shift"].map(latent_shift.AXES)
    parts = []
    for title, form in {"slope": axis, "net slope": axis + latent_shift.NET}.items():
        parts.append(lines[lines["against"] == form].assign(form=title))
    rows = pd.concat(parts)
    unit = np.where(rows["shift"] == latent_shift.TRUNCATION, 10, 100)
    numbers = rows[["slope", "low", "high"]].mul(unit, axis=0).map("{:.2f}".format)
    cells = numbers["slope"] + " (" + numbers["low"] + " to " + numbers["high"] + ")"
    rows = rows.assign(cell=cells.str.replace(" (nan to nan)", "", regex=False))
    keys = ["dataset", "shift", "method"]
    wide = rows.set_index([*keys, "form"])["cell"].unstack(sort=False)  # noqa: PD010
    return _in_words(wide.reset_index())


def linearity(results: Results) -> pd.DataFrame:
    """R squared of the lines through all cells of a shift, in functions of the distance."""
    rows = where(latent_shift.linearity(results), dataset=GENERATED)
    keys = ["dataset", "shift", "augmentation", "space"]
    wide = rows.pivot_table("R squared", keys, "linear in", sort=False).map("{:.3f}".format)
    return _in_words(wide.reset_index())


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    """In the order of ``GENERATED``, with its words."""
    order = rows["dataset"].map([*GENERATED].index)
    rows = rows.iloc[np.argsort(order, kind="stable")]
    return rows.rename(columns={"dataset": "data"}).replace({"data": GENERATED})


ROBUST = "No classifier is robust to a shift of latent space"
LARGER = "A larger training set does not make a classifier more robust"
FURTHER = {  # networks that were run on overlap only
    "densenet": "DenseNet", "vgg": "VGG", "preact_resnet": "pre-activation",
    "shake_shake": "Shake-Shake", "resnext": "ResNeXt",
}  # fmt: skip


def lost_by_the_reference(study: Study) -> str:
    """What a classifier of real images loses on the generated ones, in points."""
    rows = where(
        study.results.generator_quality, dataset=[f"digits_{s}" for s in latent_shift.AXES]
    )
    before = rows[rows["shift"] == UNSHIFTED].set_index("dataset")["accuracy"]
    last = rows[rows["shift"] != UNSHIFTED].groupby("dataset")[["shift", "accuracy"]].last()
    lost = 100 * (before - last["accuracy"])
    said = [f"{lost[f'digits_{shift}']:.1f} under {shift}" for shift in latent_shift.AXES]
    return (
        "A classifier trained on real digits loses these points on the same images: "
        f"{', '.join(said)}"
    )


def net_of_it(study: Study) -> str:
    """What classifiers lose net of the generator, in points."""
    changes = where(study.effects, claim=ROBUST).set_index("part")["ours"]
    lost = [
        f"{' to '.join(f'{-100 * end:.1f}' for end in (of.max(), of.min()))} under {shift}"
        for shift in ("extend", "overlap", "truncation")
        for of in [changes[changes.index.str.startswith(shift)]]
    ]
    return f"Net of it the four classifiers lose {', '.join(lost)} (less than 0 is a gain)"


def further_networks(study: Study) -> str:
    """What the networks that no claim names lose, and their slopes, in points."""
    rows = where(study.results.scores, dataset="digits_overlap", metric="accuracy", trial="default")
    wide = rows.pivot_table(index=["method", "seed"], columns="severity", values="value")
    lost = 100 * (wide.iloc[:, 0] - wide.iloc[:, -1]).groupby("method").mean()
    slopes = [np.polyfit(wide.columns, line, 1)[0] for line in wide.to_numpy()]
    slope = 100 * wide.columns[-1] * pd.Series(slopes, wide.index).groupby("method").mean()
    said = [
        f"{name} {lost[key]:.0f} ({slope[key] - slope['resnet20']:+.0f})"
        for key, name in FURTHER.items()
    ]
    return (
        f"Points lost under overlap: {', '.join(said)}; in brackets how much better the slope over "
        "the range is than the residual network's"
    )


def with_augmentation(study: Study) -> str:
    """What augmented networks lose, in points."""
    lost = ends(study.sizes("Classifiers trained with augmentation lose accuracy, too"))
    return f"The three networks lose {lost} points under extend (published: around 10)"


def more_images(study: Study) -> str:
    """What a larger training set changes, in points."""
    low, high = (study.sizes(LARGER, "^500", end, digits=1)[0] for end in ("low", "high"))
    return (
        f"Twice as many training images improve the slope by {low} to {high} points (95 %), where "
        "the paper says not at all"
    )


def another_direction(study: Study) -> str:
    """The slope of the transformer under extend, in points by degree."""
    lines = where(
        latent_shift.slopes(study.results), method="vision_transformer", shift="extend",
        against=latent_shift.AXES["extend"],
    ).set_index("dataset")["slope"]  # fmt: skip
    here, there = (
        f"{100 * lines[name]:.2f}" for name in ("digits_extend", "digits_extend_direction_1")
    )
    return f"its slope under extend is {there} instead of {here} points per degree"


STUDY = Study(
    latent_shift.PAPER,
    {
        **{shift: partial(accuracies, shift) for shift in latent_shift.AXES},
        "robustness": slopes,
        "linearity": linearity,
    },
    sentences={
        "lost_by_the_reference": lost_by_the_reference,
        "net_of_it": net_of_it,
        "further_networks": further_networks,
        "with_augmentation": with_augmentation,
        "more_images": more_images,
        "another_direction": another_direction,
    },
    metrics=("accuracy",),
    stored=("counts", "distances", "generator_quality", "correct"),
)
