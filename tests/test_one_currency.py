"""Counts serve runs and audits alike: the same numbers, and gaps of a plug-in in all of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

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
from robust_fairness.numbers.metrics import find_metric
from robust_fairness.numbers.quantities import DEFINITIONS
from robust_fairness.report.matrix import matrices
from robust_fairness.report.results import Results
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


def run_of(frames: dict[str, pd.DataFrame], gaps: Sequence[str], name: str = "d") -> Results:
    """The tables of a run of a model with these predictions at home and elsewhere."""
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
        scores += [
            row(**place) | score for score in evaluate([*gaps, "accuracy"], samples, outputs)
        ]
        made = metrics.count(samples, outputs)
        counted.append(pd.DataFrame([row(**place)] * len(made)).assign(**made))
    counts = pd.concat(counted)[list(tables.COUNTS)].astype(dict(tables.COUNTS))
    return results(tables.table(tables.METRICS, scores), counts=counts)


@pytest.mark.parametrize("name", ["two groups", "three groups", "heart"])
def test_the_matrix_of_a_run_and_an_audit_with_a_reference_are_the_same(name):
    """An audit that is asked for one gap, since all gaps that an audit shows are one family."""
    home, away = rows_of(name, 1500, False), rows_of(name, 1100, True)
    audits = [
        rf.audit(
            away, y_true="y", y_pred="p", sensitive_features=["sex", "race"], reference=home,
            metrics=[gap],
        )
        for gap in GAPS
    ]  # fmt: skip
    changes = pd.concat([audit.changes() for audit in audits])
    changes = changes[changes["metric"].isin(list(GAPS))].set_index(["metric", "attribute"])
    made = matrices(run_of({"": home, "away": away}, GAPS, name), None, "this model")
    matrix = pd.concat(rows.assign(metric=gap) for gap, rows in made.items())
    matrix = matrix.set_index(["metric", "attribute"])
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
    yield
    for name in ("false_discovery_rate", OWN):
        del DEFINITIONS[name]
    find_metric.cache_clear()


OWN = "trust_difference"
HOME, AWAY = (rows_of("two groups", 4000, shifted) for shifted in (False, True))
COLUMNS = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex"], "metrics": [OWN]}


def gap_of(frame: pd.DataFrame) -> float:
    """The true value of the gap, by pandas."""
    by = frame.groupby("sex")["p"].mean()
    return max(np.ptp(by), abs(false_discovery(frame)))


def false_discovery(frame: pd.DataFrame) -> float:
    """The difference of the rates of false discovery."""
    f, m = 1 - frame[frame["p"] == 1].groupby("sex")["y"].mean()
    return m - f


def row_of(rows: pd.DataFrame, attribute: str = "sex") -> pd.Series:
    (one,) = rows[rows["attribute"].eq(attribute) & rows["metric"].eq(OWN)].to_dict("records")
    return pd.Series(one)


def by_change(_: Path) -> tuple[float, float]:
    change = row_of(rf.audit(AWAY, reference=HOME, **COLUMNS).changes())
    assert change["state"] == "grew" and change["low"] < change["change"] < change["high"]
    return change["change"], gap_of(AWAY) - gap_of(HOME)


def by_gate(folder: Path) -> tuple[float, float]:
    AWAY.to_csv(folder / "t.csv", index=False)
    words = [str(folder / "t.csv"), "--target=y", "--prediction=p", "--attributes=sex"]
    words += [f"--output={folder}", f"--metrics={OWN}", f"--fail-if={OWN}[sex]>0.05"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 1 and f"{OWN} (sex) is" in done.stderr
    return row_of(pd.read_csv(folder / "t_audit.csv"))["value"], gap_of(AWAY)


def by_monitor(folder: Path) -> tuple[float, float]:
    months = [rows.assign(month=f"2024-0{k}") for k, rows in ((1, HOME), (2, HOME), (3, AWAY))]
    pd.concat(months).to_csv(folder / "t.csv", index=False)
    options = Options("y", "p", ["sex"], metrics=[OWN])
    made = audit_file(TableFile(folder / "t.csv"), options, monitored=Monitored("month")).monitor
    assert made is not None and row_of(made.to_frame().tail(1))["alarm"]
    assert Monitor.from_json(made.to_json(), "s.json").counts["sex"].groups == ("f", "m")
    return row_of(made.to_frame().tail(1))["value"], gap_of(AWAY)


def by_strata(_: Path) -> tuple[float, float]:
    """Of a control feature that is drawn at random the gap within strata is that of all."""
    audit = rf.audit(AWAY, control_features=["race"], **COLUMNS)
    within = row_of(audit.to_frame(), "sex | race")
    assert within["low"] < within["value"] < within["high"]
    return within["value"], gap_of(AWAY)


def by_few_labels(_: Path) -> tuple[float, float]:
    few = AWAY.assign(p=np.where(AWAY["p"] == 1, 0.8, 0.2))
    few["y"] = few["y"].mask(np.random.default_rng(0).random(len(few)) < 0.5)
    some = row_of(rf.audit(few, labels="some", **COLUMNS).to_frame())
    assert some["low"] < gap_of(AWAY) < some["high"]
    return some["value"], gap_of(AWAY)


def by_matrix(_: Path) -> tuple[float, float]:
    made = matrices(run_of({"": HOME, "away": AWAY}, [OWN]))[OWN]
    cell = made[made["attribute"] == "sex"].iloc[0]
    assert cell["state"] == "grew" and cell["low"] < cell["change"] < cell["high"]
    return cell["change"], gap_of(AWAY) - gap_of(HOME)


def by_why(_: Path) -> tuple[float, float]:
    both = [frame.assign(x=np.arange(len(frame)) % 7) for frame in (HOME, AWAY)]
    why = rf.audit(both[1], reference=both[0], features=["x"], **COLUMNS).why.rows
    change = why[why["metric"].eq("false_discovery_rate") & why["part"].eq("all")]
    assert change["attribute"].tolist() == ["sex"]
    return abs(change["change"].item()), abs(false_discovery(AWAY) - false_discovery(HOME))


# Value and true value by door.
DOORS: dict[str, Callable[[Path], tuple[float, float]]] = {
    "function": lambda _: (
        getattr(rf.metrics, OWN)(AWAY["y"], AWAY["p"], sensitive_features=AWAY["sex"]),
        gap_of(AWAY),
    ),
    "audit": lambda _: (row_of(rf.audit(AWAY, **COLUMNS).to_frame())["value"], gap_of(AWAY)),
    "run": lambda _: (row_of(run_of({"": AWAY}, [OWN]).selected)["value"], gap_of(AWAY)),
    "change": by_change, "gate": by_gate, "monitor": by_monitor, "strata": by_strata,
    "few labels": by_few_labels, "matrix": by_matrix, "why": by_why,
}  # fmt: skip
ESTIMATED = {"strata": 0.01, "few labels": 0.05, "why": 0.06}  # by how much a value may differ


@pytest.mark.usefixtures("plugged")
@pytest.mark.parametrize("door", DOORS)
def test_a_gap_and_a_quantity_of_a_users_own_are_right_at_every_door(door, tmp_path):
    value, true = DOORS[door](tmp_path)
    assert value == pytest.approx(true, abs=ESTIMATED.get(door, 1e-12))
