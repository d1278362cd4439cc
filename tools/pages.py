"""Pages with generated tables, and formats of numbers, for scripts here and in ``studies``."""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from pandas.api.types import is_float

from robust_fairness.core import tables
from robust_fairness.report.statistics import over_seeds

ROOT = Path(__file__).resolve().parents[1]
DOCS, STUDIES = ROOT / "docs", ROOT / "studies"
README = "README.md"
IN_A_PAGE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """A page whose tables and figures are made from data beside it.

    Attributes:
        path: the page.
        tables: functions that make its tables, by name. A table without a place in the page,
            ``<!-- table: name -->``, is a CSV file in the folder ``tables`` beside the page.
        figures: functions that make files that the page shows.
        sentences: functions that make its sentences between ``<!-- sentence: name -->`` and
            ``<!-- end of sentence -->``, by name.
    """

    path: Path
    tables: Mapping[str, Callable[[], pd.DataFrame]]
    figures: Mapping[Path, Callable[[], str]] = field(default_factory=dict)
    sentences: Mapping[str, Callable[[], str]] = field(default_factory=dict)

    def files(self) -> dict[Path, str]:
        """The page and the files of its other tables and figures, as they have to be."""
        text = self.path.read_text()
        files = {self.path: self._said(self._with_tables(text))}
        for name, make in self.tables.items():
            if f"<!-- table: {name} -->" not in text:
                files[self.csv(name)] = as_csv(make())
        return files | {path: draw() for path, draw in self.figures.items()}

    def _with_tables(self, text: str) -> str:
        """The page with its tables made anew; one without rows is the sentence "None yet."."""

        def new(match: re.Match[str]) -> str:
            if match[2] not in self.tables:
                return match[0]
            frame = self.tables[match[2]]()
            made = tables.markdown(frame, str) if len(frame) else "None yet."
            return f"{match[1]}{made}\n{match[3]}"

        return IN_A_PAGE.sub(new, text)

    def _said(self, text: str) -> str:
        for name, say in self.sentences.items():
            start, end = f"<!-- sentence: {name} -->", "<!-- end of sentence -->"
            before, found, rest = text.partition(start)
            if found:
                text = f"{before}{start}{say()}{end}{rest.partition(end)[2]}"
        return text

    def csv(self, name: str) -> Path:
        """The file of a table that is not in the page, a README has the folder for itself."""
        stem = name if self.path.name == README else f"{self.path.stem}_{name}"
        return self.path.parent / "tables" / f"{stem}.csv"

    def write(self) -> None:
        """Write the page and its files."""
        for path, text in self.files().items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)


def main(pages: Iterable[Page], take: Callable[[Sequence[str]], None] | None = None) -> None:
    """Write pages, with ``--runs`` after ``take`` has put what they need of these beside them."""
    parser = argparse.ArgumentParser()
    if take:
        parser.add_argument("--runs", nargs="+", help="take scores of these runs first")
    runs = getattr(parser.parse_args(), "runs", None)
    if take and runs:
        take(runs)
    for page in pages:
        page.write()


def as_csv(table: pd.DataFrame) -> str:
    """A table of a page as CSV, without Markdown and with plain minus signs."""
    text = table.to_csv(index=False)
    return text.replace("`", "").replace("**", "").replace("\N{MINUS SIGN}", "-")


def plain(value: float, digits: int = 3) -> str:
    """A number; blank if it is missing."""
    return "" if pd.isna(value) else f"{value:.{digits}f}"


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign and a true minus, 0 without; blank if it is missing."""
    if pd.isna(value):
        return ""
    text = f"{value:+.{digits}f}"
    return text.lstrip("+-") if not float(text) else text.replace("-", "\N{MINUS SIGN}")


def percent(value: float) -> str:
    """A share in percent; blank if it is missing."""
    return "" if pd.isna(value) else f"{value:.0%}"


def intervals(rows: pd.DataFrame, value: str, form: str = "{:.2f}") -> pd.Series:
    """A column with its interval in the columns low and high, as text."""
    shown = {name: rows[name].map(form.format) for name in (value, "low", "high")}
    return shown[value] + " (" + shown["low"] + " to " + shown["high"] + ")"


def spread(rows: pd.DataFrame, digits: int = 3, unit: float = 1) -> pd.Series:
    """Mean and, of several seeds, standard deviation, as text."""
    means, deviations = (
        (unit * rows[name]).map(f"{{:.{digits}f}}".format) for name in ("ours", "std")
    )
    return (means + " ± " + deviations).str.removesuffix(" ± nan")


def across(
    rows: pd.DataFrame,
    down: Sequence[str],
    names: Mapping[str, str],
    column: str = "metric",
    **form: float,
) -> pd.DataFrame:
    """``spread`` of scores, with ``down`` as the index and the values of a column across.

    Args:
        rows: scores.
        down: columns that become the index.
        names: titles of the values that are shown, in their order.
        column: whose values are across.
        form: options of ``spread``.
    """
    means = over_seeds(rows, [*down, column])
    cells = means.assign(cell=spread(means, **form))  # type: ignore[arg-type]
    return cells.pivot(index=down, columns=column, values="cell")[[*names]].rename(columns=names)


def rounded(make: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """A view of the product as a table, its numbers with four significant digits."""
    return lambda *data: make(*data).map(lambda value: f"{value:.4g}" if is_float(value) else value)
