"""The table for methods, against pandas and scipy on the table of metrics."""

import re
import shutil
import subprocess
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.papers import VIEWS
from robust_fairness.report import Results
from robust_fairness.report.methods import as_table, methods
from tests.report.made_up import results, row

METHODS, SEEDS = ("erm", "cuma", "lff"), range(6)
TESTED = [("none", 0.0, ""), ("none", 0.0, "SD"), ("noise", 0.1, ""), ("noise", 0.5, ""),
          ("blur", 1.0, "")]  # fmt: skip
AWAY = [("none", 0.0, ""), ("domain", 0.0, "NM"), ("domain", 0.0, "WY")]
SCORES = [("accuracy", ""), ("delta_eo", "sex"), ("delta_eo", "race")]


@pytest.fixture(scope="module")
def run() -> Results:
    """Synthetic shifts of one dataset and domains of another, of random scores."""
    rng = np.random.default_rng(0)
    places = [("income", place) for place in TESTED] + [("visits", place) for place in AWAY]
    return results([
        row(dataset=dataset, method=method, seed=seed, shift=shift, severity=severity,
            domain=domain, metric=metric, attribute=attribute, selection="accuracy",
            value=rng.normal(0.5 + 0.1 * (method == "cuma"), 0.05))
        for (dataset, (shift, severity, domain)), method, seed, (metric, attribute)
        in product(places, METHODS, SEEDS, SCORES)
    ])  # fmt: skip


def table_of(run: Results) -> pd.DataFrame:
    """The table of metrics as a run stores it."""
    return pd.concat([run.metrics, run.by_domain])


def test_means_and_deviations_are_those_of_pandas(run):
    stored = table_of(run)
    stored = stored[(stored["shift"] != "none") | (stored["domain"] == "")]
    by = ["dataset", "shift", "severity", "domain", "attribute", "metric", "method"]
    expected = stored.groupby(by)["value"].agg(["mean", "std", "count"])
    shown = methods(run)
    assert len(shown) == len(expected) == (4 + 3) * len(SCORES) * len(METHODS)
    names = {"noise 0.1": ("noise", 0.1, ""), "noise 0.5": ("noise", 0.5, ""),
             "blur 1": ("blur", 1.0, ""), "home": ("none", 0.0, ""), "NM": ("domain", 0.0, "NM"),
             "WY": ("domain", 0.0, "WY")}  # fmt: skip
    for line in shown.to_dict("records"):
        key = (line["dataset"], *names[line["tested"]], line["attribute"], line["metric"])
        known = expected.loc[(*key, line["method"])]
        assert [line["mean"], line["sd"], line["seeds"]] == pytest.approx(list(known), abs=1e-12)


def test_the_mean_under_shift_is_over_the_strongest_of_each_shift(run):
    shown = methods(run, metrics=["delta_eo"], mean_under_shift=True)
    assert list(dict.fromkeys(shown["tested"])) == ["home", "mean under shift"]
    stored = table_of(run).query("shift != 'none' and severity != 0.1 and metric == 'delta_eo'")
    by_seed = stored.groupby(["dataset", "attribute", "method", "seed"])["value"].mean()
    expected = by_seed.groupby(["dataset", "attribute", "method"]).agg(["mean", "std"])
    shifted = shown[shown["tested"] != "home"].set_index(["dataset", "attribute", "method"])
    pd.testing.assert_frame_equal(
        shifted[["mean", "sd"]].sort_index().set_axis(["mean", "std"], axis=1),
        expected.sort_index(), check_index_type=False,
    )  # fmt: skip


@pytest.mark.parametrize("against", ["erm", "lff"])
def test_a_difference_is_that_of_a_paired_t_test(run, against):
    """Of one difference, whose variance borrows from no others."""
    stored = table_of(run).query("dataset == 'visits' and domain == '' and metric == 'accuracy'")
    pair = stored[stored["method"].isin(["cuma", against])]
    alone = results(pair.assign(trial="default"))
    (line,) = methods(alone, against).dropna(subset="difference").to_dict("records")
    a, b = (pair[pair["method"] == name].sort_values("seed")["value"] for name in ("cuma", against))
    test = stats.ttest_rel(a, b)
    assert line["difference"] == pytest.approx((a.to_numpy() - b.to_numpy()).mean())
    assert line["p_holm"] == pytest.approx(test.pvalue)
    assert (line["low"], line["high"]) == pytest.approx(tuple(test.confidence_interval()))
    assert line["says"] == ("higher" if test.pvalue < 0.05 else "inconclusive")


def test_few_seeds_are_not_tested_and_one_has_no_deviation(run):
    stored = table_of(run)
    few = methods(results(stored[stored["seed"] < 3].assign(trial="default")))
    compared = few[few["method"] != "erm"]
    assert set(compared["says"]) == {"not tested"} and compared["p_holm"].isna().all()
    assert compared["difference"].notna().all()
    single = methods(results(stored[stored["seed"] == 0].assign(trial="default")))
    assert single["sd"].isna().all()


def test_text_has_methods_as_rows_and_every_attribute(run):
    shown = as_table(methods(run, metrics=["delta_eo", "accuracy"]), digits=2)
    assert list(shown) == ["dataset", "tested", "attribute", "method", "delta_eo", "accuracy"]
    home = shown[(shown["dataset"] == "income") & (shown["tested"] == "home")]
    assert home["attribute"].tolist() == ["sex"] * 3 + ["race"] * 3
    assert home["method"].tolist() == [*METHODS] * 2
    accuracy = home["accuracy"].tolist()
    assert accuracy[:3] == accuracy[3:]  # that of the rows, whatever their attribute
    mean = table_of(run).query(
        "dataset == 'income' and shift == 'none' and domain == '' and method == 'erm'"
        " and metric == 'accuracy'"
    )["value"]
    assert accuracy[0] == f"{mean.mean():.2f} ± {mean.std():.2f}"
    assert re.fullmatch(
        r"0\.\d\d ± 0\.\d\d \(\+0\.\d\d, [+-]0\.\d\d to \+0\.\d\d\)\*?", accuracy[1]
    )
    assert set(VIEWS["methods"].rows(run)["tested"]) == {"home", "mean under shift"}


def test_latex_is_one_tabular_whose_rows_have_as_many_cells(run):
    text = tables.latex(as_table(methods(run)))
    lines = text.splitlines()
    assert lines[0].startswith(r"\begin{tabular}{") and lines[-1] == r"\end{tabular}"
    assert [line for line in lines if line.endswith("rule")] == [
        r"\toprule", r"\midrule", r"\bottomrule"
    ]  # fmt: skip
    rows = [line for line in lines if line.endswith(r"\\")]
    columns = len(re.fullmatch(r"\\begin\{tabular\}\{(l+)\}", lines[0])[1])
    assert len(rows) == 1 + len(as_table(methods(run)))
    assert {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {columns - 1}
    assert text.isascii() and text.count("{") == text.count("}")
    names, *cells = ([cell.strip() for cell in line[:-2].split(" & ")] for line in rows)
    assert names == ["dataset", "tested", "attribute", "method", "accuracy", r"delta\_eo"]
    stored = table_of(run).assign(shift=lambda rows: rows["shift"].where(rows["domain"] == "", ""))
    stored = stored[stored["shift"].ne("") | stored["domain"].isin(["NM", "WY"])]
    strength = stored["severity"].map(" {:g}".format).where(stored["severity"] > 0, "")
    tested = (stored["shift"] + strength + stored["domain"]).replace("none", "home")
    keys = ["dataset", tested.rename("tested"), "attribute", "method", "metric"]
    known = stored.groupby(keys)["value"].agg(["mean", "std"])
    for dataset, place, attribute, method, *scores in cells:
        for metric, of, score in zip(
            ("accuracy", "delta_eo"), ("", attribute), scores, strict=True
        ):
            mean, deviation = known.loc[(dataset, place, of, method, metric)]
            assert score.startswith(rf"{mean:.3f} $\pm$ {deviation:.3f}")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex with booktabs")
def test_latex_compiles_whatever_names_have(run, tmp_path):
    frame = as_table(methods(run)).replace({"attribute": {"race": r"race & sex_2 #1 50 % $^~{\}"}})
    head = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
    text = f"{head}\n{tables.latex(frame)}\\end{{document}}\n"
    (tmp_path / "table.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert (
        tmp_path / "table.pdf"
    ).stat().st_size > 10_000 and "Missing character" not in done.stdout


def test_unknown_names_are_one_line(run):
    with pytest.raises(InputError, match="unknown method 'cumma': did you mean 'cuma'"):
        methods(run, against="cumma")
    with pytest.raises(InputError, match="unknown metric 'acuracy': did you mean 'accuracy'"):
        methods(run, metrics=["acuracy"])
    assert methods(Results(run.metrics.iloc[:0])).empty
