"""Counts serve runs and audits alike: the same numbers, and gaps of a plug-in in all of them."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import robust_fairness as rf
from robust_fairness import metrics
from robust_fairness.auditing.command import Monitored, TableFile, audit_file
from robust_fairness.auditing.monitor import Monitor
from robust_fairness.auditing.predictions import Options
from robust_fairness.cli.audit import audit as command
from robust_fairness.core import tables
from robust_fairness.core.samples import Samples
from robust_fairness.metrics import RowValues, evaluate, gap, quantity
from robust_fairness.metrics.classification import selection_rate
from robust_fairness.numbers.names import find_metric
from robust_fairness.numbers.quantities import DEFINITIONS
from robust_fairness.report.matrix import matrices
from tests.report.made_up import results, row

GAPS = (
    "equalized_odds_difference", "equal_opportunity_difference", "demographic_parity_difference",
    "accuracy_difference", "delta_eo",
)  # fmt: skip


def rows_of(name: str, rows: int, shifted: bool) -> pd.DataFrame:
    """Predictions of a dataset at home or elsewhere."""
    rng = np.random.default_rng([len(name), rows, shifted])
    if name == "heart":
        heart = rf.load("heart")
        places = rng.integers(0, len(heart.y), rows)
        y, sex = heart.y[places], heart.attributes["sex"].astype(str).to_numpy()[places]
        race = np.where(heart.x[places, 0] > np.median(heart.x[:, 0]), "a", "b")
    else:
        y, sex = rng.integers(0, 2, rows), rng.choice(["f", "m"], rows)
        race = rng.choice(list("abc") if name == "three groups" else list("ab"), rows)
    harm = 0.25 * shifted * (sex == max(sex) if name != "three groups" else race == "c")
    rate = np.where(y, 0.7 - harm, 0.25)
    return pd.DataFrame(
        {"sex": sex, "race": race, "y": y, "p": (rng.random(rows) < rate).astype(int)}
    )


def of_a_run(name: str, frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The matrix rows of a model with these predictions at home and elsewhere."""
    scores, counted = [], []
    for domain, frame in frames.items():
        samples = Samples(
            x=np.zeros((len(frame), 1), np.float32), y=frame["y"].to_numpy(),
            id=np.arange(len(frame)),
            attributes=frame[["sex", "race"]].astype("category"), classes=("no", "yes"),
            splits=pd.DataFrame(index=range(len(frame))), sensitive=("sex", "race"),
        )  # fmt: skip
        place = {"dataset": name, "shift": "domain" if domain else "none", "domain": domain}
        outputs = np.eye(2)[frame["p"]]
        made = evaluate([*(gap for gap in GAPS if gap != "delta_eo"), "accuracy"], samples, outputs)
        made += evaluate(["delta_eo"], samples, outputs)
        scores += [row(**place) | score for score in made]
        made = metrics.count(samples, outputs)
        counted.append(pd.DataFrame([row(**place)] * len(made)).assign(**made))
    counts = pd.concat(counted)[list(tables.COUNTS)].astype(dict(tables.COUNTS))
    run = results(tables.table(tables.METRICS, scores), counts=counts)
    return pd.concat(
        rows.assign(metric=gap) for gap, rows in matrices(run, None, "this model").items()
    )


@pytest.mark.parametrize("name", ["two groups", "three groups", "heart"])
def test_the_matrix_of_a_run_and_an_audit_with_a_reference_are_the_same(name):
    home, away = rows_of(name, 1500, False), rows_of(name, 1100, True)
    audit = rf.audit(
        away, y_true="y", y_pred="p", sensitive_features=["sex", "race"], reference=home,
        metrics=list(GAPS),
    )  # fmt: skip
    changes = audit.changes().set_index(["metric", "attribute"])
    matrix = of_a_run(name, {"": home, "away": away}).set_index(["metric", "attribute"])
    compared = [
        key for key in matrix.index if not (name == "three groups" and key[0] == "delta_eo")
    ]
    assert len(compared) >= 8 and {"sex", "race"} == {attribute for _, attribute in compared}
    for key in compared:
        of_run, of_audit = matrix.loc[key], changes.loc[key]
        for here, there in (
            ("at_home", "then"), ("away", "now"),
            ("home_low", "then_low"), ("home_high", "then_high"), ("away_low", "now_low"),
            ("away_high", "now_high"), ("change", "change"), ("low", "low"),
            ("high", "high"), ("p", "p"),
        ):  # fmt: skip
            assert of_run[here] == pytest.approx(of_audit[there], abs=1e-12), (key, here)
        assert of_run["state"] == of_audit["state"]
    assert "grew" in set(matrix["state"])


@pytest.fixture
def plugged():
    """A quantity and a gap of a user's own, as a file in ``plugins/metrics`` declares them."""

    @quantity(better="lower", binary=True)
    def false_discovery_rate(y_true: np.ndarray, y_pred: np.ndarray) -> RowValues:
        """Share of positive predictions that are wrong."""
        return RowValues(y_true == 0, y_pred == 1, "no rows predicted as class {1}")

    @gap(of=[false_discovery_rate, selection_rate])
    def trust_difference() -> None:
        """Largest difference of false discovery or selection rates between two groups."""

    find_metric.cache_clear()
    yield "trust_difference"
    for name in ("false_discovery_rate", "trust_difference"):
        del DEFINITIONS[name]
    find_metric.cache_clear()


def test_a_gap_of_a_plug_in_works_everywhere(plugged, tmp_path):
    home, away = rows_of("two groups", 3000, False), rows_of("two groups", 3000, True)

    def expected(frame: pd.DataFrame) -> float:
        by = frame.groupby("sex")
        trust = frame[frame["p"] == 1].groupby("sex")["y"].mean()
        return max(np.ptp(by["p"].mean()), np.ptp(1 - trust))

    measured = rf.metrics.trust_difference(away["y"], away["p"], sensitive_features=away["sex"])
    assert measured == pytest.approx(expected(away))
    audit = rf.audit(
        away, y_true="y", y_pred="p", sensitive_features=["sex"], reference=home, metrics=[plugged]
    )
    value = audit.to_frame().set_index("metric").loc[plugged]
    assert value["value"] == pytest.approx(expected(away)) and value["low"] < value["high"] < 1
    change = audit.changes().set_index("metric").loc[plugged]
    assert change["state"] == "grew"
    assert audit.failures(f"{plugged}[sex]>0.05")
    months = [
        rows_of("two groups", 3000 + k, k > 1).assign(month=f"2024-0{k + 1}") for k in range(4)
    ]
    pd.concat(months).to_csv(tmp_path / "t.csv", index=False)
    options = Options("y", "p", ["sex"], metrics=[plugged])
    monitor = audit_file(
        TableFile(tmp_path / "t.csv"), options, monitored=Monitored("month")
    ).monitor
    followed = monitor.to_frame()
    assert plugged in set(followed["metric"])
    assert Monitor.from_json(monitor.to_json(), "s.json").counts["sex"].groups == ("f", "m")
    done = CliRunner().invoke(
        command,
        [str(tmp_path / "t.csv"), "--target", "y", "--prediction", "p", "--attributes", "sex",
         "--period", "month", "--metrics", plugged, "--fail-if", f"{plugged}>0.05",
         "--output", str(tmp_path)],
    )  # fmt: skip
    assert done.exit_code == 1 and plugged in done.stderr
    scores, counted = [], []
    for domain, frame in {"": home, "away": away}.items():
        samples = Samples(
            x=np.zeros((len(frame), 1), np.float32), y=frame["y"].to_numpy(),
            id=np.arange(len(frame)), attributes=frame[["sex"]].astype("category"),
            classes=("no", "yes"), splits=pd.DataFrame(index=range(len(frame))), sensitive=("sex",),
        )  # fmt: skip
        place = {"dataset": "d", "shift": "domain" if domain else "none", "domain": domain}
        outputs = np.eye(2)[frame["p"]]
        scores += [
            row(**place) | score for score in evaluate([plugged, "accuracy"], samples, outputs)
        ]
        made = metrics.count(samples, outputs)
        counted.append(pd.DataFrame([row(**place)] * len(made)).assign(**made))
    counts = pd.concat(counted)[list(tables.COUNTS)].astype(dict(tables.COUNTS))
    run = results(tables.table(tables.METRICS, scores), counts=counts)
    (matrix,) = [rows for name, rows in matrices(run).items() if name == plugged]
    assert matrix["state"].tolist() == ["grew"]
    assert matrix["away"].item() == pytest.approx(expected(away))


def test_a_gap_of_a_plug_in_works_in_strata_with_few_labels_and_in_why(plugged):
    home, away = rows_of("two groups", 4000, False), rows_of("two groups", 4000, True)

    def expected(frame: pd.DataFrame, by: str) -> pd.Series:
        wrong = 1 - frame[frame["p"] == 1].groupby(by)["y"].mean()
        return np.abs(pd.DataFrame({"wrong": wrong, "p": frame.groupby(by)["p"].mean()}).diff())

    of = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex"], "metrics": [plugged]}
    parts = [rows.assign(race=name) for name, rows in away.groupby("race")]
    audit = rf.audit(pd.concat(parts), control_features=["race"], **of)
    within = audit.to_frame().set_index(["attribute", "metric"]).loc[("sex | race", plugged)]
    in_strata = [expected(part, "sex").iloc[-1].max() for part in parts]
    assert min(in_strata) <= within["value"] <= max(in_strata) + 0.01
    assert within["low"] < within["value"] < within["high"]

    few = away.assign(p=np.where(away["p"] == 1, 0.8, 0.2))
    few["y"] = few["y"].mask(np.random.default_rng(0).random(len(few)) < 0.5)
    some = rf.audit(few, labels="some", **of).to_frame().set_index("metric").loc[plugged]
    truth = expected(away, "sex").iloc[-1].max()
    assert some["low"] < truth < some["high"] and abs(some["value"] - truth) < 0.05

    both = [frame.assign(x=np.arange(len(frame)) % 7) for frame in (home, away)]
    why = rf.audit(both[1], reference=both[0], features=["x"], **of).why.rows
    change = why[why["metric"].eq("false_discovery_rate") & why["part"].eq("all")]
    of_both = [expected(frame, "sex")["wrong"].iloc[-1] for frame in both]
    assert change["attribute"].tolist() == ["sex"]
    assert abs(change["change"].item()) == pytest.approx(abs(of_both[1] - of_both[0]), abs=0.06)
    own = rf.metrics.false_discovery_rate_by_group(
        away["y"], away["p"], sensitive_features=away["sex"]
    )
    assert abs(own["f"] - own["m"]) == pytest.approx(of_both[1])
