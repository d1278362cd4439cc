"""Notebooks run, on the bundled data, and are committed without outputs."""

import json
import os
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from tests.forking import Forked

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
SITE = SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "execute_notebooks.py")))
FIGURE = re.compile(r'const figure = (.*); Plotly\.newPlot\("([\w-]+)"')


def code_cells(notebook: Path) -> list[dict]:
    """Its cells of code."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_holds_no_outputs(notebook):
    """They may show people's data."""
    assert all(
        cell["outputs"] == [] and cell["execution_count"] is None for cell in code_cells(notebook)
    )


def test_kernel_fairness_runs(tmp_path, monkeypatch, capsys):
    """All cells one after another, on the diabetes patients for an epoch."""
    (notebook,) = (path for path in NOTEBOOKS if path.stem == "kernel_fairness")
    first, *others = ("".join(cell["source"]) for cell in code_cells(notebook))
    assert first == 'DATASET, EPOCHS = "adult", 10'
    script = tmp_path / "cells.py"
    script.write_text("\n".join(['DATASET, EPOCHS = "diabetes", 1', *others]))
    monkeypatch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(tmp_path / "checkpoints"))
    left = runpy.run_path(str(script))
    table = left["table"]
    assert list(table.columns) == ["default", "weight=0.0", "weight=5.0"]
    assert table.loc[("sex", "faircocco_eo")].between(0, 1).all()
    assert table.loc[("sex", "faircocco_eo_p_value")].between(0.001, 1).all()
    # rows of the test part only, all with the attribute
    assert left["score"].n == 88
    assert left["score"].value == table.loc[("sex", "faircocco_eo")][left["one"].trial]
    assert "p-value" in capsys.readouterr().out


# What is looked at of each notebook when all of its cells have run in a kernel of their own.
LEFT = {
    "tour_of_a_run": """{
        "rows": len(metrics), "shifts": sorted(metrics["severity"].unique()),
        "cells": manifest["grid"]["cells"], "seeds": manifest["grid"]["seeds"],
        "commit": manifest["git"], "state": manifest["state"], "told": told,
        "outputs": len(manifest["outputs"]), "used": choices["used"].tolist(),
        "means": table.loc[("accuracy", "erm", "default")].tolist(),
        "accuracies": [
            metrics.query(
                "selection == 'every' and method == 'erm' and metric == 'accuracy' "
                "and severity == @severity"
            )["value"].mean()
            for severity in (0, 0.5, 1.0)
        ],
        "there": project.exists(), "where": str(Path.cwd()), "checkout": str(checkout),
    }""",
    "new_method": """{
        "apart": apart["mean"].unstack("trial").loc["train"].to_dict("index"),
        "equal": len(plain), "there": folder.exists(), "names": names("method"),
        "losses": [distance(one) for one in prediction.predict(
            samples, fitted[0][1], fitted[0][0], {"": samples}, "train")],
        "where": str(Path.cwd()),
    }""",
    "audit_of_predictions": """{
        "table": table.to_dict("list"), "status": done.returncode, "said": done.stderr,
        "rates": found[["group", "value", "n"]].to_dict("list"),
        "made": made.to_dict("list"), "failures": audit.failures("demographic_parity_difference>1"),
        "noticed": noticed.set_index(["metric", "attribute"])["value"].unstack().to_dict("index"),
    }""",
}


class Blocks(HTMLParser):
    """How deep the elements of a page are nested; raises where one is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


# Of these the cells also run as a script, in less than half of the time.
SCRIPTS = ("tour_of_a_run", "audit_of_predictions")


@pytest.mark.parametrize("name", SCRIPTS)
def test_cells_run_one_after_another_and_leave_what_the_notebook_tells(name, tmp_path):
    sources = ["".join(cell["source"]) for cell in code_cells(path_of(name))]
    script = tmp_path / "cells.py"
    script.write_text("\n".join([*sources, "import json", printing(name)]))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KEDRO_")}
    environment["ROBUST_FAIRNESS_MLFLOW"] = "off"
    child = Forked([str(script)], ROOT / "notebooks", environment)
    printed, said = child.communicate(timeout=300)
    assert child.returncode == 0, said
    CHECKS[name](json.loads(printed.splitlines()[-1]), printed)


def printing(name: str) -> str:
    """Code that prints as JSON what is looked at of a notebook."""
    return f"print(json.dumps({LEFT[name]}, default=float))"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(notebook, marks=[pytest.mark.slow] * (notebook in SCRIPTS))
        for notebook in LEFT
    ],
)
def ran(request, tmp_path_factory):
    """A notebook that ran in a fresh kernel: its name, page and what was left."""
    # in a process of its own, so that a kernel's threads and sockets do not stay
    code = (
        "import runpy, sys, json, pathlib; "
        "site = runpy.run_path(sys.argv[1]); "
        "notebook = site['executed'](pathlib.Path(sys.argv[2]), sys.argv[3]); "
        "left = notebook.cells.pop().outputs[0].text; "
        "print(json.dumps([left, *site['page'](notebook, pathlib.Path(sys.argv[2]).stem)]))"
    )
    notebook = ROOT / "notebooks" / f"{request.param}.ipynb"
    last = f"import json\n{printing(request.param)}"
    words = [sys.executable, "-c", code, str(ROOT / "tools" / "execute_notebooks.py")]
    done = subprocess.run(
        [*words, str(notebook), last],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    left, text, pictures = json.loads(done.stdout.splitlines()[-1])
    assert pictures == {}
    return SimpleNamespace(name=request.param, left=json.loads(left), text=text)


def test_notebook_runs_in_a_fresh_kernel_and_leaves_what_it_tells(ran):
    CHECKS[ran.name](ran.left, ran.text)


def test_page_of_a_notebook_names_no_path_and_shows_every_output(ran):
    assert not re.search(r"/tmp|/home/|/root|/work|site-packages|Traceback", ran.text)
    assert "../docs/" not in ran.text
    # prose and code, in order
    places = [ran.text.find("".join(cell["source"])) for cell in code_cells(path_of(ran.name))]
    assert places == sorted(places)
    assert min(places) > 0
    html = "\n".join(re.findall(r"^<.*", re.sub(r"```.*?```", "", ran.text, flags=re.DOTALL), re.M))
    blocks = Blocks()
    blocks.feed(html)
    assert blocks.open == []
    assert blocks.seen.count("table") >= 2
    # plotly.js once, and figures of points
    figures = FIGURE.findall(ran.text)
    assert ran.text.count("plotly.min.js") == bool(figures)
    drawn = {"tour_of_a_run": 2, "new_method": 0, "audit_of_predictions": 1}
    assert len(figures) == drawn[ran.name]
    for content, name in figures:
        assert json.loads(content)["data"]
        assert f'<div id="{name}"' in ran.text


def path_of(name: str) -> Path:
    return ROOT / "notebooks" / f"{name}.ipynb"


def check_tour(left, text):
    """A run of the whole grid, its manifest, and a second run with the same bits."""
    assert left["cells"] == ["diabetes.erm", "diabetes.faircocco"]
    assert left["seeds"] == {"diabetes": 2}
    assert left["shifts"] == [0, 0.5, 1.0]
    assert left["state"] == "finished"
    assert left["commit"]["dirty"] is False
    assert len(left["commit"]["commit"]) == 40
    assert left["used"].count(True) == 2  # the two criteria of the grid, of the method with trials
    assert left["means"] == pytest.approx(left["accuracies"])
    assert min(left["means"]) > 0.6
    # the report is the one output that tells its run
    assert left["told"].startswith(f"{left['outputs'] - 1} outputs, same bits")
    assert not left["there"]
    assert left["where"] == left["checkout"] == str(ROOT)
    assert f"{left['outputs'] - 1} outputs, same bits" in text


def check_method(left, text):
    """The method is found, is plain training without weight, and does what it promises."""
    assert "loss_variance" not in left["names"]  # it is gone at the end
    assert "loss_variance" in text
    # 5 seeds, 2 sets: accuracy; and of 2 attributes worst group, equalised odds and 2 groups
    assert left["equal"] == 5 * 2 * (1 + 2 * 4)
    plain, selected = left["apart"]["erm"]["default"], left["apart"]["loss_variance"]
    assert selected["weight=0.0"] == plain == pytest.approx(np.mean(left["losses"]))
    assert selected["weight=100.0"] < selected["default"] < plain
    assert selected["weight=100.0"] < plain / 4
    assert not left["there"]
    assert left["where"] == str(ROOT / "notebooks")


def check_audit(left, text):
    """Rates of groups as counted here, and a planted gap that the gate finds."""
    patients, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    table = {name: np.array(values) for name, values in left["table"].items()}
    severe = (progression > np.quantile(progression, 0.75)).to_numpy()
    assert (table["severe"] == severe).all()
    called = table["probability"] >= 0.5
    rates = dict(zip(left["rates"]["group"], left["rates"]["value"], strict=True))
    for code in (1, 2):
        group = severe & (patients["sex"] == code).to_numpy()
        assert rates[f"sex {code}"] == pytest.approx(called[group].mean())
        old = group & (patients["age"] >= 50).to_numpy()
        assert rates[f"sex {code} & age >= 50"] == pytest.approx(called[old].mean())
    made = {name: np.array(values) for name, values in left["made"].items()}
    positive = made["y"] == 1
    gap = np.ptp([made["predicted"][positive & (made["town"] == town)].mean() for town in "ab"])
    odds = left["noticed"]["equal_opportunity_difference"]
    assert odds["town"] == pytest.approx(gap)
    assert odds["hand"] < 0.2 < odds["town"] < 0.4
    p_values = left["noticed"]["faircocco_eo_p_value_holm"]
    assert p_values["town"] < 0.05 < p_values["hand"]
    assert left["status"] == 1
    assert left["said"].startswith("failed: equal_opportunity_difference[town]>0.2")
    assert "hand" not in left["said"]
    assert left["failures"] == []
    assert "exit status 1" in text


CHECKS = {
    "tour_of_a_run": check_tour,
    "new_method": check_method,
    "audit_of_predictions": check_audit,
}


def test_a_cell_that_fails_stops_the_site_and_nothing_is_written(tmp_path):
    broken = json.loads(path_of("new_method").read_text())
    broken["cells"] = [{**code_cells(path_of("new_method"))[0], "source": "1 / 0"}]
    (tmp_path / "broken.ipynb").write_text(json.dumps(broken))
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import execute_notebooks as site; "
        "from pathlib import Path; site.NOTEBOOKS = Path.cwd(); site.NAMES = ('broken',); "
        "site.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "tools"), "pages"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "notebooks/broken.ipynb: a cell failed" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert not (tmp_path / "pages").exists()
