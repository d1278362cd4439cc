"""An audit for other programs (JSON) and for a model card (Markdown)."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from robust_fairness.auditing.definitions import definition
from robust_fairness.auditing.findings import AuditFindings
from robust_fairness.auditing.metric_names import SHARE
from robust_fairness.auditing.verdict import answers, gaps, lacking
from robust_fairness.core.escaping import as_code, for_markdown
from robust_fairness.core.tables import markdown

VERSION = "1.3"
SCHEMA = Path(__file__).with_name("audit.schema.json")
CARD = ["attribute", "metric", "value", "low", "high", "n", "note"]
GROUPS = {"accuracy_by_group": "accuracy", "true_positive_rate_by_group": "true positive rate",
          "false_positive_rate_by_group": "false positive rate",
          "selection_rate_by_group": "selection rate", SHARE: "share"}  # fmt: skip


def record(audit: AuditFindings) -> dict[str, Any]:
    """The audit as JSON types: facts, verdict, gates, rows, changes; missing numbers are null.

    ``audit.schema.json`` describes it. A version with the same first number adds fields only.
    """
    return {
        "schema_version": VERSION,
        "name": audit.name, "then": audit.then, "warning": audit.warning,
        "assumption": audit.assumption,
        "verdict": audit.judgements[0].verdict if audit.judgements else None,
        "gates": [
            {
                "gate": judgement.gate.text, "verdict": judgement.verdict,
                "reason": judgement.reason, "attribute": judgement.row.attribute,
                "group": judgement.row.group,
            }
            for judgement in audit.judgements
        ],
        "rows": _records(audit.rows),
        "changes": None if audit.changed is None else _records(audit.changed),
        "monitor": None if audit.monitor is None else _records(audit.monitor.to_frame()),
        "control": [asdict(between) for between in audit.between],
        "strata": [asdict(each) for each in audit.strata],
        "search": _records(pd.DataFrame([asdict(worst) for worst in audit.worst])),
        "power": _records(pd.DataFrame([asdict(power) for power in audit.power])),
        "why": None if audit.why is None else _records(audit.why.to_frame()),
    }  # fmt: skip


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(rows.to_json(orient="records", double_precision=15))
    return records


def model_card(audit: AuditFindings) -> str:
    """The quantitative part of a model card in Markdown (Mitchell et al. 2019), answer first."""
    rows, options = audit.rows, audit.options
    values = rows[(rows["group"] == "") & rows["applies"] & rows["value"].notna()]
    named = rows[rows["metric"].isin(list(GROUPS)) & ~rows["small"]].replace({"metric": GROUPS})
    groups = named[named["group"] != ""].pivot_table(
        index=["attribute", "group"], columns="metric", values="value", sort=False
    )
    failed = [judged.reason for judged in audit.judgements if judged.verdict != "PASS"]
    meanings = [f"- `{metric}`: {definition(metric)}" for metric in values["metric"].unique()]
    return "\n".join(
        [
            f"## Fairness of {for_markdown(audit.name)}",
            "",
            *(f"**{for_markdown(line)}.**" for line in answers(audit)),
            "",
            *(f"- {for_markdown(line)}" for line in (*failed, *gaps(rows), *lacking(audit))),
            "",
            f"Target {as_code(options.y_true or 'none')}, "
            f"prediction {as_code(str(options.y_pred))}, factors: "
            f"{', '.join(map(as_code, options.sensitive_features))}. Intervals have a "
            "nominal coverage of 95 %.",
            *(f"\n**{for_markdown(text)}**" for text in (audit.warning, audit.assumption) if text),
            "",
            "### Quantitative analyses",
            "",
            markdown(values[CARD].round(3)),
            "",
            "### By group",
            "",
            markdown(groups.round(3).reset_index()),
            "",
            "### Metrics",
            "",
            *meanings,
            "",
            "### Caveats",
            "",
            "No number here shows that predictions are fair: each measures the distance from one "
            "definition of fairness on these rows.",
            "",
        ]
    )
