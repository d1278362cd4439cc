"""Periods of numbers, dates and names, and states of the monitor that name them."""

import json
from datetime import date, timedelta
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import robust_fairness as rf
from robust_fairness.auditing.command import Monitored, TableFile, audit_file
from robust_fairness.auditing.periods import periods_of
from robust_fairness.auditing.predictions import Options
from robust_fairness.cli.audit import audit
from robust_fairness.core.errors import InputError

OPTIONS = Options("y", "p", ["sex"])


@pytest.mark.parametrize(
    ("cells", "length", "kind", "names", "codes"),
    [
        (["10", "9", "10"], None, "number", ["9", "10"], [1, 0, 1]),
        ([2011, 2010], None, "number", ["2010", "2011"], [1, 0]),
        (["1000001", "1000002"], None, "number", ["1000001", "1000002"], [0, 1]),
        (["20240625", "20240624"], None, "number", ["20240624", "20240625"], [1, 0]),
        ([20240624.0, 20240625.0], None, "number", ["20240624", "20240625"], [0, 1]),
        (["1" + "0" * 30, "9" * 30], None, "number", ["9" * 30, "1" + "0" * 30], [1, 0]),
        ([2**53, 2**53 + 1], None, "number", [str(2**53), str(2**53 + 1)], [0, 1]),
        (["0.1234567", "0.12345671"], None, "number", ["0.1234567", "0.12345671"], [0, 1]),
        (["-1", "1e2", ".5", " 5.0", "5"], None, "number", ["-1", "0.5", "5", "100"],
         [0, 3, 1, 2, 2]),
        (["2024-02-01", "2023-12-31"], None, "month", ["2023-12", "2024-02"], [1, 0]),
        (["2024-02-01", "2024-05-31"], "quarter", "quarter", ["2024Q1", "2024Q2"], [0, 1]),
        (["20240201", "20240531"], "month", "month", ["2024-02", "2024-05"], [0, 1]),
        ([20240201.0, 20240202.0], "day", "day", ["2024-02-01", "2024-02-02"], [0, 1]),
        (["2024-02", "2023-11"], "year", "year", ["2023", "2024"], [1, 0]),
        (["2024", "2023"], "year", "year", ["2023", "2024"], [1, 0]),
        (["2024-12-29", "2024-12-31"], "week", "week", ["2024-W52", "2025-W01"], [0, 1]),
        (["2024-W07", "2023W52"], None, "week", ["2023-W52", "2024-W07"], [1, 0]),
        (["2024-W07-7", "2024-02-12"], "week", "week", ["2024-W07"], [0, 0]),
        (["2024-05-31T23:00-05:00"], "day", "day", ["2024-06-01"], [0]),
        (pd.to_datetime(["2024-02-01", "2024-01-01"]), None, "month", ["2024-01", "2024-02"],
         [1, 0]),
        (["spring", "spring", "autumn"], None, "name", ["spring", "autumn"], [0, 0, 1]),
        (["v1.10", "v1.9"], None, "numbered", ["v1.9", "v1.10"], [1, 0]),
        (["1.2.10", "1.2.3"], None, "numbered", ["1.2.3", "1.2.10"], [1, 0]),
        (["may", "june"], None, "name", ["may", "june"], [0, 1]),
        (["a ", "a"], None, "name", ["a"], [0, 0]),
        (["2024Q4", "Q1 2024", "2024-Q3"], None, "quarter", ["2024Q1", "2024Q3", "2024Q4"],
         [2, 0, 1]),
        (["2024Q4", "2024-02", "2023-12-31"], "quarter", "quarter",
         ["2023Q4", "2024Q1", "2024Q4"], [2, 1, 0]),
        (["2024H2", "H1 2024"], None, "half", ["2024H1", "2024H2"], [1, 0]),
        (["2024Q4", "2023Q1"], "year", "year", ["2023", "2024"], [1, 0]),
        (["FY2025", "FY2024"], None, "numbered", ["FY2024", "FY2025"], [1, 0]),
        (["wave 10", "wave 9"], None, "numbered", ["wave 9", "wave 10"], [1, 0]),
        (["Q1", "Q2", "Q4"], None, "numbered", ["Q1", "Q2", "Q4"], [0, 1, 2]),
        (["2024.10", "2024.09"], None, "month", ["2024-09", "2024-10"], [1, 0]),
        (["2024.13", "2024.10"], None, "number", ["2024.1", "2024.13"], [1, 0]),
        (["March 2024", "Sept 2023", "2024 Feb"], None, "month",
         ["2023-09", "2024-02", "2024-03"], [2, 0, 1]),
    ],
)  # fmt: skip
def test_periods_of_dates_numbers_and_names(cells, length, kind, names, codes) -> None:
    periods = periods_of(pd.Series(cells), length, "t")
    assert (periods.kind, list(periods.names), periods.codes.tolist()) == (kind, names, codes)


FORM = r"write 2024-05-31 \(a day\), 2024-W22 \(a week\), 2024-05 \(a month\) or 2024Q2"


@pytest.mark.parametrize(
    ("cells", "length", "message"),
    [
        (["a", "b", "a"], None, "row 3: 'a' after rows of another period"),
        (["2024-01-01", "x"], None, "row 2: 'x' is no date that has a month; " + FORM),
        (["x", "2024-01-01"], None, "row 1: 'x' is no date that has a month; " + FORM),
        (["2024-01-01", None], None, "row 2: no period"),
        *(
            ([good, text], None, f"row 2: '{text}' is a date; {FORM}")
            for good, text in product(
                ["spring"],
                [
                    "31.05.2024", "5/31/2024", "31-05-2024", "2024/05/31", "2024.5.31", "2024-5-31",
                    "31.05.24", "5/31/24", "05/2024", "5-2024", "2024/05", "31 May 2024",
                    "May 31, 2024", "31-May-24", "FY24", "31.05.2024 10:00", "2024-w7",
                    "KW 7 2024",
                ],
            )
        ),
        *(
            (cells, None, "row 1: .* has no clear place in the order of time; write")
            for cells in (
                ["Q4", "Q1"], ["pilot", "wave 1"], ["1234-5678", "may"], ["Q1/24", "Q2/24"],
                ["wave 1", "round 2"],
            )
        ),
        (["2024.9", "2024.11"], None, "row 1: '2024.9' may be a month; write 2024-05"),
        (["2024.10", "2024.9"], None, "row 1: '2024.10' may be a month; write 2024-05"),
        (["Spring", "spring"], None, "row 1: 'Spring' is a period in several spellings"),
        (["a", " "], None, "row 2: no period"),
        (["05.2024", "12.2024"], None, "row 1: '05.2024' is a date; " + FORM),
        (["1.9", "1.10"], None, "row 2: '1.10' is a number or a version"),
        (["2024-W53"], None, "'2024-W53' is no date"),
        (["20241399"], "month", "'20241399' is no date"),
        *(
            ([text], length, f"row 1: '{text}' is no date that has a {length}; {FORM}")
            for text, length in [
                ("31.05.2024", "month"), ("spring", "month"), ("7", "month"), ("2024", "month"),
                ("2024-05", "week"), ("2024-W07", "month"), ("2024-W07", "day"),
                ("2024Q1", "month"), ("2024H1", "quarter"),
            ]
        ),
    ],
)  # fmt: skip
def test_cells_that_are_no_period_are_named(cells, length, message) -> None:
    with pytest.raises(InputError, match=message) as caught:
        periods_of(pd.Series(cells), length, "t")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_periods_in_the_order_of_fractions(seed: int) -> None:
    """Any whole or decimal number; the order is that of exact fractions."""
    rng = np.random.default_rng(seed)
    whole = {str(10**18 + int(number)) for number in rng.integers(0, 50, 30)}
    decimal = {f"{rng.integers(0, 9)}.{rng.integers(10**8, 10**8 + 30)}1" for _ in range(30)}
    cells = rng.permutation([*whole, *decimal, *whole])
    periods = periods_of(pd.Series(cells), None, "t")
    assert list(periods.names) == sorted({*cells}, key=Fraction)
    assert [periods.names[code] for code in periods.codes] == list(cells)


def test_weeks_are_those_of_the_calendar() -> None:
    days = [date(1999, 12, 20) + timedelta(k) for k in range(4000)]
    periods = periods_of(pd.Series([f"{day}" for day in days]), "week", "t")
    said = [periods.names[code] for code in periods.codes]
    assert said == [day.strftime("%G-W%V") for day in days]


def rows(when: object, copies: int = 1) -> pd.DataFrame:
    """A row of each group, class and prediction."""
    cells = [{"sex": s, "y": y, "p": p} for s in "fm" for y in (0, 1) for p in (0, 1)] * copies
    return pd.DataFrame(cells).assign(when=when)


def monitored(frame: pd.DataFrame, folder, state, by=None):
    path = folder / "t.csv"
    frame.to_csv(path, index=False)
    period = Monitored("when", by, state=state)
    return audit_file(TableFile(path), OPTIONS, monitored=period).monitor


@pytest.mark.parametrize(
    ("days", "by", "names"),
    [
        (["20240624", "20240625", "20240701"], None, ["20240624", "20240625", "20240701"]),
        (["1000001", "1000002", "1000003"], None, ["1000001", "1000002", "1000003"]),
        ([f"{2**53}", f"{2**53 + 1}"], None, [f"{2**53}", f"{2**53 + 1}"]),
        (["2024-06-24", "2024-06-25"], "day", ["2024-06-24", "2024-06-25"]),
        (["20240624", "20240701"], "week", ["2024-W26", "2024-W27"]),
        (["2024-W52", "2025-W01"], None, ["2024-W52", "2025-W01"]),
    ],
)
def test_a_job_runs_period_by_period_with_its_state(tmp_path, days, by, names) -> None:
    state = tmp_path / "state.json"
    arguments = [str(tmp_path / "t.csv"), "--target=y", "--prediction=p", "--attributes=sex"]
    arguments += ["--period=when", f"--state={state}", f"--output={tmp_path}", "--force"]
    for day in days:
        rows(day, 50).to_csv(tmp_path / "t.csv", index=False)
        done = CliRunner().invoke(audit, arguments + ([f"--by={by}"] if by else []))
        assert done.exit_code == 0, done.output
    assert json.loads(state.read_text())["periods"] == names


@pytest.mark.parametrize(
    ("kind", "names", "checksum", "next_"),
    [
        (
            "month", ["2024-01", "2024-02"],
            "bd45c7d26ec0685ce63c6e20170eea8e8368c19649f64e4e497fc3eb569427c4", "2024-03-01",
        ),
        (
            "number", ["2010", "2011"],
            "eb0a2135a512480cbd89109380b75375c5c9354fc1bbc1db428a657c2786651a", "2012",
        ),
        (
            "number", ["1.5", "2.25"],
            "479250e7d6ce41afc9576d53f51684b727db3bb7d2efc67cd8105c04f9313763", "2.5",
        ),
        (
            "name", ["spring", "autumn"],
            "9c22a80f6bab307fecb9a63f57a93114b445fca15166c5f7fe7795e0fb22d591", "winter",
        ),
        (
            "number", ["2.02406e+07"],
            "00cc9f6f056164f758e131723a1f8711e822ff9226051e47a4ad41437cabc9a4", "20250101",
        ),
    ],
)  # fmt: skip
def test_states_that_version_1_0_wrote_go_on(tmp_path, kind, names, checksum, next_) -> None:
    """The checksums are those of files that version 1.0 wrote."""
    counts = [[1, 1, 1, 1] for _ in names]
    about = {
        "target": "y", "prediction": "p", "threshold": "None", "classes": "0, 1",
        "predictions": "class",
    }  # fmt: skip
    content = {
        "format": "robust-fairness monitor", "version": 1, "about": about, "kind": kind,
        "periods": names, "reference": 1, "counts": {"sex": {"f": counts, "m": counts}},
        "checksum": checksum,
    }  # fmt: skip
    state = tmp_path / "state.json"
    state.write_text(json.dumps(content))
    assert monitored(rows(next_), tmp_path, state).periods == (
        *names,
        next_[:7] if kind == "month" else next_,
    )
    if names == ["2.02406e+07"]:
        with pytest.raises(
            InputError, match=r"period 20240624 may be in 2\.02406e\+07.*again from"
        ):
            monitored(rows("20240624"), tmp_path, state)
    else:
        again = [f"{name}-01" if kind == "month" else name for name in names]
        assert len(monitored(pd.concat(map(rows, again)), tmp_path, state).periods) == len(names)


def test_months_of_times_in_a_zone_are_those_in_utc_and_a_reference_has_hints(tmp_path) -> None:
    rng = np.random.default_rng(0)
    times = pd.Series(pd.date_range("2024-01-28", "2024-03-04", 400, tz="Asia/Kolkata"))
    frame = pd.DataFrame({"t": times.map(lambda time: time.isoformat()), "y": np.arange(400) % 2})
    frame["sex"] = rng.choice(["f", "m", "unknown"], 400)
    frame["p"] = rng.integers(0, 2, 400)
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = audit_file(TableFile(tmp_path / "t.csv"), OPTIONS, monitored=Monitored("t"))
    months = times.dt.tz_convert("UTC").dt.strftime("%Y-%m")
    assert (months != times.dt.strftime("%Y-%m")).any()
    for month, counts in zip(done.monitor.periods, done.monitor.counts["sex"].known(), strict=True):
        assert counts.sum() == (months == month).sum()
    assert any("times are in UTC" in hint for hint in done.hints)
    now = frame[frame["sex"] != "unknown"]
    (hint,) = rf.audit(
        now, y_true="y", y_pred="p", sensitive_features=["sex"], reference=frame
    ).hints
    assert "'unknown' is a group" in hint


def test_a_length_needs_a_column_of_periods(tmp_path) -> None:
    rows("2024-01-01").to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match="by: needs a --period"):
        audit_file(TableFile(tmp_path / "t.csv"), OPTIONS, monitored=Monitored(by="month"))
