"""The experiment: read from YAML, narrowed, and all of its mistakes with file and line."""

import itertools
import re
import shutil
import tarfile
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path

import pytest
import yaml

from robust_fairness.bench.datasets.fetch import command
from robust_fairness.bench.experiment.experiment import Experiment, used_by
from robust_fairness.bench.experiment.reading import layered, read, require_files
from robust_fairness.bench.experiment.yaml_source import parse
from robust_fairness.catalog import names
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = (
    "base", "cross", "digits_full", "estimators", "natural", "paper", "reduced", "smoke",
)  # fmt: skip
PARAMETERS = """\
datasets:
  one: {source: diabetes}
  two: {source: diabetes, target: continuous}
  made: {source: generated, generator: gan, subset: {shift: {name: extend}, severity: 0}}
  odd: {source: diabetes, tarket: binary}
methods:
  wide_cuma: {name: cuma, gamma: 7}
  bad_cuma: {name: cuma, gamma: -1}
networks:
  wide: {name: mlp, hidden: 99}
protocols:
  fast: {epochs: 2}
  wrong: {epochs: 0}
spaces:
  mlp: {learning_rate: {low: 0.001, high: 0.1, log: true}}
  cuma: {gamma: [1.0, 10.0]}
generators:
  gan: {source: digits, reference: {network: resnet20, protocol: fast}}
"""
EXPERIMENT = """\
seeds: 2
protocol: fast
network: mlp
searches:
  rates: [{learning_rate: [0.1, 0.01]}]
trials:
  alphas: [{alpha: 0.5}, {alpha: 2.0}]
datasets:
  one:
    facets: {size: small, kind: table}
    shifts: {gaussian_noise: [0.5, 1], uniform_noise: [2]}
    methods:
      erm:
      cuma: {trials: [alphas, {gamma: 3.0}], search: rates, facets: {kind: curved, rho: 3}}
      wide: {method: wide_cuma, network: wide, settings: {augmentation: randaugment}}
  two:
    seeds: 1
    metrics: [mean_squared_error]
    selections: [mean_squared_error]
    methods:
      erm:
"""


def experiment(
    text: str = EXPERIMENT, local: str = "", parameters: str = PARAMETERS, fully: bool = False
) -> Experiment:
    """The experiment of ``base.yml`` and ``local.yml``."""
    places = parse(parameters, "parameters.yml")
    added = [parse(local, "local.yml")] if local else []
    written = layered([parse(text, "base.yml")], [], added)
    return read(written, places, fully=fully)


def load(env: str | None = None, **runtime) -> ConfigLoader:
    """The project's loader, without ``conf/local``."""
    options = CONFIG_LOADER_ARGS | {"default_run_env": "base"}
    return ConfigLoader(str(ROOT / "conf"), env, runtime_params=runtime, **options)


@cache
def shipped(env: str) -> ConfigLoader:
    """``load`` for tests that change nothing: some environments take seconds to be read."""
    return load(env)


@pytest.mark.parametrize("fully", [False, True])
def test_an_experiment_is_read(fully):
    """Fields at the top of a file are defaults of its datasets."""
    made = experiment(fully=fully)
    assert [cell.name for cell in made.cells] == ["one.erm", "one.cuma", "one.wide", "two.erm"]
    first, second = made.datasets
    names = ["gaussian_noise_0_5", "gaussian_noise_1", "uniform_noise_2"]
    assert [test_set.name for test_set in first.test_sets] == names
    assert (first.seeds, second.seeds, second.cells[0].seeds) == (2, 1, (0,))
    erm, cuma, wide = first.cells
    assert cuma.trials == ({"alpha": 0.5}, {"alpha": 2.0}, {"gamma": 3.0})
    assert cuma.search[0].space == {"learning_rate": (0.1, 0.01)}
    assert erm.facets == {"size": "small", "kind": "table"}
    assert cuma.facets == {"size": "small", "kind": "curved", "rho": "3"}
    assert (wide.method.name, wide.method.options) == ("cuma", {"gamma": 7})
    assert wide.network.options == {"hidden": 99}
    assert wide.protocol.epochs == 2
    assert second.cells[0].metrics == ("mean_squared_error",)


def test_the_whole_experiment_is_narrowed():
    made = experiment().narrowed({"methods": "cuma", "shifts": ["uniform_noise"], "seeds": "5"})
    assert [cell.name for cell in made.cells] == ["one.cuma"]
    assert made.cells[0].test_sets == {"uniform_noise_2": ("uniform_noise", 2.0)}
    assert (made.datasets[0].seeds, made.cells[0].seeds) == (5, (0, 1, 2, 3, 4))


@pytest.mark.parametrize(
    ("selected", "message"),
    [
        ({"datasets": "f"}, "unknown dataset of the grid 'f'"),
        ({"methods": "cumma"}, "did you mean 'cuma'"),
        ({"shift": "s"}, "did you mean 'shifts'"),
        ({"seeds": "many"}, "a whole number"),
        ({"datasets": "two", "methods": "cuma"}, "none of the selected datasets has a selected"),
    ],
)
def test_wrong_selections_are_refused(selected, message):
    with pytest.raises(InputError, match=message):
        experiment().narrowed(selected)


def test_local_datasets_are_added_and_replace_those_of_the_same_name():
    """With the fields at the top of their own file, whatever the base has under that name."""
    local = """\
seeds: 4
metrics: [accuracy]
datasets:
  one: {methods: {laftr: , erm: {network: wide}}}
  mine: {shifts: {gaussian_noise: [1]}, methods: {cuma: }}
"""
    parameters = PARAMETERS.replace("datasets:\n", "datasets:\n  mine: {source: diabetes}\n")
    made = experiment(local=local, parameters=parameters)
    assert [cell.name for cell in made.cells] == [
        "one.laftr", "one.erm", "two.erm", "mine.cuma",
    ]  # fmt: skip
    assert made.cells[1].network.options == {"hidden": 99}
    assert [dataset.seeds for dataset in made.datasets] == [4, 1, 4]
    assert [cell.metrics for cell in made.cells][:2] == [("accuracy",)] * 2
    assert made.cells[2].metrics != ("accuracy",)


def with_dataset(fields: str) -> str:
    """An experiment with a dataset ``one`` whose fields start in line 4."""
    return f"protocol: fast\nnetwork: mlp\ndatasets:\n  one: {fields}\n"


BUDGET = "budget: 4, methods: {erm: , cuma: , wide_cuma: , donini: {method: donini, network: mlp}}"


def test_a_budget_gives_every_cell_as_many_trials():
    """Drawn from the ranges of the network and of the method, under their names in the grid."""
    (dataset,) = experiment(with_dataset(f"{{{BUDGET}}}"), fully=True).datasets
    assert [cell.budget for cell in dataset.cells] == [4] * 4
    erm, cuma, wide, _ = dataset.cells
    assert (erm.search[0].sampler, erm.search[0].trials) == ("random", 3)
    assert set(erm.search[0].space) == {"learning_rate"}
    assert cuma.search == wide.search
    assert cuma.search[0].space["gamma"] == (1.0, 10.0)


MISTAKES = yaml.safe_load((ROOT / "tests" / "mistakes.yml").read_text())


@pytest.mark.parametrize(("fields", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_reported_with_file_line_and_field(fields, message):
    with pytest.raises(InputError) as caught:
        experiment(with_dataset(fields), fully=True)
    assert message in str(caught.value)
    assert "base.yml:4" in str(caught.value) or "parameters.yml:" in str(caught.value)


ONE = "protocol: fast\nnetwork: mlp\ndatasets:\n  one: {methods: {erm: }}\n"
NO_DATASET = "is of no dataset, since its file has none (local.yml:1). Write it as a field of a"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"text": "- seeds"}, "base.yml:1: a list or a single value, allowed: names with fields"),
        ({"text": "seeds"}, "base.yml:1: a list or a single value, allowed: names with fields"),
        ({"text": "datasets: [one]"}, "datasets: ['one'], allowed: names with fields (base.yml:1)"),
        (
            {"text": f"{ONE}  seeds: 2"},
            "dataset 'seeds': 2, allowed: names with fields (base.yml:5). Fields of all datasets",
        ),
        ({"text": f"{ONE}trials: [a]"}, "trials: ['a'], allowed: names with fields (base.yml:5)"),
        (
            {"text": f"sedes: 2\n{ONE}  two: {{methods: {{erm: }}}}"},
            "Unknown field 'sedes' for the experiment (base.yml:1). Did you mean 'seeds'?",
        ),
        ({"text": ONE, "local": "seeds: 2"}, f"Field 'seeds' {NO_DATASET}"),
        ({"text": ONE, "local": "methods: {erm: }"}, f"Field 'methods' {NO_DATASET}"),
        (
            {"text": f"{ONE}    domains: {{train: each, names: [a, b, c]}}".replace(
                "{methods: {erm: }}", "\n    methods: {errm: }"
            )},
            "Unknown method 'errm' for dataset 'one' (base.yml:5). Did you mean 'erm'?",
        ),
        (
            {"text": ONE, "parameters": f"{PARAMETERS}metods: {{erm: {{}}}}"},
            "Unknown section 'metods' for the parameters (parameters.yml:19). Did you mean 'meth",
        ),
        ({"text": ONE, "parameters": "[1]"}, "parameters.yml:1: a list or a single value"),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_a_mistake_of_a_whole_file_is_one_line(files, message):
    with pytest.raises(InputError) as caught:
        experiment(**files)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sections_of_own_pipelines_and_no_domains_are_allowed():
    text = f"domains: {{train: each, names: [a, b]}}\n{ONE}".replace("{m", "{domains: , m")
    made = experiment(text, parameters=f"{PARAMETERS}mine: {{erm: {{}}}}")
    assert [(dataset.name, dataset.domains) for dataset in made.datasets] == [("one", None)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "${oc.env:X}",
            "Unsupported interpolation type oc.env (conf/base/parameters.yml:3). K",
        ),
        ("${absent}", "Interpolation key 'absent' not found (conf/base/parameters.yml:3)"),
        ("${", "no viable alternative at input '${' (conf/base/parameters.yml:3)"),
    ],
)
def test_a_value_that_kedro_cannot_resolve_is_one_line(value, message, tmp_path):
    (tmp_path / "conf" / "base").mkdir(parents=True)
    text = f"methods:\n  cuma:\n    gamma: {value}\n"
    (tmp_path / "conf" / "base" / "parameters.yml").write_text(text)
    with pytest.raises(InputError) as caught:
        ConfigLoader(str(tmp_path / "conf"), "base", **CONFIG_LOADER_ARGS)["parameters"]
    assert str(caught.value).startswith(f"methods.cuma.gamma: {message}")
    assert "\n" not in str(caught.value)


def test_all_mistakes_of_all_files_are_reported_together():
    """Also where a name alone is unknown, which needs no plug-in to be imported."""
    text = """\
protocol: fast
network: mlp
datasets:
  one:
    methods:
      cumma:
      cuma: {trials: [{gama: 1}]}
  oen:
    methods: {erm: }
  odd:
    methods: {erm: }
"""
    for fully in (False, True):
        with pytest.raises(InputError) as caught:
            experiment(text, fully=fully)
        lines = str(caught.value).splitlines()
        assert lines[0] == "4 mistakes in the configuration:"
        places = ("base.yml:6", "base.yml:7", "base.yml:8", "parameters.yml:5")
        for line, place in zip(lines[1:], places, strict=True):
            assert f"({place}). Did you mean" in line


def test_missing_raw_files_are_reported_with_place_and_command(tmp_path):
    """Those of the datasets that are read, each in one line; nothing is opened."""
    places = parse(
        """\
datasets:
  grown_ups: {source: adult}
  faces:
    source: lfw
    images: lfw/mine
  cut: {source: imbalanced, of: {source: cifar10}, minority: 2}
protocols: {fast: {epochs: 2}}
""",
        "parameters.yml",
    )
    lines = ["protocol: fast", "network: mlp", "datasets:"]
    lines += [f"  {name}: {{methods: {{erm: }}}}" for name in ("grown_ups", "faces", "cut")]
    written = layered([parse("\n".join([*lines, "  acs: {methods: {erm: }}"]), "base.yml")], [], [])
    made = read(written, places, fully=False)
    (tmp_path / "adult").mkdir()
    for file in ("adult.names", "adult.data.gz"):
        (tmp_path / "adult" / file).touch()
    files = Files(tmp_path, download=command)
    download, otherwise = (
        "Download it with `robust-fairness fetch",
        "`, or let ROBUST_FAIRNESS_DATA",
    )
    with pytest.raises(InputError) as caught:
        require_files(made, ["grown_ups", "faces", "cut"], written, places, files)
    lines = str(caught.value).splitlines()[1:]
    assert [line.partition(otherwise)[0] for line in lines[:1]] == [
        "Raw file 'adult/adult.test' of dataset 'grown_ups' is missing (parameters.yml:2). "
        f"{download} adult",
    ]
    assert [line.partition(". ")[0] for line in lines[1:3]] == [
        "Raw file 'lfw/mine' of images of dataset 'faces' is missing (parameters.yml:5)",
        "Raw file 'lfw/lfw_attributes.txt' of dataset 'faces' is missing (parameters.yml:3)",
    ]
    assert lines[3].startswith("Raw file 'cifar10/cifar-10-binary.tar' of dataset 'cut'")
    assert f"{download} cifar10{otherwise}" in lines[3]
    assert len(lines) == 4
    with pytest.raises(InputError, match=r"\(base.yml:7\)\. Download"):
        require_files(made, ["acs"], written, places, files)


def test_an_invalid_value_of_a_search_is_reported_with_its_own_line():
    text = """\
protocol: fast
network: mlp
datasets:
  one:
    methods:
      cuma:
        search:
          - gamma:
              - 1
              - -1
          - {sampler: random, trials: 2, space: {
              learning_rate: {low: -1.0, high: 1.0}}}
"""
    with pytest.raises(InputError) as caught:
        experiment(text, fully=True)
    _, gamma, rate = str(caught.value).splitlines()
    assert "gamma: Input should be greater than or equal to 0 (got -1) (base.yml:10)" in gamma
    assert "learning_rate: Input should be greater than 0 (got -1.0) (base.yml:12)" in rate


# a list of ten lists of ten lists ...: 10,000,000 values in some 300 characters
ALIASES = "a0: &a0 [1]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 8)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "file.yml:1:6: not YAML: "),
        ("a: 1\nb: {c: 1, c: 2}", "file.yml:2:11: key 'c' occurs twice (first: file.yml:2)"),
        ("a: !!python/name:os.system", "file.yml:1:4: not YAML: "),
        ("a: !!int x", "file.yml:1:4: not YAML: invalid literal"),
        ("a:\n- 2020-99-99", "file.yml:2:3: not YAML: month must be"),
        ("? [1, 2]\n: 3", "file.yml:1:3: not YAML: a key is a list or a mapping"),
        ("a:\n  <<: 3", "file.yml:2:7: not YAML: '<<' of a value, allowed: mappings"),
        ("b: 1\na: \0", "file.yml:2: not YAML: character '\\x00' is not allowed"),
        ("b: 1\na: é".encode("latin1"), "file.yml:2: byte 0xe9, allowed: UTF-8"),
        ("a: &a\n  - *a", "file.yml:1:4: not YAML: nested more than 50 levels deep, or within"),
        ("a: &a\n  <<: *a", "file.yml:1:4: not YAML: nested more than 50 levels deep, or within"),
        ("[" * 100_000, "file.yml:1:51: not YAML: nested more than 50 levels deep"),
        (ALIASES, "not YAML: more than 1,000,000 values with those of aliases"),
        ("#" * (16 * 2**20 + 1), "file.yml: 16,777,217 bytes, allowed: up to 16,777,216"),
    ],
    ids=itertools.count(),
)
def test_wrong_yaml_is_one_line(text, message):
    with pytest.raises(InputError) as caught:
        parse(text, "file.yml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_places_follow_anchors_and_merges():
    """A merged field is written where its anchor is."""
    node = parse("a: &x\n  b: [1,\n    2]\nc:\n  <<: *x\n  d: 4\n", "f")
    assert node.plain == {"a": {"b": [1, 2]}, "c": {"b": [1, 2], "d": 4}}
    assert [node.at(keys).place for keys in (["c", "b", 1], ["c", "d"], ["c", "e"])] == [
        "f:3", "f:6", "f:4",
    ]  # fmt: skip


GENERATED = "{methods: {erm: {network: resnet20}}}"


def generated(generators: str, fully: bool = False) -> Experiment:
    """An experiment of the generated dataset, with other generators in line 17."""
    parameters = PARAMETERS[: PARAMETERS.index("generators:")] + f"generators: {generators}\n"
    text = f"protocol: fast\ndatasets:\n  made: {GENERATED}\n"
    return experiment(text, parameters=parameters, fully=fully)


@pytest.mark.parametrize("file", [None, "g.safetensors"])
def test_generators_are_read_for_the_datasets_that_they_make(file):
    written_file = f"file: {file}, " if file else ""
    reference = "{network: resnet20, protocol: fast}"
    made = generated(f"{{gan: {{{written_file}source: digits, reference: {reference}}}}}")
    (generator,) = made.generators
    assert (generator.name, generator.source.name) == ("gan", "digits")
    assert (generator.reference.name, generator.reference.seeds) == ("gan.reference", (0,))
    assert made.datasets[0].generator == generator


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        (
            "{gen: {}}",
            "Unknown generator 'gan' for dataset 'made' (parameters.yml:4). Did you mean",
        ),
        ("{gan: {}}", "generator 'gan': neither source nor file, allowed: one of them"),
        ("{gan: {fiel: a}}", "Unknown field 'fiel' for generator 'gan' (parameters.yml:17)"),
        ("{gan: {referee: {}, file: a}}", "(parameters.yml:17). Did you mean 'reference'?"),
        (
            "{gan: {file: a, training: {images: 3}}}",
            "generator 'gan': a file and a training, allowed: one of them",
        ),
        (
            "{gan: {file: a, reference: {network: mlp}}}",
            "generator 'gan': a reference without a source, allowed: both",
        ),
        ("{gan: 3}", "generator 'gan': 3, allowed: names with fields (parameters.yml:17)"),
        ("{gan: {source: diggits}}", "Unknown dataset 'diggits' (parameters.yml:17). Did you mean"),
        ("{gan: {source: made}}", "The source of generator 'gan' is generated"),
        ("{gan: {source: digits}}", "reference of generator 'gan' has no network"),
        ("{gan: {source: digits, training: 0}}", "training of generator 'gan'"),
        (
            "{gan: {source: digits, training: {picturez: 3}}}",
            "training.picturez of generator 'gan': Extra inputs",
        ),
        (
            "{gan: {source: digits, training: {network: {channel: 3}}}}",
            "training.network.channel of generator 'gan': Extra inputs",
        ),
    ],
)
def test_wrong_generators_are_refused(generators, message):
    with pytest.raises(InputError) as caught:
        generated(generators, fully=True)
    assert message in str(caught.value)


@pytest.mark.parametrize("number", [".inf", "-.inf", ".nan"])
def test_numbers_that_are_not_finite_are_refused_with_their_line(number):
    fields = [
        f"{{methods: {{cuma: {{settings: {{gamma: {number}}}}}}}}}",
        f"{{methods: {{cuma: {{trials: [{{learning_rate: {number}}}]}}}}}}",
        f"{{methods: {{cuma: {{search: [{{gamma: [{number}]}}]}}}}}}",
        "{methods: {cuma: {search: [{sampler: random, trials: 2, space: "
        f"{{gamma: {{low: 1, high: {number}}}}}}}]}}}}}}",
        f"{{shifts: {{gaussian_noise: [{number}]}}, methods: {{erm: }}}}",
        f"{{margin: {number}, methods: {{erm: }}}}",
    ]
    for text in fields:
        with pytest.raises(InputError, match=r"(?s)finite number .*\(base.yml:4\)"):
            experiment(with_dataset(text), fully=True)
    for written, field, line in (("gamma: 7", "gamma", 7), ("epochs: 2", "learning_rate", 12)):
        parameters = PARAMETERS.replace(written, f"{field}: {number}")
        with pytest.raises(InputError, match=rf"finite number .*\(parameters.yml:{line}\)"):
            experiment(with_dataset("{methods: {wide_cuma: }}"), parameters=parameters, fully=True)


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request) -> ConfigLoader:
    """The loader of an environment."""
    return shipped(request.param)


def test_every_environment_is_valid_and_every_node_gets_its_model(environment):
    parameters = environment["parameters"]
    for dataset in environment.full_experiment.datasets:
        part = parameters[dataset.name]
        assert part["dataset"].source.parameters is not None
        for cell in dataset.cells:
            assert part[cell.label]["cell"].replicas()
    for generator in environment.full_experiment.generators:
        assert parameters[generator.name]["generator"].name == generator.name


def test_pipeline_has_no_free_input_and_a_catalog_entry_for_every_output(environment, monkeypatch):
    from kedro.io import DataCatalog

    from robust_fairness.pipeline_registry import register_pipelines
    from robust_fairness.runs import configuration

    monkeypatch.setattr(configuration, "_loader", ContextVar("loader", default=environment))
    pipeline = register_pipelines()["robust_fairness"]
    free = {name for name in pipeline.inputs() if not name.startswith("params:")}
    assert "manifest" in free
    assert {names.parse(name).part for name in free - {"manifest"}} == {"raw"}
    catalog = DataCatalog.from_config(environment["catalog"])
    absent = [name for name in pipeline.all_outputs() | free if name not in catalog]
    assert {names.parse(name).part for name in absent} == {"results"}  # in memory


def test_runtime_parameters_reach_the_cells():
    parameters = load("smoke", methods={"cuma": {"gamma": 7}})["parameters"]["diabetes"]
    assert parameters["cuma"]["cell"].method.parameters.gamma == 7


def test_what_is_used_is_known_by_kind():
    """Trials and networks within networks count; nothing that the run does not use."""
    used = used_by(shipped("smoke").validated_experiment)
    assert used["dataset"] == [
        "biased_mnist", "diabetes", "digits", "generated", "generated_scenes", "imbalanced",
    ]  # fmt: skip
    assert used["method"] == ["cuma", "erm", "group_upweighting", "parade", "rubi"]
    assert used["shift"] == ["extend", "gaussian_noise"]
    assert {"embedding", "k_means", "logistic_regression", "rbf_svm"} <= set(used["network"])
    assert (used["objective"], used["miner"]) == (["margin"], ["distance_weighted"])
    assert used["generator"] == ["edm"]
    assert "unbiased_accuracy" in used["metric"]
    plain = load("smoke", grid={"datasets": "diabetes", "methods": "erm"})
    small = used_by(plain.validated_experiment)
    assert {"delta_eo", "accuracy"} <= set(small.pop("metric"))
    assert small == {
        "dataset": ["diabetes"], "method": ["erm"], "network": ["mlp"], "shift": ["gaussian_noise"]
    }  # fmt: skip
    augmented = load("base", grid={"datasets": "digits_extend"})
    assert used_by(augmented.validated_experiment)["augmentation"] == ["randaugment"]


def test_questions_are_trained_with_the_published_hyperparameters():
    """Every value of Table A6 for GQA-OOD; those common to all methods stand with the first."""
    from robust_fairness.report.views import published

    parameters = shipped("paper").of_nodes()["gqa_ood"]
    table = published("bias_mitigation", "hyperparameters").query("dataset == 'gqa_ood'")
    assert set(table["method"]) == parameters.keys() - {"dataset", "shifted"}
    for label, name, value in table[["method", "field", "published"]].to_numpy():
        cell = parameters[label]["cell"]
        default = cell.replicas()[0]
        part = default.method if name in type(default.method).model_fields else default.protocol
        configured = getattr(part, name)
        assert str(configured) == value or float(configured) == float(value), (label, name)
        explicit = [trial.get("explicit") for trial in cell.trials]
        # for the others, the group would be the class
        assert (["answer"] in explicit) == (label in ("group_upweighting", "group_dro", "irmv1"))


@pytest.mark.parametrize("kind", ["gztar", "zip"])
def test_an_archive_of_the_configuration_is_read_as_its_folder(tmp_path, kind):
    archive = shutil.make_archive(str(tmp_path / "conf"), kind, ROOT, "conf")
    loaders = [
        ConfigLoader(place, "smoke", **CONFIG_LOADER_ARGS) for place in (ROOT / "conf", archive)
    ]
    folder, unpacked = ({**loader["catalog"]} for loader in loaders)
    assert unpacked == folder
    texts, of_archive = (loader.texts() for loader in loaders)
    assert of_archive.items() >= texts.items()  # and the package's, which are read before


def outside(path: Path, name: str, kind: str) -> None:
    """Write an archive with a member that reaches outside of its folder."""
    with tarfile.open(path, "w") as file:
        item = tarfile.TarInfo(name)
        item.type, item.linkname = kind.encode(), "/etc"
        file.addfile(item)


@pytest.mark.parametrize(
    ("file", "write", "message"),
    [
        ("conf.tar", partial(outside, name="../base.yml", kind="0"), "../base.yml, allowed: files"),
        ("conf.tar", partial(outside, name="conf/link", kind="2"), "conf/link, allowed: files"),
        ("conf.zip", lambda path: path.write_text("text"), "not a readable tar or zip archive"),
    ],
)
def test_an_archive_of_something_else_is_refused(tmp_path, file, write, message):
    write(tmp_path / file)
    with pytest.raises(InputError, match=re.escape(f"{file}: {message}")):
        ConfigLoader(tmp_path / file, "smoke", **CONFIG_LOADER_ARGS)
    assert not (tmp_path / "base.yml").exists()


def examples(page: str) -> list[str]:
    """Grids in a page of the documents: blocks of YAML with datasets that have methods."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return [block for block in blocks if "datasets:" in block and "methods:" in block]


SEARCHED = {"diabetes.erm": 1, "diabetes.adv_debias": 1 + 12 + 3}
DIABETES = {"diabetes.erm": 1, "diabetes.group_dro": 1, "diabetes.cuma": 3}
GRIDS = {
    "getting_started.md": [(DIABETES, 5, 4, 1)],
    "search.md": [(SEARCHED, 2, 3, 2)],
    "methods.md": [
        ({"adult.trees": 1, "adult.trees_reduced": 1}, None, 2, None),
        (
            dict.fromkeys(
                [f"adult.{name}" for name in ("erm", "group_dro", "jtt", "trees", "trees_reduced")],
                20,
            ),
            None, 2, None,
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("page", "place"), [(p, k) for p in GRIDS for k in range(len(GRIDS[p]))])
def test_an_example_of_the_documents_runs_what_it_says(page, place):
    """Its cells, trials, seeds, metrics and criteria, as a file of ``conf/local``."""
    text = examples(page)[place]
    trials, seeds, metrics, criteria = GRIDS[page][place]
    base = [parse((ROOT / "conf/base/experiment.yml").read_text(), "base.yml")]
    parameters = parse((ROOT / "conf/base/parameters.yml").read_text(), "parameters.yml")
    made = read(layered(base, [], [parse(text, "local.yml")]), parameters, fully=True)
    name = next(iter(trials)).partition(".")[0]
    (dataset,) = (dataset for dataset in made.datasets if dataset.name == name)
    assert {cell.name: cell.budget for cell in dataset.cells} == trials
    for cell in dataset.cells:
        assert len(cell.metrics) == metrics
        assert seeds is None or len(cell.seeds) == seeds
        assert criteria is None or len(cell.selections) == criteria
