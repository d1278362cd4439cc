"""Write the tables and figures of results/natural_shift.md from the scores that lie beside it.

    python docs/natural_study.py [--runs FOLDER]

With FOLDER, of ``natural_study_run.py``, its scores are put there first.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path

import natural_tables
import numpy as np
import pandas as pd
from pages import DOCS, RESULTS, Page, percent, plain, signed
from scipy import special

from robust_fairness.core.intervals import half_width
from robust_fairness.inference.adjust import holm
from robust_fairness.reporting.gaps import at_equal_sizes
from robust_fairness.reporting.statistics import (
    detectable,
    equivalence_p,
    kendall_tau,
)

IMAGES = DOCS / "images"
SCORES, PARTS = (RESULTS / f"natural_shift_{name}" for name in ("scores.parquet", "parts.csv"))
PRIMARY, REPLICATION = "acs_income", "acs_public_coverage"
HYPOTHESES = 8
LEVEL = 0.05
MARGIN = 0.2  # of H3
DEPENDENCE = ("cuma", "faircocco", "facl", "adv_debias", "laftr")
POSTPROCESSED = {
    "mlp_equalized_odds": "erm",
    "boosted_trees_equalized_odds": "boosted_trees",
}
CANDIDATE = "boosted_trees_equalized_odds"  # of H7
RATES = ("tpr", "fpr")
SYNTHETIC = (
    ("gaussian_noise", 0.06), ("gaussian_noise", 0.5), ("women", 0.8), ("label_prevalence", 0.5),
)  # fmt: skip
NOISE = SYNTHETIC[0]
LEAST_DRAWN = 0.68  # accuracy, of the frontier
PAIR = ["method", "seed", "trained_on"]
FAMILIES = {
    "plain": ("erm", "boosted_trees"),
    "post-processing": (*POSTPROCESSED, "boosted_trees_parity"),
    "dependence": DEPENDENCE,
    "target inputs": ("importance_weighting", "coral"),
    "reductions": ("boosted_trees_reductions", "logistic_reductions"),
}
OTHERS = "weights and mixing"
COLOURS = {
    "plain": "#111111", "post-processing": "#c05a00", "dependence": "#1f66a8",
    "target inputs": "#7a4fa3", "reductions": "#0f7f5f", OTHERS: "#8a8f98",
}  # fmt: skip


@dataclass(frozen=True)
class Test:
    """A t-test of the mean of one value per state against 0.

    ``error`` is the standard error of the mean, that of independent values by default.
    """

    values: np.ndarray
    error: float

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def interval(self) -> tuple[float, float]:
        half = float(half_width(self.error, self.n))
        return self.mean - half, self.mean + half

    @property
    def p(self) -> float:
        """1 if the values are equal."""
        if self.n < 2 or not self.error:
            return 1.0
        return float(2 * special.stdtr(self.n - 1, -abs(self.mean) / self.error))

    @property
    def detectable(self) -> float:
        """At Holm's first step, with 80 % power."""
        return float(detectable(self.error, self.n, level=LEVEL / HYPOTHESES))


def test_of(values: pd.Series) -> Test:
    """The test of a series with an entry per state, as independent values."""
    known = values.dropna().to_numpy(np.float64)
    return Test(known, float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else np.nan)


def over_states(make: Callable[[pd.DataFrame], pd.Series], rows: pd.DataFrame) -> Test:
    """The test of a series with an entry per state, where states are sources and targets.

    Values of states are means over the other side of a pair, which they share. Their standard error
    is therefore that of a jackknife: each state is left out on both sides, and all is made again.

    Args:
        make: the series, from rows.
        rows: of all states, with the columns trained_on and tested_on.
    """
    test, states = test_of(make(rows)), rows["trained_on"].unique()
    left = [rows[(rows["trained_on"] != one) & (rows["tested_on"] != one)] for one in states]
    means = np.array([make(one).mean() for one in left])
    return replace(test, error=float(np.sqrt((len(states) - 1) * means.var())))


@cache
def read() -> pd.DataFrame:
    """The scores with signed differences, their variances and ``delta_eo``."""
    scores = pd.read_parquet(SCORES)
    texts = scores.select_dtypes("category").columns
    scores = scores.astype(dict.fromkeys(texts, object))
    numbers = scores.select_dtypes("float32").columns
    return differences(scores.astype(dict.fromkeys(numbers, np.float64)))


def differences(scores: pd.DataFrame) -> pd.DataFrame:
    """Rates of the second group minus those of the first, and binomial variances of that.

    A variance is missing where a group has a single row.
    """
    found = scores.copy()
    for rate in RATES:
        found[rate] = found[f"{rate}_1"] - found[f"{rate}_0"]
        found[f"{rate}_variance"] = sum(
            found[f"{rate}_{group}"]
            * (1 - found[f"{rate}_{group}"])
            / (found[f"{rate}_rows_{group}"] - 1).where(found[f"{rate}_rows_{group}"] > 1)
            for group in (0, 1)
        )
    found["delta_eo"] = found["tpr"].abs() + found["fpr"].abs()
    return found


def primary() -> pd.DataFrame:
    """Rows of the data that the hypotheses are tested on."""
    return rows_of(PRIMARY)


def rows_of(data: str) -> pd.DataFrame:
    """Rows of one data set."""
    scores = read()
    return scores[scores["data"] == data]


def home(scores: pd.DataFrame) -> pd.DataFrame:
    """Unshifted rows of the state trained on."""
    return scores[scores["shift"] == "none"]


def away(scores: pd.DataFrame) -> pd.DataFrame:
    """Rows of other states, with the values at home in columns ``..._home``."""
    other = scores[scores["shift"] == "domain"]
    return other.merge(home(scores), on=PAIR, suffixes=("", "_home"))


def under(scores: pd.DataFrame, shift: tuple[str, float]) -> pd.DataFrame:
    """Rows of a synthetic shift, with the unshifted values in columns ``..._home``."""
    name, severity = shift
    rows = scores[(scores["shift"] == name) & np.isclose(scores["severity"], severity)]
    return rows.merge(home(scores), on=PAIR, suffixes=("", "_home"))


def movement(rows: pd.DataFrame, by: str | list[str], net: bool) -> pd.Series:
    """Root mean square of the signed change, by state; ``net`` of both ends' binomial variance."""
    found = []
    for rate in RATES:
        square = (rows[rate] - rows[f"{rate}_home"]) ** 2
        if net:
            square = square - rows[f"{rate}_variance"] - rows[f"{rate}_variance_home"]
        found.append(square)
    mean = (sum(found) / len(RATES)).groupby([rows[one] for one in np.atleast_1d(by)]).mean()
    return np.sqrt(mean.clip(lower=0))


def lost(rows: pd.DataFrame) -> pd.Series:
    """Loss of accuracy by state trained on."""
    return (rows["accuracy_home"] - rows["accuracy"]).groupby(rows["trained_on"]).mean()


def growth(rows: pd.DataFrame) -> pd.Series:
    """Change of ``delta_eo`` at equal numbers of rows, by state tested on."""
    total = 0
    for rate in RATES:
        variances = rows[f"{rate}_variance_home"].to_numpy(), rows[f"{rate}_variance"].to_numpy()
        ends = rows[f"{rate}_home"].to_numpy(), rows[rate].to_numpy()
        first, second = at_equal_sizes(*ends, variances)
        total = total + second - first
    return pd.Series(total, rows.index).groupby(rows["tested_on"]).mean()


def equally_costly(scores: pd.DataFrame) -> tuple[str, float] | None:
    """The weaker noise that costs at least the accuracy that other states cost, if any does."""
    cost = lost(away(scores)).mean()
    enough = [one for one in SYNTHETIC[:2] if lost(under(scores, one)).mean() >= cost]
    return enough[0] if enough else None


def taus(scores: pd.DataFrame, elsewhere: pd.DataFrame) -> pd.DataFrame:
    """``agreement`` of ``delta_eo`` at home with that elsewhere."""
    return agreement(home(scores), elsewhere, {"tau": "delta_eo"})


def agreement(
    first: pd.DataFrame, elsewhere: pd.DataFrame, measures: dict[str, str]
) -> pd.DataFrame:
    """Kendall's tau over methods of measures in one split and ``delta_eo`` elsewhere in another.

    Args:
        first: rows of the first split.
        elsewhere: rows of the other one.
        measures: columns of ``first`` by name of the result.

    Returns:
        Columns trained_on, tested_on and those of ``measures``, means over pairs of splits.
    """
    keys = ["trained_on", "tested_on", "seed"]
    other = elsewhere.pivot(index=keys, columns="method", values="delta_eo")
    pairs = other.reset_index()[keys].merge(
        first[["trained_on", "seed"]].drop_duplicates(), on="trained_on", suffixes=("", "_home")
    )
    pairs = pairs[pairs["seed"] != pairs["seed_home"]]
    values = other.loc[pd.MultiIndex.from_frame(pairs[keys])]
    for name, measure in measures.items():
        one = first.pivot(index=["trained_on", "seed"], columns="method", values=measure)
        one = one.dropna(axis=1).loc[pd.MultiIndex.from_frame(pairs[["trained_on", "seed_home"]])]
        pairs[name] = kendall_tau(one.to_numpy(), values[one.columns].to_numpy())
    return pairs.groupby(keys[:2], as_index=False)[list(measures)].mean()


def partial_taus(pairs: pd.DataFrame) -> pd.Series:
    """Partial tau of Delta-ER at home and ``delta_eo`` elsewhere, given ``delta_eo`` at home.

    Args:
        pairs: ``of_networks``.
    """
    xz, yz, xy = (pairs.groupby("trained_on")[name].mean() for name in ("xz", "yz", "xy"))
    return (xz - xy * yz) / np.sqrt((1 - xy**2) * (1 - yz**2))


def of_networks(scores: pd.DataFrame) -> pd.DataFrame:
    """Taus of Delta-ER (x) and ``delta_eo`` (y) at home with ``delta_eo`` elsewhere (z), and xy."""
    networks = home(scores).dropna(subset="delta_er")
    pairs = agreement(networks, away(scores), {"xz": "delta_er", "yz": "delta_eo"})
    same = networks.groupby(["trained_on", "seed"])[["delta_er", "delta_eo"]].apply(
        lambda part: float(kendall_tau(*part.to_numpy().T))
    )
    return pairs.assign(xy=pairs["trained_on"].map(same.groupby("trained_on").mean()))


def advantages(rows: pd.DataFrame, method: str, than: str) -> pd.DataFrame:
    """``delta_eo`` of ``than`` minus that of a method, at home and elsewhere, row by row."""
    keys = ["seed", "trained_on", "tested_on"]
    columns = [*keys, "delta_eo", "delta_eo_home"]
    both = rows[rows["method"] == method][columns].merge(
        rows[rows["method"] == than][columns], on=keys, suffixes=("", "_than")
    )
    return both.assign(
        home=both["delta_eo_home_than"] - both["delta_eo_home"],
        elsewhere=both["delta_eo_than"] - both["delta_eo"],
    )


def against_trees(scores: pd.DataFrame) -> pd.DataFrame:
    """How much more accurate and fairer a method is than ``CANDIDATE``, by pair of states."""
    keys = ["trained_on", "tested_on"]
    rows = away(scores).groupby(["method", *keys], as_index=False)[["accuracy", "delta_eo"]].mean()
    both = rows[rows["method"] != CANDIDATE].merge(
        rows[rows["method"] == CANDIDATE].drop(columns="method"), on=keys, suffixes=("", "_trees")
    )
    return both.assign(
        gain=both["accuracy"] - both["accuracy_trees"],
        fairer=both["delta_eo_trees"] - both["delta_eo"],
    )


def better_in_both(pairs: pd.DataFrame) -> pd.Series:
    """Number of methods that are more accurate and fairer in a target state, by state.

    Args:
        pairs: ``against_trees``.
    """
    means = pairs.groupby(["tested_on", "method"])[["gain", "fairer"]].mean()
    return (means > 0).all(axis=1).groupby("tested_on").sum().astype(float)


def dominating(scores: pd.DataFrame) -> pd.DataFrame:
    """Methods that are more accurate and fairer than ``CANDIDATE`` in a target state, tested.

    ``p`` is the larger one of two paired t-tests over sources, ``p_holm`` adjusted for all.
    """
    found = []
    for (target, method), part in against_trees(scores).groupby(["tested_on", "method"]):
        tests = [test_of(part[name]) for name in ("gain", "fairer")]
        both_better = all(one.mean > 0 for one in tests)
        p = max(one.p for one in tests) if both_better and len(part) > 1 else 1.0
        found.append((target, method, both_better, p))
    table = pd.DataFrame(found, columns=["tested_on", "method", "both", "p"])
    return table.assign(p_holm=holm(table["p"].tolist()))


def between(scores: pd.DataFrame) -> pd.Series:
    """Standard deviation of the signed differences over methods at home, by state."""
    found = []
    for rate in RATES:
        by = home(scores).groupby(["trained_on", "method"])[rate].agg(["mean", "var", "count"])
        seeds = (by["var"] / by["count"]).groupby("trained_on").mean()
        found.append(by["mean"].groupby("trained_on").var() - seeds)
    return np.sqrt((sum(found) / len(RATES)).clip(lower=0))


def gather(folder: Path) -> None:
    """Put the scores of complete training domains, and the decompositions, beside the page."""
    rows = pd.concat(map(pd.read_parquet, sorted(folder.glob("*.parquet"))), ignore_index=True)
    methods = rows.groupby(["data", "trained_on"])["method"].transform("nunique")
    rows = rows[methods == rows["method"].nunique()]
    numbers = dict.fromkeys(rows.select_dtypes("float64"), np.float32)
    texts = dict.fromkeys(("data", "trained_on", "tested_on", "method", "shift"), "category")
    counts = dict.fromkeys(rows.select_dtypes("int64"), np.int32)
    rows.astype(numbers | texts | counts).to_parquet(SCORES, compression="zstd", index=False)
    found = [pd.read_csv(path) for path in sorted(folder.glob("*.csv"))]
    pd.concat(found).to_csv(PARTS, index=False)


def parts(data: str) -> pd.DataFrame:
    """The decompositions of signed gaps, with the absolute parts."""
    rows = pd.read_csv(PARTS).rename(columns={"domain": "tested_on"})
    rows = rows[(rows["data"] == data) & (rows["metric"] != "accuracy")]
    return rows.assign(
        of_x=rows["due_to_x"].abs(),
        of_y=rows["due_to_y_given_x"].abs(),
        more=rows["due_to_y_given_x"].abs() - rows["due_to_x"].abs(),
    )


Statistic = tuple[Callable[[pd.DataFrame], pd.Series], pd.DataFrame]


def statistics_of(scores: pd.DataFrame) -> dict[str, Statistic]:
    """Of every hypothesis a function with a value per state, and the table that it is of."""
    other = away(scores)
    at_noise = taus(scores, under(scores, NOISE)).set_index("trained_on")["tau"]
    forecast = taus(scores, other)
    forecast["lost"] = forecast["trained_on"].map(at_noise) - forecast["tau"]
    penalties = pd.concat(advantages(other, name, "erm") for name in DEPENDENCE)
    post = _advantages_of_postprocessing(scores)
    post["lost"] = post["home"] - post["elsewhere"]
    return {
        "H1": (partial(_more_movement, shift=NOISE), scores),
        "H2": (_mean_of("trained_on", "lost"), forecast),
        "H3": (partial_taus, of_networks(scores)),
        "H4": (_mean_of("tested_on", "elsewhere"), penalties),
        "H5": (_mean_of("tested_on", "lost"), post),
        "H6": (_mean_of("tested_on", "more"), parts(scores["data"].iloc[0])),
        "H7": (better_in_both, against_trees(scores)),
        "H8": (_more_between, scores),
    }


def _mean_of(by: str, column: str) -> Callable[[pd.DataFrame], pd.Series]:
    """The mean of a column by state."""
    return lambda rows: rows.groupby(by)[column].mean()


def _more_between(scores: pd.DataFrame) -> pd.Series:
    return between(scores) - movement(away(scores), "trained_on", net=True)


def primary_tests(scores: pd.DataFrame) -> dict[str, Test]:
    """The primary test of every hypothesis, with states on both sides."""
    return {name: over_states(*one) for name, one in statistics_of(scores).items()}


def planned_tests(scores: pd.DataFrame) -> dict[str, Test]:
    """The same as planned, with the values of states as independent."""
    return {name: test_of(make(rows)) for name, (make, rows) in statistics_of(scores).items()}


def accepted(name: str, test: Test, p_holm: float, scores: pd.DataFrame) -> str:
    """Yes, no or inconclusive, by the rule of the hypothesis in the plan."""
    return RULES[name](test, p_holm, scores)


def _by_sign(yes: bool, no: bool) -> str:
    return "yes" if yes else "no" if no else "inconclusive"


def _positive(test: Test, p_holm: float, scores: pd.DataFrame) -> str:
    """Yes if the mean is significantly above 0, no if below."""
    del scores
    sure = p_holm < LEVEL
    return _by_sign(sure and test.mean > 0, sure and test.mean < 0)


def _h1(test: Test, p_holm: float, scores: pd.DataFrame) -> str:
    costly = equally_costly(scores)
    grown = over_states(growth, away(scores))
    also = costly is None or _more_movement(scores, costly).mean() > 0
    more = p_holm < LEVEL and test.mean > 0 and also
    grows = grown.mean > 0 and grown.p < LEVEL
    return _by_sign(more and not grows, (p_holm < LEVEL and test.mean < 0) or grows)


def _h3(test: Test, p_holm: float, scores: pd.DataFrame) -> str:
    """Equivalence is tested at the level of Holm's first step."""
    del scores
    equal = equivalence_p(test.mean, test.error, test.n, MARGIN) < LEVEL / HYPOTHESES
    return _by_sign(bool(equal), p_holm < LEVEL and test.mean > 0)


def _h4(test: Test, p_holm: float, scores: pd.DataFrame) -> str:
    other = away(scores)
    kept = [
        (advantages(other, name, "erm").groupby("tested_on")["elsewhere"].mean() > 0).mean() > 0.5
        for name in DEPENDENCE
    ]
    sure = p_holm < LEVEL
    return _by_sign(sure and test.mean > 0 and np.mean(kept) > 0.5, sure and test.mean < 0)


def _h5(test: Test, p_holm: float, scores: pd.DataFrame) -> str:
    """That an advantage remains is tested at the level of Holm's first step."""
    both = _advantages_of_postprocessing(scores)
    share = both["elsewhere"].mean() / both["home"].mean()
    remains = over_states(_mean_of("tested_on", "elsewhere"), both)
    return _by_sign(
        p_holm < LEVEL and test.mean > 0 and share < 0.5,
        share >= 0.5 and remains.mean > 0 and remains.p < LEVEL / HYPOTHESES,
    )


def _advantages_of_postprocessing(scores: pd.DataFrame) -> pd.DataFrame:
    rows = away(scores)
    return pd.concat(advantages(rows, name, than) for name, than in POSTPROCESSED.items())


def _h7(test: Test, p_holm: float, scores: pd.DataFrame) -> str:
    del p_holm
    return _by_sign(not test.values.any(), dominating(scores)["p_holm"].min() < LEVEL)


RULES = {
    "H1": _h1, "H2": _positive, "H3": _h3, "H4": _h4, "H5": _h5, "H6": _positive, "H7": _h7,
    "H8": _positive,
}  # fmt: skip
MEANINGS = {
    "H1": "movement between states minus that under noise .06",
    "H2": "tau of the forecast: noise minus states",
    "H3": "partial tau of Delta-ER",
    "H4": "advantage of penalties over `erm` elsewhere",
    "H5": "advantage of post-processing lost elsewhere",
    "H6": "part due to Y given X minus part due to X",
    "H7": "methods better than trees with equalised odds in both",
    "H8": "spread of methods at home minus movement",
}


def answered(scores: pd.DataFrame) -> pd.DataFrame:
    """Every hypothesis: the answer, its number, interval, test and smallest detectable effect."""
    tests, planned = primary_tests(scores), planned_tests(scores)
    (p, holms), (_, planned_holms) = (_p_values(one, scores) for one in (tests, planned))
    return pd.DataFrame(
        {
            "": name,
            "answer": f"**{accepted(name, one, holms[name], scores)}**",
            "as planned": accepted(name, planned[name], planned_holms[name], scores),
            "statistic": MEANINGS[name],
            "mean": signed(one.mean),
            "95 % interval": " to ".join(map(signed, one.interval)),
            "p": plain(p[name], 4),
            "p (Holm)": plain(holms[name], 4),
            "planned p (Holm)": plain(planned_holms[name], 4),
            "detectable": plain(one.detectable),
            "states": one.n,
        }
        for name, one in tests.items()
    )


def _p_values(
    tests: dict[str, Test], scores: pd.DataFrame
) -> tuple[dict[str, float], dict[str, float]]:
    """P-values of the hypotheses, and the same after Holm; that of H7 is of its own rule."""
    p = {name: one.p for name, one in tests.items()}
    p["H7"] = dominating(scores)["p_holm"].min()
    return p, dict(zip(p, holm(list(p.values())), strict=True))


def answers() -> pd.DataFrame:
    """The answers, with all methods."""
    return answered(primary())


def failed() -> list[str]:
    """Methods that are less accurate at home than the larger class is frequent."""
    at_home = home(primary())
    rows = sum(at_home[f"{rate}_rows_{group}"] for rate in RATES for group in (0, 1))
    negative = (at_home["fpr_rows_0"] + at_home["fpr_rows_1"]) / rows
    means = (
        at_home.assign(largest=np.maximum(negative, 1 - negative))
        .groupby("method")[["accuracy", "largest"]]
        .mean()
    )
    return list(means.index[means["accuracy"] < means["largest"]])


def replicated() -> pd.DataFrame:
    """The answers on the other data."""
    return answered(rows_of(REPLICATION)).drop(columns="statistic")


def answers_without() -> pd.DataFrame:
    """The answers without the methods that failed, found after the runs."""
    scores = primary()
    kept = scores[~scores["method"].isin(failed())]
    return answered(kept).drop(columns=["statistic", "states"])


def other_data() -> pd.DataFrame:
    """The quantities of the hypotheses on data with fewer designs, which are not tested."""
    small = read().groupby("data")["trained_on"].nunique().drop([PRIMARY, REPLICATION])
    found = []
    for data, designs in small.items():
        scores = rows_of(data)
        rows = away(scores)
        kept = [advantages(rows, name, "erm") for name in DEPENDENCE]
        post = [advantages(rows, name, than) for name, than in POSTPROCESSED.items()]
        found.append(
            {
                "data": f"`{data}`",
                "training sets": designs,
                "accuracy": signed(-lost(rows).mean()),
                "ΔEO at home": plain(home(scores)["delta_eo"].mean()),
                "elsewhere": plain(rows["delta_eo"].mean()),
                "movement": plain(movement(rows, "trained_on", net=True).mean()),
                **{
                    f"noise {noise[1]:g}": plain(
                        movement(under(scores, noise), "trained_on", net=False).mean()
                    )
                    for noise in SYNTHETIC[:2]
                },
                "tau, same domains": signed(taus(scores, _at_home(scores))["tau"].mean(), 2),
                "tau, elsewhere": signed(
                    taus(scores, rows).groupby("trained_on")["tau"].mean().mean(), 2
                ),
                "penalties, home and elsewhere": _advantage(kept),
                "thresholds, home and elsewhere": _advantage(post),
            }
        )
    return pd.DataFrame(found)


def _advantage(pairs: list[pd.DataFrame]) -> str:
    """Mean advantages at home and elsewhere of several methods."""
    both = pd.concat(pairs)
    return f"{signed(both['home'].mean(), 2)}, {signed(both['elsewhere'].mean(), 2)}"


def movements() -> pd.DataFrame:
    """By method: movement between states, gross and net, and under synthetic shifts."""
    scores = primary()
    other = away(scores)
    shown = {"states, net": movement(other, "method", net=True)}
    shown["states, gross"] = movement(other, "method", net=False)
    for name, severity in SYNTHETIC:
        rows = under(scores, (name, severity))
        shown[f"{name} {severity:g}"] = movement(rows, "method", net=False)
    table = pd.DataFrame(shown)
    table.loc["**all methods**"] = np.sqrt((table**2).mean())
    return table.map(plain).rename_axis("method").reset_index()


def by_data(make: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """A table of each data set, one below the other."""
    found = []
    for data in (PRIMARY, REPLICATION):
        table = make(rows_of(data))
        table.insert(0, "data", f"`{data}`")
        found.append(table)
    return pd.concat(found, ignore_index=True)


def costs() -> pd.DataFrame:
    """By test set, over all methods: accuracy lost, and the change of ``delta_eo``."""
    return by_data(_costs)


def _costs(scores: pd.DataFrame) -> pd.DataFrame:
    found = []
    for name, select in test_sets().items():
        rows = select(scores)
        rows = rows.assign(gained=rows["accuracy"] - rows["accuracy_home"],
                           widened=rows["delta_eo"] - rows["delta_eo_home"])  # fmt: skip
        loss, gap = (
            over_states(_mean_of("trained_on", column), rows) for column in ("gained", "widened")
        )
        found.append(
            {
                "test rows": name,
                "accuracy": signed(loss.mean),
                "accuracy, interval": " to ".join(map(signed, loss.interval)),
                "ΔEO": signed(gap.mean),
                "ΔEO, interval": " to ".join(map(signed, gap.interval)),
            }
        )
    equal = over_states(growth, away(scores))
    return pd.DataFrame(
        [
            *found,
            {"test rows": "other states, at equal numbers of rows", "ΔEO": signed(equal.mean),
             "ΔEO, interval": " to ".join(map(signed, equal.interval))},
        ]
    )  # fmt: skip


def test_sets() -> dict[str, Callable[[pd.DataFrame], pd.DataFrame]]:
    """Rows of the test sets that are no home, from scores, by name."""
    synthetic = {f"{one[0]} {one[1]:g}": partial(under, shift=one) for one in SYNTHETIC}
    return {"other states": away, **synthetic}


def against_shifts() -> pd.DataFrame:
    """Movement between states minus that under every synthetic shift, over states trained on."""
    return by_data(_against_shifts)


def _against_shifts(scores: pd.DataFrame) -> pd.DataFrame:
    natural = movement(away(scores), "trained_on", net=True)
    found = []
    for name, severity in SYNTHETIC:
        rows = under(scores, (name, severity))
        synthetic = movement(rows, "trained_on", net=False)
        one = over_states(partial(_more_movement, shift=(name, severity)), scores)
        found.append({"shift": f"{name} {severity:g}", "accuracy lost": signed(lost(rows).mean()),
                      "movement": plain(synthetic.mean()), "states": plain(natural.mean()),
                      "difference": signed(one.mean),
                      "95 % interval": " to ".join(map(signed, one.interval)),
                      "p": plain(one.p, 4)})  # fmt: skip
    return pd.DataFrame(found)


def _more_movement(scores: pd.DataFrame, shift: tuple[str, float]) -> pd.Series:
    """Movement between states minus that under a synthetic shift, by state trained on."""
    natural = movement(away(scores), "trained_on", net=True)
    return natural - movement(under(scores, shift), "trained_on", net=False)


def repeated() -> pd.DataFrame:
    """Correlation of signed changes over pairs of states between two splits, by rate."""
    rows = away(primary())
    found = []
    for rate in RATES:
        change = (rows[rate] - rows[f"{rate}_home"]).rename("change")
        keys = [rows[one] for one in ("method", "trained_on", "tested_on", "seed")]
        table = change.groupby(keys).mean().unstack("seed")
        by = table.groupby("method").apply(lambda one: one.corr().iloc[0, 1])
        found.append({"rate": rate, "mean over methods": plain(by.mean(), 2),
                      "least": plain(by.min(), 2), "most": plain(by.max(), 2)})  # fmt: skip
    return pd.DataFrame(found)


def methods() -> pd.DataFrame:
    """Every method at home and elsewhere: accuracy and ``delta_eo``, mean and spread."""
    scores = primary()
    rows = away(scores)
    found = []
    for method, part in rows.groupby("method"):
        at_home = home(scores).query("method == @method")
        pairs = part.groupby(["trained_on", "tested_on"])[["delta_eo", "delta_eo_home"]].mean()
        targets = part.groupby("tested_on")[["accuracy", "delta_eo"]].mean()
        found.append(
            {
                "method": f"`{method}`",
                "accuracy at home": at_home["accuracy"].mean(),
                "accuracy elsewhere": part["accuracy"].mean(),
                "ΔEO at home": at_home["delta_eo"].mean(),
                "ΔEO elsewhere": part["delta_eo"].mean(),
                "SD over states": targets["delta_eo"].std(),
                "change, SD over pairs": (pairs["delta_eo"] - pairs["delta_eo_home"]).std(),
            }
        )
    table = pd.DataFrame(found).sort_values("ΔEO elsewhere", ignore_index=True)
    numbers = table.columns[1:]
    return table.assign(**{name: table[name].map(plain) for name in numbers})


def forecasts() -> pd.DataFrame:
    """Tau of measures at home with ``delta_eo`` elsewhere, in another split."""
    return by_data(_forecasts)


def _forecasts(scores: pd.DataFrame) -> pd.DataFrame:
    found = []
    at_home = home(scores).assign(error=1 - home(scores)["accuracy"])
    networks = at_home.dropna(subset="delta_er")
    measures = {"ΔEO at home": "delta_eo", "error at home": "error"}
    of_models = {"ΔEO at home, networks": "delta_eo", "Delta-ER at home, networks": "delta_er"}
    for name, select in {"the same state": _at_home, **test_sets()}.items():
        rows = select(scores)
        pairs = agreement(at_home, rows, measures).merge(agreement(networks, rows, of_models))
        tests = {
            one: with_interval(over_states(_mean_of("trained_on", one), pairs))
            for one in measures | of_models
        }
        found.append({"tested on": name} | tests)
    return pd.DataFrame(found)


def _at_home(scores: pd.DataFrame) -> pd.DataFrame:
    return home(scores).assign(tested_on="")


def with_interval(one: Test, digits: int = 2) -> str:
    """Mean over states with its interval."""
    low, high = one.interval
    return f"{signed(one.mean, digits)} ({signed(low, digits)} to {signed(high, digits)})"


def kept() -> pd.DataFrame:
    """What remains elsewhere of the advantage in ``delta_eo``: penalties and post-processing."""
    return by_data(_kept)


def _kept(scores: pd.DataFrame) -> pd.DataFrame:
    rows = away(scores)
    found = []
    for method, than in {**dict.fromkeys(DEPENDENCE, "erm"), **POSTPROCESSED}.items():
        both = advantages(rows, method, than)
        at_home, elsewhere = (
            over_states(_mean_of("tested_on", name), both) for name in ("home", "elsewhere")
        )
        found.append(
            {
                "method": f"`{method}`",
                "against": f"`{than}`",
                "advantage at home": signed(at_home.mean),
                "elsewhere (interval over states)": with_interval(elsewhere, 3),
                "share left": percent(elsewhere.mean / at_home.mean),
                "states with an advantage": f"{(elsewhere.values > 0).sum()} of {elsewhere.n}",
            }
        )
    return pd.DataFrame(found)


def promised() -> pd.DataFrame:
    """How often equalised odds within .05, fitted on validation rows, holds on test rows."""
    return by_data(_promised)


def _promised(scores: pd.DataFrame) -> pd.DataFrame:
    found = []
    for method in POSTPROCESSED:
        for place, rows in {"at home": home(scores), "elsewhere": away(scores)}.items():
            own = rows[rows["method"] == method]
            largest = own[["tpr", "fpr"]].abs().max(axis=1)
            found.append({"method": f"`{method}`", "tested": place,
                          "mean of the larger gap": plain(largest.mean()),
                          "within .05": percent((largest <= 0.05).mean()),
                          "within .10": percent((largest <= 0.1).mean())})  # fmt: skip
    return pd.DataFrame(found)


def frontier() -> pd.DataFrame:
    """By state tested on, models of other states: what is more accurate and fairer than trees."""
    scores = primary()
    table = dominating(scores)
    own = away(scores).query("method == @CANDIDATE").groupby("tested_on")
    means = own[["accuracy", "delta_eo"]].mean()
    found = []
    for state, part in table.groupby("tested_on"):
        better = part[part["both"]]
        names = ", ".join(f"`{name}`" for name in better["method"])
        least = plain(better["p_holm"].min(), 3) if len(better) else ""
        found.append({"tested on": state, "accuracy": plain(means.loc[state, "accuracy"]),
                      "ΔEO": plain(means.loc[state, "delta_eo"]), "better in both": names,
                      "smallest p (Holm)": least})  # fmt: skip
    return pd.DataFrame(found)


def beside_trees() -> pd.DataFrame:
    """How much more accurate and fairer than ``CANDIDATE`` methods are elsewhere; not tested."""
    return by_data(_beside_trees)


def _beside_trees(scores: pd.DataFrame) -> pd.DataFrame:
    by_state = against_trees(scores).groupby(["method", "tested_on"])[["gain", "fairer"]].mean()
    means = by_state.groupby("method").mean().sort_values("fairer", ascending=False)
    states = (by_state["fairer"] > 0).groupby("method").sum()
    return pd.DataFrame(
        {"method": means.index, "accuracy": means["gain"].map(signed).array,
         "smaller ΔEO by": means["fairer"].map(signed).array,
         "states with a smaller ΔEO": states[means.index].array}
    )  # fmt: skip


def alike() -> pd.DataFrame:
    """Mean absolute difference of signed gaps of two methods at home, the closest pairs."""
    return by_data(_alike)


def _alike(scores: pd.DataFrame) -> pd.DataFrame:
    gaps = pd.concat(
        home(scores).pivot(index=["trained_on", "seed"], columns="method", values=rate)
        for rate in RATES
    )
    found = pd.DataFrame(
        {"methods": f"{one}, {other}", "difference": (gaps[one] - gaps[other]).abs().mean()}
        for one, other in combinations(gaps.columns, 2)
    )
    return found.nsmallest(10, "difference").assign(
        difference=lambda rows: rows["difference"].map(plain)
    )


def matrix() -> pd.DataFrame:
    """Change of ``delta_eo`` by method and state tested on, mean over sources."""
    rows = away(primary())
    change = (rows["delta_eo"] - rows["delta_eo_home"]).rename("change")
    table = change.groupby([rows["method"], rows["tested_on"]]).mean().unstack()
    return table.map(signed).rename_axis(columns=None).reset_index()


def decomposed() -> pd.DataFrame:
    """Mean parts of the change of signed gaps, by method and rate."""
    rows = parts(PRIMARY).assign(change=lambda one: one["elsewhere"] - one["at_home"])
    by = rows.groupby(["method", "metric"])
    found = by[["change", "due_to_x", "due_to_y_given_x", "of_x", "of_y"]].mean()
    found["share of Y given X"] = found["of_y"] / (found["of_y"] + found["of_x"])
    found["pairs"] = by.size()
    text = {name: found[name].map(signed) for name in ("change", "due_to_x", "due_to_y_given_x")}
    text |= {name: found[name].map(plain) for name in ("of_x", "of_y")}
    text["share of Y given X"] = found["share of Y given X"].map(percent)
    names = {"of_x": "absolute, X", "of_y": "absolute, Y given X",
             "due_to_x": "X", "due_to_y_given_x": "Y given X"}  # fmt: skip
    return found.assign(**text).rename(columns=names).reset_index()


def run_so_far() -> pd.DataFrame:
    """What the scores hold: per data set the designs, targets, methods and seeds."""
    rows = read()
    found = []
    for data, part in rows.groupby("data"):
        other = part[part["shift"] == "domain"]
        numbers = {name: part[name].nunique() for name in ("trained_on", "method", "seed")}
        found.append({"data": f"`{data}`", "training sets": numbers["trained_on"],
                      "domains tested on": other["tested_on"].nunique(),
                      "methods": numbers["method"], "seeds": numbers["seed"],
                      "models": len(home(part))})  # fmt: skip
    return pd.DataFrame(found)


SHOWN = [
    answers,
    answers_without,
    replicated,
    other_data,
    run_so_far,
    costs,
    against_shifts,
    movements,
    repeated,
]
SHOWN += [methods, matrix, forecasts, kept, promised, frontier, beside_trees, alike, decomposed]
TABLES: dict[str, Callable[[], pd.DataFrame]] = {one.__name__: one for one in SHOWN}


def family(method: str) -> str:
    """The family of a method, for colours."""
    return next((name for name, of in FAMILIES.items() if method in of), OTHERS)


@dataclass(frozen=True)
class Panel:
    """A plot with linear axes at a place of a figure: two ends of each axis, in data and pixels."""

    title: str
    x: tuple[float, float]
    y: tuple[float, float]
    left: int
    top: int = 40
    width: int = 330
    height: int = 300

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def frame(self, x_label: str, y_label: str) -> str:
        """Axes with five ticks each."""
        bottom, right = self.top + self.height, self.left + self.width
        parts = [
            f'<rect class="frame" x="{self.left}" y="{self.top}" width="{self.width}" '
            f'height="{self.height}"/>',
            text(self.left, self.top - 10, self.title, "title"),
            text((self.left + right) / 2, bottom + 36, x_label, "middle"),
            f'<g transform="translate({self.left - 44} {(self.top + bottom) / 2}) rotate(-90)">'
            + text(0, 0, y_label, "middle") + "</g>",
        ]  # fmt: skip
        parts += [text(self.at(x, 0)[0], bottom + 17, f"{x:g}", "middle") for x in ticks(*self.x)]
        parts += [
            text(self.left - 6, self.at(0, y)[1] + 4, f"{y:g}", "end") for y in ticks(*self.y)
        ]
        return "".join(parts)

    def dot(self, x: float, y: float, colour: str, says: str, hollow: bool = False) -> str:
        """A point with its text."""
        across, down = self.at(x, y)
        fill = "none" if hollow else colour
        return (
            f'<circle cx="{across:.1f}" cy="{down:.1f}" r="4" fill="{fill}" stroke="{colour}" '
            f'stroke-width="1.5" fill-opacity=".75"><title>{says}</title></circle>'
        )

    def line(self, start: tuple[float, float], stop: tuple[float, float]) -> str:
        """A grey line between two points."""
        (x1, y1), (x2, y2) = self.at(*start), self.at(*stop)
        return f'<path class="line" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def ticks(low: float, high: float) -> list[float]:
    """Four to ten round numbers of an axis."""
    step = next(one for one in (0.01, 0.02, 0.05, 0.1, 0.2) if (high - low) / one < 10)
    return [round(k * step, 2) for k in range(round(low / step), round(high / step) + 1)]


def text(x: float, y: float, says: str, style: str = "") -> str:
    """Text of a figure."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{says}</text>'


STYLE = (
    "<style>text{font:12px system-ui,sans-serif;fill:#1b1f24}.title{font-weight:600}"
    ".middle{text-anchor:middle}.end{text-anchor:end}.frame{fill:none;stroke:#b5bac1}"
    ".line{stroke:#b5bac1;fill:none}.back{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#f0f3f6}.back{fill:#0d1117}}</style>"
)


def svg(width: int, height: int, says: str, parts: list[str]) -> str:
    """A figure with its alternative text."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f'<title>{says}</title>{STYLE}<rect class="back" width="{width}" height="{height}"/>'
        + "\n".join(parts) + "</svg>\n"
    )  # fmt: skip


def legend(names: list[str], top: int) -> list[str]:
    """Families and their colours in a row."""
    parts = []
    for number, name in enumerate(names):
        x = 60 + 135 * number
        parts.append(f'<circle cx="{x}" cy="{top - 4}" r="4" fill="{COLOURS[name]}"/>')
        parts.append(text(x + 9, top, name))
    return parts


def shown_families() -> list[str]:
    """Families of the methods that were run."""
    own = {family(method) for method in primary()["method"]}
    return [name for name in COLOURS if name in own]


def movement_figure() -> str:
    """Movement by method: between states and under noise."""
    scores = primary()
    columns = {
        "other states, net of sampling noise": movement(away(scores), "method", net=True),
        "Gaussian noise 0.06": movement(under(scores, NOISE), "method", net=False),
        "Gaussian noise 0.5": movement(under(scores, SYNTHETIC[1]), "method", net=False),
    }
    order = columns["other states, net of sampling noise"].sort_values().index
    most = float(np.ceil(max(one.max() for one in columns.values()) * 50) / 50)
    panel = Panel("How far the signed gap moves (root mean square)", (0, most), (0, len(order)),
                  left=230, width=560, height=20 * len(order))  # fmt: skip
    colours = ("#c05a00", "#1f66a8", "#1f66a8")
    rows = []
    for number, method in enumerate(order):
        y = len(order) - number - 0.5
        rows.append(text(222, panel.at(0, y)[1] + 4, method, "end"))
        rows.append(panel.line((0, y), (most, y)))
        for place, (name, values) in enumerate(columns.items()):
            says = f"{method}, {name}: {values[method]:.3f}"
            rows.append(panel.dot(values[method], y, colours[place], says, hollow=place == 1))
    bottom = panel.top + panel.height
    axis = [text(panel.at(x, 0)[0], bottom + 17, f"{x:g}", "middle") for x in ticks(0, most)]
    names = []
    for place, (name, colour) in enumerate(zip(columns, colours, strict=True)):
        x, fill = 240 + 240 * place, "none" if place == 1 else colour
        names.append(f'<circle cx="{x}" cy="{bottom + 41}" r="4" fill="{fill}" stroke="{colour}"/>')
        names.append(text(x + 9, bottom + 45, name))
    title = [text(230, 24, panel.title, "title")]
    says = "Gaps move more between states than under noise" if _moves_more() else panel.title
    return svg(960, bottom + 60, says, [*title, *rows, *axis, *names])


def _moves_more() -> bool:
    """Whether every method moves more between states than under noise .06."""
    scores = primary()
    natural = movement(away(scores), "method", net=True)
    return bool((natural > movement(under(scores, NOISE), "method", net=False)).all())


def frontier_figure() -> str:
    """Accuracy and ``delta_eo`` of every method, at home and elsewhere."""
    scores = primary()
    ends = {"at home": home(scores), "in other states": away(scores)}
    means = {
        name: rows.groupby("method")[["accuracy", "delta_eo"]].mean() for name, rows in ends.items()
    }
    every = pd.concat(means)
    x = (0.0, float(np.ceil(every["delta_eo"].max() * 20) / 20))
    y = (LEAST_DRAWN, float(np.ceil(every["accuracy"].max() * 50) / 50))
    below = sorted(set(every.index[every["accuracy"] < LEAST_DRAWN].get_level_values("method")))
    parts = []
    for place, (name, table) in enumerate(means.items()):
        panel = Panel(f"Accuracy and gap {name}", x, y, left=70 + 430 * place)
        parts.append(panel.frame("\u0394EO, lower is fairer", "accuracy"))
        best, names = -np.inf, []
        for method, row in table.sort_values(["delta_eo", "accuracy"]).iterrows():
            if row["accuracy"] < LEAST_DRAWN:
                continue
            says = f"{method}: accuracy {row['accuracy']:.3f}, \u0394EO {row['delta_eo']:.3f}"
            parts.append(panel.dot(row["delta_eo"], row["accuracy"], COLOURS[family(method)], says))
            if row["accuracy"] > best:
                names.append(method)
            best = max(best, row["accuracy"])
        lines = ["on the frontier, from left to right:", *names]
        right, bottom = panel.left + panel.width - 8, panel.top + panel.height - 10
        for number, line in enumerate(reversed(lines)):
            parts.append(text(right, bottom - 14 * number, line, "end"))
    note = f"not drawn, accuracy below {LEAST_DRAWN}: " + ", ".join(below) if below else ""
    says = "Accuracy against the gap; methods on the frontier are named"
    return svg(960, 450, says, [*parts, *legend(shown_families(), 415), text(60, 440, note)])


def scatter_figure() -> str:
    """``delta_eo`` at home in one split against that elsewhere in another."""
    scores = primary()
    first = home(scores).query("seed == 0")
    sets = {"in other states": away(scores), "under Gaussian noise 0.06": under(scores, NOISE)}
    keys = ["method", "trained_on"]
    most = float(np.ceil(scores["delta_eo"].quantile(0.99) * 10) / 10)
    parts = []
    for place, (name, rows) in enumerate(sets.items()):
        panel = Panel(f"The gap {name}", (0, most), (0, most), left=70 + 430 * place)
        parts.append(panel.frame("\u0394EO at home, first split", "\u0394EO there, second split"))
        parts.append(panel.line((0, 0), (most, most)))
        other = rows[rows["seed"] == 1].groupby(keys, as_index=False)["delta_eo"].mean()
        both = other.merge(first[[*keys, "delta_eo"]], on=keys, suffixes=("", "_home"))
        for row in both.to_dict("records"):
            if max(row["delta_eo"], row["delta_eo_home"]) <= most:
                says = f"{row['method']}, trained in {row['trained_on']}"
                colour = COLOURS[family(row["method"])]
                parts.append(panel.dot(row["delta_eo_home"], row["delta_eo"], colour, says))
    says = "The gap at home against the gap in other states and under noise"
    return svg(960, 430, says, [*parts, *legend(shown_families(), 415)])


FIGURES: dict[str, Callable[[], str]] = {
    "natural_study_movement.svg": movement_figure,
    "natural_study_frontier.svg": frontier_figure,
    "natural_study_scatter.svg": scatter_figure,
}


PAGES = [
    Page(
        RESULTS / "natural_shift.md",
        TABLES | natural_tables.TABLES,
        figures={IMAGES / name: draw for name, draw in FIGURES.items()},
    )
]

if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--runs", type=Path)
    if folder := arguments.parse_args().runs:
        gather(folder)
    for page in PAGES:
        page.write()
