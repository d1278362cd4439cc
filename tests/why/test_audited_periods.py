"""Why values changed between two periods: parts against those of a known population."""

import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import robust_fairness as rf
from robust_fairness.cli.audit import audit
from robust_fairness.core.errors import InputError

# Population: group g, feature x in 0 to 2 given g, P(y=1 | g, x), whether the model flags g and x.
SHARE, FEATURE = 0.5, np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3]])
OUTCOME = np.array([[0.2, 0.4, 0.7], [0.1, 0.6, 0.9]])
FLAGGED = np.array([[0, 1, 1], [0, 1, 1]])
MOVED = {
    "nothing": {},
    "group mix": {"share": 0.85},
    "X": {"feature": np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])},
    "Y given X": {"outcome": np.array([[0.2, 0.4, 0.7], [0.6, 0.5, 0.4]])},
    "prediction given X": {"flagged": np.array([[0, 1, 1], [1, 0, 1]])},
}
N = 3000
PARTS = ("group mix", "X", "Y given X", "prediction given X")


def population(share=SHARE, feature=FEATURE, outcome=OUTCOME, flagged=FLAGGED):
    """P(g, x) ``[2, 3]``, P(y=1 | g, x) and what is flagged."""
    return np.array([[1 - share], [share]]) * feature, outcome, flagged


def drawn(seed, *people):
    """A table of a population."""
    rng = np.random.default_rng(seed)
    joint, outcome, flagged = people
    cell = rng.choice(6, N, p=joint.ravel())
    group, x = cell // 3, cell % 3
    y = (rng.random(N) < outcome[group, x]).astype(int)
    return pd.DataFrame(
        {
            "sex": np.where(group, "male", "female"), "x": x + rng.random(N),
            "kind": rng.choice(list("abc"), N), "y": y, "p": flagged[group, x],
        }
    )  # fmt: skip


def expected(then, now):
    """Parts of the changes of accuracy by group, and of the signed difference of the rates."""
    (p, *of_then), (t, *of_now) = then, now
    s, between = p * t / (p + t), (of_now[0], of_then[1])
    five = ((p, *of_then), (s, *of_then), (s, *between), (s, *of_now), (t, *of_now))
    share = p.sum(1)

    def accuracy(q, y, flagged):
        return ((q * np.where(flagged, y, 1 - y)).sum(1) / q.sum(1)) @ share

    def difference(among):
        def value(q, y, flagged):
            rows = q * among(y)
            rate = (rows * flagged).sum(1) / rows.sum(1)
            return rate[1] - rate[0]

        return value

    decomposed = {}
    total = (t * np.where(of_now[1], of_now[0], 1 - of_now[0])).sum()
    for name, value in {
        "accuracy": accuracy,
        "selection_rate": difference(np.ones_like),
        "true_positive_rate": difference(lambda y: y),
        "false_positive_rate": difference(lambda y: 1 - y),
    }.items():
        first, y, prediction, last = np.diff([value(*period) for period in five])
        mix = total - value(*five[-1]) if name == "accuracy" else 0.0
        parts = dict(zip(PARTS, (mix, first + last, y, prediction), strict=True))
        decomposed[name] = parts | {"all": sum(parts.values())}
    return decomposed


@pytest.mark.parametrize("kind", MOVED)
def test_planted_changes_are_found_and_attributed(kind):
    then, now = population(), population(**MOVED[kind])
    done = rf.audit(
        drawn(1, *now), y_true="y", y_pred="p", sensitive_features=["sex"],
        reference=drawn(2, *then), features=["x", "kind"],
    )  # fmt: skip
    rows = done.why.rows
    row_of = {
        (row["metric"], row["part"]): row
        for row in rows[rows["attribute"] == "sex"].to_dict("records")[::-1]
    }
    true = expected(then, now)
    for metric, parts in true.items():
        for part, value in parts.items():
            if metric != "accuracy" and part == "group mix":
                assert (metric, part) not in row_of
                continue
            row = row_of[metric, part]
            half = (row["high"] - row["low"]) / 2
            assert abs(row["change"] - value) <= 1.3 * half + 1e-12, (metric, part)
            assert half < 0.11
        changes = [row_of[metric, part]["change"] for part in PARTS if (metric, part) in row_of]
        assert sum(changes) == pytest.approx(row_of[metric, "all"]["change"], abs=1e-9)
    said = " ".join(done.why.sentences())
    largest = max(true["accuracy"], key=lambda part: abs(true["accuracy"][part]) * (part != "all"))
    changed = {row["metric"] for row in done.why.changes() if row["significant"]}
    if kind == "nothing":
        assert not changed and said.startswith(
            "no change of accuracy or of a gap excludes 0 X over"
        )
        regions = rows[rows["part"] == "region"]
        assert ((regions["low"] <= 0) & (regions["high"] >= 0)).all()
        return
    row = row_of["accuracy", kind]
    assert kind == largest and (row["low"] > 0 or row["high"] < 0)
    shares = rows[rows["part"] == "share"].set_index(["metric", "of"])
    male = shares.loc[("group_share", "male")]
    assert (male["low"] > 0) == (kind == "group mix")
    if kind == "X":
        assert done.why.rows.query("part == 'column'")["of"].iloc[0] == "x"
    page = done.to_html()
    assert "Why it changed" in page and "Y given X" in page


def test_region_of_a_change_is_found():
    table = drawn(3, *population()).assign(z=np.random.default_rng(0).random(N))
    moved = drawn(4, *population()).assign(z=np.random.default_rng(1).random(N))
    there = (moved["z"] > 0.7) & (moved["sex"] == "male")
    moved.loc[there, "p"] = 1
    done = rf.audit(
        moved, y_true="y", y_pred="p", sensitive_features=["sex"], reference=table,
        features=["x", "z"],
    )  # fmt: skip
    rows = done.why.rows.query("part == 'region' and metric == 'selection_rate'")
    first = rows.iloc[0]
    limit = re.search(r"z > ([0-9.]+)", first["of"])
    assert limit and float(limit[1]) == pytest.approx(0.7, abs=0.02) and first["low"] > 0
    assert first["change"] >= FEATURE[1, 0]  # that of z alone, or 1 where x is below 1


def test_units_widen_the_intervals_and_weights_move_the_values():
    then, now = drawn(5, *population()), drawn(6, *population(**MOVED["Y given X"]))
    twice = [pd.concat([part.assign(unit=range(N))] * 2) for part in (now, then)]
    arguments = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex"], "features": ["x"]}
    alone = rf.audit(now, reference=then, **arguments).why.rows
    double = rf.audit(twice[0], reference=twice[1], unit="unit", **arguments).why.rows
    for part in ("all", "Y given X"):
        widths = [
            float((why["high"] - why["low"])[(why["part"] == part) & (why["metric"] == "accuracy")]
                  .iloc[0]) for why in (alone, double)
        ]  # fmt: skip
        assert widths[1] == pytest.approx(widths[0], rel=0.05)
    heavy = [part.assign(w=np.where(part["sex"] == "male", 3.0, 1.0)) for part in (now, then)]
    weighted = rf.audit(heavy[0], reference=heavy[1], sample_weight="w", **arguments)
    change = weighted.why.rows.query("part == 'all' and metric == 'accuracy'")["change"].iloc[0]
    plain = weighted.changed.query("metric == 'accuracy' and attribute == ''")["change"].iloc[0]
    assert change == pytest.approx(plain, abs=1e-12)


def test_command_writes_why_and_refuses_what_lacks_periods(tmp_path):
    then, now = drawn(1, *population()), drawn(2, *population(**MOVED["Y given X"]))
    both = pd.concat([then.assign(month="2024-01-01"), now.assign(month="2024-02-01")])
    path = tmp_path / "t.csv"
    both.to_csv(path, index=False)
    arguments = [str(path), "--target", "y", "--prediction", "p", "--attributes", "sex"]
    arguments += ["--features", "x", "--output", str(tmp_path)]
    result = CliRunner().invoke(audit, [*arguments, "--period", "month"])
    assert result.exit_code == 0 and "why: " in result.output
    assert {"X", "Y given X"} <= {*pd.read_csv(tmp_path / "t_why.csv")["part"]}
    alone = CliRunner().invoke(audit, [*arguments, "--force"])
    assert alone.exit_code == 2 and "needs labels and --reference or --period" in alone.output
    with pytest.raises(InputError, match="needs a reference"):
        rf.audit(now, y_true="y", y_pred="p", sensitive_features=["sex"], features=["x"])
    with pytest.raises(InputError, match="unknown column 'age'"):
        rf.audit(
            now, y_true="y", y_pred="p", sensitive_features=["sex"], features=["age"],
            reference=then,
        )  # fmt: skip
