"""An audit for other programs (JSON) and for a model card (Markdown)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from robust_fairness.auditing.definitions import definition
from robust_fairness.auditing.gates import VERDICTS, Judgement
from robust_fairness.auditing.predictions import Roles
from robust_fairness.auditing.report import SHARE
from robust_fairness.auditing.verdict import gaps, lacking, sentence_of
from robust_fairness.core.tables import markdown

CARD = ["attribute", "metric", "value", "low", "high", "n", "note"]
GROUPS = {"accuracy_by_group": "accuracy", "true_positive_rate_by_group": "true positive rate",
          "false_positive_rate_by_group": "false positive rate",
          "selection_rate_by_group": "selection rate", SHARE: "share"}  # fmt: skip


def record(
    rows: pd.DataFrame,
    changes: pd.DataFrame | None,
    judgements: Sequence[Judgement],
    **facts: str,
) -> dict[str, Any]:
    """The audit as JSON types: facts, verdict, gates, rows, changes; missing numbers are null."""
    found = {one.verdict for one in judgements}
    return {
        **facts,
        "verdict": next((one for one in VERDICTS if one in found), None),
        "gates": [
            {
                "gate": one.gate.text, "verdict": one.verdict, "reason": one.reason,
                "attribute": one.row.attribute, "group": one.row.group,
            }
            for one in judgements
        ],
        "rows": _records(rows),
        "changes": None if changes is None else _records(changes),
    }  # fmt: skip


def _records(rows: pd.DataFrame) -> Any:
    return json.loads(rows.to_json(orient="records", double_precision=15))


def model_card(
    rows: pd.DataFrame, roles: Roles, facts: Mapping[str, str], judgements: Sequence[Judgement]
) -> str:
    """The quantitative part of a model card in Markdown (Mitchell et al. 2019), verdict first."""
    said = sentence_of(sorted((one.verdict for one in judgements), key=VERDICTS.index), "")
    values = rows[(rows["group"] == "") & rows["applies"] & rows["value"].notna()]
    named = rows[rows["metric"].isin(list(GROUPS)) & ~rows["small"]].replace({"metric": GROUPS})
    groups = named[named["group"] != ""].pivot_table(
        index=["attribute", "group"], columns="metric", values="value", sort=False
    )
    meanings = [f"- `{one}`: {definition(one)}" for one in values["metric"].unique()]
    return "\n".join(
        [
            f"## Fairness of {facts['name']}",
            "",
            f"**{said.word}**: {said.sentence}".strip(),
            "",
            *(f"- {one.reason}" for one in judgements if one.verdict != "PASS"),
            *(f"- {line}" for line in (*gaps(rows), *lacking(rows))),
            "",
            f"Target `{roles.target}`, prediction `{roles.prediction}`, factors: "
            f"{', '.join(f'`{one}`' for one in roles.attributes)}. Intervals have a nominal "
            "coverage of 95 %.",
            *(f"\n**{facts[one]}**" for one in ("warning", "assumption") if facts[one]),
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
