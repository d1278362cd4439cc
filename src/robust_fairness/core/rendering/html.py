"""HTML of pages: templates and tables."""

from html import escape
from typing import Any

import pandas as pd
from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from robust_fairness.core.numbers import written

FIRST = 12  # rows of a table that are shown before all
MOST_ROWS = 1000  # of a table on a page; the files have all rows


def rendered(package: str, template: str, **values: Any) -> str:
    """A page as HTML; the same values give the same text.

    Args:
        package: package whose folder ``templates`` has the template.
        template: file name of the template; it may extend ``base.html`` of this package.
        values: variables of the template.
    """
    # autoescape: names of datasets, columns and groups come from data files
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader(package), PackageLoader("robust_fairness.core.rendering")]
        ),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment.get_template(template).render(**values)


def breakable(name: str) -> Markup:
    """A name as HTML, which a narrow page may break after an underscore.

    >>> breakable("worst_<group>")
    Markup('worst_<wbr>&lt;group&gt;')
    """
    return Markup(escape(name).replace("_", "_<wbr>"))  # noqa: S704 - escaped


def table(frame: pd.DataFrame, caption: str, headed: bool = False) -> Markup:
    """A table as HTML that scrolls horizontally: its first ``FIRST`` rows, and all in a fold.

    Cells are escaped, numbers have four digits, missing values are n/a; only the first
    ``MOST_ROWS`` rows are shown.
    """
    shown = frame.head(MOST_ROWS)
    box = _box(shown.head(FIRST), caption, headed)
    if len(frame) > FIRST:
        everything = _box(shown, caption, headed)
        box += f"<details><summary>All {len(frame)} rows</summary>{everything}</details>"
    if len(frame) > len(shown):
        further = len(frame) - len(shown)
        box += f"<p class='note'>{further} further rows are in the table of the run.</p>"
    return Markup(box)  # noqa: S704 - every cell is escaped


def _box(frame: pd.DataFrame, caption: str, headed: bool) -> str:
    head = "".join(f"<th scope='col'>{escape(str(name))}</th>" for name in frame.columns)
    rows = []
    for row in frame.itertuples(index=False, name=None):
        name, *cells = map(_cell, row)
        first = f"<th scope='row'>{breakable(name)}</th>" if headed else f"<td>{escape(name)}</td>"
        rows.append(f"<tr>{first}{''.join(f'<td>{escape(text)}</td>' for text in cells)}</tr>")
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{escape(caption)}'><table>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return "n/a"
    return written(value) if isinstance(value, float) else str(value)
