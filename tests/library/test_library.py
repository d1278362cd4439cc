"""``import robust_fairness as rf``: against fairlearn, scikit-learn, and runs of the same cell."""

import ast
import os
import pydoc
import re
import subprocess
import sys
from inspect import getsource

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import robust_fairness as rf
from robust_fairness.auditing.command import TableFile, audit_file
from robust_fairness.auditing.predictions import Options
from robust_fairness.bench import training
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.core.errors import InputError

ROWS = 400


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": rng.integers(0, 2, ROWS),
            "predicted": rng.integers(0, 2, ROWS),
            "probability": rng.random(ROWS),
            "sex": rng.choice(["f", "m"], ROWS),
            "age": rng.choice(["young", "middle", "old"], ROWS),
            "weight": rng.random(ROWS),
        }
    )


@pytest.mark.skipif(sys.platform != "linux", reason="GNU's OpenMP shows its settings")
@pytest.mark.parametrize(
    ("chosen", "sleeping"), [({}, True), ({"OMP_WAIT_POLICY": "active"}, False)]
)
def test_threads_sleep_while_they_wait(chosen, sleeping):
    """What OpenMP says when torch loads it; a person's own choice counts."""
    kept = {name: value for name, value in os.environ.items() if name[:3] != "OMP"}
    process = subprocess.run(
        [sys.executable, "-c", "import robust_fairness, torch"],
        env=kept | {"OMP_DISPLAY_ENV": "verbose"} | chosen,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("GOMP_SPINCOUNT = '0'" in process.stderr) == sleeping


def test_labels_may_have_any_names(table):
    words = table[["income", "predicted"]].replace({0: "no", 1: "yes"})
    whole = rf.metrics.true_positive_rate(table["income"], table["predicted"])
    assert rf.metrics.true_positive_rate(words["income"], words["predicted"]) == whole
    other = rf.metrics.true_positive_rate(words["income"], words["predicted"], pos_label="no")
    assert other == rf.metrics.true_negative_rate(table["income"], table["predicted"])


def test_several_sensitive_features_are_their_combinations(table):
    both = table["sex"] + " & " + table["age"]
    arguments = (table["income"], table["predicted"])
    gap = rf.metrics.equalized_odds_difference(*arguments, sensitive_features=both)
    assert gap == rf.metrics.equalized_odds_difference(
        *arguments, sensitive_features=table[["sex", "age"]]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs sensitive_features"),
        ({"sensitive_features": ["f"] * 4, "pos_label": 2}, "pos_label 2, allowed: one of two"),
        ({"sensitive_features": [1, "1"] * 2}, "different labels have the same text"),
        ({"y_pred": list("1100")}, "different types, integer and string"),
        ({"y_pred": [0.9, 0.8, 0.1, 0.2]}, "y_pred has the value 0.9, allowed: classes"),
        ({"y_pred": [[1], [1], [0], [0]]}, r"y_pred has shape \(4, 1\)"),
        ({"curvature": [1, 1, 1, 1]}, "takes no curvature"),
    ],
)
def test_wrong_arguments_of_metrics_are_one_line(options, message):
    arrays = {"y_true": pd.Series([0, 1, 0, 1]), "y_pred": [1, 1, 0, 0], **options}
    with pytest.raises(InputError, match=message):
        rf.metrics.equalized_odds_difference(**arrays)


def test_what_is_no_probability_or_number_is_refused():
    with pytest.raises(InputError, match="no probabilities, allowed: 0 to 1"):
        rf.metrics.brier_score([0, 1], [20, 90])
    for values in ([0.5, np.nan], ["0.5", "0.1"]):
        with pytest.raises(InputError, match="no finite numbers"):
            rf.metrics.mean_squared_error([1.0, 2.0], values)
    with pytest.raises(InputError, match="Yes, no, yes differ in spelling only"):
        rf.metrics.accuracy(["Yes", "no"], ["yes", "no"])


def test_the_positive_one_of_classes_1_and_2_has_to_be_declared(table):
    y, predicted, sex = table["income"] + 1, table["predicted"] + 1, table["sex"]
    assert rf.metrics.accuracy(y, predicted) == (y == predicted).mean()
    with pytest.raises(InputError, match="classes 1 and 2, allowed: 1 and .* pos_label"):
        rf.metrics.precision(y, predicted)
    with pytest.raises(InputError, match="values 1 and 2; declare which is positive"):
        rf.audit(y_true=y, y_pred=predicted, sensitive_features=sex)
    values = rf.audit(y_true=y, y_pred=predicted, sensitive_features=sex, pos_label=2).metrics()
    assert values["precision"] == rf.metrics.precision(y, predicted, pos_label=2)
    assert values["precision"] == (y == 2)[predicted == 2].mean()  # noqa: PLR2004


@pytest.mark.parametrize(("both", "rate"), [("no", 0.0), ("yes", 1.0)])
def test_one_class_of_text_labels_is_as_0_or_1(both: str, rate: float):
    labels, sex = [both] * 4, ["f", "m"] * 2
    for metric in ("accuracy", "selection_rate", "selection_rate_difference"):
        function, options = getattr(rf.metrics, metric), {}
        if "difference" in metric:
            options["sensitive_features"] = sex
        numbers = [int(both == "yes")] * 4
        assert function(labels, labels, pos_label="yes", **options) == function(
            numbers, numbers, **options
        )
    assert rf.metrics.selection_rate(labels, labels, pos_label="yes") == rate
    with pytest.raises(InputError, match="pos_label 1, allowed: one of two"):
        rf.metrics.selection_rate(labels, labels, pos_label=1)


def test_an_undefined_metric_is_an_error_and_an_unknown_one_no_attribute():
    with pytest.raises(InputError, match="not defined for these rows: no rows of class 1"):
        rf.metrics.true_positive_rate([0, 0], [0, 1])
    with pytest.raises(AttributeError, match="did you mean 'accuracy'"):
        rf.metrics.acuracy  # noqa: B018


def test_audit_takes_columns_and_arrays_alike(table):
    named = rf.audit(table, y_true="income", y_pred="predicted", sensitive_features=["sex", "age"])
    arrays = rf.audit(
        y_true=table["income"].to_numpy(),
        y_pred=table["predicted"].to_numpy(),
        sensitive_features=table[["sex", "age"]],
    )
    pd.testing.assert_frame_equal(arrays.to_frame(), named.to_frame())


@pytest.mark.parametrize("convert", [
    pa.Table.from_pandas, lambda frame: pl.from_pandas(frame).lazy(), duckdb.from_df,
], ids=["Arrow", "polars lazy", "duckdb"])  # fmt: skip
def test_frames_of_other_libraries_have_the_same_audit(table, convert):
    columns = {"y_true": "income", "y_pred": "predicted", "sensitive_features": ["sex", "age"]}
    plain = table[["income", "predicted", "sex", "age"]]
    scores = rf.audit(convert(plain), **columns).to_frame()
    pd.testing.assert_frame_equal(scores, rf.audit(plain, **columns).to_frame())


@pytest.mark.parametrize("weight", [None, "weight"])
def test_the_audit_of_blocks_is_that_of_the_whole_table(table, weight, tmp_path):
    """Bit for bit, with groups beyond the 127 that a code of one byte tells apart."""
    rows = table.sample(6000, replace=True, random_state=0, ignore_index=True)
    rows["ward"] = [None if k % 31 == 0 else f"ward {k % 90}" for k in range(len(rows))]
    attributes = ["sex", "ward"]
    columns = {"y_true": "income", "y_pred": "probability", "sample_weight": weight}
    whole = rf.audit(
        rows, **columns, sensitive_features=attributes, intersections=True, name="t.parquet"
    )
    assert whole.rows["group"].nunique() > 127
    rows.to_parquet(tmp_path / "t.parquet", row_group_size=70)
    options = Options(**columns, sensitive_features=attributes, intersections=True)
    audit = audit_file(TableFile(tmp_path / "t.parquet"), options)
    pd.testing.assert_frame_equal(audit.to_frame(), whole.to_frame(), check_exact=True)
    assert audit.to_html() == whole.to_html()


def test_audit_refuses_rows_in_another_order(table):
    mixed = table.sample(frac=1, random_state=0)
    columns = {"y_true": "income", "y_pred": "predicted", "sensitive_features": ["sex"]}
    wrong = [
        (table, {"y_pred": mixed["predicted"]}),
        (table, {"sensitive_features": mixed["sex"]}),
        (None, {"y_true": table["income"], "y_pred": mixed["predicted"]}),
        ({**table, "sex": mixed["sex"]}, {}),
        ({**table, "sex": table["sex"].iloc[:5]}, {}),
    ]
    for frame, other in wrong:
        sex = {"sensitive_features": table["sex"]} if frame is None else {}
        with pytest.raises(InputError, match="the indices of|differ in length"):
            rf.audit(frame, **{**columns, **sex, **other})


def test_audit_writes_its_page_and_checks_conditions(table, tmp_path):
    audit = rf.audit(table, y_true="income", y_pred="predicted", sensitive_features="sex")
    page = audit.to_html(tmp_path / "audit.html", fail_if=["accuracy>0"])
    assert (tmp_path / "audit.html").read_text(encoding="utf-8") == page
    assert "accuracy" in audit.failures("accuracy>0")[0]
    assert audit.failures("accuracy>1") == []
    assert "equalized_odds_difference" in audit._repr_html_()


def test_audit_compares_with_a_reference(table):
    columns = {"y_true": "income", "y_pred": "predicted", "sensitive_features": "sex"}
    later = table.assign(predicted=table["predicted"].where(table["sex"] == "f", 1))
    audit = rf.audit(later, reference=table, **columns)
    changes = audit.changes().set_index(["attribute", "group", "metric"])["change"]
    men = table["sex"] == "m"
    assert changes["sex", "m", "selection_rate_by_group"] == pytest.approx(
        1 - table.loc[men, "predicted"].mean()
    )
    assert changes["sex", "f", "selection_rate_by_group"] == 0
    assert audit.failures("change(demographic_parity_difference[sex])>0.2")
    # quantiles are those of the reference, so that both have the same groups
    aged = table.assign(years=np.arange(ROWS))
    moved = {**columns, "sensitive_features": "years", "bins": {"years": 2}}
    shifted = rf.audit(aged.assign(years=aged["years"] + 50), reference=aged, **moved).changes()
    shares = shifted[shifted["metric"] == "group_share"].set_index("group")
    assert shares["now"].to_dict() == {"years < 199.5": 0.375, "years >= 199.5": 0.625}
    assert shares["then"].tolist() == [0.5, 0.5]
    with pytest.raises(InputError, match="has no reference"):
        rf.audit(table, **columns).failures("change(accuracy)<0")


def test_training_and_scores_are_those_of_a_cell_of_a_run():
    samples = rf.load("heart", splits=2)
    scores = rf.evaluate(rf.train(samples, "cuma", epochs=2, gamma=0.5, seeds=2))
    cell = Cell.model_validate(
        {
            "dataset": "samples",
            "label": "cuma",
            "method": "cuma",
            "network": "mlp",
            "settings": {"epochs": 2, "gamma": 0.5},
            "seeds": (0, 1),
            "metrics": tuple(dict.fromkeys(scores["metric"])),
        }
    )
    fitted, validation, _, _ = training.train(samples, cell)
    chosen = training.select(samples, validation, cell)
    predictions = training.predict(samples, fitted, chosen, cell, {})
    theirs = training.evaluate(samples, predictions, chosen, cell, {})
    pd.testing.assert_frame_equal(scores, theirs)


def test_evaluation_has_a_test_set_for_every_severity():
    trained = rf.train(rf.load("heart"), epochs=1)
    scores = rf.evaluate(trained, shifts={"gaussian_noise": [0.1, 10.0]}, metrics=["accuracy"])
    values = scores.set_index(["shift", "severity"])["value"]
    assert set(values.index) == {
        ("none", 0.0),
        ("gaussian_noise", 0.1),
        ("gaussian_noise", 10.0),
    }
    with pytest.raises(InputError, match="unknown shift 'gausian_noise'"):
        rf.evaluate(trained, shifts={"gausian_noise": 1})
    with pytest.raises(InputError, match="shift extend: of generated images"):
        rf.evaluate(trained, shifts={"extend": 15})
    with pytest.raises(InputError, match="seeds.0: Input should be greater than or equal to 0"):
        rf.train(trained.samples, seeds=[-1])


def test_files_that_are_not_the_official_ones_are_refused(shared_data, tmp_path):
    (tmp_path / "student").mkdir()
    for name in ("student-mat.csv", "student-por.csv"):
        content = (shared_data / "student" / name).read_text()
        (tmp_path / "student" / name).write_text(content.replace(";18;", ";17;", 1))
    with pytest.raises(
        InputError, match=r"^student/student-por.csv differs .* allow_modified_data=True$"
    ):
        rf.load("students", data=tmp_path)
    assert len(rf.load("students", data=tmp_path, allow_modified_data=True))


def test_training_keeps_nothing(tmp_path, monkeypatch):
    samples = rf.load("heart")
    monkeypatch.chdir(tmp_path)
    rf.train(samples, epochs=1)
    assert list(tmp_path.iterdir()) == []


def test_a_fair_classifier_reads_groups_and_narrows_the_gap():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 2000)
    x = rng.normal(size=(2000, 3)) + group[:, None]
    y = np.where(x[:, 0] + group + rng.normal(size=2000) > 1, "paid", "open")
    gap = {
        kind.__name__: rf.metrics.demographic_parity_difference(
            y,
            kind(epochs=20, batch_size=256, **options)
            .fit(x, y, sensitive_features=group)
            .predict(x),
            sensitive_features=group,
        )
        for kind, options in ((rf.Erm, {}), (rf.Faircocco, {"notion": "dp", "weight": 1.5}))
    }
    assert gap["Faircocco"] < gap["Erm"] / 2
    with pytest.raises(InputError, match="method group_dro: needs sensitive_features"):
        rf.GroupDro(epochs=1).fit(x, y)
    with pytest.raises(TypeError, match="unknown parameter of Cuma 'gama'"):
        rf.Cuma(gama=1.0)


@pytest.mark.parametrize(
    ("options", "groups", "message"),
    [
        ({}, [1] * 20, "every row has the value 1"),
        ({}, [0.5 * number for number in range(20)], "is continuous and defines no groups"),
        ({"validation_fraction": 1.5}, [0, 1] * 10, "validation_fraction: 1.5, allowed: from 0"),
    ],
)
def test_wrong_groups_of_a_classifier_are_one_line(options, groups, message):
    x, y = pd.DataFrame(np.eye(20)), np.arange(20) % 3 % 2
    with pytest.raises(InputError, match=message):
        rf.GroupDro(epochs=1, **options).fit(x, y, sensitive_features=groups)
    with pytest.raises(InputError, match="X has values that float32 cannot represent"):
        rf.Erm(epochs=1).fit(x * 1e300, y)


def test_networks_of_the_configuration_can_be_named():
    """The same trees as by the plug-in, which scikit-learn's own classifier predicts as well."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = rf.Erm(network="boosted_trees", preprocessing="none").fit(x, y)
    params = {"early_stopping": False}
    trained = rf.train(rf.load("heart"), network="boosted_trees").cell
    assert trained.network.name == "estimator" and trained.network.options == {"params": params}
    train = (model.trained_.samples.splits["split_0"] == "train").to_numpy()
    own = HistGradientBoostingClassifier(**params).fit(x[train], y[train])
    np.testing.assert_allclose(model.predict_proba(x), own.predict_proba(x), atol=1e-6)
    assert len(np.unique(model.predict(x))) == 2


@pytest.mark.filterwarnings("ignore:.*A constant predictor")  # after one epoch
def test_metadata_routing_passes_the_groups_of_each_fold():
    rng = np.random.default_rng(0)
    x, y, group = rng.normal(size=(90, 3)), rng.integers(0, 2, 90), rng.integers(0, 2, 90)
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler(), rf.Cuma(epochs=1).set_fit_request(sensitive_features=True)
        )
        folds = KFold(2)
        validation = cross_validate(
            model, x, y, params={"sensitive_features": group}, cv=folds, return_estimator=True
        )
        for (train, _), fitted in zip(folds.split(x), validation["estimator"], strict=True):
            alone = make_pipeline(StandardScaler(), rf.Cuma(epochs=1))
            alone[-1].set_fit_request(sensitive_features=True)
            alone.fit(x[train], y[train], sensitive_features=group[train])
            np.testing.assert_array_equal(fitted.predict_proba(x), alone.predict_proba(x))
        with pytest.raises(InputError, match="needs sensitive_features"):
            model.fit(x, y)


def test_help_dir_and_editors_list_the_public_names() -> None:
    """Editors see what the module assigns and imports for type checkers."""
    text = pydoc.render_doc(rf.metrics, renderer=pydoc.plaintext)
    names = dir(rf.metrics)
    assert {"Metric", "accuracy", "find_metric", "worst_group_accuracy"} <= {*names}
    assert [name for name in names if not re.search(rf"^    (class )?{name}\(", text, re.M)] == []
    (block,) = (node for node in ast.parse(getsource(rf)).body if isinstance(node, ast.If))
    nodes = [*ast.walk(block)]
    imported = {node.asname for node in nodes if isinstance(node, ast.alias) and node.asname}
    assigned = {node.id for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)}
    assert {*imported, *assigned, "__version__"} == {*dir(rf)}
    assert assigned <= {*re.findall(r"\w+", rf.__doc__ or "")}
