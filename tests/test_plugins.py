"""Plug-ins from outside: of an installed package, and of a project's ``plugins/`` folder."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import PROJECT_FOLDER, find
from tests.forking import Forked
from tests.project import ROOT

PLUGINS = {
    "datasets/blobs": '''
import numpy as np
import pandas as pd
from pydantic import BaseModel
from robust_fairness.bench.datasets.base import Dataset
from robust_fairness.core.samples import Samples


class Blobs(Dataset):
    name = "blobs"
    data_kind = "table"

    class Parameters(BaseModel, extra="forbid"):
        rows: int = 200

    def load(self, files, splits):
        rng = np.random.default_rng(0)
        y = np.arange(self.parameters.rows) % 2
        x = (y[:, None] + 0.5 * rng.standard_normal((len(y), 3))).astype(np.float32)
        parts = pd.Categorical(np.array(["train", "val", "test"])[np.arange(len(y)) // 2 % 3])
        groups = pd.Categorical(np.arange(len(y)) // 8 % 2).rename_categories(["a", "b"])
        return Samples(
            x=x,
            y=y,
            attributes=pd.DataFrame({"group": groups}),
            id=np.arange(len(y)),
            splits=pd.DataFrame({f"split_{number}": parts for number in range(splits)}),
            features=("first", "second", "third"),
            classes=("no", "yes"),
            sensitive=("group",),
        )
''',
    "shifts/constant": '''
from dataclasses import replace
from robust_fairness.core.errors import InputError
from robust_fairness.bench.shifts.base import SampleShift


class Constant(SampleShift):
    name = "constant"
    applies_to = ("table",)

    def check(self, severity):
        if severity < 0:
            raise InputError(f"constant severity {severity}, allowed: 0 and larger")

    def shifted(self, samples, severity, places):
        return replace(samples, x=samples.x + samples.x.dtype.type(severity))
''',
    "methods/doubled": '''
import os

from robust_fairness.bench.methods.base import Method, MethodParameters, plain_steps


class Doubled(Method):
    name = "doubled"

    class Parameters(MethodParameters):
        factor: float = 2.0

    def steps(self, model, batch):
        os.chdir(os.environ["HOME"])  # the run goes on in the folder of the project
        for step in plain_steps(model, batch):
            step.losses = {name: self.hparams.factor * loss for name, loss in step.losses.items()}
            yield step
''',
    "models/narrow": '''
from pydantic import Field
from robust_fairness.bench.models.tables.mlp import Mlp


class Narrow(Mlp):
    name = "narrow"

    class Parameters(Mlp.Parameters):
        hidden: int = Field(8, ge=1)
''',
    "metrics/share": '''
import numpy as np
from robust_fairness.numbers.quantities import quantity


@quantity(better="higher")
def share_of_first_class(y_true, y_pred, *, sample_weight=None):
    """Share of rows that are predicted to be of the first class."""
    return float(np.average(y_pred == 0, weights=sample_weight))
''',
}  # fmt: skip
ENTRIES = {
    "datasets": "blobs = outside.datasets.blobs:Blobs",
    "shifts": "constant = outside.shifts.constant:Constant",
    "methods": "doubled = outside.methods.doubled:Doubled",
    "models": "narrow = outside.models.narrow:Narrow",
    "metrics": "share = outside.metrics.share",
}
EXPERIMENT = {
    "datasets": {
        "blobs": {
            "seeds": 1,
            "protocol": "short",
            "network": "narrow",
            "shifts": {"constant": [1]},
            "metrics": ["accuracy", "share_of_first_class", "share_of_first_class_difference"],
            "methods": {"doubled": {}},
        }
    }
}


def write(folder: Path) -> None:
    """Write the plug-ins below a folder."""
    for name, source in PLUGINS.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.lstrip())


def install(site: Path) -> None:
    """Write the plug-ins as an installed package: modules and entry points."""
    write(site / "outside")
    info = site / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    groups = (f"[robust_fairness.{group}]\n{entry}\n" for group, entry in ENTRIES.items())
    (info / "entry_points.txt").write_text("\n".join(groups))


@pytest.mark.parametrize("installed", [True, False], ids=["installed package", "plugins folder"])
def test_plug_ins_from_outside_run_in_the_grid(tmp_path, installed):
    """In a folder with nothing but ``conf/local`` and, perhaps, ``plugins``."""
    project, site = tmp_path / "project", tmp_path / "site"
    local = project / "conf" / "local"
    local.mkdir(parents=True)
    (local / "experiment.yml").write_text(yaml.safe_dump(EXPERIMENT))
    parameters = {"networks": {"narrow": {}}, "protocols": {"short": {"epochs": 2}}}
    (local / "parameters.yml").write_text(yaml.safe_dump(parameters))
    install(site) if installed else write(project / "plugins")
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{site}", "ROBUST_FAIRNESS_MLFLOW": "off"}
    words = ["run", "--datasets=blobs", "--run-id=one", "--to-outputs=metrics"]
    environment |= {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    ran = Forked(["-m", "robust_fairness", *words], project, environment)
    printed = ran.communicate(timeout=300)
    assert ran.returncode == 0, printed
    metrics = pd.read_parquet(project / "data/08_reporting/metrics.parquet/one/metrics.parquet")
    assert set(metrics["method"]) == {"doubled"}
    assert not (tmp_path / "data").exists()  # where the method left the process
    assert set(metrics["network"]) == {"narrow"}
    assert set(metrics["shift"]) == {"none", "constant"}
    share = metrics[metrics["metric"] == "share_of_first_class"].set_index("shift")["value"]
    assert np.isfinite(share).all()
    assert share["constant"] < share["none"]  # larger inputs look like the second class


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import torchh\n", r"mine.py:1: ModuleNotFoundError: No module named 'torchh'$"),
        ("class Mine(:\n", r"mine.py: SyntaxError: invalid syntax \(mine.py, line 1\)$"),
        (
            "from robust_fairness.plugins import Method\n\n\nclass Mine(Method):\n    pass\n",
            r"mine.py: class Mine does not define steps$",
        ),
        (  # as of version 1
            "from robust_fairness.methods.base import Method\n",
            r"mine.py:1: ModuleNotFoundError: No module named 'robust_fairness.methods'; what a "
            r"plug-in imports is in robust_fairness.plugins$",
        ),
    ],
)
def test_a_broken_plug_in_is_one_line(source, message, tmp_path, monkeypatch):
    monkeypatch.setenv(PROJECT_FOLDER, str(tmp_path))
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "mine.py").write_text(source)
    for _ in range(2):  # nothing is left of the first attempt
        with pytest.raises(InputError, match=message):
            find("method", "mine")
    sys.modules.pop("robust_fairness_plugins.methods.mine", None)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("{}['rate']", "KeyError: 'rate' ("),
        ("sys.exit(0)", "SystemExit: 0 ("),
        ("os._exit(0)", "Error: a plug-in ended the process by os._exit"),
    ],
)
def test_a_plug_in_that_fails_or_ends_the_process_never_ends_a_run_with_status_0(
    code, message, tmp_path
):
    local = tmp_path / "conf" / "local"
    local.mkdir(parents=True)
    (local / "experiment.yml").write_text(yaml.safe_dump(EXPERIMENT))
    parameters = {"networks": {"narrow": {}}, "protocols": {"short": {"epochs": 1}}}
    (local / "parameters.yml").write_text(yaml.safe_dump(parameters))
    write(tmp_path / "plugins")
    method = tmp_path / "plugins" / "methods" / "doubled.py"
    source = method.read_text().replace("        for step", f"        {code}\n        for step")
    method.write_text(f"import sys\n{source}")
    (line,) = (n for n, text in enumerate(method.read_text().splitlines(), 1) if code in text)
    environment = {"PYTHONPATH": str(ROOT / "src"), "ROBUST_FAIRNESS_MLFLOW": "off"}
    environment |= {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    words = ["run", "--datasets=blobs", "--run-id=one", "--to-outputs=metrics"]
    ran = Forked(["-m", "robust_fairness", *words], tmp_path, environment)
    printed = "".join(ran.communicate(timeout=300))
    assert ran.returncode == 1, printed
    assert message in printed
    if "_exit" not in code:
        assert f"{Path('plugins/methods/doubled.py')}:{line}, in steps)" in printed
        assert "Traceback" not in printed
        assert "Traceback" in (tmp_path / "data/08_reporting/manifests/one.log").read_text()
