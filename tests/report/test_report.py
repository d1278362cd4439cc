"""Views, claims and the page, on made-up scores."""

import base64
import gzip
import hashlib
import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs
from scipy import stats

from robust_fairness.core import tables
from robust_fairness.core.rendering.figures import cut, drawn, line_style, plotly_source, style
from robust_fairness.core.rendering.forest import ARROW, Mark, forest, scatter
from robust_fairness.core.rendering.html import table
from robust_fairness.papers import SECTIONS, VIEWS
from robust_fairness.report import Results, report, summary_table
from robust_fairness.report.figures import by_group, pareto_front, trade_off
from robust_fairness.report.first_screen import answers
from robust_fairness.report.matrix import matrices
from robust_fairness.report.page import PROJECT
from robust_fairness.report.views import published
from tests.project import ROOT
from tests.report.made_up import results, row

METHODS = ("erm", "adv_debias", "laftr", "cuma")


def made_up(seeds=5, dataset="communities_race", attribute="racepctblack_group") -> pd.DataFrame:
    """Scores in which CUMA is fairest by construction and the shift does harm."""
    rng = np.random.default_rng(0)
    rows = []
    for place, method in enumerate(METHODS):
        for seed in range(seeds):
            for shift, severity in (("none", 0), ("gaussian_noise", 0.03), ("uniform_noise", 0.03)):
                unfair = 0.7 - 0.2 * place + (0.1 if severity else 0)
                values = {
                    ("accuracy", ""): 0.85,
                    ("delta_eo", attribute): unfair,
                    ("delta_eopp", attribute): unfair / 2,
                }
                if not severity:
                    values |= {("delta_er", attribute): 0.5 - 0.1 * place}
                for (metric, of), value in values.items():
                    rows.append(
                        row(
                            dataset=dataset, method=method, seed=seed, selection="accuracy",
                            shift=shift, severity=severity, attribute=of, metric=metric,
                            value=value + rng.normal(0, 0.01), n=494,
                        )
                    )  # fmt: skip
    return tables.table(tables.METRICS, rows)


def test_pareto_front_equals_brute_force():
    """A point is on it unless another is at least as good in both and better in one."""
    rng = np.random.default_rng(4)
    quality, unfair = rng.integers(0, 6, 40), rng.integers(0, 6, 40)
    for k, on_front in enumerate(pareto_front(quality, unfair)):
        beaten = any(
            quality[j] >= quality[k]
            and unfair[j] <= unfair[k]
            and (quality[j], unfair[j]) != (quality[k], unfair[k])
            for j in range(40)
        )
        assert on_front == (not beaten)


def test_published_numbers_are_fractions_with_a_place():
    """Each cell once; what the paper contradicts is noted."""
    frame = published("equalized_robustness")
    assert frame["value"].dropna().between(0, 1).all()
    assert frame[frame["value"].isna()]["note"].tolist() == ["illegible in the text we have"]
    place = ["view", "dataset", "method", "trial", "shift", "severity", "metric"]
    assert not frame.duplicated(place).any()
    assert frame.groupby("view").size().to_dict() == {
        "table_1": 32, "table_2": 32, "table_3": 32, "table_4": 32, "table_5": 32, "table_6": 12,
        "table_7": 18, "table_8": 32, "table_9": 32,
    }  # fmt: skip
    cuma = frame[(frame["view"] == "table_1") & (frame["method"] == "cuma")]
    assert cuma[cuma["metric"] == "delta_er"]["value"].item() == pytest.approx(0.0759)
    assert cuma["std"].notna().all()


def test_view_stands_beside_the_published_numbers():
    """Ours is the mean over seeds, each counted once whatever chose it; 0 seeds is not run."""
    metrics = made_up()
    twice = pd.concat([metrics, metrics.assign(selection="every")], ignore_index=True)
    view = VIEWS["table_1"].rows(Results(twice))
    row = view[(view["method"] == "cuma") & (view["metric"] == "delta_er")].iloc[0]
    ours = metrics[(metrics["method"] == "cuma") & (metrics["metric"] == "delta_er")]["value"]
    assert row["ours"] == pytest.approx(ours.mean())
    assert row["std"] == pytest.approx(ours.std())
    assert row["seeds"] == 5
    assert VIEWS["table_3"].rows(Results(metrics)).empty


class Page(HTMLParser):
    """What the tests look at."""

    def __init__(self) -> None:
        super().__init__()
        self.outside, self.ids, self.tags, self.links, self.images = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        """Note ids and addresses."""
        values = dict(attrs)
        self.tags.append(tag)
        self.ids.append(values.get("id"))
        self.links.append((values.get("href") or "").removeprefix("#"))
        if tag == "img" or values.get("role") == "img":
            self.images.append(values.get("alt") or values.get("aria-label"))
        for name in ("src", "href"):
            if (values.get(name) or "").startswith(("http", "//")):
                self.outside.append(values[name])


USED = {"method": ["cuma", "erm"], "shift": ["gaussian_noise"], "dataset": ["communities"]}


def page(metrics: pd.DataFrame, **further: pd.DataFrame) -> str:
    """The report of made-up cells."""
    cells = [
        {"dataset": "communities_race", "method": "cuma", "state": "done", "reason": ""},
        {
            "dataset": "adult",
            "method": "erm",
            "state": "failed",
            "reason": "<script>alert(1)</script>",
        },
    ]
    return report(
        Results(metrics, **further),
        cells,
        {"run_id": "r", "environment": "base", "started": "now", "git": None, "used": USED},
        SECTIONS.values(),
    )


@pytest.fixture(scope="module")
def text() -> str:
    """The page of made-up scores."""
    return page(made_up())


def test_page_is_self_contained_and_the_same_twice(text):
    """No address outside, figures drawn, deterministic."""
    assert text == page(made_up())
    parser = Page()
    parser.feed(text)
    assert not parser.outside
    assert {"figure-communities_race-trade-off", "table_1", "manifest"} <= set(parser.ids)
    assert parser.tags.count("h1") == 1
    assert "nan" not in text.split("<main")[1].replace("finance", "").lower().split("plotly")[0]


def test_names_from_data_are_escaped():
    """A group or reason that looks like markup stays text."""
    metrics = made_up()
    metrics["method"] = metrics["method"].replace("erm", "<img src=x onerror=alert(1)>")
    text = page(metrics).split("<main")[1]
    assert "<img src=x" not in text
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_summary_keeps_the_reason_of_a_missing_value():
    """Mean missing, seeds 0, the note says why."""
    metrics = made_up(seeds=2)
    metrics.loc[metrics["metric"] == "accuracy", ["value", "note"]] = [np.nan, "not applicable: x"]
    rows = summary_table(metrics)
    missing = rows[rows["metric"] == "accuracy"]
    assert missing["mean"].isna().all()
    assert (missing["seeds"] == 0).all()
    assert (missing["note"] == "not applicable: x").all()
    assert "not applicable: x" in page(metrics)


def parsed(text: str) -> Page:
    """The page as the tests look at it."""
    parser = Page()
    parser.feed(text)
    return parser


def test_headings_follow_each_other_and_the_contents_lead_to_them(text):
    """No level is left out; every link has its place on the page or is a page of the project."""
    page = parsed(text)
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    links = {link for link in page.links if link and not link.startswith("data:")}
    documents = {link for link in links if link.startswith(PROJECT)}
    assert "studies/equalized_robustness/README.md" in {
        link.removeprefix(PROJECT) for link in documents
    }
    assert all((ROOT / link.removeprefix(PROJECT)).is_file() for link in documents)
    assert links - documents <= set(page.ids)
    assert {"grid", "reading", "dataset-1", "section-1", "citations", "manifest"} <= links


def test_every_figure_is_told_in_words_with_its_numbers(text):
    """Lowest and highest of every panel, as the table has them."""
    metrics = made_up()
    images = parsed(text).images
    assert all(images)
    told = next(text for text in images if "accuracy against delta_eo" in text)
    accuracies = metrics[(metrics["metric"] == "accuracy") & (metrics["shift"] == "none")]
    means = accuracies.groupby("method")["value"].mean()
    assert f"from {means.min():.4g} to {means.max():.4g}" in told
    assert f"lowest {means.idxmin()}, highest {means.idxmax()}" in told
    assert "gaussian_noise, 0.03: accuracy" in told


def test_the_first_screen_has_the_verdict_the_matrix_and_what_failed(text):
    """Before the first drawer, without a script's figure; everything else is in drawers."""
    metrics = made_up()
    first, *drawers = text.split('<details class="drawer"')
    assert "Does fairness survive the shift?" in first
    assert "1 dataset, 4 methods, 1 network, 2 shifts, 5 seeds; 2 cells: 1 done" in "".join(drawers)
    assert "1 of 2 cells (a method on a dataset) failed" in first
    assert "adult.erm (&lt;script&gt;" in first
    rows = matrices(Results(metrics))["delta_eo"]
    assert f"<strong>{answers(Results(metrics))[0]}.</strong>" in first
    assert (rows["state"] == "grew").all()
    shown = re.findall(r'<td class="c(\d)"><span[^>]*><span[^>]*>([^<]*)<', first)
    edges = (-0.1, -0.05, -0.02, 0.02, 0.05, 0.1)
    points = [
        (str(sum(change > edge for edge in edges)), f"{100 * change:+.0f}")
        for change in rows["change"]
    ]
    assert sorted(shown) == sorted(points)
    assert 'class="drawing"' not in first
    assert len(drawers) > 5


def test_citations_are_those_of_what_was_used(text):
    """And of the tests that the page makes itself."""
    text = text.split("BibTeX</summary>")[1]
    keys = re.findall(r"@\w+\{(\w+),", text)
    assert sorted(keys) == [
        "demsar2006statistical", "hendrycks2019benchmarking", "holm1979simple",
        "kendall1945treatment", "nadeau2003inference", "redmond2002data", "wang2023how",
    ]  # fmt: skip


def test_ranks_are_shown_where_there_are_enough_to_test(text):
    """One dataset is not enough; three are. Networks are not ranked."""
    assert "Methods over datasets" not in text
    metrics = pd.concat([made_up(2, dataset=f"d{k}") for k in range(3)], ignore_index=True)
    many = page(metrics)
    assert "4 methods on 3 datasets" in many
    assert {f"figure-ranks-{k}" for k in range(4)} <= set(parsed(many).ids)
    networks = metrics["method"].isin(["laftr", "adv_debias"])
    metrics["network"] = metrics["network"].mask(networks, "vit")
    described = results(metrics, algorithms={"laftr": "erm", "adv_debias": "erm"}).cells
    assert "Methods over datasets" not in page(metrics, cells=described)


def test_plotly_is_the_version_of_plotly_py():
    """The file as published: its checksum is that of the note beside it."""
    source = gzip.decompress(base64.b64decode(plotly_source())).decode()
    version = re.search(r"plotly\.js \(cartesian - minified\) (v[\d.]+)", source).group(1)
    assert version in get_plotlyjs()[:100]
    note = (files("robust_fairness.core.rendering") / "plotly" / "ATTRIBUTION.md").read_text()
    assert hashlib.sha256(source.encode()).hexdigest() in note


def test_trade_off_links_the_front_and_shows_intervals():
    """The front is that of brute force; half an interval is Student's."""
    metrics = made_up(3)
    figure = trade_off(metrics, "communities_race")
    front = next(trace for trace in figure.data if trace.name == "Pareto front")
    clean = metrics[metrics["shift"] == "none"]
    mean = clean.groupby(["method", "metric"])["value"].mean().unstack()
    beaten = [
        any((mean["accuracy"] > a) & (mean["delta_eo"] < e))
        for a, e in zip(mean["accuracy"], mean["delta_eo"], strict=True)
    ]
    assert sorted(front.y) == pytest.approx(sorted(mean["accuracy"][np.logical_not(beaten)]))
    cuma = next(trace for trace in figure.data if trace.name == "cuma")
    accuracies = clean[(clean["method"] == "cuma") & (clean["metric"] == "accuracy")]["value"]
    half = stats.t.ppf(0.975, len(accuracies) - 1) * stats.sem(accuracies)
    assert cuma.error_y.array[0] == pytest.approx(half)
    single = trade_off(made_up(1), "communities_race")
    assert np.isnan(single.data[1].error_y.array).all()


def test_no_two_of_many_methods_look_alike():
    """Colour and marker, colour and dashes: no pair twice among 42."""
    assert len({tuple(style(k).values()) for k in range(42)}) == 42
    assert len({tuple(line_style(k).values()) for k in range(42)}) == 42


def test_dots_of_a_regression_and_of_too_many_groups():
    """Errors by group; of thirty groups the first are shown, and it is said."""
    rows = made_up(2)
    groups = [
        rows[(rows["metric"] == "delta_eo")].assign(
            metric="mean_squared_error_by_group", group=f"g{k}", value=float(k)
        )
        for k in range(30)
    ]
    figure = by_group(pd.concat(groups, ignore_index=True), "communities_race")
    assert list(figure.data[0].x) == [f"g{k}" for k in range(24)]
    assert list(figure.data[0].y) == pytest.approx(list(range(24)))
    assert "first 24 of 30 groups" in figure.layout.title.text
    rates = [
        part.assign(metric="accuracy_by_group", group="g", value=[0.2, 0.99] * (len(part) // 2))
        for part in groups[:1]
    ]
    (dots,) = by_group(pd.concat(rates), "communities_race").data[:1]
    assert dots.y[0] + dots.error_y.array[0] == pytest.approx(1)  # no accuracy is above 1
    assert dots.y[0] - dots.error_y.arrayminus[0] == pytest.approx(0)
    assert by_group(rows, "communities_race") is None


def test_axes_follow_points_and_longer_intervals_end_in_an_arrow():
    """Of points at 1 and 2 an axis ends at 0.8 and 2.2; the first interval fits."""
    bars = {"array": [0.1, 9.0], "arrayminus": [0.1, 0.5]}
    drawing = go.Figure(go.Scatter(x=["a", "b"], y=[1.0, 2.0], error_y=bars, line={"color": "red"}))
    shown = go.Figure(cut(drawing.to_plotly_json()))
    assert shown.layout.yaxis.range == pytest.approx((0.8, 2.2))
    assert shown.layout.xaxis.range is None and len(drawing.data) == 1
    (arrow,) = shown.data[1:]
    assert (list(arrow.x), list(arrow.y), arrow.marker.symbol) == (["b"], [2.2], "triangle-up")
    assert arrow.marker.color == "red" and arrow.hoverinfo == "skip"
    narrow = go.Figure(cut(drawing.update_yaxes(range=[1.6, 2.4]).to_plotly_json()))
    assert narrow.layout.yaxis.range == (1.6, 2.4)
    symbols = {trace.marker.symbol: list(trace.x) for trace in narrow.data[1:]}
    assert symbols == {"triangle-down": ["a", "b"], "triangle-up": ["b"]}


def test_forest_and_scatter_end_at_their_points_with_arrows():
    wide, narrow = (0.4, 0.1, 0.95), (0.3, 0.2, 0.35)
    none = (np.nan,) * 3
    text = forest([("a", [Mark("m", wide, none, "")]), ("b", [Mark("m", narrow, none, "")])],
                  "c", ("x", "y", "z"), "{:.1f}".format)  # fmt: skip
    assert text.count(ARROW) == 1 and ">0.6</text>" in text and ">0.8</text>" not in text
    beyond = forest([("a", [Mark("m", narrow, (0.2, -0.3, 0.9), "")])],
                    "c", ("x", "y", "z"), "{:.1f}".format)  # fmt: skip
    assert "<rect class=h x='0%' width='100%'" in beyond  # what is compared with ends there, too
    drawn = scatter({"m": (0, (0.5, 0.1, 0.52), (0.4, 0.4, 0.9)), "n": (1, (0.6,) * 3, (0.5,) * 3)},
                    "x", "y", "{:.2f}".format)  # fmt: skip
    assert drawn.count(ARROW) == 2 and "rotate(180)" in drawn and "rotate(270)" in drawn


@pytest.mark.parametrize(("rows", "folded"), [(12, False), (13, True)])
def test_a_table_shows_twelve_rows_before_all(rows, folded):
    text = table(pd.DataFrame({"value": np.arange(rows) + 1e5 + 0.25}), "t")
    assert ("<summary>All 13 rows</summary>" in text) == folded
    first = text.partition("<details>")[0]
    assert first.count("<tr>") == 13 and "<td>100000</td>" in first and "e+" not in text


@pytest.mark.parametrize("panels", [1, 2, 3, 4, 7])
def test_every_panel_of_a_figure_has_its_own_points(panels):
    """With its name above it, in plotly's grid, and with intervals that hide no other one."""
    rows = pd.DataFrame(
        [
            {"name": name, "x": x, "series": series, "ours": value, "low": value - 1,
             "high": value + 1}
            for name, value in zip("gfedcba"[:panels], range(panels), strict=True)
            for x in (0, 10) for series in ("first", "second")
        ]
    )  # fmt: skip
    figure = drawn(rows, "title", colour="series", panel=["name"], x="x")
    titles = {note.yref.removesuffix(" domain"): note.text for note in figure.layout.annotations}
    shown = {(titles[trace.yaxis or "y"], trace.name): trace for trace in figure.data}
    assert len(shown) == 2 * panels == len(figure.data)
    assert figure.layout.meta["panels"] == panels
    for (name, _), trace in shown.items():
        assert {*trace.y} == {*rows.loc[rows["name"] == name, "ours"]}
        assert [*trace.text] == [0, 10]
    for name in titles.values():
        assert not {*shown[name, "first"].x} & {*shown[name, "second"].x}
