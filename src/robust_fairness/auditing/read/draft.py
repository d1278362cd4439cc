"""The configuration of a table, drafted from its outline and the roles of its columns."""

import pandas as pd
import yaml

from robust_fairness.auditing.read.columns import MOST_CATEGORIES, MOST_CODES
from robust_fairness.auditing.read.profile import (
    BINS,
    EACH_ONCE,
    ORDERED,
    ColumnProfile,
    Profile,
    Roles,
)
from robust_fairness.core.numbers import counted

# From LARGE rows on, so many steps of a larger batch at a larger learning rate, whatever the number
# of rows: ``tabular`` visits every row 50 times in batches of 128. Beyond 256 rows the penalties
# of pairs of rows cost more than the fewer steps save.
LARGE, STEPS, BATCH, LEARNING_RATE = 20_000, 1_800, 256, 0.003
TRAINED = 0.6  # of the rows, by default
FEWEST_EPOCHS = 2
MOST_LABELS = 20  # distinct numbers of a target that are taken for classes
METRICS = {
    "classes": [
        "accuracy", "balanced_accuracy", "accuracy_by_group", "worst_group_accuracy",
        "selection_rate_by_group", "true_positive_rate_by_group", "false_positive_rate_by_group",
        "demographic_parity_difference", "equalized_odds_difference",
    ],
    "numbers": [
        "mean_squared_error", "mean_absolute_error", "mean_squared_error_by_group",
        "worst_group_mean_squared_error", "faircocco_eo",
    ],
}  # fmt: skip


def parameters(table: Profile, roles: Roles, name: str, file: str) -> str:
    """YAML that says what the columns of a table are."""
    columns, lacks = table.columns, any(column.missing for column in table.columns.values())
    outcome = outcome_of(columns[roles.target])
    numbers = [
        name
        for name in roles.sensitive
        if columns[name].type == "number" and len(columns[name].counts) > MOST_CODES
    ]
    dates = {
        column.name: "quarter" if column.name == roles.domain else "number"
        for column in columns.values()
        if column.type == "date"
    }
    measures = {
        column.name: column.suffix
        for column in columns.values()
        if column.type == "measure" and column.name not in roles.ignored
    }
    mixed = {column.name: "category" for column in columns.values() if _is_mixed(column, roles)}
    positive = roles.positive if outcome == "binary" else ""
    lines: dict[str, tuple[object, str]] = {
        "source": ("table", ""),
        "file": (file, "below the data root"),
        "target": (roles.target, ""),
        "delimiter": ("" if table.delimiter == "," else table.delimiter, ""),
        "encoding": (table.encoding, "found out"),
        "decimal": ("" if table.decimal == "." else table.decimal, "of numbers in text"),
        "positive": (positive, "class 1; all other values are class 0"),
        "outcome": ("" if outcome == "binary" else outcome, ""),
        "sensitive": (roles.sensitive, "attributes that methods mitigate"),
        "bins": (dict.fromkeys(numbers, BINS), "groups of equal size; or edges: [30, 60]"),
        "domain": (roles.domain, "not a feature"),
        "unit": (roles.unit, "all its rows are in one part"),
        "id": (roles.id, "names of rows"),
        "dates": (dates, "year, quarter, month, day, or number (days since 1970)"),
        "suffixes": (measures, "numbers with a unit"),
        "types": (mixed, "numbers and text: or declare the text missing, and a number"),
        "missing": (list(table.missing) if lacks else [], "texts of missing values"),
        "incomplete": ("impute" * lacks, "median and indicator; or drop rows, or refuse"),
        "drop": (roles.ignored, "not features"),
    }
    used = {name: lines[name] for name in lines if lines[name][0] or name == "sensitive"}
    return _section(f"What the columns of {file} are.", {name: used})


def protocol(table: Profile, name: str) -> str:
    """YAML of a protocol that suits a large table; "" for a small one, which has ``tabular``."""
    if table.rows < LARGE:
        return ""
    epochs = max(FEWEST_EPOCHS, round(STEPS * BATCH / (TRAINED * table.rows)))
    fields = f"epochs: {epochs}, batch_size: {BATCH}, learning_rate: {LEARNING_RATE}"
    return f"protocols:\n  {name}: {{{fields}}}  # for {counted({'rows': table.rows})}\n"


def experiment(table: Profile, roles: Roles, name: str) -> str:
    """YAML of a first grid: three methods, other domains or a little noise."""
    binary = outcome_of(table.columns[roles.target]) != "continuous"
    lines: dict[str, tuple[object, str]] = {"seeds": (5, "")}
    if roles.domain:
        lines["domains"] = (design(table.columns[roles.domain], table), "docs: natural_shift")
    else:
        lines["shifts"] = ({"gaussian_noise": [0.1, 0.5]}, "standard deviations")
    lines |= {
        "protocol": (name if table.rows >= LARGE else "tabular", ""),
        "network": ("mlp", ""),
        "selections": (["accuracy" if binary else "mean_squared_error"], ""),
        "metrics": (METRICS["classes" if binary else "numbers"], "robust-fairness list metrics"),
        "methods": (
            {"erm": {}, "group_dro" if binary else "faircocco": {}, "cuma": {}},
            "robust-fairness list methods",
        ),
    }
    return _section(f"What is run on {name}.", {name: lines})


def outcome_of(target: ColumnProfile) -> str:
    """``binary``, ``classes`` or ``continuous``."""
    if target.type == "binary":
        return "binary"
    is_number = target.type == "number" and len(target.counts) > MOST_LABELS
    return "continuous" if is_number else "classes"


def design(domain: ColumnProfile, table: Profile) -> dict[str, object]:
    """Domains to train on: each left out once if they are few; the past if they are ordered."""
    values = domain.values
    if domain.type == "date":
        dates = pd.to_datetime(pd.Series(values), format="ISO8601", utc=True).dt.tz_localize(None)
        values = sorted(set(dates.dt.to_period("Q").astype(str)))
    if domain.type == "date" or domain.name.casefold() in ORDERED:
        kept = max(1, 2 * len(values) // 3)
        return {"train": values[:kept], "test": values[kept:]}
    if len(values) <= EACH_ONCE:
        return {"train": "all_but_each", "names": values}
    return {"test": values[-max(1, len(values) // 3) :]}


def _is_mixed(column: ColumnProfile, roles: Roles) -> bool:
    used = column.name not in {*roles.ignored, roles.domain, roles.unit, roles.id, roles.target}
    return column.type == "mixed" and used and len(column.counts) <= MOST_CATEGORIES


def _section(title: str, datasets: dict[str, dict[str, tuple[object, str]]]) -> str:
    """A YAML file of datasets, a line for each field, with comments."""
    written = [f"# {title}", "datasets:"]
    for name, fields in datasets.items():
        written.append(f"  {name}:")
        for field, (value, comment) in fields.items():
            text = yaml.safe_dump(
                value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**6
            ).removesuffix("...\n")
            written.append(f"    {field}: {text.strip()}{f'  # {comment}' if comment else ''}")
    return "\n".join(written) + "\n"
