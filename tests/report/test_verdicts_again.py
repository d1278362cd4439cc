"""Every verdict on the claims of the papers, again from the stored scores by other code.

Rows are selected with pandas, tails are integrated with scipy, and the corrections and the table of
decisions are written down once more; nothing of ``numbers.claims`` is called. Compared are the
tables of effects of the studies.
"""

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import integrate, stats

from robust_fairness.papers import SECTIONS
from studies import papers
from tests.project import ROOT
from tools.pages import STUDIES

PAPERS = ("equalized_robustness", "bias_mitigation", "kernel_fairness", "latent_shift",
          "fair_metric_learning")  # fmt: skip
LEVEL = 0.05
ROOM_BELOW = ("delta_eo", "delta_er", "accuracy", "unbiased_accuracy", "accuracy_by_subgroup",
              "unshifted", "recall_at", "disparate_impact", "unexplained_variance", "faircocco_dp",
              "faircocco_eo", "faircocco_cal", "recall_at_worst_gap", "macro_precision_worst_gap",
              "macro_recall_worst_gap", "nmi_worst_gap")  # fmt: skip
ROOM_ABOVE = ("accuracy", "unbiased_accuracy", "accuracy_by_subgroup", "unshifted", "recall_at",
              "disparate_impact", "faircocco_eo_p_value", "faircocco_dp_p_value")  # fmt: skip


def tail(distance, rows, refits, df):
    """Probability of an error above a distance: normal with variance rows + refits df / chi2."""
    if distance < 0:
        return 1 - tail(-distance, rows, refits, df)
    if not refits:
        return stats.norm.sf(distance / np.sqrt(rows))
    if not rows:
        return stats.t.sf(distance / np.sqrt(refits), df)

    def at(x):
        error = np.sqrt(rows + refits * df / x)
        return stats.norm.sf(distance / error) * stats.chi2.pdf(x, df)

    return integrate.quad(at, 0, np.inf, points=None, limit=400, epsabs=1e-13)[0]


def side(rows, *asked):
    wanted = {"trial": "default", "group": ""}
    if "alpha" in rows:
        wanted["alpha"] = np.nan
    for some in asked:
        wanted |= some
    keep = pd.Series(True, rows.index)  # noqa: FBT003
    for name, value in wanted.items():
        if value != "any":
            keep &= rows[name].isin(value if isinstance(value, list) else [value])
    return rows[keep]


def of_data(part, rows, ratios):
    """Effect by seed, its variances with degrees of freedom, room and whether it is void."""
    sides = [side(rows, part["rows"], part["first"])]
    if part["second"]:
        sides.append(side(rows, part["rows"], part["second"]))
    if min(map(len, sides)) == 0:
        return None
    means, deviations = [], []
    for scores in sides:
        full = scores.groupby("seed").size().max()
        known = scores.dropna(subset="value")
        known = known.groupby("seed").filter(lambda seed, full=full: len(seed) == full)
        means.append(known.groupby("seed")["value"].mean())
        errors = np.sqrt(known["variance"].astype(float))
        deviations.append(errors.groupby(known["seed"]).apply(lambda e: e.mean(skipna=False)))
    by_seed = (means[0] - means[1] if part["second"] else means[0]).dropna().astype(float)
    if by_seed.empty:
        return None
    seeds = by_seed.index
    ratio = max(ratios.get(name, 0.0) for name in sides[0]["dataset"].unique())
    variance = np.sqrt(sum(errors.reindex(seeds) ** 2 for errors in deviations)).mean(
        skipna=False
    ) ** 2  # fmt: skip
    arrays = [s[s["seed"].isin(seeds)]["by_row"] for s in sides if "by_row" in s]
    if len(arrays) == len(sides) and not ratio and all(a.notna().all() for a in arrays):
        whole = [np.mean([*a], axis=0) for a in arrays]
        if len({len(a) for a in whole}) == 1:
            away = whole[0] - whole[1] if part["second"] else whole[0]
            away = away - away.mean()
            variance = ((away**2).sum() + 2 * (away**2).max()) / (len(away) + 2) ** 2
    number = len(by_seed)
    few = number < 5
    refits = 0.0 if few else by_seed.var(ddof=1) * (1 / number + ratio)
    if not few and (ratio or not np.isfinite(variance)):
        variance = 0.0
    edges = [s.groupby(["dataset", "method"])["edge"].mean() for s in sides if "edge" in s]
    metric = {**part["rows"], **part["second"]}.get("metric")
    room = np.inf
    if part["second"] and part["expect"] == "below" and metric in ROOM_BELOW:
        room = means[1].reindex(seeds).mean()
        if metric == "accuracy" and "edge" in sides[1] and sides[1]["edge"].notna().any():
            room = sides[1]["edge"].mean()
    if part["second"] and part["expect"] == "above" and metric in ROOM_ABOVE:
        room = 1 - means[1].reindex(seeds).mean()
    void = any((edge <= 0).any() for edge in edges)
    return by_seed, variance, refits, number - 1, few, room, void


def measured_part(part, rows, ratios):
    """The same of a mean over datasets."""
    if not part["average"]:
        return of_data(part, rows, ratios)
    names = part["rows"]["dataset"]
    names = names if isinstance(names, list) else [names]
    each = [of_data(part, rows[rows["dataset"] == name], ratios) for name in names]
    if None in each:
        return None
    count = len(each)
    by_seed = pd.concat([some[0] for some in each], axis=1, join="inner").mean(axis=1)
    refits = [some[2] / count**2 for some in each]
    df = sum(refits) ** 2 / sum(r**2 / some[3] for r, some in zip(refits, each, strict=True))
    variance = sum(some[1] for some in each) / count**2
    few, void = any(some[4] for some in each), any(some[6] for some in each)
    return by_seed, variance, sum(refits), df, few, np.mean([some[5] for some in each]), void


def p_values(part, effect):
    """Of what is claimed, of its opposite and of an effect below the margin, each alone."""
    by_seed, variance, refits, df = effect[:4]
    value, margin, expect = by_seed.mean(), part["size"], part["expect"]

    def above(bound):
        return tail(value - bound, variance, refits, df)

    def below(bound):
        return tail(bound - value, variance, refits, df)

    holds = {
        "above": lambda: 2 * above(0), "below": lambda: 2 * below(0),
        "within": lambda: max(above(-margin), below(margin)),
        "not below": lambda: 2 * above(-margin), "not above": lambda: 2 * below(margin),
    }[expect]()  # fmt: skip
    turned = {
        "above": lambda: 2 * below(0), "below": lambda: 2 * above(0),
        "within": lambda: 2 * min(below(-margin), above(margin)),
        "not below": lambda: 2 * below(-margin), "not above": lambda: 2 * above(margin),
    }[expect]()  # fmt: skip
    small = {"above": lambda: below(margin), "below": lambda: above(-margin)}.get(
        expect, lambda: 1.0
    )()
    return [min(p, 1.0) for p in (holds, turned, small)]


def answered(p, claim_of, tested):
    """Whether each part is significant: Holm over claims, Hochberg within those that are left."""
    largest = {name: max(p[k] for k in parts) for name, parts in claim_of.items()}
    yes, left = set(), sum(tested.values())
    for name in sorted((n for n in claim_of if tested[n]), key=largest.get):
        if largest[name] * left >= LEVEL:
            break
        yes.update(claim_of[name])
        left -= 1
    for name, parts in claim_of.items():
        if set(parts) <= yes and tested[name]:
            continue
        order = sorted(parts, key=lambda k: p[k])
        for last in range(len(order), 0, -1):
            if p[order[last - 1]] * (len(order) - last + 1) * max(left, 1) < LEVEL:
                yes.update(order[:last])
                break
    return yes


def verdict(states):
    kinds = {*states}
    rules = [
        (kinds == {"holds"}, "supported"),
        ("holds" in kinds and kinds & {"reversed", "excluded"}, "mixed"),
        ("holds" in kinds, "partly"),
        (kinds == {"reversed"}, "contradicted"),
        ("reversed" in kinds, "partly contradicted"),
        (kinds == {"excluded"}, "excluded"),
        (kinds == {"not run"}, "not run"),
        (kinds - {"not run"} == {"out of reach"}, "out of reach"),
        (True, "undecided"),
    ]
    return next(name for fits, name in rules if fits)


def parts_of(claims):
    """The fields of every part, and the places of the parts of every claim."""
    parts, claim_of = [], {}
    for claim in claims:
        for written in claim.get("parts", [{}]):
            part = {name: written.get(name, claim.get(name)) for name in
                    ("expect", "margin", "published", "known_before", "average")}  # fmt: skip
            part |= {name: claim.get(name, {}) | written.get(name, {})
                     for name in ("rows", "first", "second")}  # fmt: skip
            half = part["margin"] == "half"
            part["size"] = abs(part["published"]) / 2 if half else part["margin"]
            claim_of.setdefault(claim["claim"], []).append(len(parts))
            parts.append(part)
    return parts, claim_of


def disagree(part, effect):
    """Whether fewer than five seeds are on both sides of what is claimed."""
    size = part["size"]
    low, high = {"above": (0, np.inf), "below": (-np.inf, 0), "not below": (-size, np.inf),
                 "not above": (-np.inf, size), "within": (-size, size)}[part["expect"]]  # fmt: skip
    agree = (effect[0] > low) & (effect[0] < high)
    return effect[4] and agree.any() and not agree.all()


def state(part, effect, significant):
    """The first that fits."""
    signed = part["expect"] in ("above", "below")
    rules = [
        (effect is None, "not run"),
        (effect is not None and effect[6], "void"),
        (significant[0], "holds"),
        (significant[1], "reversed"),
        (signed and effect is not None and effect[5] < part["size"], "out of reach"),
        (signed and significant[2], "excluded"),
        (True, "undecided"),
    ]
    return next(name for fits, name in rules if fits)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_verdict_by_other_code(paper):
    text = (ROOT / "src/robust_fairness/papers" / paper / "claims.yml").read_text()
    parts, claim_of = parts_of([c for c in yaml.safe_load(text) if not c.get("apart")])
    results = papers.PAPERS[paper].results
    rows = SECTIONS[paper].measured(results)
    sizes = results.splits.groupby("dataset")[["train_rows", "test_rows"]].mean()
    shared = results.sizes_of_splits["ratio"].fillna(0) > 0
    ratios = (sizes["test_rows"] / sizes["train_rows"])[shared[shared].index].to_dict()
    effects = [measured_part(part, rows, ratios) for part in parts]
    known = [
        effect is not None and np.isfinite(sum(effect[1:3])) and sum(effect[1:3]) > 0
        for effect in effects
    ]
    p = np.ones((len(parts), 3))
    for k, (part, effect) in enumerate(zip(parts, effects, strict=True)):
        if known[k] and not effect[6] and not disagree(part, effect):
            p[k] = p_values(part, effect)
    tested = {name: any(known[k] for k in of_claim) for name, of_claim in claim_of.items()}
    yes = [answered(p[:, question], claim_of, tested) for question in range(3)]
    states = [
        state(part, effect, [k in some for some in yes])
        for k, (part, effect) in enumerate(zip(parts, effects, strict=True))
    ]
    stored = pd.read_csv(STUDIES / paper / "tables" / "effects.csv", keep_default_na=False)
    assert stored["state"].tolist() == states
    assert stored["known_before"].tolist() == [part["known_before"] for part in parts]
    for name, of_claim in claim_of.items():
        label = verdict([states[k] for k in of_claim])
        assert {*stored["verdict"][of_claim]} == {label}, name
        # what the rules exclude
        if label == "excluded":
            assert all(effects[k][5] >= parts[k]["size"] for k in of_claim)
        if label == "contradicted":
            assert not yes[0].intersection(of_claim)
    numbers = pd.to_numeric(stored["ours"], errors="coerce")
    ours = [np.nan if effect is None else effect[0].mean() for effect in effects]
    np.testing.assert_allclose(numbers, ours, atol=6e-4)
    made = papers.PAPERS[paper].effects
    assert made["state"].tolist() == states
    for row, effect in zip(made.itertuples(), effects, strict=True):
        if row.ends == "seeds":
            by_seed = effect[0]
            assert (row.low, row.high) == pytest.approx((by_seed.min(), by_seed.max()))
        elif row.ends:
            for distance in (row.ours - row.low, row.high - row.ours):
                assert tail(distance, *effect[1:4]) == pytest.approx(0.025, rel=1e-4)
