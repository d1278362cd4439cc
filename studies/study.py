"""A paper's study: the scores that are stored beside its README, and the tables made of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from pathlib import Path

import numpy as np
import pandas as pd

from robust_fairness.catalog import files
from robust_fairness.catalog.arrays import PredictionsDataset, SamplesDataset
from robust_fairness.papers import SECTIONS
from robust_fairness.report import Results
from robust_fairness.report.claims import declared, in_words
from robust_fairness.report.claims import effects as claimed
from robust_fairness.report.results import CELL, CORRECT, where
from robust_fairness.report.views import Section, published
from robust_fairness.runs import provenance
from studies import settings
from tools.pages import STUDIES, Page, plain

PERCENT = {"digits": 1, "unit": 100}
TABLES = ("metrics", "cells", "splits", "trials")  # of a run, which every study stores
CLAIMED = tuple(declared.listed())


@dataclass(frozen=True, eq=False)
class Study:
    """A paper, or a question across papers, whose scores lie in its folder.

    Attributes:
        name: its folder.
        tables: makers of the tables of its README, by name.
        sentences: makers of sentences of its README, by name.
        metrics: measures that are stored and of which the paper prints nothing.
        by_group: measures whose values by group are stored; of the others only those of all rows.
        stored: further tables of its runs, and ``correct``, see ``correct_of``.
        attributes: those whose counts are stored; those of all rows always are.
        further: scores that are stored elsewhere.
        views: the section of the report, if it has another name.
    """

    name: str
    tables: Mapping[str, Callable[[Results], pd.DataFrame]]
    sentences: Mapping[str, Callable[["Study"], str]] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    by_group: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    further: Callable[[], pd.DataFrame] | None = None
    views: str = ""

    @property
    def folder(self) -> Path:
        """Where all of it lies."""
        return STUDIES / self.name

    @property
    def section(self) -> Section:
        """Its views and claims."""
        return SECTIONS[self.views or self.name]

    def file_of(self, table: str) -> Path:
        """The file of a table of the runs."""
        return self.folder / "scores" / f"{table}.parquet"

    @cached_property
    def results(self) -> Results:
        """The stored scores."""
        paths = {name: self.file_of(name) for name in (*TABLES, *self.stored)}
        frames = {name: pd.read_parquet(path) for name, path in paths.items() if path.exists()}
        metrics = frames.pop("metrics")
        if self.further:
            metrics = pd.concat([metrics, self.further()], ignore_index=True)
        return Results.of(metrics, **frames)

    @cached_property
    def effects(self) -> pd.DataFrame:
        """The effects of its claims, a row per part."""
        return self.section.claims(self.results)

    def sizes(
        self, claim: str, parts: str = "", column: str = "ours", unit: float = 100, digits: int = 0
    ) -> list[str]:
        """Sizes of the effects of parts of a claim without their sign, for a sentence.

        Args:
            claim: the beginning of its text.
            parts: regular expression for the names of parts.
            column: of the table of effects.
            unit: what 1 is, 100 for points and percent.
            digits: how many are shown after the point.
        """
        rows = self.effects
        rows = rows[rows["claim"].str.startswith(claim) & rows["part"].str.contains(parts)]
        return [f"{unit * abs(value):.{digits}f}" for value in rows[column]]

    def page(self) -> Page:
        """Its README, with the tables and the plot of its claims."""
        made = {name: partial(_of_results, make, self) for name, make in self.tables.items()}
        said = {name: partial(say, self) for name, say in self.sentences.items()}
        figures = {}
        if self.name in CLAIMED:
            made |= {
                "effects": partial(effects, self),
                "verdicts": partial(verdicts, self),
                "needs": partial(needs, self),
                "deviations": partial(settings.deviations, self.name),
                "settings": partial(settings.table, self.name),
            }
            if any(claim.apart for claim in declared.written()[self.name]):
                made["apart"] = partial(apart, self)
            figures[self.folder / "claims.svg"] = partial(plot, self)
        return Page(self.folder / "README.md", made, figures, said)

    def take(self, run_ids: Sequence[str]) -> None:
        """Store what its README needs of runs, instead of earlier scores of the same cells.

        Of cells that several runs have, those of the first run are taken.
        """
        for table in (*TABLES, *self.stored):
            path = self.file_of(table)
            frames = [
                correct_of(run) if table == "correct" else provenance.load(run, table, files.table)
                for run in run_ids
            ]
            if table == "counts":
                frames = [where(rows, attribute=["", *self.attributes]) for rows in frames]
            frames += [pd.read_parquet(path)] if path.exists() else []
            scores = reduce(_with_others, frames)
            if table == "metrics":
                theirs = published(self.name)["metric"] if self.name in CLAIMED else ()
                kept = (scores["group"] == "") | scores["metric"].isin(self.by_group)
                scores = scores[scores["metric"].isin({*theirs, *self.metrics}) & kept]
            path.parent.mkdir(parents=True, exist_ok=True)
            scores.to_parquet(path, index=False, compression="zstd")


def _of_results(make: Callable[[Results], pd.DataFrame], study: Study) -> pd.DataFrame:
    """A table of the results of a study, which are read when it is needed."""
    return make(study.results)


def ends(numbers: Sequence[str]) -> str:
    """The smallest to the largest of some numbers."""
    ordered = sorted(numbers, key=float)
    return f"{ordered[0]} to {ordered[-1]}"


def correct_of(run: str) -> pd.DataFrame:
    """Whether each test row is decided correctly: a row per replica and test set, with an array.

    The shifts keep the classes of their rows.

    Raises:
        ValueError: the share of a replica and test set is not its accuracy in the scores.
    """
    scores = provenance.load(run, "metrics", files.table)
    scores = where(scores, metric="accuracy", group="", attribute="").drop_duplicates(
        [*CELL, "trial", "seed", "shift", "severity"]
    )
    frames = []
    for (dataset, method), rows in scores.groupby(CELL, sort=False):
        place, labels = f"{dataset}.{method}.predictions", f"{dataset}.samples"
        y = provenance.load(run, labels, SamplesDataset).y
        test = None
        correct = {}
        for part in provenance.load(run, place, PredictionsDataset):
            test = y[part.rows] if part.test_set == "" else test
            correct.setdefault((part.trial, part.seed), []).append(part.outputs.argmax(-1) == test)
        for replica, of_replica in rows.groupby(["trial", "seed"], sort=False):
            known = of_replica.assign(correct=correct[replica])
            frames.append(known)
    result = pd.concat(frames, ignore_index=True)
    if not np.allclose(result["correct"].map(np.mean).astype(float), result["value"]):
        raise ValueError(f"run {run}: rows and scores differ")
    return result[CORRECT]


def _with_others(rows: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """With the rows of earlier ones of other cells, or other datasets."""
    cell = [name for name in CELL if name in rows]
    again = earlier.set_index(cell).index.isin(rows.set_index(cell).index)
    return pd.concat([earlier[~again], rows], ignore_index=True)


def effects(study: Study) -> pd.DataFrame:
    """The effects of a paper's claims with their verdicts, for a CSV."""
    shown = study.effects.drop(columns=["effect", "known", "cost", "command"])
    shown["reach"] = shown["reach"].replace(np.inf, np.nan)
    numbers = ["published", "std", "ours", "low", "high", "margin", "reach", "error"]
    digits = dict.fromkeys(numbers, plain) | {"p": partial(plain, digits=4)}
    return shown.assign(**{name: shown[name].map(form) for name, form in digits.items()})


def plot(*studies: Study) -> str:
    """The drawing of the claims of some papers."""
    several = len(studies) > 1
    return in_words.drawn(
        {study.section.title if several else "": study.effects for study in studies}
    )


def verdicts(study: Study) -> pd.DataFrame:
    """Every claim of a paper beside its numbers."""
    judged = in_words.judged(study.effects)
    alone = judged["part"] == ""
    models = judged["question"] == claimed.MODELS
    ends = judged["low"].map(plain) + " to " + judged["high"].map(plain)
    ends = ends.mask(models, judged["seeds"].astype(str) + " seeds: " + ends)
    ends = ends.mask(models & (judged["seeds"] == 1), "one seed")
    ours = judged["ours"].map(plain) + (" (" + ends + ")").where(judged["low"].notna(), "")
    shown = pd.DataFrame(
        {
            "claim": judged["claim"] + " (" + judged["at"] + ")",
            "verdict": judged["counted"],
            "ours": ours + np.where(alone | (ours == ""), "", ": " + judged["part"]),
            "published": judged["published"].map(plain),
            "known before": judged["known_before"],
        }
    )
    return shown.astype(str)


def needs(study: Study) -> pd.DataFrame:
    """What would decide the open parts of every claim that has some, and its cost."""
    judged = in_words.judged(study.effects)
    rows = judged[judged["needs"] != ""]
    return pd.DataFrame(
        {
            "claim": rows["claim"],
            "verdict": rows["counted"],
            "needs": rows["needs"].str.removeprefix("needs "),
            "cost": rows["cost"],
        }
    )


def apart(study: Study) -> pd.DataFrame:
    """The claims of a paper that cannot fail here, each decided by itself and not counted."""
    results = study.results
    rows = study.section.measured(results)
    parts = [
        claimed.table([claim], rows, results).assign(why=claim.apart)
        for claim in declared.written()[study.name]
        if claim.apart
    ]
    shown = pd.concat(parts)[["claim", "at", "why", "part", "state", "ours", "low", "high"]]
    return shown.assign(**{name: shown[name].map(plain) for name in ("ours", "low", "high")})
