"""Write the tables and the figure of the README from ``counts``.

python -m studies.natural_shift.tables               # the page
python -m studies.natural_shift.tables distances     # first how far states lie apart
python -m studies.natural_shift.tables further DE    # how often predictions hold in this state
"""

import io
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import combinations

import numpy as np
import pandas as pd

from robust_fairness.report import Results, natural_shift
from studies.natural_shift import answers as study
from tools.pages import STUDIES, Page, intervals, percent, plain, signed

HERE = STUDIES / "natural_shift"
COUNTS, DISTANCES = HERE / "counts", HERE / "distances.csv"
PRIMARY, RACE = "income_40", "income_race_40"
REFITS = {PRIMARY: 10, "public_coverage_40": 10}  # otherwise ``study.FEWEST_REFITS``
BASES = {  # other tasks and lengths of training, with the choice that they stand for
    "income_8": "8 epochs",
    "public_coverage_40": "public coverage",
    "public_coverage_8": "public coverage, 8 epochs",
    "mobility_40": "mobility",
    "travel_time_40": "travel time",
    "employment_40": "employment",
}
CASES = {  # described, without tests
    "iowa_years": "Iowa's prison releases by year, sex",
    "law_school_tiers": "law school by tier, race",
    "oulad_presentations": "OULAD by presentation, gender",
    "compas_quarters": "COMPAS by quarter, race",
}
SIZES = (1000, 5000)  # test rows of a new state
COLOURS = {
    "penalties": "#1f66a8", "thresholds": "#c05a00", "reweighting": "#0f7f5f", "lisa": "#7a4fa3",
    "target inputs": "#b03060", "reductions": "#8a6d00", "plain": "#111111",
}  # fmt: skip


@cache
def read(base: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Counts of a base dataset, and its numbers of rows."""
    return pd.read_parquet(COUNTS / base), pd.read_parquet(COUNTS / f"{base}_rows.parquet")


@cache
def of(base: str, refits: int = 0, **choice: object) -> study.Scores:
    """The scores of the methods that are complete, with the refits of the plan by default."""
    refits = refits or REFITS.get(base, study.FEWEST_REFITS)
    return study.scores(*read(base), refits=refits, **choice)


def primary() -> study.Scores:
    """Income, sex, unweighted, 40 epochs, the fair rule."""
    return of(PRIMARY)


@cache
def variants() -> Mapping[str, study.Scores]:
    """The primary scores and those of every other choice that was run in all states."""
    scores = {
        "primary": primary(),
        "weighted by PWGTP": of(PRIMARY, weighted=True),
        "most accurate trial": of(PRIMARY, rule=study.ACCURATE),
        "without coral and mixup": primary().without("coral", "mixup"),
        "first five refits": of(PRIMARY, study.FEWEST_REFITS),
        **{choice: of(base) for base, choice in BASES.items()},
        "race, mitigated": of(RACE, attribute="race"),
    }
    return {choice: of_it for choice, of_it in scores.items() if of_it.values}


def interval(rows: pd.DataFrame, value: str, low: str = "low", high: str = "high") -> pd.Series:
    """A column with its interval, as signed numbers."""
    ends = rows[low].map(" ({:+.3f} to ".format) + rows[high].map("{:+.3f})".format)
    return rows[value].map(signed) + ends


def p_value(value: float) -> str:
    """A p-value with four decimals."""
    return f"{value:.4f}"


def answers(scores: study.Scores) -> pd.DataFrame:
    """The primary questions with effects, tests and answers."""
    table = study.answers(scores)
    return pd.DataFrame({
        "question": table["question"], "answer": "**" + table["answer"] + "**",
        "effect (95 %)": interval(table, "effect"), "p": table["p"].map(p_value),
        "p (Holm)": table["p_holm"].map(p_value), "detectable": table["detectable"].map(plain),
    })  # fmt: skip


def kept(scores: study.Scores) -> pd.DataFrame:
    """Gains at home and elsewhere."""
    gains = study.kept(scores)
    ends = {f"gain {end}": interval(gains, name, f"{name}_low", f"{name}_high")
            for end, name in (("at home", "at_home"), ("elsewhere", "elsewhere"))}  # fmt: skip
    return gains[["family"]].assign(**ends, **{"share kept": share_kept(gains)})


def share_kept(gains: pd.DataFrame) -> pd.Series:
    """The share in percent; blank where the gain at home may be 0."""
    return gains["share"].where(gains["at_home_low"] > 0).map(percent)


def wide(rows: pd.DataFrame, index: str, columns: str) -> pd.DataFrame:
    """The column ``text`` by two others, in their order."""
    table = rows.pivot(index=index, columns=columns, values="text")
    table = table.loc[rows[index].unique(), rows[columns].unique()]
    return table.fillna("not run").reset_index()


def robustness() -> pd.DataFrame:
    """Effects by question and choice; a mark where the answer depends on it."""
    effects = study.robustness(variants())
    text = interval(effects, "effect") + effects["depends"].map({True: " depends", False: ""})
    return wide(effects.assign(text=text), "question", "choice")


def kept_by_choice() -> pd.DataFrame:
    """Gain at home and share kept elsewhere by family and choice; the share where it gains."""
    gains = pd.concat([study.kept(of).assign(choice=choice) for choice, of in variants().items()])
    share = share_kept(gains).map(lambda value: f", {value}" if value else "")
    return wide(gains.assign(text=gains["at_home"].map(signed) + share), "choice", "family")


def promised(scores: study.Scores) -> pd.DataFrame:
    """Shares of test sets on which thresholds keep .05."""
    table = study.promised(scores)
    share = intervals(table, "share", "{:.0%}")
    return table[["method", "tested"]].assign(share=share, verdict=table["verdict"])


def dominated(scores: study.Scores) -> pd.DataFrame:
    """Methods that another one significantly beats in both measures."""
    pairs = study.dominated(scores)
    pairs = pairs[pairs["p_holm"] < study.LEVEL].sort_values(["worse", "p"]).drop(columns="p")
    return numbers(pairs.assign(p_holm=pairs["p_holm"].map(p_value)))


def numbers(table: pd.DataFrame, digits: int = 3) -> pd.DataFrame:
    """A table with its numbers as text."""
    floats = table.columns[[kind.kind == "f" for kind in table.dtypes]]
    return table.assign(**{name: [plain(v, digits) for v in table[name]] for name in floats})


def forecasts(scores: study.Scores) -> pd.DataFrame:
    """What forecasts the movement of a signed gap."""
    distance = pd.read_csv(DISTANCES, index_col=0).loc[[*scores.domains], [*scores.domains]]
    table = study.movement_forecasts(scores, distance.to_numpy())
    tau = {"tau (95 %)": interval(table, "tau"), "p (Holm)": table["p_holm"].map(p_value)}
    return table[["forecast"]].assign(**tau)


def predictions(scores: study.Scores) -> pd.DataFrame:
    """Intervals for a new state by its test rows, and how often left-out states lie inside."""
    of_size = {n: study.predictions(scores, n) for n in SIZES}
    first = of_size[SIZES[0]]
    bounds = {
        f"{n:,} rows": of["low"].map("{:+.3f} to ".format) + of["high"].map("{:+.3f}".format)
        for n, of in of_size.items()
    }
    return first[["method", "measure"]].assign(**bounds, inside=first["inside"].map(percent))


def shares(scores: study.Scores) -> pd.DataFrame:
    """Shares of gains that a new state keeps."""
    table = study.shares_kept(scores)
    return table.assign(**{c: table[c].map(percent) for c in ("share", "low", "high", "inside")})


def frontier(scores: study.Scores) -> pd.DataFrame:
    """Levels of methods, and whether they are on the frontier."""
    table = study.frontier(scores)
    return numbers(table.assign(share_of_domains=table["share_of_domains"].map(percent)))


def cases() -> pd.DataFrame:
    """What other domains and refits do, beside the states."""
    rows = []
    for base, name in {PRIMARY: "states, Income by sex", **CASES}.items():
        scores = of(base, study.FEWEST_REFITS)
        said = study.described(scores)
        rows.append({
            "data": name, "domains": len(scores.domains),
            "test rows of each": f"{scores.rows:,.0f}",
            **{f"{what}, home to elsewhere": f"{said[f'{key}_home']:.3f} to "
               f"{said[f'{key}_elsewhere']:.3f}"
               for what, key in (("accuracy", "accuracy"), ("ΔEO", "delta_eo"))},
            "moved by a refit": plain(said["refit"]),
            "by another domain": plain(said["moved"]),
            "by the next one": plain(said["moved_to_next"]) if base in CASES else "",
        })  # fmt: skip
    return pd.DataFrame(rows)


def cases_kept() -> pd.DataFrame:
    """Gains of families at home and elsewhere in the described cases, means without intervals."""
    parts = [study.kept(of(base)).assign(data=name) for base, name in CASES.items()]
    return numbers(pd.concat(parts)[["data", "family", "at_home", "elsewhere"]])


def convergence() -> pd.DataFrame:
    """Validation losses of trainings by method and length."""
    losses = [study.convergence(read(base)[0]).assign(data=base) for base in (PRIMARY, *BASES)]
    return numbers(pd.concat(losses), 2)[["data", "method", "trainings", "fell", "ratio"]]


def run_so_far() -> pd.DataFrame:
    """Blocks that are done, and their CPU hours."""
    rows = []
    for path in sorted(COUNTS.glob("*_rows.parquet")):
        base = path.stem.removesuffix("_rows")
        counts = read(base)[0]
        blocks = counts.drop_duplicates(["trained_on", "method", "seed"])
        shared = counts.drop_duplicates(["trained_on", "seconds"])
        rows.append({
            "data": base, "states": counts["trained_on"].nunique(),
            "methods": counts["method"].nunique(),
            "refits": f"{blocks.groupby(['trained_on', 'method']).size().min()} to "
            f"{blocks.groupby(['trained_on', 'method']).size().max()}",
            "CPU hours": f"{shared['seconds'].sum() / 3600:.2f}",
        })  # fmt: skip
    return pd.DataFrame(rows)


def _family(method: str) -> str:
    known = {m: family for family, methods in study.FAMILIES.items() for m in methods}
    known |= dict.fromkeys(study.QUARTER.values(), "thresholds")
    return known.get(method, "plain")


def _figure(draw: Callable[..., None]) -> str:
    """An SVG whose bytes follow from what is drawn."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "natural_shift", "font.size": 9, "svg.fonttype": "none"}):
        figure = Figure(figsize=(8.4, 3.8), layout="constrained")
        draw(figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def draw_kept(figure: object) -> None:
    """Gain elsewhere against gain at home, by state trained in and family."""
    axes, scores = figure.subplots(1, 2), primary()
    away = scores.away
    for family, methods in scores.families.items():
        gained = study.gain(scores, methods).mean(-1)
        elsewhere = np.where(away, gained, 0).sum(1) / away.sum(1)
        axes[0].scatter(np.diag(gained), elsewhere, s=14, color=COLOURS[family], label=family)
    ends = axes[0].get_xlim()
    axes[0].plot(ends, ends, color="#999999", linewidth=0.8, zorder=0)
    axes[0].set(xlabel="gain in ΔEO at home", ylabel="gain in other states",
                title="A point per state and family")  # fmt: skip
    axes[0].legend(frameon=False, fontsize=7)
    for row in study.frontier(scores).itertuples():
        colour = COLOURS[_family(row.method)]
        axes[1].scatter(row.delta_eo_elsewhere, row.accuracy_elsewhere, s=16, color=colour)
        if row.of_means:
            place = (row.delta_eo_elsewhere, row.accuracy_elsewhere)
            axes[1].annotate(row.method, place, (4, 3), textcoords="offset points", fontsize=7)
    axes[1].margins(x=0.15)
    axes[1].set(xlabel="ΔEO in other states, lower is fairer", ylabel="accuracy",
                title="Methods on the frontier are named")  # fmt: skip


@cache
def plain_training() -> Results:
    """The scores of plain training in eight states."""
    cells = pd.read_csv(HERE / "scores" / "cells.csv", keep_default_na=False)
    return Results.of(pd.read_parquet(HERE / "scores" / "metrics.parquet"), cells=cells)


def square(data: str, metric: str) -> pd.DataFrame:
    """A measure by source and target: at home on the diagonal, elsewhere its change."""
    rows = natural_shift.matrix(plain_training()).query("data == @data and metric == @metric")
    wide = rows.pivot_table(index="trained_on", columns="tested_on", values="change")
    cells = wide.map("{:+.3f}".format)
    for state, value in rows.groupby("trained_on")["at_home"].first().items():
        cells.loc[state, state] = f"**{value:.3f}**"
    return cells.rename_axis(index="trained on", columns=None).reset_index()


def short(make: Callable[[Results], pd.DataFrame]) -> pd.DataFrame:
    """A view with three decimals and an interval in one column."""
    rows = make(plain_training())
    ends = {name: rows[name].map("{:.3f}".format) for name in ("at_home", "away")}
    signs = rows[["change", "low", "high"]].map("{:+.3f}".format)
    return rows[["data", "metric", "says"]].assign(
        **ends, change=signs["change"], interval=signs["low"] + " to " + signs["high"],
        domains=rows["domains"],
    )  # fmt: skip


def changes(results: Results) -> pd.DataFrame:
    """Mean change of each measure between domains, out of distribution minus in, with its test."""
    cells, by = natural_shift.matrix(results), [*natural_shift.KEYS, "method"]
    tests = natural_shift.over_pairs(cells, by, "change", ("falls", "rises"))
    ends = cells.groupby(by, sort=False).agg(at_home=("at_home", "mean"), away=("ours", "mean"))
    return tests.merge(ends.reset_index(), on=by)


def write_distances() -> None:
    """AUC of boosted trees that tell two states apart by the features of Income."""
    import robust_fairness as rf
    from robust_fairness.auditing.why.domains import FOLDS, Columns, Overlap, cross_fitted, folds

    states = [*primary().domains]
    samples = rf.load("acs", task="Income", states=states, drop=["POBP"])
    columns = Columns.of(samples)
    rows = {s: np.flatnonzero(samples.attributes[samples.domain] == s) for s in states}
    auc = pd.DataFrame(np.full((len(states),) * 2, 0.5), states, states)
    for first, second in combinations(states, 2):
        pair = columns.take(np.concatenate([rows[first], rows[second]]))
        away = np.repeat([False, True], [len(rows[first]), len(rows[second])])
        elsewhere = cross_fitted(pair, away, folds(FOLDS, len(away), None))
        auc.loc[first, second] = auc.loc[second, first] = Overlap(elsewhere, away).auc
    auc.round(4).to_csv(DISTANCES, index_label="state")


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "answers": lambda: answers(primary()),
    "kept": lambda: kept(primary()),
    "promised": lambda: promised(primary()),
    "forecasts": lambda: forecasts(primary()),
    "frontier": lambda: frontier(primary()),
    "dominated": lambda: dominated(primary()),
    "components": lambda: numbers(study.variances(primary()), 5),
    "predictions": lambda: predictions(primary()),
    "shares": lambda: shares(primary()),
    "kept_by_choice": kept_by_choice,
    "robustness": robustness,
    "convergence": convergence,
    "run_so_far": run_so_far,
    "cases": cases,
    "cases_kept": cases_kept,
    "plain_income_accuracy": partial(square, "acs_income", "accuracy"),
    "plain_income_gap": partial(square, "acs_income", "delta_eo"),
    "plain_coverage_accuracy": partial(square, "acs_public_coverage", "accuracy"),
    "plain_coverage_gap": partial(square, "acs_public_coverage", "delta_eo"),
    "plain_changes": partial(short, changes),
    "plain_gaps": partial(short, natural_shift.gaps),
}
FIGURES = {HERE / "study.svg": partial(_figure, draw_kept)}
PAGES = [Page(HERE / "README.md", TABLES, FIGURES)]

if __name__ == "__main__":
    if sys.argv[1:] == ["distances"]:
        write_distances()
    if sys.argv[1:2] == ["further"]:
        state = sys.argv[2]
        print(study.scored(primary(), *read(f"{PRIMARY}_in_{state}"), state).to_csv(index=False))
    else:
        for page in PAGES:
            page.write()
