"""The claims of the papers: the list, effects by other code, and the drawing."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.papers import SECTIONS
from robust_fairness.papers.equalized_robustness import views as equalized_robustness
from robust_fairness.papers.equalized_robustness.views import area_dominated
from robust_fairness.report.claims import declared, effects, in_words
from robust_fairness.report.claims.row_variances import with_row_variances
from robust_fairness.report.views import published
from studies.papers import PAPERS, VERDICTS, counted
from tests.report.made_up import results, row
from tools.pages import STUDIES

LISTED = declared.listed()
MINED = ("distance", "semi_hard")


def scores(paper: str, **values: object) -> pd.DataFrame:
    """Stored scores with these values, each once."""
    rows = pd.read_parquet(STUDIES / paper / "scores" / "metrics.parquet").drop(columns="selection")
    for name, value in values.items():
        rows = rows[rows[name].isin(value if isinstance(value, list) else [value])]
    return rows.drop_duplicates(["dataset", "method", "trial", "seed", "shift", "severity",
                                 "attribute", "group", "metric"])  # fmt: skip


def test_curvature_of_the_smallest_group_beside_the_largest():
    """By hand, of two replicas; the group is the same although one split has it larger."""
    values = {0: {"a": (2.0, 30), "b": (4.0, 10)}, 1: {"a": (3.0, 20), "b": (1.0, 22)}}
    rows = [
        row(dataset="adult", seed=seed, attribute="sex", group=group, n=n, value=value,
            metric="curvature_by_group")
        for seed, groups in values.items()
        for group, (value, n) in groups.items()
    ]  # fmt: skip
    made = results(rows)
    ratios = equalized_robustness.measured(made).query("metric == 'curvature_log_ratio'")
    assert ratios.set_index("seed")["value"].to_dict() == pytest.approx(
        {0: np.log(2), 1: -np.log(3)}
    )
    (shown,) = equalized_robustness.minority_curvature(made).to_dict("records")
    assert (shown["minority"], shown["majority"]) == (2.5, 2.5)
    assert (shown["larger"], shown["seeds"]) == (1, 2)


CLAIM = {
    "claim": "it is so", "at": "1", "effect": "x", "known": "nothing", "expect": "above",
    "known_before": "no",
    "margin": 0.1, "rows": {"metric": "accuracy"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expect": "more"}, "claims.yml: claim 'it is so', expect: Input should be 'above'"),
        ({"known_before": "maybe"}, "claim 'it is so', known_before: Input should be 'yes'"),
        ({"known_before": None}, "the claim needs known_before"),
        ({"margin": -1}, "claim 'it is so', margin"),
        ({"margin": "half"}, "the claim needs a margin, or half of a published effect"),
        ({"expect": None}, "the claim needs expect"),
        ({"dataset": "adult"}, "claim 'it is so', dataset: Extra inputs are not permitted"),
        ({"known": None}, "claim 'it is so', known"),
        ({"parts": [{"part": "a"}, {"part": "a"}]}, "two parts have the same name"),
        ({"margin": None, "parts": [{"part": "a"}]}, "part 'a' needs a margin"),
        ({"margin": "half", "published": 1, "default_run": [{"published": 0}]}, "needs a margin"),
    ],
)
def test_a_mistake_in_the_list_is_one_line(change, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        declared.read(yaml.safe_dump([CLAIM | change]))
    assert "\n" not in str(caught.value) and str(caught.value).startswith("claims.yml: ")


def test_a_column_that_scores_lack_is_an_error():
    (claim,) = declared.read(yaml.safe_dump([CLAIM | {"rows": {"colour": "red"}}]))
    run = results([row()])
    with pytest.raises(InputError, match="claim 'it is so': scores have no column 'colour'"):
        effects.table([claim], with_row_variances(run.metrics, run), run)


def printed(paper: str, view: str, **values: object) -> float:
    """Mean of the numbers of a table with these values, as they were read off the paper."""
    rows = published(paper)
    for name, value in {"view": view, **values}.items():
        rows = rows[rows[name].isin(value if isinstance(value, list) else [value])]
    return rows["value"].mean()


def test_published_effects_of_equalized_robustness_are_those_of_tables_1_to_5():
    """By pandas alone."""
    noises = {"adult": "table_3", "communities_race": "table_1", "communities_divorce": "table_2",
              "celeba_chubby": "table_4", "celeba_eyeglasses": "table_5"}  # fmt: skip
    doubled = {"communities_race": "table_8", "communities_divorce": "table_9"}
    shifts = ["gaussian_noise", "uniform_noise", "impulse_noise"]
    compared = 0
    for claim in LISTED["equalized_robustness"]:
        metric = claim.rows.get("metric")
        if metric not in ("delta_eo", "delta_er", "accuracy") or claim.rows.get("dataset"):
            continue
        for part in claim.each():
            if "trial" in part.first:  # of ablations, below
                continue
            dataset = str(part.rows["dataset"]).replace("_zca", "").replace("_all_rows", "")
            tables_of = doubled if part.rows.get("severity") == 0.06 else noises
            sides = []
            for side in (part.first, part.second):
                asked = {**part.rows, **side}
                shift = asked.get("shift")
                sides.append(
                    printed(
                        "equalized_robustness", tables_of[dataset], dataset=dataset, metric=metric,
                        method=asked["method"],
                        shift=shift if shift in ("none", "impulse_noise") else shifts,
                    )
                )  # fmt: skip
            assert part.published == pytest.approx(sides[0] - sides[1], abs=6e-5)
            compared += 1
    assert compared == 10 + 10 + 20 + 10 + 8 + 10 + 30 + 6


def test_published_effects_of_rare_classes_are_those_of_table_1():
    """The mean over the losses whose controls are printed."""
    losses = {
        "recall@1": ["margin_distance", "margin_semi_hard"],
        "accuracy": [
            "margin_distance",
            "margin_semi_hard",
            "triplet_distance",
            "triplet_semi_hard",
        ],
    }
    names = {"recall@1": "recall_at", "accuracy": "accuracy"}
    for claim, part in zip(LISTED["fair_metric_learning"][:2], losses, strict=True):
        listed_part = next(each for each in claim.each() if each.part == f"MNIST, {part}")
        sides = [
            printed("fair_metric_learning", "table_1", dataset=f"cub200_{balance}",
                    method=losses[part], metric=f"{names[part]}_majority_gap")
            for balance in ("imbalanced", "balanced")
        ]  # fmt: skip
        assert listed_part.published == pytest.approx(sides[0] - sides[1], abs=6e-5)


def test_published_effects_of_ablations_and_of_other_papers_are_those_printed():
    """Read off the tables."""
    published_effects = {
        (claim.claim, part.part): part.published
        for listed in LISTED.values()
        for claim in listed
        for part in claim.each()
    }
    expected = {
        ("The step h hardly matters", "accuracy"): 0.8532 - 0.8540,
        ("CUMA is fairer than the other methods under shift on CelebA",
         "eyeglasses, plain training, impulse noise"): 0.3168 - 0.4563,
        ("Explicit methods are below the standard model on Biased MNIST, except LNL",
         "LNL, 24 pixels"): 0.441 - 0.420,
        ("Spectral decoupling is above the standard model on CelebA, the best of all", ""):
            0.886 - 0.803,
        ("LNL and IRMv1 are comparable with the standard model on CelebA", "LNL"): 0.792 - 0.803,
        ("PARADE reduces the gaps on LFW and those of the embedding on CelebA", "LFW, NMI"):
            0.041 - 0.048,
        ("Rare classes widen the gaps of the embedding with ResNet-50 on CUB200 and CARS196",
         "CARS196, NMI"): 0.108 - -0.0145,
        ("The step h hardly matters", "Delta-EO"): 0.2915 - 0.2835,
        ("Delta-ER is lowest at alpha = 1", "alpha = 10"): 0.0761 - 0.1856,
        ("Learning from failure is above the standard model on Biased MNIST", "24 pixels"):
            0.566 - 0.420,
        ("Group upweighting, group DRO and RUBi improve on the standard model on CelebA",
         "group DRO"): 0.885 - 0.803,
        ("Explicit methods are below the standard model on Biased MNIST, except LNL",
         "RUBi, 96 pixels"):
            0.345 - 0.420,
        ("A larger weight costs accuracy", "equalised odds"): 0.6057 - 0.7833,
        ("A larger weight gives a larger p-value", "demographic parity"): 0.27,
        ("The penalty is fairer than plain training under calibration", "C&C, Students"):
            (0.06 - 0.16 + 0.04 - 0.11) / 2,
        ("The penalty is fairer than plain training under demographic parity",
         "disparate impact, COMPAS, German, Drugs"):
            (0.90 - 0.39 + 1 / 1.02 - 1 / 1.26 + 0.84 - 0.42) / 3,
    }  # fmt: skip
    for key, value in expected.items():
        assert published_effects[key] == pytest.approx(value, abs=6e-5), key


def made_up(values: dict[str, list[float]], metric: str = "accuracy") -> list[dict]:
    return [
        row(dataset="adult", method=method, seed=seed, value=value, metric=metric, n=1000)
        for method, of_seeds in values.items()
        for seed, value in enumerate(of_seeds)
    ]


def table_of(run, **fields) -> pd.DataFrame:
    text = yaml.safe_dump([CLAIM | {"first": {"method": "a"}, "second": {"method": "b"}} | fields])
    return effects.table(declared.read(text), with_row_variances(run.metrics, run), run)


def test_seeds_are_paired_and_incomplete_ones_are_left_out():
    levels = {"a": [0.9, 0.8, 0.85, 0.95, 0.9, 0.7], "b": [0.8, 0.72, 0.74, 0.86, 0.79]}
    effect = table_of(results(made_up(levels))).iloc[0]
    t = stats.ttest_rel(levels["a"][:5], levels["b"])
    assert effect["seeds"] == 5 and effect["question"] == "this method"
    assert effect["ours"] == pytest.approx(np.subtract(levels["a"][:5], levels["b"]).mean())
    # the test rows, which all seeds share, add to what seeds vary
    assert t.pvalue < effect["p"] < 0.05 and effect["verdict"] == "supported"


@pytest.mark.parametrize(
    ("run", "short", "parts"),
    [
        ("own other short", "short", "own other"),
        ("own short", "short", "own other"),
        ("own short", "own short", "own short"),
        ("own", "own short", "own other"),
        ("own", "own", "own"),
        ("short", "short", "short"),
        ("own", "short", "own other"),
        ("", "short", "own other"),
    ],
)
def test_parts_of_the_default_run_stand_for_own_ones_that_were_not_run(run, short, parts):
    """Whatever the scores are: here those of the default run contradict the claim."""
    rows = [
        row(dataset=dataset, method=method, seed=seed, value=0.8 + 0.001 * seed + better, n=1000)
        for dataset in [*run.split(), "else"]
        for method, better in (("a", 0.0), ("b", 0.1 if dataset == "short" else -0.1))
        for seed in range(6)
    ]
    of = {
        field: [{"part": f"of {name}", "rows": {"dataset": name}} for name in names]
        for field, names in {"parts": ["own", "other"], "default_run": short.split()}.items()
    }
    assert table_of(results(rows), **of)["part"].to_list() == [
        f"of {name}" for name in parts.split()
    ]


def test_every_paper_has_one_main_claim_in_words(monkeypatch):
    for listed in LISTED.values():
        assert sum(bool(claim.default_run) for claim in listed) == 1
    levels = {"a": [0.9, 0.8, 0.85, 0.95, 0.9], "b": [0.8, 0.72, 0.74, 0.86, 0.79]}
    part = {"part": "here", "rows": {"dataset": "adult"}, "published": 0.2}
    text = {"first": {"method": "a"}, "second": {"method": "b"}, "default_run": [part]}
    listed = {"p": declared.read(yaml.safe_dump([CLAIM | text]))}
    monkeypatch.setattr(in_words, "listed", lambda: listed)
    run = results(made_up(levels))
    parts = effects.table(listed["p"], with_row_variances(run.metrics, run), run)
    told = in_words.main_claim("p", parts)
    effect = np.subtract(levels["a"], levels["b"]).mean()
    assert (told["name"], told["verdict"]) == ("it is so", "supported")
    assert told["ours"].startswith(f"{effect:.2g} (") and told["ours"].endswith("), 5 seeds")
    assert 'role="img"' in told["line"] and "Square:" not in told["line"]
    nothing = results([row(dataset="else", method="c")])
    rows = with_row_variances(nothing.metrics, nothing)
    assert in_words.main_claim("p", effects.table(listed["p"], rows, nothing)) == {}


def test_rows_that_both_sides_share_are_paired():
    """Six seeds of two methods that are wrong on nearly the same 300 rows."""
    rng = np.random.default_rng(4)
    hard = rng.random(300) < 0.2
    values = {
        name: [~(hard ^ (rng.random(300) < 0.02)) * 1.0 for _ in range(6)] for name in ("a", "b")
    }
    rows = made_up({name: [array.mean() for array in values[name]] for name in values})
    run = results(rows)
    arrays = [array for of_method in values.values() for array in of_method]
    text = yaml.safe_dump([CLAIM | {"first": {"method": "a"}, "second": {"method": "b"}}])
    (claim,) = declared.read(text)
    scores = with_row_variances(run.metrics, run)
    alone = effects.table([claim], scores, run).iloc[0]
    paired = effects.table([claim], scores.assign(by_row=arrays), run).iloc[0]
    difference = np.subtract(values["a"], values["b"])
    error = np.hypot(
        difference.mean(1).std(ddof=1) / np.sqrt(6), difference.mean(0).std() / np.sqrt(300)
    )
    assert paired["ours"] == alone["ours"] == pytest.approx(difference.mean())
    assert (paired["high"] - paired["low"]) / 2 == pytest.approx(2 * error, rel=0.15)
    assert paired["high"] - paired["low"] < (alone["high"] - alone["low"]) / 2
    # of other rows, or without rows of some seed, nothing is paired
    for places in ([0], range(6)):  # a seed, a side
        shorter = [array[:200] if k in places else array for k, array in enumerate(arrays)]
        unpaired = effects.table([claim], scores.assign(by_row=shorter), run).iloc[0]
        assert (unpaired["low"], unpaired["high"]) == (alone["low"], alone["high"])
    incomplete = pd.Series(arrays, scores.index).mask(np.arange(12) == 3)
    unpaired = effects.table([claim], scores.assign(by_row=incomplete), run).iloc[0]
    assert unpaired["high"] == alone["high"]


def test_what_selects_the_same_model_changes_nothing_without_an_error():
    """Criteria select among the trials of one seed: the same one, an equal one, another."""
    rows = made_up({"a": [0.8], "b": [0.8], "c": [0.8], "d": [0.6]})
    run = results(rows)
    scores = with_row_variances(run.metrics, run).assign(method="m", trial="default")
    scores = scores.assign(alpha=[-1, 2, 3, 4], model=[("m", 1), ("m", 1), ("m", 2), ("m", 3)])
    text = yaml.safe_dump(
        [
            CLAIM | {"claim": str(k), "first": {"alpha": -1}, "second": {"alpha": k}}
            for k in (2, 3, 4)
        ]
    )
    measured = effects.table(declared.read(text), scores, run)
    error = measured["error"]
    assert [*measured["ours"].round(9)] == [0, 0, 0.2] and error[0] < 1e-9
    assert error[1] > 0.015 and error[2] > error[1]
    assert (measured["low"] == measured["ours"]).all() and (measured["ends"] == "seeds").all()
    assert measured["verdict"][0] == "excluded"
    unknown = effects.table(declared.read(text), scores.assign(model=np.nan), run)
    assert unknown["error"][0] == error[1]
    apart = effects.table(declared.read(text), scores.assign(seed=[0, 1, 1, 1]), run)
    assert apart["ours"].isna().all() and set(apart["verdict"]) == {"not run"}


def test_few_seeds_answer_for_these_models_only_and_without_rows_for_nothing():
    levels = {"a": [0.9, 0.9], "b": [0.5, 0.5]}
    effect = table_of(results(made_up(levels))).iloc[0]
    assert (effect["verdict"], effect["question"]) == ("supported", "these models")
    of_other = made_up(levels, "roc_auc")
    effect = table_of(results(of_other), rows={"metric": "roc_auc"}).iloc[0]
    assert effect["verdict"] == "undecided" and effect["needed"] == "counts of rows"
    nothing = table_of(results(made_up({"a": [0.9, 0.9]}))).iloc[0]
    assert nothing["verdict"] == nothing["state"] == "not run"


def test_an_average_over_datasets_has_the_variance_of_both():
    rng = np.random.default_rng(0)
    values = {name: rng.normal(0.1, 0.05, 8) for name in ("one", "two")}
    rows = [
        row(dataset=name, method="a", seed=seed, value=value, metric="roc_auc")
        for name, of_seeds in values.items()
        for seed, value in enumerate(of_seeds)
    ]
    fields = {"rows": {"metric": "roc_auc", "dataset": ["one", "two"]}, "second": {}}
    effect = table_of(results(rows), average="dataset", **fields).iloc[0]
    variances = [of_seeds.var(ddof=1) / 8 for of_seeds in values.values()]
    df = sum(variances) ** 2 / sum(v**2 / 7 for v in variances)
    half = stats.t.isf(0.025, df) * np.sqrt(sum(variances)) / 2
    assert effect["ours"] == pytest.approx(np.mean([*values.values()]))
    assert effect["high"] - effect["ours"] == pytest.approx(half, rel=1e-3)


def test_variance_of_a_gap_by_its_counts_is_that_of_new_rows():
    """Delta-EO of 4,000 draws of the test rows, by numpy."""
    rng = np.random.default_rng(0)
    rates = {("f", 0): 0.2, ("f", 1): 0.6, ("m", 0): 0.4, ("m", 1): 0.85}
    sizes = {("f", 0): 300, ("f", 1): 200, ("m", 0): 500, ("m", 1): 150}
    counts = tables.table(
        tables.COUNTS,
        [
            {"dataset": "adult", "method": "erm", "trial": "default", "seed": 0, "shift": "none",
             "severity": 0.0, "domain": "", "attribute": "sex", "sensitive": True, "group": group,
             "label": label, "class": str(label), "before": -1, "decision": decision,
             "n": round(sizes[group, label] * (rate if decision else 1 - rate))}
            for (group, label), rate in rates.items()
            for decision in (0, 1)
        ],
    )  # fmt: skip
    rows = [row(dataset="adult", metric=metric, attribute="sex", value=0.4, n=1150)
            for metric in ("delta_eo", "delta_eopp")]  # fmt: skip
    run = results(rows, counts=counts)
    variances = with_row_variances(run.metrics, run).set_index("metric")["variance"]
    drawn = {key: rng.binomial(sizes[key], rate, 4000) / sizes[key] for key, rate in rates.items()}
    gaps = [np.abs(drawn["f", label] - drawn["m", label]) for label in (0, 1)]
    assert variances["delta_eo"] == pytest.approx(np.var(gaps[0] + gaps[1]), rel=0.1)
    assert variances["delta_eopp"] == pytest.approx(np.var(gaps[1]), rel=0.1)


@pytest.mark.parametrize(
    ("right", "stored", "state"),
    [
        (70, False, "void"), (71, False, "excluded"), (70, True, "void"), (71, True, "excluded"),
        (100, False, "excluded"),
    ],
)  # fmt: skip
def test_a_model_that_is_no_better_than_a_constant_decides_nothing(right, stored, state):
    """70 of 100 rows are of the first class, as counted or as stored; of a regression all are."""
    written = [(0, 0, right - 5), (0, 1, 75 - right), (1, 1, 5), (1, 0, 25)]
    if right == 100:
        written = [(0, 0, 100)]
    shared = {"dataset": "adult", "trial": "default", "shift": "none", "severity": 0.0}
    shared |= dict.fromkeys(("domain", "attribute", "group", "class"), "")
    shared |= {"sensitive": False, "before": -1}
    counts = tables.table(
        tables.COUNTS,
        [shared | {"method": method, "seed": seed, "label": label, "decision": decision, "n": n}
         for method in "ab" for seed in range(6) for label, decision, n in written],
    )  # fmt: skip
    gaps = made_up({"a": [0.01, 0.02] * 3, "b": [0.02, 0.01] * 3}, "delta_eo")
    shares = {"accuracy": right / 100, "constant_accuracy": 0.7}
    for metric, share in shares.items() if stored else ():
        gaps += made_up({"a": [share] * 6, "b": [share] * 6}, metric)
    run = results(gaps) if stored else results(gaps, counts=counts)
    effect = table_of(run, rows={"metric": "delta_eo"}, expect="below", margin=0.015).iloc[0]
    assert effect["state"] == state and abs(effect["ours"]) < 1e-9
    assert effect["verdict"] == {"void": "undecided"}.get(state, state)
    assert ("most frequent class" in effect["needed"]) == (state == "void")


@pytest.mark.parametrize(
    ("metric", "expect", "other", "state"),
    [
        ("delta_eo", "below", 0.09, "out of reach"),
        ("delta_eo", "below", 0.11, "excluded"),
        ("delta_eo", "above", 0.95, "excluded"),  # a sum of two differences
        ("accuracy", "above", 0.91, "out of reach"),
        ("accuracy", "above", 0.89, "excluded"),
        ("accuracy", "below", 0.09, "out of reach"),
        ("accuracy", "not below", 0.09, "holds"),
        ("recall_at_majority_gap", "below", 0.09, "excluded"),  # may be negative
        ("faircocco_dp", "within", 0.09, "holds"),
    ],
)
def test_what_the_other_side_leaves_no_room_for_is_out_of_reach(metric, expect, other, state):
    """A margin of .1 and an effect of about 0."""
    levels = {"a": other + np.array([0.001, -0.001] * 3), "b": [other] * 6}
    fields = {"rows": {"metric": metric}, "expect": expect, "margin": 0.1}
    rows = [line | {"n": 10**6} for line in made_up(levels, metric)]
    assert table_of(results(rows), **fields).iloc[0]["state"] == state
    # with an effect that holds, the room does not matter
    if state == "out of reach":
        half = {"below": other / 2, "above": (1 + other) / 2}[expect]
        holding = made_up(levels | {"a": half + np.array([0.001, -0.001] * 3)}, metric)
        rows = [line | {"n": 10**6} for line in holding]
        assert table_of(results(rows), **fields).iloc[0]["state"] == "holds"


def test_accuracy_falls_at_most_to_that_of_a_constant():
    """.82 where the most frequent class is .75, and a fall of .1 is asked for."""
    levels = {"a": [0.82, 0.821] * 3, "b": [0.821, 0.82] * 3}
    rows = made_up(levels) + made_up({"a": [0.75] * 6, "b": [0.75] * 6}, "constant_accuracy")
    effect = table_of(results(rows), expect="below").iloc[0]
    assert effect["state"] == "out of reach" and effect["reach"] == pytest.approx(0.0705)
    assert effect["needed"] == "data on which 0.100 is possible, here at most 0.070"


@pytest.mark.parametrize(
    ("expect", "effects", "state"),
    [
        ("above", [0.22, 0.2], "holds"),
        ("above", [0.22, -0.01], "undecided"),
        ("below", [-0.22, 0.01], "undecided"),
        ("below", [0.22, 0.01, 0.3], "reversed"),
        ("not below", [0.05, -0.05], "holds"),
        ("not below", [0.4, -0.15], "undecided"),
        ("within", [0.01, 0.12, 0.0], "undecided"),
        ("above", [0.3, 0.3, 0.3, 0.3, -0.01], "holds"),  # five: their variance
    ],
)
def test_few_seeds_on_both_sides_decide_nothing(expect, effects, state):
    levels = {"a": 0.5 + np.array(effects), "b": [0.5] * len(effects)}
    rows = [line | {"n": 10**5} for line in made_up(levels)]
    effect = table_of(results(rows), expect=expect).iloc[0]
    assert effect["state"] == state
    if len(effects) < 5:
        assert effect[["low", "high"]].tolist() == pytest.approx([min(effects), max(effects)])
        assert effect["ends"] == "seeds" and effect["question"] == "these models"
    else:
        assert effect["ends"] == "95 %" and effect["low"] > min(effects)


def test_quantities_of_equalized_robustness_by_other_code():
    run = PAPERS["equalized_robustness"].results
    rows = SECTIONS["equalized_robustness"].measured(run)
    correlations = rows[(rows["metric"] == "rank_correlation") & (rows["dataset"] == "adult")]
    correlations = correlations[
        (correlations["shift"] == "uniform_noise") & (correlations["severity"] == 0.03)
    ]
    stored = scores("equalized_robustness", dataset="adult", trial="default",
                    method=["erm", "adv_debias", "laftr", "cuma"], group="")  # fmt: skip
    for item in correlations.itertuples():
        of_seed = stored[stored["seed"] == item.seed]
        of_seed = of_seed[of_seed["attribute"] == "sex"]
        robust = of_seed[(of_seed["metric"] == "delta_er") & (of_seed["shift"] == "none")]
        fair = of_seed[
            (of_seed["metric"] == "delta_eo")
            & (of_seed["shift"] == "uniform_noise") & (of_seed["severity"] == 0.03)
        ]  # fmt: skip
        both = robust.merge(fair, on="method")
        expected = stats.spearmanr(both["value_x"], both["value_y"]).statistic
        assert item.value == pytest.approx(expected)
    assert len(correlations) == stored["seed"].nunique()


def test_area_of_a_trade_off_is_that_of_a_fine_grid():
    rng = np.random.default_rng(0)
    for _ in range(20):
        accuracy, gap = rng.uniform(0.65, 0.95, 6), rng.uniform(0, 1.3, 6)
        grid = np.linspace(0.7, 0.95, 5001)
        least = [gap[accuracy >= a].min(initial=1.0) for a in grid]
        expected = np.mean(1 - np.minimum(least, 1)) * 0.25
        assert area_dominated(accuracy, gap) == pytest.approx(expected, abs=2e-4)


def test_quantities_of_latent_shifts_by_other_code():
    run = PAPERS["latent_shift"].results
    rows = SECTIONS["latent_shift"].measured(run).set_index(
        ["metric", "dataset", "shift", "method", "seed"]
    )  # fmt: skip
    stored = scores("latent_shift", dataset="digits_truncation", method="mlp_mixer", seed=0)
    shifted = stored[stored["shift"] == "truncation"]
    slope = np.polyfit(shifted["severity"], shifted["value"], 1)[0]
    fall = rows.loc[("fall", "digits_truncation", "truncation", "mlp_mixer", 0)]["value"]
    assert fall == pytest.approx(slope * (shifted["severity"].max() - shifted["severity"].min()))
    distances = run.distances[run.distances["dataset"] == "digits_overlap"]
    plain = scores("latent_shift", dataset="digits_overlap", seed=1)
    plain = plain[~plain["method"].str.contains("randaugment")]
    home = plain[plain["shift"] == "none"].set_index("method")["value"]
    expected = []
    for _, of_space in distances.groupby("space"):
        joined = plain.merge(of_space, on=["shift", "severity"])
        change = joined["value_x"] - joined["method"].map(home)
        squares = {
            name: np.corrcoef(function(joined["value_y"]), change)[0, 1] ** 2
            for name, function in {"d": np.abs, "2": np.square, "r": np.sqrt, "l": np.log}.items()
        }
        expected.append(squares.pop("d") - max(squares.values()))
    linearity = rows.loc[("linearity", "digits_overlap", "overlap", "", 1)]["value"]
    assert sorted(linearity) == pytest.approx(sorted(expected))


def test_rows_of_latent_shifts_are_those_of_the_counts():
    """As many are correct as were counted; what rows add to an effect is it in the mean."""
    stored = pd.read_parquet(STUDIES / "latent_shift" / "scores" / "correct.parquet")
    counts = pd.read_parquet(STUDIES / "latent_shift" / "scores" / "counts.parquet")
    keys = ["dataset", "method", "trial", "seed", "shift", "severity"]
    hits = counts[counts["label"] == counts["decision"]].groupby(keys)["n"].sum()
    correct = stored.set_index(keys)["correct"].map(np.sum).reindex(hits.index)
    assert (correct == hits).all() and len(hits) >= 1330


def test_slopes_and_changes_are_means_over_rows():
    rows = SECTIONS["latent_shift"].measured(PAPERS["latent_shift"].results)
    known = rows[rows["by_row"].notna()]
    assert set(known["metric"]) == {"unshifted", "change_at_largest", "fall"}
    assert known["by_row"].map(np.mean).to_numpy(float) == pytest.approx(known["value"])


def test_every_claim_is_drawn_with_its_verdict_in_grey_and_within_the_width():
    papers = {SECTIONS[name].title: PAPERS[name].effects for name in LISTED}
    text = str(in_words.drawn(papers))
    root = ElementTree.fromstring(text)
    said = root.get("aria-label")
    for parts in papers.values():
        for line in in_words.judged(parts).itertuples():
            assert f"{line.claim}: {line.says}" in said
            assert line.says.startswith(line.verdict)
    colours = set(re.findall(r"#[0-9a-f]{3,6}", text))
    for colour in colours - {"#fff"}:
        channels = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
        assert max(channels) - min(channels) < 40, "readable in black and white"
    longest = max(len(node.text or "") for node in root.iter() if node.tag.endswith("text"))
    assert longest <= 62
    for node in root.iter():
        for name in ("x", "cx"):
            assert 0 <= float(node.get(name, 0)) <= 400


def test_undecided_claims_say_what_is_possible_and_what_would_decide():
    for name in LISTED:
        parts = PAPERS[name].effects
        for line in in_words.judged(parts).itertuples():
            if line.verdict == "undecided":
                assert "needs " in line.says, line.says
            assert line.verdict != "not run" or "not run" in line.says
    parts = PAPERS["kernel_fairness"].effects
    small = parts[parts["claim"] == "The penalty is fairer than plain training under calibration"]
    states = ["excluded", "not run"]
    half = small.assign(verdict="undecided", state=states, ours=[0.0, np.nan], needed="", cost="x")
    said = in_words.judged(half)["says"].tolist()
    assert said == ["undecided: 1 of 2 excluded, 1 of 2 not run; needs a run"]
    mixed = in_words.judged(PAPERS["bias_mitigation"].effects).set_index("claim")["says"]
    of_both = mixed["The position of the digit is exploited less than the other variables"]
    assert of_both == "mixed (these models in 1 of 2): 1 of 2 holds, 1 of 2 excluded"
    assert mixed["Gains for blond hair cost accuracy on other hair in CelebA"].startswith(
        "partly (these models): "
    )


def test_numbers_of_claims_are_those_of_the_verdicts():
    """Those of the tables of effects; pages have the sentence, which another test makes again."""
    verdicts = []
    for name in LISTED:
        parts = pd.read_csv(STUDIES / name / "tables" / "effects.csv")
        verdicts += parts.groupby("claim")["verdict"].first().tolist()
    said = counted()
    numbers = [int(number) for number in re.findall(r"\d+", said)]
    assert numbers[0] == len(verdicts) == sum(numbers[1:])
    for verdict, (alone, several) in VERDICTS.items():
        count = verdicts.count(verdict)
        assert (f"{count} {several if count > 1 else alone}" in said) == (count > 0)
