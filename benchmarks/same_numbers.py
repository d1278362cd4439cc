"""Compare the tables of two runs, number by number, whatever was renamed between them.

    python benchmarks/same_numbers.py --collect data results/new
    python benchmarks/same_numbers.py results/old results/new

Rows are matched by their keys: all columns but notes, counts and floating-point numbers (a severity
is a key), and the order among rows that have the same keys. What is new only as a column is named
and left out. The exit status is 1 if anything differs that ``same_numbers.csv`` does not explain.

That file has a line for every name that changed, with the columns kind, old, new and reason:

- ``table``: path without ending; ``old`` is a regular expression of the whole of it;
- ``column``: name of a column in any table;
- ``metric``: name without options, also inside criteria (``accuracy_at(alpha=1)@part``,
  ``delta_eo with 0.97 of accuracy``), or with its options, which is tried first;
- ``notes of``: ``old`` and ``new`` are a metric whose notes are not compared.
- the name of a column, such as ``selection``, ``note`` or ``method``: a whole text of its rows.

An empty ``new`` is something that was dropped: the table, the column, or the rows (of a note only
its text). An empty ``old`` is something that only the new side has, likewise left out.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

NAMES = Path(__file__).with_suffix(".csv")
VALUES = ("value", "n", "score", "note")  # and other floating-point numbers
FLOAT_KEYS = ("severity",)
METRIC_COLUMNS = ("metric", "selection", "criterion", "first", "second")
NAME = re.compile(r"(?:^|(?<= of ))([A-Za-z_]\w*)(?:\(([^()]*)\))?")
SAME = "same key, number"
SHOWN = 5


@dataclass
class Mapped:
    """New names by old ones, by kind; an empty one was dropped.

    Attributes:
        names: new name by old one, by kind.
        added: names that only the new side has, by kind.
    """

    names: dict[str, dict[str, str]] = field(default_factory=dict)
    added: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Mapped":
        """What a CSV file with the columns kind, old and new says."""
        found = cls()
        for kind, old, new in pd.read_csv(path, dtype=str, keep_default_na=False)[
            ["kind", "old", "new"]
        ].itertuples(index=False):
            if old:
                found.names.setdefault(kind, {})[old] = new
            else:
                found.added.setdefault(kind, set()).add(new)
        return found

    def table(self, name: str) -> str:
        """New name of a table, empty if it was dropped."""
        for old, new in self.names.get("table", {}).items():
            if match := re.fullmatch(old, name):
                return match.expand(new)
        return name

    def is_added(self, name: str) -> bool:
        """Whether only the new side has this table."""
        return any(re.fullmatch(new, name) for new in self.added.get("table", ()))

    def metric(self, text: str) -> str | None:
        """Metric or criterion by its new names; None if one of them was dropped."""
        names = self.names.get("metric", {})
        dropped = False

        def renamed(match: re.Match[str]) -> str:
            nonlocal dropped
            whole, base, options = match[0], match[1], match[2]
            if whole in names:
                new = names[whole]
            else:
                new = names.get(base, base)
                if options is not None and new:
                    new = f"{new[:-1]},{options})" if new.endswith(")") else f"{new}({options})"
            dropped = dropped or not new
            return new

        found = NAME.sub(renamed, text)
        return None if dropped else found

    def old(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table of the old side under its new names, without what was dropped."""
        columns = self.names.get("column", {})
        frame = frame.drop(columns=[name for name in frame if columns.get(name) == ""])
        frame = frame.rename(columns=columns)
        for name in frame.columns:
            own = self.names.get(name, {}) if name not in ("metric", "table", "column") else {}
            if own:
                new = frame[name].replace(own)
                gone = frame[name].isin([old for old, to in own.items() if not to])
                frame = frame.assign(**{name: new})[~gone | (name == "note")]
            if name in METRIC_COLUMNS and self.names.get("metric"):
                known = {text: self.metric(text) for text in frame[name].dropna().unique()}
                frame = frame.assign(**{name: frame[name].map(known)})
                frame = frame[frame[name].notna()]
        return self.without_explained_notes(frame)

    def new(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table of the new side without what only it has."""
        frame = frame.drop(columns=[*self.added.get("column", set()) & set(frame.columns)])
        for name in frame.columns:
            own = self.added.get(name, set())
            if name in METRIC_COLUMNS:
                own = own | self.added.get("metric", set())
                known = frame[name].map(lambda text, own=own: _mentions(text, own))
                frame = frame[~known.astype(bool)]
            elif own and name == "note":
                frame = frame.assign(note=frame["note"].where(~frame["note"].isin(own), ""))
            elif own:
                frame = frame[~frame[name].isin(own)]
        return self.without_explained_notes(frame)

    def without_explained_notes(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table without the notes of metrics whose notes were changed on purpose."""
        if not {"metric", "note"} <= set(frame.columns):
            return frame
        explained = frame["metric"].isin(list(self.names.get("notes of", {})))
        return frame.assign(note=frame["note"].mask(explained, ""))


def _mentions(text: str, names: set[str]) -> bool:
    """Whether a metric or criterion is, or is made of, one of these."""
    found = NAME.finditer(str(text))
    return text in names or any(match[0] in names or match[1] in names for match in found)


@dataclass
class Difference:
    """What the comparison of a table found.

    Attributes:
        missing: columns that only the old side has.
        only: keys of rows that one side only has, by side.
        compared: number of numbers and notes.
        equal: how many of them are equal, bit by bit.
        absolute: largest difference of two numbers.
        relative: likewise by the larger of the two.
        differing: keys and both values of what differs.
    """

    missing: list[str] = field(default_factory=list)
    only: dict[str, list[str]] = field(default_factory=lambda: {"old": [], "new": []})
    compared: int = 0
    equal: int = 0
    absolute: float = 0.0
    relative: float = 0.0
    differing: list[str] = field(default_factory=list)

    @property
    def found(self) -> bool:
        """Whether anything differs."""
        return bool(self.missing or self.differing or any(self.only.values()))


def compare(old: pd.DataFrame, new: pd.DataFrame) -> Difference:
    """Compare two tables whose names are the same by now; columns of ``new`` only are left out."""
    found = Difference(missing=[name for name in old if name not in new])
    shared = [name for name in old if name in new]
    values = [name for name in shared if _is_value(old, new, name)]
    keys = [name for name in shared if name not in values]
    sides = {side: _keyed(frame, keys) for side, frame in (("old", old), ("new", new))}
    for side, other in (("old", "new"), ("new", "old")):
        lonely = sides[side].index.difference(sides[other].index)
        found.only[side] = [_shown([*keys, SAME], key) for key in lonely]
    both = sides["old"].index.intersection(sides["new"].index).sort_values()
    for name in values:
        _compare_column(found, name, keys, *(side.loc[both, name] for side in sides.values()))
    return found


def _is_value(old: pd.DataFrame, new: pd.DataFrame, name: str) -> bool:
    if name in FLOAT_KEYS:
        return False
    kinds = (old[name].dtype, new[name].dtype)
    return name in VALUES or any(pd.api.types.is_float_dtype(kind) for kind in kinds)


def _keyed(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The rows by their keys as text, and by their number among those of the same keys."""
    texts = pd.DataFrame({name: frame[name].map(_text) for name in keys}, index=frame.index)
    order = texts.groupby(keys, sort=False).cumcount() if keys else np.arange(len(frame))
    index = pd.MultiIndex.from_frame(texts.assign(**{SAME: order}))
    return frame.set_axis(index, axis=0)


def _text(value: object) -> str:
    """A key as text, alike for a whole number of any type."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return repr(float(value)).removesuffix(".0") if number else str(value)


def _compare_column(
    found: Difference, name: str, keys: list[str], old: pd.Series, new: pd.Series
) -> None:
    """Note how the values of a column differ, row by row."""
    numbers = all(pd.api.types.is_numeric_dtype(side.dtype) for side in (old, new))
    if numbers:
        ours, theirs = (side.to_numpy(np.float64) for side in (old, new))
        bits = ours.view(np.int64) == theirs.view(np.int64)
        equal = bits | (np.isnan(ours) & np.isnan(theirs))
        told = ~equal & np.isfinite(ours) & np.isfinite(theirs)
        apart = np.abs(ours - theirs)[told]
        larger = np.maximum(np.abs(ours), np.abs(theirs))[told]
        shares = np.divide(apart, larger, out=np.zeros_like(apart), where=larger > 0)
        found.absolute = max(found.absolute, float(apart.max(initial=0.0)))
        found.relative = max(found.relative, float(shares.max(initial=0.0)))
    else:
        ours, theirs = (side.map(_text).to_numpy() for side in (old, new))
        equal = ours == theirs
    found.compared += len(equal)
    found.equal += int(equal.sum())
    for row in np.flatnonzero(~equal):
        place = _shown([*keys, SAME], old.index[row])
        found.differing.append(f"{place}: {name} {ours[row]!s} became {theirs[row]!s}")


def _shown(names: list[str], key: tuple[object, ...] | object) -> str:
    """A key in words, without what is empty."""
    values = key if isinstance(key, tuple) else (key,)
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} {value}" for name, value in pairs if value not in ("", 0)) or "row 0"


def tables_in(folder: Path) -> dict[str, Path]:
    """Files of tables by their path in a folder, without ending."""
    paths = sorted(folder.rglob("*.parquet"))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def compare_folders(old: Path, new: Path, mapped: Mapped) -> bool:
    """Compare all tables of two folders and print what differs; whether they are the same."""
    theirs = {name: path for name, path in tables_in(new).items() if not mapped.is_added(name)}
    renamed = [(mapped.table(name), path) for name, path in tables_in(old).items()]
    ours = {name: path for name, path in renamed if name}
    lonely = {
        "old": sorted(ours.keys() - theirs.keys()),
        "new": sorted(theirs.keys() - ours.keys()),
    }
    found = {}
    added: dict[str, set[str]] = {}
    for name in sorted(ours.keys() & theirs.keys()):
        before = mapped.old(pd.read_parquet(ours[name]))
        after = mapped.new(pd.read_parquet(theirs[name]))
        found[name] = compare(before, after)
        for column in after.columns.difference(before.columns):
            added.setdefault(column, set()).add(name)
    for name, one in found.items():
        _tell(name, one)
    for side, names in lonely.items():
        for name in names:
            print(f"{name}: table only in {side}")
    for column, names in added.items():
        print(f"new column, left out: {column} (tables: {len(names)}, {min(names)} first)")
    if dropped := sum(not name for name, _ in renamed):
        print(f"{dropped} tables were dropped, as the mapping says")
    _tell_total(found)
    return bool(found) and not any(lonely.values()) and not any(one.found for one in found.values())


def _tell(name: str, one: Difference) -> None:
    """Print what differs in a table; nothing where nothing does."""
    if not one.found:
        return
    print(
        f"{name}: rows only in old {len(one.only['old'])}, only in new {len(one.only['new'])}; "
        f"{one.compared} compared, {one.equal} equal, largest difference {one.absolute:.3g}, "
        f"relative {one.relative:.3g}"
    )
    if one.missing:
        print(f"  columns only in old: {', '.join(one.missing)}")
    lists = {f"only in {side}": keys for side, keys in one.only.items()} | {"": one.differing}
    for title, lines in lists.items():
        for line in lines[:SHOWN]:
            print(f"  {title + ': ' if title else ''}{line}")
        if len(lines) > SHOWN:
            print(f"  ... and {len(lines) - SHOWN} more")


def _tell_total(found: Mapping[str, Difference]) -> None:
    """Print the sums over all tables."""
    all_of = list(found.values())
    print(
        f"{len(all_of)} tables, {sum(one.found for one in all_of)} of them differ; "
        f"rows only in old {sum(len(one.only['old']) for one in all_of)}, "
        f"only in new {sum(len(one.only['new']) for one in all_of)}; "
        f"{sum(one.compared for one in all_of)} values compared, "
        f"{sum(one.equal for one in all_of)} equal bit by bit; "
        f"largest difference {max((one.absolute for one in all_of), default=0.0):.3g}, "
        f"relative {max((one.relative for one in all_of), default=0.0):.3g}"
    )


def collect(data: Path, output: Path, run_id: str | None = None) -> int:
    """Copy the tables of a run out of its data folder, without the run's id in their paths.

    Args:
        data: folder in which every file is a folder of versions, ``table.parquet/RUN/``.
        output: folder that is made, and emptied of an earlier collection first.
        run_id: the run; that of the newest metrics unless given.

    Returns:
        Number of tables.
    """
    if run_id is None:
        runs = [*data.glob("08_reporting/metrics.parquet/*/metrics.parquet")]
        if not runs:
            raise SystemExit(f"{data}: no finished run")
        run_id = max(runs, key=lambda path: path.stat().st_mtime).parent.name
    paths = sorted(data.rglob(f"*.parquet/{run_id}/*.parquet"))
    for old in tables_in(output).values():
        old.unlink()
    for path in paths:
        place = output / path.relative_to(data).parent.parent
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    print(f"{len(paths)} tables of run {run_id} in {output}")
    return len(paths)


def main() -> None:
    """Collect or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path, help="folder of the old tables, or the data folder")
    parser.add_argument("new", type=Path, help="folder of the new tables, or the one to make")
    parser.add_argument("--collect", action="store_true", help="copy the newest run's tables")
    parser.add_argument("--run", help="with --collect: id of the run")
    parser.add_argument("--names", type=Path, default=NAMES, help="CSV file of changed names")
    given = parser.parse_args()
    if given.collect:
        sys.exit(0 if collect(given.old, given.new, given.run) else 1)
    sys.exit(0 if compare_folders(given.old, given.new, Mapped.read(given.names)) else 1)


if __name__ == "__main__":
    main()
