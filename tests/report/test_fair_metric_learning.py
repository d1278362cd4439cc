"""Views and claims of finDML and PARADE, on made-up scores whose right answers are known."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from robust_fairness.catalog.schemas import Schema
from robust_fairness.core import tables
from robust_fairness.papers import SECTIONS
from robust_fairness.papers.fair_metric_learning import views as study
from robust_fairness.report import Results, report
from robust_fairness.report.views import published
from tests.report.made_up import results
from tests.report.made_up import row as any_row

SECTION = SECTIONS["fair_metric_learning"]
VIEWS = {view.id: view for view in SECTION.views}
SEEDS = 5
QUANTITIES = (*study.UPSTREAM, *study.DOWNSTREAM)
COLOURS = {"black": 0.9, "blue": 0.8, "grey": 0.7}
TONES = {"I": 0.9, "II": 0.8, "III": 0.7, "IV": 0.5, "V": 0.3, "VI": 0.1}
RACES = {"Asian": 0.5, "Black": 0.6, "Indian": 0.7, "White": 0.9}
FOREST = "classifier=random_forest"
LIKELY = "scan damaged; most likely reading"
# What stands before, or stands for, the tables of the paper in its text.
SECTIONS = {
    "table_1": ("Table 1: Gap", "Figure 3: Impact"),
    "table_2": ("Table 2: Comparison", "For CelebA, we find"),
    "table_3": ("Figure 5: ", "Table 3: "),
    "table_4": ("Figure 6: ", "Table 4: "),
    "table_5": ("Figure 7: ", "Table 5: "),
    "table_6": ("are shown in Table 8.", "Table 6: "),
    "table_7": ("Table 6: ", "Table 7: "),
    "table_8": ("Table 8: ", "Figure 8: "),
    "table_9": ("C.3 CelebA", "Table 9: "),
    "table_10": ("Table 9: ", "Table 10: "),
    "table_11": ("Table 11: ", "Table 12: "),
    "table_12": ("Table 12: ", "C.5 EXPLORATION"),
    "table_13": ("C.5 EXPLORATION", "Table 13: "),
    "table_14": ("Figure 9: ", "Table 14: "),
    "table_15": ("Table 14: ", "Table 15: "),
    "table_16": ("Table 15: ", "Table 16: "),
    "table_17": ("Table 16: ", "Table 17: "),
    "table_18": ("Figure 10: ", "Table 18: "),
    "table_19": ("Table 18: ", "Table 19: "),
    "table_20": ("Table 19: ", "Table 20: "),
    "table_21": ("Table 21: ", "Figure 11: "),
    "hyperparameters": ("The two PARADE parameters", "D.4 FAIRNESS"),
}
row = partial(any_row, dataset="cub200_balanced", method="margin_distance", selection="recall_at")


def tilt(seed: int) -> float:
    """What a seed adds; 0 in the mean."""
    return 0.001 * (seed - (SEEDS - 1) / 2)


def of_class_size() -> list[dict]:
    """Gaps that grow by 0.01 for every 10 % of the majority, and by 0.1 with imbalance.

    U_KL of the majority falls as much: lower is better.
    """
    rows = []
    signs = {"u_kl": -1}
    levels = {
        "_balanced": 0.02,
        "_imbalanced": 0.12,
        "_imbalanced_70": 0.04,
        "_imbalanced_90": 0.06,
    }
    for name in ("cub200", "digits"):
        for ending, value in levels.items():
            for seed in range(SEEDS):
                for trial in ("default", FOREST):
                    rows += [
                        row(
                            dataset=name + ending, seed=seed, trial=trial, attribute="class_size",
                            metric=f"{quantity}_majority_gap",
                            value=signs.get(quantity, 1) * value * (1 + 10 * tilt(seed)),
                        )
                        for quantity in QUANTITIES
                    ]  # fmt: skip
    return rows


def of_groups() -> list[dict]:
    """PARADE halves every gap, and costs 0.1 of everything."""
    rows = []
    groups = {"color": COLOURS, "skin_tone": TONES, "race": RACES}
    for dataset, (attribute, kind) in study.ATTRIBUTES.items():
        for method, factor, cost in (("margin_distance", 1, 0), ("parade", 0.5, 0.1)):
            for seed in range(SEEDS):
                replica = {"dataset": dataset, "method": method, "seed": seed}
                for quantity in QUANTITIES:
                    of = {**replica, "attribute": attribute}
                    value = 0.2 * factor * (1 + 10 * tilt(seed))
                    rows.append(row(**of, metric=f"{quantity}_{kind}", value=value))
                    rows += [
                        row(
                            **of, group=group, metric=f"{quantity}_by_group", value=middle, n=10 * n
                        )
                        for n, (group, middle) in enumerate(groups[attribute].items(), 1)
                    ]
                for metric in ("recall_at", "nmi", "accuracy"):
                    rows.append(row(**replica, metric=metric, value=0.8 - cost + tilt(seed)))
    return rows


def made_up() -> pd.DataFrame:
    others = [
        row(dataset="diabetes", method="erm", metric="accuracy"),
        row(dataset="diabetes", method="erm", metric="accuracy_worst_gap", attribute="sex"),
        row(shift="gaussian_noise", severity=0.1, metric="recall_at_majority_gap", value=9.0),
    ]
    return tables.table(tables.METRICS, of_class_size() + of_groups() + others)


def planes() -> pd.DataFrame:
    """Three points of two cells in two spaces, with two attributes."""
    rows = [
        {
            "dataset": dataset, "method": "parade", "seed": 0, "space": space, "row": number,
            "x": float(number), "y": 0.0, "label": f"class {number % 2}", "attribute": attribute,
            "group": f"{attribute} {number // 2}",
        }
        for dataset in ("cub200_color", "coloured_digits")
        for space in ("embedding", "attribute_embedding")
        for attribute in ("color", "size")
        for number in range(3)
    ]  # fmt: skip
    return tables.table(tables.PLANES, rows)


def run(metrics: pd.DataFrame | None = None, **further) -> Results:
    """The results of a run."""
    facets = {}
    for study_of in ("cub200", "digits"):
        facets |= {
            f"{study_of}_balanced": {"study": study_of, "balance": "balanced", "percent": 50},
            f"{study_of}_imbalanced": {"study": study_of, "balance": "imbalanced"},
            f"{study_of}_imbalanced_70": {"study": study_of, "percent": 70},
            f"{study_of}_imbalanced_90": {"study": study_of, "percent": 90},
        }
    return results(made_up() if metrics is None else metrics, facets, **further)


def view(name: str, metrics: pd.DataFrame | None = None, **further) -> pd.DataFrame:
    """Rows of a view."""
    return VIEWS[name].rows(run(metrics, **further))


def test_the_made_up_tables_are_tables():
    Schema("metrics").validate(made_up())
    Schema("planes").validate(planes())


def test_published_numbers_have_every_cell_of_the_tables_once():
    """Rows by table are its columns times its lines; what cannot be read says so."""
    frame = published(study.PAPER)
    classes = 12 * 2 * 7
    assert frame.groupby("view").size().to_dict() == {
        "table_1": 6 * 8, "table_2": 6 * (2 + 2 + 4), "table_3": 24, "table_4": 12, "table_5": 8,
        "table_6": classes, "table_7": classes, "table_8": 2 * 6 * 7, "table_9": classes,
        "table_10": classes, "table_11": 2 * 6 * 7, "table_12": 12, "table_13": 6 * 26,
        "table_14": 30, "table_15": 30, "table_16": 12, "table_17": 6 * 14, "table_18": 30,
        "table_19": 30, "table_20": 6 * 8, "table_21": 2 * 6 * 3, "hyperparameters": 6,
    }  # fmt: skip
    place = ["view", "dataset", "method", "trial", "attribute", "group", "metric"]
    assert not frame.duplicated(place).any()
    assert (frame[frame["value"].isna()]["note"] != "").all()
    told = frame["view"].isin(["hyperparameters", "table_3", "table_4", "table_5"])
    silent = frame["std"].isna() & frame["value"].notna() & ~told
    assert frame[silent]["note"].str.contains("deviation cut|most likely reading").all()
    assert (frame["std"].dropna() >= 0).all()
    # entropies have no upper bound; everything else is a share or a difference of shares
    bounded = frame[~frame["metric"].str.contains("u_kl|rho")]
    assert bounded["value"].dropna().between(-1, 1).all()


def test_every_published_number_stands_in_the_paper(shared_data):
    """In the part of the text that has its table; columns of the text are cut within numbers."""
    path = shared_data.parent / "papers" / "fair_metric_learning.txt"
    if not path.is_file():
        pytest.skip("no text of the paper")
    text = path.read_text()
    missing = []
    for name, rows in published(study.PAPER).groupby("view", sort=False):
        first, last = SECTIONS[name]
        section = text[text.index(first) : text.index(last, text.index(first))]
        for printed in rows.itertuples():
            value = printed.value * 100 if printed.metric.endswith("_share") else printed.value
            for number in (value, printed.std):
                if not np.isnan(number) and not occurs(abs(number), section):
                    missing.append((name, printed.method, printed.metric, number, printed.note))
    # arrays of Table 7 are cut in two, so that last digits stand lines away from the first
    assert all(note == LIKELY for name, *_, note in missing if name != "table_7")
    assert len(missing) <= 25


def occurs(number: float, text: str) -> bool:
    """Whether a number stands in a text, whole or cut in two with a digit in both parts."""
    cut = r"[\t\n $\\{}&]+"
    for digits in {f"{number:g}", f"{number:.2f}", f"{number:.3f}"}:
        if float(digits) != pytest.approx(number, abs=1e-9):
            continue
        whole = digits.removeprefix("0") if "." in digits else digits
        if re.search(rf"(?<!\d)0?{re.escape(whole)}(?!\d)", text):
            return True
        pieces = [
            rf"{re.escape(digits[:place])}{cut}\d?\)?{re.escape(digits[place:])}(?!\d)"
            for place in range(2, len(digits))
        ]
        if any(re.search(piece, text) for piece in pieces):
            return True
    return False


def test_a_number_that_is_not_there_does_not_occur():
    """The check of the transcription can fail."""
    assert occurs(0.217, "0.21	7 ± 0.003")
    assert occurs(0.841, "0.84	41 ± 0.003")
    assert occurs(0.81, "$.81 ± 0.1$")
    for number in (0.216, 0.3, 0.003, 0.17):
        assert not occurs(number, "0.21	7 ± 0.035")


def means(name: str, metric: str, method: str = "margin_distance") -> dict[str, float]:
    """Published values by group."""
    rows = published(study.PAPER).query("view == @name and metric == @metric and method == @method")
    return dict(zip(rows["group"], rows["value"], strict=True))


def test_printed_gaps_of_lfw_are_those_of_white_against_the_others_but_for_one():
    """Not of the worst group against the others, as the text has it."""
    misfits, best = [], set()
    for method in ("margin_distance", "parade"):
        for quantity in QUANTITIES:
            groups = means("table_20", f"{quantity}_by_group", method)
            printed = means("table_19", f"{quantity}_worst_gap", method)[""]
            if abs(study.against_white(groups) - printed) > 1.5e-3:
                misfits.append((method, quantity))
            if max(groups, key=groups.get) == "White":
                best.add(quantity)
    assert misfits == [("parade", "nmi")]
    assert best == {"recall_at", "macro_precision", "macro_recall"}


def test_printed_gaps_of_bird_colour_are_those_of_the_halves_but_for_one():
    """A mean of gaps is at least the gap of the means, for the halves are chosen anew."""
    misfits = []
    for method in ("margin_distance", "parade"):
        for quantity in QUANTITIES:
            values = sorted(means("table_13", f"{quantity}_by_group", method).values())
            gap = np.mean(values[6:]) - np.mean(values[:6])
            printed = means("table_2", f"{quantity}_halves_gap", method)[""]
            if printed < gap - 2e-3:
                misfits.append((method, quantity))
    assert misfits == [("margin_distance", "nmi")]
    note = published(study.PAPER).query(
        "view == 'table_2' and metric == 'nmi_halves_gap' and method == 'margin_distance'"
    )["note"]
    assert "which no mean of gaps can be" in note.item()


def test_printed_contradictions_are_noted():
    """Table 1 against Table 10, and the recall of Table 7, which is that of Table 6."""
    frame = published(study.PAPER)
    keys = ["dataset", "method", "trial", "metric"]
    both = frame.query("view == 'table_1'").merge(frame.query("view == 'table_10'"), on=keys)
    differ = (both["value_x"] - both["value_y"]).abs() > 0
    assert differ.sum() == 17
    assert both[differ]["dataset"].eq("cub200_balanced").all()
    assert both[differ]["note_x"].str.startswith("Table 10 prints").all()
    recall = frame.query("view == 'table_7' and metric == 'recall_at_majority_gap'")
    overall = frame.query("view == 'table_6' and metric == 'recall_at'")
    pairs = recall.merge(overall, on=["dataset", "method"]).dropna(subset=["value_x", "value_y"])
    assert len(pairs) >= 11
    assert (pairs["value_x"] == pairs["value_y"]).all()
    assert pairs["note_x"].str.startswith("repeats the overall value").all()


def test_balanced_cells_of_two_tables_are_the_same():
    """Margin loss overall stands in Tables 9 and 13, and that of the faces in 14 and 17."""
    for control, two, dataset in (
        ("table_9", "table_13", "cub200"),
        ("table_14", "table_17", "celeba"),
    ):
        frame = published(study.PAPER).query("group == '' and method == 'margin_distance'")
        frame = frame[frame["dataset"].str.startswith(dataset) & (frame["trial"] == "default")]
        frame = frame[~frame["dataset"].str.endswith("_imbalanced")]
        first, second = (
            frame[frame["view"] == name].set_index("metric") for name in (control, two)
        )
        pd.testing.assert_series_equal(
            first["value"].sort_index(), second["value"].sort_index(), atol=5e-4
        )


def test_tables_stand_beside_the_published_numbers():
    rows = view("dml_table_10").set_index(["dataset", "method", "trial", "metric"])
    gap = rows.loc[("cub200_imbalanced", "margin_distance", FOREST, "accuracy_majority_gap")]
    assert (gap["published"], gap["published std"]) == (0.325, 0.035)
    assert gap["ours"] == pytest.approx(0.12)
    assert gap["seeds"] == SEEDS
    other = rows.loc[("cub200_imbalanced", "proxy_nca", "default", "recall_at_majority_gap")]
    assert other["seeds"] == 0
    assert view("dml_table_7").empty  # nothing of CARS196 was run


def test_gaps_that_no_metric_has_are_made_of_groups():
    """Without the darkest tone, and White against the others; both by hand."""
    table = view("dml_table_16").set_index(["method", "metric"])
    gap = table.loc[("parade", "nmi_light_dark_gap_without_VI")]
    assert gap["ours"] == pytest.approx(0.8 - 0.4)
    assert (gap["published"], gap["seeds"]) == (-0.004, SEEDS)
    races = view("dml_table_19").set_index(["method", "metric"])
    assert races.loc[("margin_distance", "nmi_white_gap"), "ours"] == pytest.approx(0.9 - 0.6)
    for metric in ("nmi_white_gap", "nmi_worst_gap"):
        assert races.loc[("margin_distance", metric), "published"] == 0.048
    assert races.loc[("margin_distance", "nmi_worst_gap"), "ours"] == pytest.approx(0.2)


def test_a_gap_of_groups_is_missing_where_a_group_is():
    metrics = made_up()
    few = metrics[~metrics["group"].isin(["V", "White"])]
    tones = view("dml_table_16", few)
    assert tones.empty
    races = view("dml_table_19", few).set_index(["method", "metric"])
    assert races.loc[("parade", "nmi_white_gap"), "seeds"] == 0


def test_shares_are_those_of_test_rows():
    rows = view("dml_table_5").set_index(["group", "metric"])
    assert rows.loc[("White", "test_share"), "published"] == 0.8733
    assert rows.loc[("White", "test_share"), "ours"] == pytest.approx(40 / 100)
    assert rows.loc[("White", "train_share"), "seeds"] == 0
    named = view("dml_table_22").set_index("dataset")
    assert named.loc["lfw", "ours"] == named.loc["lfw", "published"]
    assert named.loc["cub200_color", "ours"] == "black, blue, grey"


def test_figures_by_imbalance_start_at_the_balanced_control():
    rows = view("dml_figure_9")
    assert set(rows["measured on"]) == {"logistic regression", "random forest"}
    line = rows.query("quantity == 'accuracy' and `measured on` == 'random forest'")
    assert line["percent"].tolist() == [50, 70, 90]
    assert line["ours"].tolist() == pytest.approx([0.02, 0.04, 0.06])
    digits = view("dml_imbalance_digits")
    upstream = digits[digits["measured on"] == "embedding"]
    assert set(upstream["quantity"]) == set(study.UPSTREAM)
    assert len(upstream) == 3 * 3  # not again for the trials that share the embedding
    assert view("dml_figure_3").empty
    figure = VIEWS["dml_figure_9"].draw(rows)
    assert {len(trace.x) for trace in figure.data} == {3}
    titles = [annotation.text for annotation in figure.layout.annotations]
    assert "cub200, random forest, accuracy" in titles


def test_one_share_of_the_majority_is_no_figure():
    metrics = made_up()
    kept = ~metrics["dataset"].str.contains("_imbalanced_")
    assert view("dml_figure_9", metrics[kept]).empty


def test_class_sizes_are_counted_once():
    rows = [
        row(dataset="lfw", seed=seed, method=method, attribute=attribute, n=n, label=label,
            before=-1, decision=decision, **{"class": name})
        for seed in range(2)
        for method in ("parade", "margin_distance")
        for attribute in ("", "race")
        for label, name, decision, n in ((0, "Ann", 0, 3), (0, "Ann", 1, 1), (1, "Bob & Co", 1, 2))
    ]  # fmt: skip
    table = view(
        "dml_figures_4_to_7", tables.table(tables.METRICS, rows),
        counts=tables.table(tables.COUNTS, rows),
    )  # fmt: skip
    assert table[["class", "rows"]].to_numpy().tolist() == [["Ann", 4], ["Bob & Co", 2]]
    figure = VIEWS["dml_figures_4_to_7"].draw(table)
    assert sorted(figure.data[0].x) == [2, 4]


def of_grid() -> pd.DataFrame:
    rows = [
        row(
            dataset="cub200_color", method="parade", trial=f"alpha={alpha},rho={rho}", seed=seed,
            attribute=attribute, metric=metric, value=alpha * rho + tilt(seed),
        )
        for alpha in (0.1, 0.5)
        for rho in (1, 500)
        for seed in range(2)
        for metric, attribute in (
            ("recall_at", ""), ("recall_at_halves_gap", "color"),
            ("worst_group_recall_at", "color"), ("recall_at_worst_gap", "color"),
        )
    ]  # fmt: skip
    others = [row(dataset="cub200_color", method="parade", trial="alpha=0.1,rho=1,epochs=3")]
    return tables.table(tables.METRICS, rows + others)


def test_figure_12_is_a_grid_of_alpha_and_rho():
    rows = view("dml_figure_12", of_grid())
    assert set(rows["what"]) == {"overall", "gap", "worst group"}
    assert len(rows) == 3 * 4
    gap = rows.query("what == 'gap' and alpha == 0.5 and rho == 500")
    assert gap["ours"].item() == pytest.approx(250 + np.mean([tilt(0), tilt(1)]))
    figure = VIEWS["dml_figure_12"].draw(rows)
    assert len(figure.data) == 3
    assert figure.data[0].x == ("1", "500")
    assert np.asarray(figure.data[0].z)[1].tolist() == pytest.approx([0.4985, 249.9985])


def test_choices_of_criteria_stand_beside_the_published_ones():
    rows = [
        row(dataset="lfw", method="parade", selection="worst_group_nmi", trial="alpha=0.1,rho=500"),
        row(dataset="lfw", method="parade", selection="every", trial="alpha=0.1,rho=1"),
        row(dataset="coloured_digits", method="parade", selection="worst_group_nmi"),
    ]
    table = view("dml_choices", tables.table(tables.METRICS, rows)).set_index("dataset")
    assert table.loc["lfw", "trial"] == "alpha=0.1,rho=500"
    assert table.loc["lfw", "published"] == "alpha = 0.3, rho = 100"
    assert table.loc["coloured_digits", "published"] == ""
    assert len(table) == 2


def test_gaps_of_what_is_no_metric_learning_are_not_shown():
    rows = view("dml_gaps")
    assert "diabetes" not in set(rows["dataset"])
    assert "coloured_digits" in set(rows["dataset"])
    assert (rows["seeds"] == SEEDS).all()


def test_planes_are_drawn_by_class_and_by_attribute():
    further = {"planes": planes()}
    by_class = view("dml_figure_2_label", **further)
    assert set(by_class["dataset"]) == {"cub200_color"}
    figure = VIEWS["dml_figure_2_label"].draw(by_class)
    assert {trace.name for trace in figure.data} == {"class 0", "class 1"}
    assert sum(len(trace.x) for trace in figure.data) == 2 * 3  # a point once a space
    by_group = VIEWS["dml_figure_2_group"].draw(view("dml_figure_2_group", **further))
    assert {trace.name for trace in by_group.data} == {"color 0", "color 1", "size 0", "size 1"}
    assert sum(len(trace.x) for trace in by_group.data) == 2 * 2 * 3
    titles = {annotation.text for annotation in by_group.layout.annotations}
    assert {"embedding", "attribute_embedding", "cub200_color, parade, size"} <= titles
    others = view("dml_planes_label", **further)
    assert set(others["dataset"]) == {"coloured_digits"}
    assert view("dml_figure_10_label", **further).empty
    assert view("dml_figure_2_label").empty


def test_many_classes_have_no_legend():
    many = planes()
    many = pd.concat(many.assign(row=many["row"] + 9 * n, label=f"{n}") for n in range(21))
    assert not study.draw_projections(many, "label").layout.showlegend
    assert study.draw_projections(many, "group").layout.showlegend


def test_page_shows_every_view_that_was_run():
    metrics = pd.concat([made_up(), of_grid()], ignore_index=True)
    page = report(run(metrics, planes=planes()), [], {"run_id": "x"}, [SECTION])
    shown = {view.id for view in SECTION.views if f'id="{view.id}"' in page}
    drawn = {view.id for view in SECTION.views if f'id="figure-{view.id}"' in page}
    assert {"dml_table_1", "dml_table_2", "dml_figure_12", "dml_planes_group"} <= shown
    assert drawn == {name for name in shown if VIEWS[name].draw}
    assert not shown & {"dml_table_7", "dml_figure_3", "dml_figure_10_label"}
    assert "which no mean of gaps can be" in page
