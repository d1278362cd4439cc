"""What a reader of the first screen writes down, on planted runs whose truth is known."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import robust_fairness as rf
from robust_fairness import metrics
from robust_fairness.bench.library import load
from robust_fairness.core import tables
from robust_fairness.report.first_screen import answers, panels
from robust_fairness.report.matrix import homes, matrices
from robust_fairness.report.methods import methods
from tests.report.made_up import results, row
from tests.report.test_matrix import GAP, RATES, counted, elsewhere, scored

ROWS = 40_000  # of a group and class


def place(tpr: dict[str, float], fpr: float = 0.3, n=ROWS, **at) -> list[dict]:
    """Rows of a test set where the groups f and m have these true positive rates."""
    rates = {(kind, group): tpr[group] if kind == "tpr" else fpr for kind in RATES for group in tpr}
    sizes = n if isinstance(n, dict) else dict.fromkeys(tpr, n)
    made = [
        score | ({"n": sizes[score["group"]]} if score["group"] else {})
        for score in scored(rates, dataset="d", **at)
    ]
    worst = min((tpr[group] + 1 - fpr) / 2 for group in tpr)
    where = {"dataset": "d", "attribute": "sex", **at}
    return [*made, row(**where, metric="worst_group_accuracy", value=worst, n=2 * ROWS)]


def even(gap: float, centre: float = 0.5) -> dict[str, float]:
    return {"f": centre - gap / 2, "m": centre + gap / 2}


def in_states(first, second, sizes=(ROWS, ROWS)) -> list[dict]:
    """Home of two states, HI and ME, and their rows together."""
    n = [size if isinstance(size, dict) else dict.fromkeys("fm", size) for size in sizes]
    total = {group: n[0][group] + n[1][group] for group in "fm"}
    together = {
        group: (n[0][group] * first[group] + n[1][group] * second[group]) / total[group]
        for group in "fm"
    }
    return [
        *place(first, n=n[0], domain="HI"), *place(second, n=n[1], domain="ME"),
        *place(together, n=total),
    ]  # fmt: skip


MANY, FEW = {"f": 60_000, "m": 20_000}, {"f": 20_000, "m": 60_000}
HIDDEN = in_states({"f": 0.6, "m": 0.8}, {"f": 0.2, "m": 0.4}, (MANY, FEW))  # together no gap
# Rows at home; those in west; the title; what grew in truth, by how much, or nothing.
PLANTED = {
    "none grew": (
        place(even(0.1)), place(even(0.1), **elsewhere("west")),
        "Yes: the gap by sex held within 5 points in west", 0.0,
    ),
    "one grew": (
        place(even(0.1)), place(even(0.4), **elsewhere("west")),
        "No: the gap by sex grew by at least N points in west", 0.3,
    ),
    "only a secondary gap grew": (
        place(even(0.1)), place(even(0.1, 0.3), **elsewhere("west")),
        "No: the error of the worst group by sex grew by at least N points in west", 0.1,
    ),
    "too few rows": (
        place(even(0.1)), place(even(0.4), n=20, **elsewhere("west")),
        "Unknown: changes of up to N points are possible", 0.3,
    ),
    "opposite gaps at home": (
        in_states(even(0.3), even(-0.3)), place(even(0.3), **elsewhere("west")),
        "Unknown: the gap by sex cannot be estimated; HI and ME have opposite gaps", 0.0,
    ),
    "a gap that is hidden at home": (
        HIDDEN, place(even(0.2), **elsewhere("west")),
        "Yes: the gap by sex held within 5 points in west", 0.0,
    ),
    "larger than a gap that is hidden at home": (
        HIDDEN, place(even(0.35), **elsewhere("west")),
        "No: the gap by sex grew by at least N points in west", 0.15,
    ),
}  # fmt: skip


def run_of(rows: list[dict], seeds: int):
    """The run of a model, whose further trainings have gaps elsewhere that vary by 20 points."""
    rng, made = np.random.default_rng(2), list(rows)
    for seed in range(1, seeds):
        wobble = rng.normal(0, 0.2)
        made += [
            score | {"seed": seed}
            | ({"value": np.clip(score["value"] + wobble, 0, 1)} if score["group"] == "m" else {})
            for score in rows
        ]  # fmt: skip
    splits = [{"dataset": "d", "split": "s", "train_rows": 9, "test_rows": 9, "reused": 0.0}]
    return results(made, counts=counted(made), splits=tables.table(tables.SPLITS, splits))


@pytest.mark.parametrize("seeds", [1, 3, 5])
@pytest.mark.parametrize("name", PLANTED)
def test_the_title_is_true_and_more_trainings_never_make_it_vaguer(name, seeds):
    home, west, title, truth = PLANTED[name]
    run = run_of([*home, *west], seeds)
    said, *beside = answers(run)
    assert re.sub(r"\d+ points? (in|are)", r"N points \1", title) == re.sub(
        r"\d+ points? (in|are)", r"N points \1", said
    )
    numbers = [int(number) / 100 for number in re.findall(r"at least (\d+) points?", said)]
    assert all(0.5 * truth <= number <= truth for number in numbers)
    possible = [int(number) / 100 for number in re.findall(r"up to (\d+) points", said)]
    assert all(number >= truth for number in possible)
    first, *_ = panels(run)
    assert first["answer"] == said and {*first["further"]} <= {*beside}
    others = {content["gap"]: content["answer"] for content in panels(run)[1:]}
    grew = matrices(run)["worst_group_accuracy"]["state"].eq("grew").any()
    assert others["worst_group_accuracy"].startswith("No") == grew
    assert not (said.startswith("Yes") and grew)
    assert "trained again" in " ".join(beside) and ("unknown; it takes 5" in " ".join(beside)) == (
        seeds < 5
    )
    drawn = str(first["plots"][0])
    assert drawn.count("class=r ") == (seeds > 1) * seeds * drawn.count("<td class=axis>")


def test_gaps_over_trainings_are_means_of_the_stored_gaps():
    """Of the trained model its own gap is shown, of methods the mean of the gaps, as pandas has it.

    Sentences about methods rest on the gap of the mean rates, whose tests are exact near 0.
    """
    rng = np.random.default_rng(4)
    rows = [
        score
        for seed in range(5)
        for at in ({}, elsewhere("west"))
        for score in place({"f": 0.5, "m": 0.5 + rng.normal(0, 0.2)}, seed=seed, **at)
    ]
    run = results(rows, counts=counted(rows))
    (model,) = matrices(run)[GAP].to_dict("records")
    (method,) = matrices(run, question="this method")[GAP].to_dict("records")
    shown = methods(run, metrics=[GAP]).set_index("tested")["mean"]
    stored = pd.DataFrame(rows)
    gaps = stored[stored["metric"] == GAP].set_index(["domain", "seed"])["value"]
    rates = stored[stored["metric"] == RATES["tpr"]]
    means = rates.pivot_table("value", "domain", "group", aggfunc="mean")
    for domain, name, tested in (("", "at_home", "home"), ("west", "away", "west")):
        assert model[name] == pytest.approx(gaps[domain, 0], abs=1e-4)  # of whole rows
        assert shown[tested] == pytest.approx(gaps[domain].mean(), abs=1e-12)
        assert method[name] == pytest.approx(np.ptp(means.loc[domain]), abs=1e-4)
        assert shown[tested] > method[name] + 0.01  # they do differ


def test_what_would_help_is_beside_an_answer_that_is_unknown():
    home, west, *_ = PLANTED["too few rows"]
    _, helps, *_ = answers(run_of([*home, *west], 1))
    assert re.fullmatch(
        r"To see a change of 5 points in west, it takes about [\d,]+ rows of [fm] in west "
        r"\(20 now\), and as many times more of all others",
        helps,
    )
    home, west, *_ = PLANTED["opposite gaps at home"]
    assert "More rows do not help: HI and ME have opposite gaps" in answers(run_of(home + west, 1))


def test_a_gap_that_pooling_hides_is_warned_of_and_its_states_are_drawn():
    home, west, *_ = PLANTED["a gap that is hidden at home"]
    run = run_of(home + west, 1)
    content = panels(run)[0]
    (warning,) = content["warnings"]
    assert "with HI and ME taken together, the gap by sex where the models were trained is 0 " in (
        warning
    )
    assert "within them it is 20 points (erm)" in warning
    lines = re.findall(r"<th scope=row rowspan=1>([^<]*)</th>", str(content["plots"][0]))
    assert lines == ["west", "HI (trained here)", "ME (trained here)"]
    (change,) = matrices(run)[GAP].to_dict("records")
    assert (change["at_home"], change["pooled"]) == pytest.approx((0.2, 0.0), abs=1e-12)
    # the variance of Greenland and Robins, which that of as many rows as are said is at least
    n = np.array([[MANY["f"], MANY["m"]], [FEW["f"], FEW["m"]]], float)
    rate = np.array([[0.6, 0.8], [0.2, 0.4]])
    weight = n.prod(1) / n.sum(1)
    weight /= weight.sum()
    error = np.sqrt((weight[:, None] ** 2 * rate * (1 - rate) / n).sum())
    half = (change["home_high"] - change["home_low"]) / 2
    assert 1.96 * error <= half <= 1.3 * 1.96 * error


def test_acs_states_within_and_pooled():
    """Rates of high income by race: within four states another gap than over all of them.

    Against the weights of Mantel and Haenszel by pandas, and an audit with control features.
    """
    home = ["HI", "ME", "MT", "NE"]
    samples = load("acs_states", states=[*home, "NM"])
    people = samples.attributes[["race", "state"]].astype(str).assign(high=samples.y)
    is_home = people["state"].isin(home)
    decided = np.eye(2)[samples.y]
    gap = "demographic_parity_difference"
    scores, counts = [], []
    sets = [("", is_home), ("NM", ~is_home), *((name, people["state"] == name) for name in home)]
    for name, some in sets:
        at = {"dataset": "d", "domain": name, "shift": "domain" if name == "NM" else "none"}
        part, rows = samples.take(np.flatnonzero(some)).of_split(None), decided[some]
        scores.append(row(**at, attribute="race", metric=gap, value=0.5))
        counts.append(
            metrics.count(part, rows).assign(
                method="erm", trial="default", seed=0, severity=0.0, before=-1, **at
            )
        )
    table = pd.concat(counts)[list(tables.COUNTS)].astype(dict(tables.COUNTS))
    run = results(scores, counts=table)
    (change,) = matrices(run)[gap].query("attribute == 'race'").to_dict("records")

    rates = people[is_home].groupby("race")["high"].mean()
    assert change["pooled"] == pytest.approx(rates.max() - rates.min())
    of_state = people[is_home].groupby(["state", "race"])["high"].agg(["mean", "size"]).unstack()
    differences = []
    for first, second in combinations(rates.index, 2):
        n = of_state["size"][[first, second]].fillna(0)
        weight = n.prod(axis=1) / n.sum(axis=1)
        apart = of_state["mean"][first] - of_state["mean"][second]
        differences.append(abs((weight * apart).sum() / weight.sum()))
    assert change["at_home"] == pytest.approx(max(differences))
    audit = rf.audit(
        people[is_home].assign(decided=samples.y[is_home]), y_true="high", y_pred="decided",
        sensitive_features=["race"],
        control_features=["state"], metrics=[gap],
    ).summary()  # fmt: skip
    (within,) = audit[audit["attribute"] == "race | state"].to_dict("records")
    assert change["at_home"] == pytest.approx(within["value"])
    assert change["home_low"] == pytest.approx(within["low"], abs=0.005)
    assert change["home_high"] == pytest.approx(within["high"], abs=0.005)
    shown = homes(run, gap).query("attribute == 'race'").set_index("domain")["away"]
    for name in home:
        of = people[people["state"] == name].groupby("race")["high"].mean()
        assert shown[name] == pytest.approx(of.max() - of.min())
