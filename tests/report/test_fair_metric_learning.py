"""Views and claims of finDML and PARADE: printed numbers, gaps of groups, shares, points."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from robust_fairness.core import tables
from robust_fairness.papers import SECTIONS
from robust_fairness.papers.fair_metric_learning import views as study
from robust_fairness.report.views import published
from tests.report.made_up import results
from tests.report.made_up import row as any_row

VIEWS = {view.id: view for view in SECTIONS["fair_metric_learning"].views}
QUANTITIES = (*study.UPSTREAM, *study.DOWNSTREAM)
TONES = {"I": 0.9, "II": 0.8, "III": 0.7, "IV": 0.5, "V": 0.3, "VI": 0.1}
RACES = {"Asian": 0.5, "Black": 0.6, "Indian": 0.7, "White": 0.9}
LIKELY = "scan damaged; most likely reading"
# What stands before, or stands for, the tables of the paper in its text.
PLACES = {
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
row = partial(any_row, method="parade", selection="recall_at")


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
        first, last = PLACES[name]
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


@pytest.mark.parametrize(
    ("dataset", "attribute", "groups", "metric", "expected", "printed"),
    [
        ("celeba_identity", "skin_tone", TONES, "nmi_light_dark_gap_without_VI", 0.4, -0.004),
        ("lfw", "race", RACES, "nmi_white_gap", 0.3, 0.041),
    ],
)
def test_gaps_that_no_metric_has_are_made_of_groups(
    dataset, attribute, groups, metric, expected, printed
):
    """Without the darkest tone, and White against the others; missing where a group is."""
    rows = [
        row(dataset=dataset, attribute=attribute, group=group, metric="nmi_by_group", value=value)
        for group, value in groups.items()
    ]
    number = "16" if attribute == "skin_tone" else "19"
    make = VIEWS[f"dml_table_{number}"].rows
    line = make(results(rows)).set_index(["method", "metric"]).loc[("parade", metric)]
    assert line["ours"] == pytest.approx(expected)
    assert (line["published"], line["seeds"]) == (printed, 1)
    few = [score for score in rows if score["group"] not in ("V", "White")]
    assert make(results(few)).empty


def test_shares_are_those_of_test_rows():
    of_lfw = {"dataset": "lfw", "attribute": "race"}
    rows = [
        row(**of_lfw, group=group, metric=metric, n=10 * n)
        for metric in ("accuracy_by_group", "nmi_by_group")
        for n, group in enumerate(RACES, 1)
    ]
    shares = VIEWS["dml_table_5"].rows(results(rows)).set_index(["group", "metric"])
    assert shares.loc[("White", "test_share"), "published"] == 0.8733
    assert shares.loc[("White", "test_share"), "ours"] == pytest.approx(40 / 100)
    assert shares.loc[("White", "train_share"), "seeds"] == 0
    (named,) = VIEWS["dml_table_22"].rows(results(rows)).to_dict("records")
    assert named["ours"] == named["published"] == "Asian, Black, Indian, White"


def test_class_sizes_are_counted_once():
    rows = [
        row(dataset="lfw", seed=seed, method=method, attribute=attribute, n=n, label=label,
            before=-1, decision=decision, **{"class": name})
        for seed in range(2)
        for method in ("parade", "margin_distance")
        for attribute in ("", "race")
        for label, name, decision, n in ((0, "Ann", 0, 3), (0, "Ann", 1, 1), (1, "Bob & Co", 1, 2))
    ]  # fmt: skip
    run = results(tables.table(tables.METRICS, rows), counts=tables.table(tables.COUNTS, rows))
    table = VIEWS["dml_figures_4_to_7"].rows(run)
    assert table[["class", "rows"]].to_numpy().tolist() == [["Ann", 4], ["Bob & Co", 2]]
    figure = VIEWS["dml_figures_4_to_7"].draw(table)
    assert sorted(figure.data[0].x) == [2, 4]


def test_choices_of_criteria_stand_beside_the_published_ones():
    rows = [
        row(dataset="lfw", method="parade", selection="worst_group_nmi", trial="alpha=0.1,rho=500"),
        row(dataset="lfw", method="parade", selection="every", trial="alpha=0.1,rho=1"),
        row(dataset="coloured_digits", method="parade", selection="worst_group_nmi"),
    ]
    table = VIEWS["dml_choices"].rows(results(rows)).set_index("dataset")
    assert table.loc["lfw", "trial"] == "alpha=0.1,rho=500"
    assert table.loc["lfw", "published"] == "alpha = 0.3, rho = 100"
    assert table.loc["coloured_digits", "published"] == ""
    assert len(table) == 2


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


def test_planes_are_drawn_by_class_and_by_attribute():
    run = results([], planes=planes())
    by_class = VIEWS["dml_figure_2_label"].rows(run)
    assert set(by_class["dataset"]) == {"cub200_color"}
    figure = VIEWS["dml_figure_2_label"].draw(by_class)
    assert {trace.name for trace in figure.data} == {"class 0", "class 1"}
    assert sum(len(trace.x) for trace in figure.data) == 2 * 3  # a point once a space
    by_group = VIEWS["dml_figure_2_group"].draw(VIEWS["dml_figure_2_group"].rows(run))
    assert {trace.name for trace in by_group.data} == {"color 0", "color 1", "size 0", "size 1"}
    assert sum(len(trace.x) for trace in by_group.data) == 2 * 2 * 3
    titles = {annotation.text for annotation in by_group.layout.annotations}
    cells, spaces = ("color", "size"), ("embedding", "attribute_embedding")
    assert titles == {
        f"cub200_color, parade, {cell}<br>{space}" for cell in cells for space in spaces
    }
    others = VIEWS["dml_planes_label"].rows(run)
    assert set(others["dataset"]) == {"coloured_digits"}
    assert VIEWS["dml_figure_10_label"].rows(run).empty


def test_many_classes_have_no_legend():
    many = planes()
    many = pd.concat(many.assign(row=many["row"] + 9 * n, label=f"{n}") for n in range(21))
    assert not study.draw_projections(many, "label").layout.showlegend
    assert study.draw_projections(many, "group").layout.showlegend
