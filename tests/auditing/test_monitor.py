"""Gaps over periods: the same monitor from all rows and from its state, and what it says."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from robust_fairness.auditing.command import Monitored, TableFile, audit_file
from robust_fairness.auditing.monitor import Monitor
from robust_fairness.auditing.predictions import Options
from robust_fairness.cli.audit import audit
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import checksum

OPTIONS = Options("y", "p", ["sex"])


def table(seed, months=6, rows=400, grown=0.0, since=3):
    """Predictions of some months, in which the gap of selection rates may grow."""
    rng = np.random.default_rng(seed)
    parts = []
    for month in range(months):
        male, y = rng.random(rows) < 0.5, rng.random(rows) < 0.4
        rate = np.where(y, 0.6, 0.3) + np.where(male & (month >= since), grown, 0)
        groups = np.where(male, "male", "female").astype(object)
        if month == months - 1:
            groups[:3] = "other"  # a group without a reference
        parts.append(
            pd.DataFrame(
                {
                    "date": f"2024-{month + 1:02d}-01", "sex": groups, "y": y.astype(int),
                    "p": (rng.random(rows) < rate).astype(int),
                }
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def written(frame, path):
    frame.to_csv(path, index=False)
    return path


def audited(path, options=OPTIONS, **columns):
    return audit_file(
        TableFile(path), options, monitored=Monitored(**{"period": "date", **columns})
    )


@pytest.mark.parametrize(("seed", "first", "block"), [(1, 2, 1), (2, 1, 2), (3, 1, 4)])
def test_growing_table_and_state_give_the_same_monitor(tmp_path, seed, first, block):
    frame, state = table(seed, grown=0.2), tmp_path / "state.json"
    months = frame["date"].unique()
    for end in range(block, len(months) + block, block):
        new = frame[frame["date"].isin(months[end - block : end])]
        part = written(new, tmp_path / "part.csv")
        stepwise = audited(part, first=first, state=state).monitor
        state.write_text(stepwise.to_json())
        if min(end, len(months)) < 2:
            continue
        grown = written(frame[frame["date"].isin(months[:end])], tmp_path / "grown.csv")
        at_once = audited(grown, first=first).monitor
        assert at_once.to_json() == stepwise.to_json()
        pd.testing.assert_frame_equal(at_once.to_frame(), stepwise.to_frame(), check_exact=True)
        assert at_once.sentences() == stepwise.sentences()
    again = audited(grown, first=first, state=state).monitor
    assert again.to_json() == stepwise.to_json()


def test_monitor_has_the_values_of_the_audit_and_says_what_grew(tmp_path):
    path = written(table(5, 10, 2000, grown=0.2, since=6), tmp_path / "t.csv")
    done = audited(path, first=3)
    assert done.monitor.gaps[0].groups == ("female", "male")
    assert done.monitor.gaps[0].left_out == ("other",)
    rows = done.monitor.to_frame()
    assert list(rows["role"].value_counts()) == [21, 3]
    last = rows[rows["period"] == "2024-10"].set_index("metric")
    two = table(5, 9, 2000, grown=0.2, since=6)
    groups = audited(written(two[two["sex"] != "other"], tmp_path / "nine.csv"))
    values = groups.rows[groups.rows["group"] == ""].set_index("metric")
    monitored = groups.monitor.to_frame().groupby("metric").last()
    for metric in last.index:
        for column in ("value", "low", "high"):
            assert monitored.loc[metric, column] == pytest.approx(values.loc[metric, column])
    parity = rows[rows["metric"] == "demographic_parity_difference"]
    assert parity["alarm"].tolist() == [False] * 4 + [True] * 4
    assert parity["evidence"].iloc[4] >= parity["limit"].iloc[4] == 3 / 0.025
    (line,) = [text for text, _ in done.monitor.sentences() if "parity" in text]
    assert line.startswith("sex: demographic parity difference grew, most likely in 2024-07, from ")
    assert "; alarm in 2024-07; a reference of 6 periods (--first)" in line
    assert "Over the periods" in done.to_html()
    wide = audited(path, first=3, margin=0.3).monitor
    assert [alarm for _, alarm in wide.sentences()] == [False]


def test_a_gap_that_grows_step_by_step_grew_no_later_than_its_alarm(tmp_path):
    """The largest step, after the alarm, is the one that fits one size of growth best."""
    months = [table(7, 6, 1500, grown, since=0) for grown in (0, 0, 0.13, 0.22, 0.4, 0.4)]
    frame = pd.concat([part[part["date"] == f"2024-0{k + 1}-01"] for k, part in enumerate(months)])
    monitor = audited(written(frame[frame["sex"] != "other"], tmp_path / "t.csv"), first=2).monitor
    for gap in monitor.gaps:
        rates = [part.groupby("sex")["p"].mean() for _, part in frame.groupby("date")]
        assert gap.alarm is not None and gap.since <= gap.alarm
        assert abs(np.diff(rates[2 + gap.since])).max() > 0.1
    alarms = [monitor.periods[2:].index(period) for _, period in monitor.alarms]
    assert alarms == [gap.since for gap in monitor.gaps]


@pytest.mark.parametrize("seed", range(4))
def test_no_line_excludes_a_gap_that_a_period_has(tmp_path, seed):
    """A gap of one month, without an alarm: bounds of a lasting gap say nothing about it."""
    path = written(table(seed, 12, 300, grown=0.3, since=11), tmp_path / "t.csv")
    monitor = audited(path).monitor
    ((line, alarm),) = monitor.sentences()
    rows = monitor.to_frame()
    largest = rows.loc[rows.loc[rows["role"] == "followed", "value"].idxmax()]
    assert not alarm
    assert largest["period"] == "2024-12"
    assert line == (
        f"no alarm, 3 gaps, 11 periods; largest: sex, {largest['metric'].replace('_', ' ')} "
        f"{largest['value']:.2f} ({largest['low']:.2f} to {largest['high']:.2f}) in 2024-12"
    )


@pytest.mark.parametrize("last", [0.2, 0.45])
def test_alarm_has_a_lower_bound_of_the_largest_gap_since(tmp_path, last):
    """Without an upper one, which only a gap that stays as it is would have."""
    frame = table(5, 10, 2000, grown=0.2, since=6)
    late, male = frame["date"] == "2024-10-01", frame["sex"] == "male"
    more = np.random.default_rng(0).random(len(frame)) < (last - 0.2) / 0.35
    frame.loc[late & male & more, "p"] = 1
    monitor = audited(written(frame, tmp_path / "t.csv"), first=3).monitor
    (line,) = [text for text, _ in monitor.sentences() if "parity" in text]
    before, least = re.search(r"from at most (\S+) to at least (\S+);", line).groups()
    rows = monitor.to_frame()
    parity = rows[rows["metric"] == "demographic_parity_difference"].set_index("period")
    assert float(before) == pytest.approx(parity["bound"].iloc[0], abs=0.005)
    assert float(before) < float(least) <= parity.loc["2024-07":, "value"].max()
    assert line.count("0.") == 2


def changed(text, edit):
    content = json.loads(text)
    edit(content)
    return json.dumps(content)


def signed(**fields):
    """Replace fields of a state, whose checksum is right."""

    def edit(content):
        content.update(fields)
        del content["checksum"]
        content["checksum"] = checksum(content)

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda content: content.update(version=0), "state of version 0, allowed: 1"),
        (lambda content: content["counts"]["sex"]["male"][0].__setitem__(0, 7), "was changed"),
        (lambda content: content.pop("checksum"), "is no state of a monitor"),
        (lambda content: content.update(format="x"), "is no state of a monitor"),
        (signed(counts={"sex": {"male": [[1, 2, 3, -4]] * 6}}), "is no state of a monitor"),
        (signed(counts={"sex": {"male": [[1, 2, 3, 2**64]] * 6}}), "is no state of a monitor"),
        (signed(counts={"sex": {"male": [[1, 2, 3, 4]] * 5}}), "is no state of a monitor"),
        (signed(reference=0), "is no state of a monitor"),
        (signed(periods=["2024-01"] * 6), "is no state of a monitor"),
    ],
)
def test_states_that_are_old_or_changed_are_refused_in_one_line(tmp_path, edit, message):
    text = audited(written(table(0), tmp_path / "t.csv")).monitor
    with pytest.raises(InputError, match=message) as caught:
        Monitor.from_json(changed(text.to_json(), edit), "state.json")
    assert str(caught.value).startswith("state.json: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff", b"[" * 10**5, b"1", b"", b"9" * 10**5])
def test_files_that_are_no_state_are_refused_in_one_line(content):
    with pytest.raises(InputError, match=r"s.json: is no state of a monitor"):
        Monitor.from_json(content, "s.json")


def test_tables_that_do_not_fit_a_state_are_refused(tmp_path):
    frame, state = table(0), tmp_path / "state.json"
    path = written(frame[frame["date"] >= "2024-03"], tmp_path / "t.csv")
    state.write_text(audited(path).monitor.to_json())

    def message(rows, options=OPTIONS, **further):
        with pytest.raises(InputError) as caught:
            audited(written(rows, tmp_path / "new.csv"), options, state=state, **further)
        return str(caught.value)

    assert "period 2024-01 is earlier than its last one, 2024-06" in message(frame)
    assert "2024-06 has other rows" in message(frame[frame["date"] == "2024-06-01"].iloc[:-1])
    assert "predictions is 'class', this table has 'probability'" in message(
        frame.assign(p=frame["p"] * 0.9).iloc[-400:], Options("y", "p", ["sex"], threshold=0.6)
    )
    assert "attributes sex, this table has sex, z" in message(
        frame.assign(z=frame["sex"]), Options("y", "p", ["sex", "z"])
    )
    assert "needs a --period" in message(frame, period=None)


def test_command_writes_the_state_and_ends_with_status_1_on_growth(tmp_path):
    frame = table(5, 8, 2000, grown=0.25, since=5)
    arguments = ["--target", "y", "--prediction", "p", "--attributes", "sex", "--period", "date"]
    arguments += ["--output", str(tmp_path), "--state", str(tmp_path / "state.json"), "--force"]
    codes = []
    for month in frame["date"].unique():
        path = written(frame[frame["date"] == month], tmp_path / "month.csv")
        result = CliRunner().invoke(audit, [str(path), *arguments, "--fail-on-growth"])
        codes.append(result.exit_code)
    assert codes == [0] * 5 + [1] * 3
    assert "grew, most likely in 2024-06" in result.output
