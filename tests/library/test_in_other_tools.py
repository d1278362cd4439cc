"""The audit in other tools: the example of docs/audit.md as a Kedro node, metrics for MLflow."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.runner import SequentialRunner

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
NODE, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def predictions():
    rng = np.random.default_rng(0)
    y, sex = rng.integers(0, 2, 400), rng.choice(["f", "m"], 400)
    return pd.DataFrame({"y": y, "p": np.clip(0.4 * y + 0.6 * rng.random(400), 0, 1), "sex": sex})


def test_the_audit_is_a_kedro_node(predictions):
    names: dict = {}
    exec(NODE, names)  # noqa: S102 - our own document
    catalog = DataCatalog({"predictions": MemoryDataset(predictions)})
    outputs = SequentialRunner().run(names["pipeline"], catalog)
    assert "Audit of table" in outputs["audit_page"].load()
    table = outputs["audit_table"].load().set_index(["attribute", "group", "metric"])["value"]
    assert table["", "", "accuracy"] == np.mean((predictions["p"] >= 0.5) == predictions["y"])
    catalog = DataCatalog(
        {"predictions": MemoryDataset(predictions.assign(p=predictions["sex"].eq("f") * 1.0))}
    )
    with pytest.raises(ValueError, match="equalized_odds_difference"):
        SequentialRunner().run(names["pipeline"], catalog)
