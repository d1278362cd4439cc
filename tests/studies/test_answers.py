"""The answers of the study of natural shift: against rows, simulations and planted effects."""

import numpy as np
import pandas as pd
import pytest

from studies.natural_shift import answers as study

FAIR, MEASURES, RATES, Scores = study.FAIR, study.MEASURES, study.RATES, study.Scores

DOMAINS, REFITS = 8, 5
PLAIN = sorted({plain for methods in study.FAMILIES.values() for plain in methods.values()})


@pytest.mark.parametrize("attribute", ["sex", "race"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_the_rows(attribute, weighted):
    """Counts made row by row; rates, gaps and accuracy by pandas from the rows themselves."""
    random = np.random.default_rng(0)
    counts, totals, expected = [], [], {}
    for seed in range(REFITS):
        for target in "ab":
            rows = pd.DataFrame(random.integers(0, 2, (200, 3)), columns=["y", "sex", "race"])
            rows["w"] = random.integers(1, 90, len(rows))
            place = rows["y"] * 4 + rows["sex"] * 2 + rows["race"]

            def sums(name, values, place=place):
                return {f"{name}_{k}": values[place == k].sum() for k in range(8)}

            totals.append({"domain": target, "part": "test", "seed": seed,
                           **sums("rows", rows["w"] * 0 + 1), **sums("people", rows["w"]),
                           **sums("squares", rows["w"] ** 2)})  # fmt: skip
            for source in "ab":
                positive = pd.Series(random.integers(0, 2, len(rows)))
                part = "test" if source == target else "ood_test"
                counts.append({"method": "m", "trained_on": source, "tested_on": target,
                               "seed": seed, "part": part, "trial": "default",
                               "selections": f"{FAIR}; accuracy", **sums("positive", positive),
                               **sums("people", positive * rows["w"])})  # fmt: skip
                weight = rows["w"] if weighted else rows["w"] * 0 + 1
                rate = {
                    key: np.average(positive.loc[of.index], weights=weight.loc[of.index])
                    for key, of in rows.groupby(["y", attribute])
                }
                tpr, fpr = rate[1, 1] - rate[1, 0], rate[0, 1] - rate[0, 0]
                right = np.average(positive == rows["y"], weights=weight)
                expected[source, target, seed] = right, tpr, fpr, abs(tpr) + abs(fpr)
    choice = {"attribute": attribute, "weighted": weighted}
    scores = study.scores(pd.DataFrame(counts), pd.DataFrame(totals), **choice)
    for (source, target, seed), values in expected.items():
        at = "ab".index(source), "ab".index(target), seed
        assert [scores.values["m"][name][at] for name in MEASURES] == pytest.approx(values)
    unfinished = study.scores(pd.DataFrame(counts[1:]), pd.DataFrame(totals))
    assert not unfinished.values  # no score of a method that is not complete


def drawn(random, sizes, mean=0.1, shape=(12, 12, 6)):
    """Values with the standard deviations of source, target, pair, refit and rest."""
    s, t, r = shape
    axes = [(s, 1, 1), (1, t, 1), (s, t, 1), (s, 1, r), (s, t, r)]
    return mean + sum(
        size * random.normal(size=axis) for size, axis in zip(sizes, axes, strict=True)
    )


def test_components_of_variance_are_those_simulated():
    """The mean over 60 draws, within four standard errors of the truth."""
    random, sizes = np.random.default_rng(1), np.array([0.05, 0.03, 0.02, 0.04, 0.01])
    names = ["source", "target", "pair", "refit", "rest"]
    components = pd.DataFrame([study.components(drawn(random, sizes)) for _ in range(60)])[names]
    error = components.std() / np.sqrt(len(components))
    assert (np.abs(components.mean() - sizes**2) < 4 * error).all()
    assert (error < 0.15 * sizes.max() ** 2).all()


def test_movement_is_net_of_refits_and_rows():
    """Domains move gaps by .06 (standard deviation of a difference), refits by .03."""
    random = np.random.default_rng(2)
    moved, refitted = [], []
    for _ in range(40):
        of_domain = 0.06 / np.sqrt(2) * random.normal(size=(1, DOMAINS, 1))
        of_refit = 0.03 * random.normal(size=(DOMAINS, 1, REFITS))
        # half of the variance of rows is the domain's, half that of its test rows in a refit
        whole = 0.02 * random.normal(size=(1, DOMAINS, 1))
        halves = 0.02 * random.normal(size=(1, DOMAINS, REFITS))
        value = 0.1 + of_domain + of_refit + whole + halves
        noise = np.full(value.shape, 2 * 0.02**2)
        noises = {f"{rate}_variance": noise for rate in RATES}
        scores = Scores(tuple("abcdefgh"), {"m": dict.fromkeys(RATES, value) | noises})
        between, refit = study.movement(scores)
        moved.append(between[~np.eye(DOMAINS, dtype=bool)].mean())
        refitted.append(refit.mean())
    for values, truth in ((moved, 0.06**2), (refitted, 0.03**2)):
        assert abs(np.mean(values) - truth) < 4 * np.std(values) / np.sqrt(len(values))
        assert np.std(values) / np.sqrt(len(values)) < 0.15 * truth


@pytest.fixture(scope="module")
def planted():
    """Penalties keep their gain, thresholds lose it, reductions are worse; domains move gaps."""
    random = np.random.default_rng(3)
    gaps = {"penalties": (0.2, 0.2), "thresholds": (0.2, 0.04), "reductions": (-0.02, -0.02)}
    values = {}
    names = {name: family for family, of in study.FAMILIES.items() for name in of}
    names |= dict.fromkeys(PLAIN, "plain")
    names |= {f"{name}_quarter": "quarter" for name in study.FAMILIES["thresholds"]}
    shape = (DOMAINS, DOMAINS, REFITS)
    domains = 0.05 * np.resize([1.0, -1.0], (1, DOMAINS, 1))  # half of the pairs move by .1
    at_home = np.eye(DOMAINS, dtype=bool)[..., None]
    for number, (name, family) in enumerate(names.items()):
        here, there = gaps.get(family, (0.0, 0.0))
        signed = 0.3 + number / 1000 + domains - np.where(at_home, here, there)
        values[name] = {
            "tpr": signed + 0.005 * random.normal(size=shape),
            "fpr": 0.005 * random.normal(size=shape),
            "accuracy": 0.8 + 0.002 * random.normal(size=shape) - (family == "reductions") / 50,
        }
        values[name]["delta_eo"] = np.abs(values[name]["tpr"]) + np.abs(values[name]["fpr"])
        values[name] |= {f"{measure}_variance": np.full(shape, 1e-6) for measure in study.KNOWN}
    rates = 0.4 + 0.05 * np.resize([1.0, -1.0], DOMAINS)
    return Scores(tuple("abcdefgh"), values, rows=1000.0, base_rates=rates)


def test_planted_effects_are_found(planted):
    table = study.answers(planted).set_index("question")
    wanted = {
        "Q1 penalties": "yes", "Q1 thresholds": "no", "Q1 reductions": "nothing to keep",
        "Q2 a state moves a gap more than a refit": "yes",
    }  # fmt: skip
    assert {question: table["answer"][question] for question in wanted} == wanted
    assert table["effect"]["Q1 penalties"] == pytest.approx(0.1, abs=0.02)
    assert table["effect"]["Q1 thresholds"] == pytest.approx(0.04 - 0.1, abs=0.02)
    # no gap is within .05, so that the effect of Q4 has no variance and no test
    assert table["answer"]["Q4 more validation rows help thresholds"] == "inconclusive"
    tested = table.dropna()
    assert len(tested) == len(table) - 1
    assert (tested["low"] < tested["effect"]).all()
    assert (tested["effect"] < tested["high"]).all()
    assert (tested["p_holm"] >= tested["p"]).all()


def test_a_method_that_is_worse_in_both_is_dominated(planted):
    """Reductions are less accurate and have larger gaps than penalties; never the other way."""
    table = study.dominated(planted)
    sure = table[table["p_holm"] < 0.05]
    pairs = set(zip(sure["better"], sure["worse"], strict=True))
    assert ("cuma", "logistic_reductions") in pairs
    assert not pairs & {(worse, better) for better, worse in pairs}


def test_predictions_hold_for_further_domains():
    """The interval of 11 domains covers the values of a twelfth in about 95 % of draws."""
    random, sizes = np.random.default_rng(4), np.array([0.03, 0.05, 0.02, 0.03, 0.01])
    inside = [study.left_out(drawn(random, sizes, shape=(9, 9, 3))) for _ in range(25)]
    assert 0.91 < np.mean(inside) < 0.995


def test_gains_kept_are_the_planted_ones(planted):
    """Penalties gain .2 and keep it, thresholds keep .04 of it; reductions lose .02."""
    table = study.kept(planted).set_index("family")
    assert table.loc[["penalties", "thresholds"], "share"].tolist() == pytest.approx(
        [1.0, 0.2], abs=0.08
    )
    assert table.loc["reductions", "at_home_high"] < 0
    assert (table["at_home_low"] < table["at_home"]).all()
    assert (table["elsewhere"] < table["elsewhere_high"]).all()


def test_an_effect_depends_on_a_choice_that_excludes_it(planted):
    """Thresholds that keep all of their gain are another answer; fewer methods are none."""
    keeping = {
        name: {**of, **(planted.values["cuma"] if name.endswith("equalized_odds") else {})}
        for name, of in planted.values.items()
    }
    variants = {
        "primary": planted,
        "keeping": Scores(planted.domains, keeping),
        "fewer": planted.without("coral", "mixup", "logistic_reductions"),
    }
    table = study.robustness(variants).set_index(["question", "choice"])
    assert not table.xs("primary", level="choice")["depends"].any()
    assert table.loc[("Q1 thresholds", "keeping"), "depends"]
    assert not table.loc[("Q1 penalties", "keeping"), "depends"]
    assert ("Q1 reductions", "fewer") not in table.index
    assert not table.loc[("Q1 penalties", "fewer"), "depends"]


def test_promises_are_counted_in_single_test_sets(planted):
    """Gaps of the thresholds are .1 at home with a domain that moves them by .05 up or down."""
    table = study.promised(planted).set_index(["method", "tested"])
    for (method, tested), row in table.iterrows():
        of, at_home = planted.values[method], np.eye(DOMAINS, dtype=bool)
        inside = (np.abs(of["tpr"]) <= 0.05) & (np.abs(of["fpr"]) <= 0.05)
        chosen = inside[at_home if tested == "at home" else ~at_home]
        assert row["share"] == pytest.approx(chosen.mean())
        assert row["verdict"] in {"kept", "not kept", "inconclusive"}


def test_what_forecasts_movements_is_found(planted):
    """Half of the pairs move by .1, those whose base rates differ."""
    table = study.movement_forecasts(planted).set_index("forecast")
    assert table.loc["difference of base rates", "tau"] > 0.4
    assert table.loc["difference of base rates", "p_holm"] < 0.05
    assert abs(table.loc["spread over refits at home", "tau"]) < 0.35
    random = np.random.default_rng(5)
    noise = study.movement_forecasts(planted, random.random((DOMAINS, DOMAINS)))
    assert noise.set_index("forecast").loc["distance of the domains", "p_holm"] > 0.01


def test_frontiers_are_those_of_brute_force(planted):
    ends = table = study.frontier(planted).set_index("method")
    for name, row in ends.iterrows():
        beaten = (ends["accuracy_elsewhere"] > row["accuracy_elsewhere"]) & (
            ends["delta_eo_elsewhere"] < row["delta_eo_elsewhere"]
        )
        assert table.loc[name, "of_means"] != beaten.any()
    assert not table.loc["logistic_reductions", "of_means"]
    assert table["share_of_domains"].between(0, 1).all()


def test_predictions_are_wider_for_fewer_rows(planted):
    noisy = {
        method: {name: v * 1000 if "variance" in name else v for name, v in of.items()}
        for method, of in planted.values.items()
    }
    scores = Scores(planted.domains, noisy, 1000.0, planted.base_rates)
    same, few, many = (study.predictions(scores, n) for n in (1000, 100, 100_000))
    width = [(table["high"] - table["low"]).mean() for table in (many, same, few)]
    assert width == sorted(width) and width[0] < width[2]
    assert (few["inside"] == same["inside"]).all()
    share = study.shares_kept(planted).set_index("family")["share"]
    assert share.tolist() == pytest.approx([1.0, 0.2], abs=0.08)


def test_convergence_counts_a_training_once():
    rows = pd.DataFrame({
        "trained_on": ["a", "a", "b", "b"], "method": "m", "trial": "default", "seed": 0,
        "loss_half": [1.0, 1.0, 2.0, 2.0], "loss_end": [0.5, 0.5, 3.0, 3.0],
    })  # fmt: skip
    (row,) = study.convergence(pd.concat([rows, rows.assign(loss_end=np.nan)])).itertuples()
    assert (row.trainings, row.fell, row.ratio) == (2, 0.5, 1.0)


def test_a_further_domain_is_scored_by_hand():
    """Accuracy rises by some 20 points, as in no other domain; gaps stay as they are."""
    random = np.random.default_rng(6)
    domains, refits = "abcdef", 5
    counts, totals = [], []
    for place, target in enumerate([*domains, "new"]):
        for seed in range(refits):
            rows = {f"rows_{k}": 100 for k in range(8)}
            totals.append({"domain": target, "part": "test", "seed": seed, **rows,
                           **{f"people_{k}": 100 for k in range(8)},
                           **{f"squares_{k}": 100 for k in range(8)}})  # fmt: skip
            for source in domains:
                part = "test" if source == target else "ood_test"
                share = 0.9 if target == "new" else 0.5 + 0.02 * place
                hits = {
                    f"positive_{k}": random.binomial(100, share if k > 3 else 0.2) for k in range(8)
                }
                counts.append({"method": "m", "trained_on": source, "tested_on": target,
                               "seed": seed, "part": part, "trial": "default",
                               "selections": FAIR, **hits})  # fmt: skip
    counts, totals = pd.DataFrame(counts), pd.DataFrame(totals)
    here = totals[totals["domain"] != "new"]
    scores = study.scores(counts[counts["tested_on"] != "new"], here)
    table = study.scored(scores, counts, totals, "new").set_index("measure")
    assert table.loc["accuracy", "inside"] == 0
    assert (table.loc[["tpr", "fpr"], "inside"] > 0.8).all()
    assert table["right"].tolist() == [bool(table["inside"].mean() >= 0.9)] * 3


def test_described_movements_are_those_that_were_planted():
    """Signed gaps rise by .02 from one domain to the next; refits swing by .03 in two of them."""
    places, swing = np.arange(4), np.array([0.03, -0.03, 0.0, 0.03, -0.03])
    signed = np.zeros((4, 4, 5)) + 0.02 * places[None, :, None]
    refitted = signed + (places % 2)[:, None, None] * swing  # of the models of two domains
    gap = 0.1 + 0.01 * (places[:, None] != places)[..., None] * np.ones(5)
    none = {f"{rate}_variance": np.zeros((4, 4, 5)) for rate in study.KNOWN}
    values = {
        method: {"tpr": of, "fpr": of, "accuracy": 0.9 - gap, "delta_eo": gap, **none}
        for method, of in {"erm": signed, "cuma": refitted}.items()
    }
    described = study.described(Scores(tuple("abcd"), values))
    assert described == pytest.approx({
        "accuracy_home": 0.8, "accuracy_elsewhere": 0.79,
        "delta_eo_home": 0.1, "delta_eo_elsewhere": 0.11,
        "refit": np.sqrt(swing.var(ddof=1) / 4), "moved_to_next": 0.02,
        "moved": 0.02 * np.sqrt((6 * 1 + 4 * 4 + 2 * 9) / 12),
    })  # fmt: skip
