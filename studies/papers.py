"""The five papers, their claims together, and what compares all methods across them.

    python -m studies.papers [PAPER --runs RUN ...]

With runs of ``conf/paper``, ``conf/reduced`` or ``conf/cross``, what the paper's README needs of
them is stored first, instead of earlier scores of the same cells. Then the tables, figures and
sentences of every README here, and those of the project's, are made anew.
"""

import argparse
from functools import cache, partial

import pandas as pd

from robust_fairness.papers import SECTIONS
from robust_fairness.report import agreement
from robust_fairness.report.claims.declared import written
from robust_fairness.report.claims.effects import MODELS
from robust_fairness.report.claims.in_words import judged
from robust_fairness.report.results import where
from studies.bias_mitigation import tables as bias_mitigation
from studies.equalized_robustness import tables as equalized_robustness
from studies.fair_metric_learning import tables as fair_metric_learning
from studies.kernel_fairness import tables as kernel_fairness
from studies.latent_shift import tables as latent_shift
from studies.study import Study, plot
from tools.pages import ROOT, STUDIES, Page, rounded

CROSS = Study(
    "cross",
    {view.id: rounded(view.rows) for view in SECTIONS["agreement"].views},
    metrics=agreement.MEASURES,
    views="agreement",
)
CLAIMED = tuple(
    module.STUDY
    for module in (
        equalized_robustness,
        bias_mitigation,
        kernel_fairness,
        latent_shift,
        fair_metric_learning,
    )
)
PAPERS = {study.name: study for study in (*CLAIMED, CROSS)}
VERDICTS = {  # in words, for one claim and for several
    "supported": ("is supported", "are supported"),
    "partly": ("holds in part and is open in the rest", "hold in part and are open in the rest"),
    "mixed": (
        "holds in part and fails in another",
        "hold in some parts and fail in others",
    ),
    "partly contradicted": ("is contradicted in part", "are contradicted in part"),
    "contradicted": ("is contradicted", "are contradicted"),
    "excluded": (
        "has an effect smaller than its margin",
        "have effects smaller than their margins",
    ),
    "undecided": ("is undecided", "are undecided"),
    "out of reach": ("is out of reach of our data", "are out of reach of our data"),
    "not run": ("was not run", "were not run"),
}


@cache
def all_judged() -> pd.DataFrame:
    """The verdicts on all claims, with their ``paper``."""
    return pd.concat([judged(study.effects).assign(paper=study.name) for study in CLAIMED])


def counted() -> str:
    """How many claims have each verdict, as a sentence without its end."""
    count = all_judged()["verdict"].value_counts()
    said = [
        f"{count[verdict]} {words[int(count[verdict] > 1)]}"
        for verdict, words in VERDICTS.items()
        if verdict in count
    ]
    return f"Of {count.sum()} claims {', '.join(said[:-1])} and {said[-1]}"


def supported() -> str:
    """The claims that are supported, as a sentence without its end."""
    names = where(all_judged(), verdict="supported")["claim"]
    return "Supported in all their parts: " + "; ".join(names)


def by_paper() -> pd.DataFrame:
    """Numbers of claims by verdict and paper; in brackets those about these models only."""
    rows = []
    for study in CLAIMED:
        lines = where(all_judged(), paper=study.name)
        models = lines["whom"] == MODELS
        counts = {}
        for verdict in VERDICTS:
            mask = lines["verdict"] == verdict
            of_models = f" ({(mask & models).sum()})" if (mask & models).any() else ""
            counts[verdict] = f"{mask.sum()}{of_models}"
        rows.append({"paper": f"[{study.section.title}]({study.name}/README.md)", **counts})
    return pd.DataFrame(rows)


def claims_list() -> pd.DataFrame:
    """Every claim with its margins and what was known, a row each."""
    rows = []
    for study in CLAIMED:
        for claim in written()[study.name]:
            parts = claim.each()
            margins = sorted({f"{part.size:.3g}" for part in parts}, key=float)
            before = dict.fromkeys(str(part.known_before) for part in parts)
            rows.append(
                {
                    "paper": study.section.title, "claim": claim.claim, "at": claim.at,
                    "effect": claim.effect, "parts": len(parts),
                    "margin": " to ".join(dict.fromkeys([margins[0], margins[-1]])),
                    "known before": " and ".join(before), "known": claim.known,
                    "note": claim.note, "cost": claim.cost,
                    "command": claim.command, "listed apart": claim.apart,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


SENTENCES = {"counted": counted, "supported": supported}
PAGES = [
    *(study.page() for study in PAPERS.values()),
    Page(
        STUDIES / "README.md",
        {"by_paper": by_paper, "list": claims_list},
        {STUDIES / "claims.svg": partial(plot, *CLAIMED)},
        SENTENCES,
    ),
    Page(ROOT / "README.md", {}, sentences=SENTENCES),
]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paper", nargs="?", choices=[*PAPERS])
    parser.add_argument("--runs", nargs="+", help="store scores of these runs of the paper first")
    arguments = parser.parse_args()
    if arguments.runs:
        PAPERS[arguments.paper].take(arguments.runs)
    for page in PAGES:
        page.write()
