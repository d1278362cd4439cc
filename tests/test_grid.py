"""The grid: read, narrowed, refused; and the pipelines that it makes."""

from pathlib import Path

import pytest

from robust_fairness.core.errors import InputError
from robust_fairness.experiment import grid
from robust_fairness.runs.configuration import ConfigLoader, node_parameters
from robust_fairness.settings import CONFIG_LOADER_ARGS

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ("base", "cross", "digits_full", "paper", "reduced", "smoke")
PARAMETERS = {
    "datasets": {"d": {}, "e": {}},
    "methods": {"m": {}, "n": {}},
    "shifts": {"s": {}, "t": {}},
    "networks": {"mlp": {}, "wide": {"name": "mlp", "hidden": 99}},
    "protocols": {"p": {}},
}
DATASET = {
    "protocol": "p",
    "network": "mlp",
    "shifts": {"s": [0.5, 1], "t": [2]},
    "methods": {"m": None, "n": {"trials": [{"a": 1}]}},
}
EXPERIMENT = {
    "seeds": 2,
    "metrics": ["accuracy"],
    "datasets": {"d": DATASET, "e": {**DATASET, "metrics": ["x"], "methods": {"m": None}}},
}


def load(env: str | None = None, **runtime) -> ConfigLoader:
    """The project's own loader."""
    return ConfigLoader(str(ROOT / "conf"), env, runtime_params=runtime, **CONFIG_LOADER_ARGS)


def test_grid_is_read():
    """Cells, test sets, trials, and metrics given for all or by one."""
    found = grid.read(EXPERIMENT, PARAMETERS)
    assert [cell.name for cell in found.cells] == ["d.m", "d.n", "e.m"]
    assert [t.name for t in found.datasets[0].test_sets] == ["s_0_5", "s_1", "t_2"]
    assert found.cells[1].trials == ({"a": 1},)
    assert [d.metrics for d in found.datasets] == [("accuracy",), ("x",)]


def test_embeddings_are_drawn_of_cells_that_the_dataset_has():
    """A cell that a narrower grid leaves out is not drawn there."""
    found = grid.read({"datasets": {"d": {**DATASET, "embedding_planes": ["n"]}}}, PARAMETERS)
    assert [cell.name for cell in found.datasets[0].drawn_cells] == ["d.n"]
    assert found.narrowed({"methods": "m"}).datasets[0].drawn_cells == ()
    for wrong, message in (
        (["k"], "unknown embedding_planes of d in experiment.yml 'k'"),
        ("n", "embedding_planes of d in experiment.yml: 'n', allowed: a list"),
    ):
        with pytest.raises(InputError, match=message):
            grid.read({"datasets": {"d": {**DATASET, "embedding_planes": wrong}}}, PARAMETERS)


LABELLED = {
    "n": None,
    "plain": {"method": "m"},
    "m_wide": {"method": "m", "network": "wide", "settings": {"augmentation": "randaugment"}},
    "by-file": {"method": "erm"},
}


def test_a_cell_may_name_its_method_and_its_network():
    """By default the method is called as the cell is, and the network is that of the dataset."""
    found = grid.read({"datasets": {"d": {**DATASET, "methods": LABELLED}}}, PARAMETERS)
    assert [(one.name, one.label, one.method, one.network) for one in found.cells] == [
        ("d.n", "n", "n", "mlp"),
        ("d.plain", "plain", "m", "mlp"),
        ("d.m_wide", "m_wide", "m", "wide"),
        ("d.by-file", "by-file", "erm", "mlp"),
    ]
    narrowed = found.narrowed({"methods": "m_wide"})
    assert [one.name for one in narrowed.cells] == ["d.m_wide"]
    with pytest.raises(InputError, match="unknown method of the grid 'm'"):
        found.narrowed({"methods": "m"})


def test_a_dataset_needs_no_network_where_every_cell_names_its_own():
    """And a cell that names none is refused there."""
    bare = {name: value for name, value in DATASET.items() if name != "network"}
    own = {"a": {"method": "m", "network": "wide"}, "m": {"network": "mlp"}}
    found = grid.read({"datasets": {"d": {**bare, "methods": own}}}, PARAMETERS)
    assert [one.network for one in found.cells] == ["wide", "mlp"]
    with pytest.raises(InputError, match="n of d in experiment.yml: network: none given.*: mlp, w"):
        grid.read({"datasets": {"d": {**bare, "methods": {**own, "n": None}}}}, PARAMETERS)


def test_cells_are_completed_with_the_method_and_the_network_that_they_name():
    """What a person wrote under those names, below the label."""
    written = {**PARAMETERS, "methods": {"m": {"name": "cuma", "gamma": 7}, "n": {"name": "erm"}}}
    found = grid.read({"datasets": {"d": {**DATASET, "methods": LABELLED}}}, written)
    own = node_parameters(found, written)["d"]
    assert set(own) == {"source", "shifted", *LABELLED}
    cell = own["m_wide"]["cell"]
    assert cell["label"] == "m_wide"
    assert cell["method"] == {"name": "cuma", "gamma": 7}
    assert cell["network"] == {"name": "mlp", "hidden": 99}
    assert cell["settings"] == {"augmentation": "randaugment"}
    assert own["plain"]["cell"]["network"] == {"name": "mlp"}
    assert own["by-file"]["cell"]["method"] == {"name": "erm"}
    assert own["n"]["cell"]["method"] == {"name": "erm"}


def test_grid_is_narrowed():
    """By every axis; a dataset without a method that is left goes."""
    found = grid.read(EXPERIMENT, PARAMETERS).narrowed(
        {"methods": "n", "shifts": ["t"], "seeds": "5"}
    )
    assert [cell.name for cell in found.cells] == ["d.n"]
    assert [t.name for t in found.datasets[0].test_sets] == ["t_2"]
    assert [dataset.seeds for dataset in found.datasets] == [5]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"datasets": "f"}, "unknown dataset of the grid 'f'"),
        ({"methods": "mm"}, "unknown method of the grid 'mm'"),
        ({"shift": "s"}, "did you mean 'shifts'"),
        ({"seeds": "many"}, "a whole number"),
        ({"datasets": "e", "methods": "n"}, "no dataset asked for has a method asked for"),
    ],
)
def test_wrong_subsets_are_refused(wanted, message):
    """In one line."""
    with pytest.raises(InputError, match=message):
        grid.read(EXPERIMENT, PARAMETERS).narrowed(wanted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": "q"}, "unknown protocol of d"),
        ({"network": "mpl"}, "did you mean 'mlp'"),
        ({"method": {}}, "did you mean 'methods'"),
        ({"methods": {"cumma": None}}, "did you mean 'cuma'"),
        ({"shifts": {"gausian_noise": [1]}}, "did you mean 'gaussian_noise'"),
        ({"methods": {"n": {"trails": []}}}, "did you mean 'trials'"),
        ({"methods": {"n": {"trials": {"a": 1}}}}, "trials of n of d in experiment.yml: .* a list"),
        ({"methods": ["m", "n"]}, "methods of d in experiment.yml: .* names and their settings"),
        ({"methods": {}}, "d in experiment.yml: methods: none given"),
        ({"methods": {"a": {"method": "cumma"}}}, "method in a of d .* 'cumma': did you mean 'cum"),
        ({"methods": {"a": {"method": None}}}, "unknown method in a of d in .* 'None'"),
        ({"methods": {"m": {"network": "wiide"}}}, "network of m of d .* did you mean 'wide'"),
        ({"methods": {"m": {"network": {"name": "mlp"}}}}, "unknown network of m of d"),
        ({"methods": {"m": {"network": None}}}, "m of d .*: network: none given, allowed: mlp"),
        ({"methods": {"m": {"netwrok": "mlp"}}}, "did you mean 'network'"),
        ({"methods": {"a b": {"method": "m"}}}, "label 'a b', allowed: letters, digits"),
        ({"methods": {"a.b": {"method": "m"}}}, "label 'a.b', allowed: letters, digits"),
        ({"methods": {"source": {"method": "m"}}}, "none of attributes, samples, shifted, source"),
        ({"network": None}, "d in experiment.yml: network: none given, allowed: mlp, wide"),
        ({"protocol": None}, "d in experiment.yml: protocol: none given, allowed: p"),
        ({"shifts": {"s": 0.5}}, "s of d in experiment.yml: 0.5, allowed: a list"),
        ({"shifts": {"s": ["much"]}}, "s of d in experiment.yml: 'much', allowed: numbers"),
        ({"shifts": {"s": [0.5, 0.50]}}, "allowed: each severity once"),
        ({"metrics": "accuracy"}, "metrics of d in experiment.yml: 'accuracy', allowed: a list"),
    ],
)
def test_wrong_experiments_are_refused(change, message):
    """Names that mean nothing, and fields that hold something else."""
    with pytest.raises(InputError, match=message):
        grid.read({"datasets": {"d": {**DATASET, **change}}}, PARAMETERS)


GENERATED = {
    "datasets": {
        "d": {"source": "generated", "generator": "g"},
        "e": {},
        "f": {"source": "generated", "generator": "g"},
    },
    "generators": {"g": {"source": "e", "referee": {"network": "mlp", "protocol": "p"}}},
}


def generated_grid(change: dict, of_d: dict | None = None) -> grid.Grid:
    """The grid with two generated datasets, of which ``g`` is changed."""
    generators = {"g": {**GENERATED["generators"]["g"], **change}}
    datasets = {**GENERATED["datasets"], "d": {**GENERATED["datasets"]["d"], **(of_d or {})}}
    written = {**PARAMETERS, "datasets": datasets, "generators": generators}
    return grid.read({"datasets": {"d": DATASET, "e": DATASET, "f": DATASET}}, written)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, grid.Generator("g", "e", "mlp", "p")),
        ({"file": "g.safetensors"}, grid.Generator("g", "e", "mlp", "p", trained=False)),
        ({"file": None}, grid.Generator("g", "e", "mlp", "p")),
        (
            {"source": None, "referee": None, "file": "g.safetensors"},
            grid.Generator("g", trained=False),
        ),
    ],
)
def test_generators_are_read_once_and_only_for_the_datasets_that_they_make(change, expected):
    """Trained on a source, or from a file with a source for its referee, or without."""
    found = generated_grid(change)
    assert found.generators == (expected,)
    assert [dataset.generator for dataset in found.datasets] == [expected, None, expected]
    assert found.narrowed({"datasets": "e"}).generators == ()


def test_parameters_of_a_generator_stand_beside_those_of_its_datasets():
    """The referee is a cell of the real pictures; a family knows it and its test sets."""
    written = {**PARAMETERS, **GENERATED}
    found = grid.read({"datasets": {"d": DATASET}}, written)
    own = node_parameters(found, written)
    assert own["g"]["generator"] == {"name": "g"}
    assert own["g"]["source"] == {"dataset": "g", "source": {"name": "e"}, "splits": 1}
    assert own["g"]["referee"]["network"] == {"name": "mlp"}
    assert own["d"]["family"]["referee"] == own["g"]["referee"]
    assert own["d"]["family"]["test_sets"] == own["d"]["m"]["cell"]["test_sets"]
    source = {"name": "generated", "generator": "g"}
    assert own["d"]["family"]["source"] == {"dataset": "d", "source": source, "splits": 1}
    assert own["d"]["shifted"]["t_2"]["source"] == own["d"]["source"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": None, "referee": None}, "g in parameters: neither source nor file, allowed"),
        ({"source": None, "file": "a"}, "g in parameters: referee without source"),
        ({"source": "ee"}, "unknown dataset in generator g in parameters 'ee': did you mean 'e'"),
        ({"source": "f"}, "source f is generated, allowed: a dataset that is read"),
        ({"source": "generated"}, "source generated is generated"),
        ({"fiel": "a"}, "unknown field of generator g in parameters 'fiel': did you mean 'file'"),
        ({"referee": None}, "referee of generator g in parameters: network: none given"),
        (
            {"referee": {"network": "mpl", "protocol": "p"}},
            "network of referee of generator g in parameters 'mpl': did you mean 'mlp'",
        ),
        ({"referee": {"network": "mlp", "protocol": "q"}}, "unknown protocol of referee of gen"),
        ({"referee": {"netwrk": "mlp"}}, "did you mean 'network'"),
        ({"referee": "mlp"}, "referee of generator g in parameters: 'mlp', allowed: names and"),
    ],
)
def test_wrong_generators_are_refused(change, message):
    """In one line."""
    with pytest.raises(InputError, match=message) as told:
        generated_grid(change)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("generators", "name", "message"),
    [
        ({"gan": {}}, "gen", "unknown generator of d in parameters 'gen': did you mean 'gan'"),
        ({}, None, "unknown generator of d in parameters 'None'"),
        ("gen", "gen", "generators in parameters: 'gen', allowed: names and their settings"),
        ({"e": {}}, "e", "generator e in parameters: a dataset is called e, allowed: a name of"),
        ({"digits": {}}, "digits", "generator digits in parameters: a dataset is called digits"),
        ({"g.h": {}}, "g.h", "generator g.h in parameters: name 'g.h', allowed: letters, digits"),
    ],
)
def test_wrong_names_of_generators_are_refused(generators, name, message):
    """Unknown ones, and those that nodes and files cannot carry beside datasets' names."""
    datasets = {"d": {"source": "generated", "generator": name}, "e": {}}
    written = {**PARAMETERS, "datasets": datasets, "generators": generators}
    with pytest.raises(InputError, match=message) as told:
        grid.read({"datasets": {"d": DATASET}}, written)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training": {"picturez": 3}}, "training.picturez: Extra inputs"),
        ({"training": {"network": {"channel": 3}}}, "training.network.channel: Extra inputs"),
        ({"training": {"images": 0}}, "training.images: .* greater than or equal to 1"),
        ({"training": {"sampler": {"steps": "many"}}}, "training.sampler.steps"),
        ({"file": 3}, "file: "),
    ],
)
def test_wrong_settings_of_a_generator_are_one_line(settings, message):
    """Found when Kedro checks parameters, before the first node."""
    from robust_fairness.experiment.parameters import GeneratorSettings

    with pytest.raises(InputError, match=message) as told:
        GeneratorSettings.model_validate({"name": "g", **settings})
    assert "\n" not in str(told.value)


def test_a_subset_of_latent_space_is_refused_where_samples_are_given():
    """Only generated datasets have latents; given pictures of theirs are shifted as others."""
    from robust_fairness.experiment.parameters import (
        GeneratedTestSetParameters,
        GivenTestSetParameters,
    )

    latent = {"shift": {"name": "extend"}, "severity": 15}
    with pytest.raises(InputError, match="shift extend: a subset of latent space, which only"):
        GivenTestSetParameters.model_validate(latent)
    own = load("smoke")["parameters"]["digits_extend"]
    for shift in (latent, {"shift": {"name": "contrast"}, "severity": 1}):
        GeneratedTestSetParameters.model_validate({**shift, "source": own["source"]})


def test_every_environment_has_a_valid_grid_and_complete_parameters():
    """All cells of every environment pass their own checks; nothing is left to chance."""
    from robust_fairness.experiment.parameters import (
        CellParameters,
        FamilyParameters,
        GeneratedTestSetParameters,
        GeneratorSettings,
        GivenTestSetParameters,
        SourceParameters,
    )

    for env in ENVIRONMENTS:
        loader = load(env)
        parameters = loader["parameters"]
        for dataset in loader.full_grid.datasets:
            own = parameters[dataset.name]
            SourceParameters.model_validate(own["source"])
            for test_set in dataset.test_sets:
                kind = GeneratedTestSetParameters if dataset.generator else GivenTestSetParameters
                kind.model_validate(own["shifted"][test_set.name])
            for cell in dataset.cells:
                settings = CellParameters.model_validate(own[cell.label]["cell"])
                assert len(settings.replicas()) == dataset.seeds * (1 + len(cell.trials))
            if dataset.generator:
                FamilyParameters.model_validate(own["family"])
        for generator in loader.full_grid.generators:
            GeneratorSettings.model_validate(parameters[generator.name]["generator"])


def test_settings_of_a_cell_hold_in_every_trial_and_change_no_name():
    """Table A6 gives CelebA other values; they are the default trial there."""
    from robust_fairness.experiment.parameters import CellParameters

    own = load("paper")["parameters"]["celeba_hair"]
    cell = CellParameters.model_validate(own["irmv1"]["cell"])
    (default,) = cell.replicas()
    assert (default.trial, default.method.weight) == ("default", 1.0)
    assert default.method.environments_per_batch == 4
    (other,) = cell.replicas([{"learning_rate": 0.1}])
    assert (other.trial, other.protocol.learning_rate) == ("learning_rate=0.1", 0.1)
    assert other.method.weight == 1.0


def test_what_a_run_uses_is_told_by_kind_trials_and_nested_names_too():
    """Sources, not names of datasets; methods, not labels; of what was narrowed away nothing."""
    used = load("smoke").used
    assert used["dataset"] == [
        "biased_mnist", "diabetes", "digits", "generated", "generated_scenes", "imbalanced",
    ]  # fmt: skip
    assert used["method"] == ["cuma", "erm", "group_upweighting", "parade", "rubi"]
    assert used["shift"] == ["extend", "gaussian_noise"]
    assert {"embedding", "k_means", "logistic_regression", "rbf_svm"} <= set(used["network"])
    assert (used["objective"], used["miner"]) == (["margin"], ["distance_weighted"])
    assert used["generator"] == ["edm"]
    assert "unbiased_accuracy" in used["metric"]
    small = load("smoke", grid={"datasets": "diabetes", "methods": "erm"}).used
    metrics = small.pop("metric")
    assert {"delta_eo", "accuracy"} <= set(metrics)
    assert small == {
        "dataset": ["diabetes"],
        "method": ["erm"],
        "network": ["mlp"],
        "shift": ["gaussian_noise"],
    }
    assert load("base", grid={"datasets": "digits_extend"}).used["augmentation"] == ["randaugment"]


def test_runtime_parameters_reach_the_cells():
    """What a person overrides is what the node gets."""
    own = load("smoke", methods={"cuma": {"gamma": 7}})["parameters"]["diabetes"]
    assert own["cuma"]["cell"]["method"] == {"name": "cuma", "gamma": 7}


def test_unknown_environment_names_the_nearest():
    """One line."""
    with pytest.raises(InputError, match="unknown environment 'papr': did you mean 'paper'"):
        load("papr")


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_pipeline_has_no_free_input_and_a_place_for_every_output(env):
    """Nothing comes from outside but parameters and the manifest; everything is in the catalog."""
    from kedro.io import DataCatalog

    from robust_fairness.pipelines import robust_fairness

    loader = load(env)
    pipeline = robust_fairness.create_pipeline()
    free = {name for name in pipeline.inputs() if not name.startswith("params:")}
    assert free == {"manifest"}
    catalog = DataCatalog.from_config(loader["catalog"])
    for name in pipeline.all_outputs():
        assert name in catalog, name
    cells, test_sets = (
        loader.full_grid.cells,
        sum(len(d.test_sets) for d in loader.full_grid.datasets),
    )
    datasets = loader.full_grid.datasets
    pictures = sum(bool(dataset.contact_sheet) for dataset in datasets)
    generated = [dataset for dataset in datasets if dataset.generator]
    # four nodes a cell; ingestion, sizes of splits and two collections a dataset, measuring, if it
    # is generated; ingestion, referee, training and pictures a generator; three at the end
    made = len(generated) + 4 * len(loader.full_grid.generators)
    # a plane a drawn cell, and one node that joins those of a dataset
    planes = sum(len(d.drawn_cells) + bool(d.drawn_cells) for d in datasets)
    expected = 4 * len(cells) + 4 * len(datasets) + pictures + test_sets + made + planes + 3
    assert len(pipeline.nodes) == expected


def test_questions_are_trained_with_the_published_hyperparameters():
    """Every value of Table A6 for GQA-OOD; those common to all methods stand with the first."""
    from robust_fairness.experiment.parameters import CellParameters
    from robust_fairness.reporting.views import published

    own = load("paper")["parameters"]["gqa_ood"]
    table = published("bias_mitigation_hyperparameters").query("dataset == 'gqa_ood'")
    assert set(table["method"]) == own.keys() - {"source", "shifted"}
    for label, field, value in table[["method", "field", "published"]].to_numpy():
        cell = CellParameters.model_validate(own[label]["cell"])
        default = cell.replicas()[0]
        part = default.method if field in type(default.method).model_fields else default.protocol
        found = getattr(part, field)
        assert str(found) == value or float(found) == float(value), (label, field)
        told = [trial.get("explicit") for trial in cell.trials]
        # the others would be told the class
        assert (["answer"] in told) == (label in ("group_upweighting", "group_dro", "irmv1"))
