"""What does not fit together is refused in one line: cells, settings and parameters of plug-ins."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from robust_fairness.bench import training
from robust_fairness.bench.samples.domains import hold_out_domains
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find, names
from robust_fairness.core.samples import Samples

from .conftest import make_cell, make_samples, with_sites
from .test_images import make_images

TABLES = yaml.safe_load(Path(__file__).with_name("refusals.yml").read_text(encoding="utf-8"))
METHODS = {name: find("method", name) for name in names("method")}
OF_STEPS = [name for name, method in METHODS.items() if method.estimators == "no"]
WHY = {True: "network rbf_svm is fitted in one call", False: "trains no head"}
# parameters that fit but for what is changed
FITTING = {
    ("dataset", "table"): {
        "file": "own/loans.csv", "target": "repaid", "positive": "yes", "sensitive": ["sex"],
    },
    ("dataset", "generated"): {
        "generator": "g", "subset": {"shift": {"name": "extend"}, "severity": 0},
    },
}  # fmt: skip
OBJECTIVES = {name: find("objective", name).Parameters for name in names("objective")}


def with_attributes(**columns) -> Samples:
    """Samples with other attributes."""
    samples = make_samples()
    return replace(samples, attributes=samples.attributes.assign(**columns))


def with_value(value: float) -> Samples:
    """Samples with one training cell of that value; 1e39 is infinite in float32."""
    samples = make_samples()
    samples.x[samples.rows("split_0", "train")[0], 1] = value
    return samples


def of_one_group() -> Samples:
    """Samples whose rows of class 1 have one known group."""
    samples = make_samples()
    kind = samples.attributes["kind"]
    return with_attributes(kind=kind.mask((samples.y == 1) & (kind == "group 1")))


SAMPLES = {
    "plain": make_samples,
    "continuous": lambda: make_samples(classes=0),
    "three": lambda: make_samples(groups=3, classes=3),
    "four groups": lambda: make_samples(groups=4),
    "twelve groups": lambda: make_samples(24, groups=12),
    "two sites": lambda: with_sites(make_samples(), 2),
    "one site": lambda: hold_out_domains(with_sites(make_samples(), 2), test=["site 1"]),
    "continuous attribute": lambda: with_attributes(kind=np.linspace(0, 1, 240)),
    "one group": of_one_group,
    "infinite": lambda: with_value(np.inf),
    "missing": lambda: with_value(np.nan),
    "images": make_images,
}


def cell_of(method="erm", trials=(), settings=None, postprocessing=None, **options):
    """A cell of one seed; fields beside those of ``make_cell`` go to the cell itself."""
    fields = {"settings": settings or {}, "postprocessing": postprocessing}
    return make_cell(method, tuple(trials), fields=fields, **{"seeds": (0,), **options})


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        *TABLES["cells"],
        *(
            ["domains", {"method": name, "network": {"name": "rbf_svm"}}, f"method {name}: {why}"]
            for name in OF_STEPS
            for why in [WHY[METHODS[name].trains_head]]
        ),
    ],
)
def test_a_cell_that_does_not_fit_is_refused(samples, options, message):
    make = SAMPLES.get(samples, lambda: make_samples(domains=3))
    with pytest.raises(InputError, match=message) as error:
        training.train(make(), cell_of(**options))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("changes", "message"), TABLES["settings"])
def test_settings_are_refused_when_they_are_read(changes, message):
    with pytest.raises(InputError, match=message) as error:
        make_cell(**changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "name", "options", "message"),
    [
        *TABLES["parameters"],
        *(("objective", name, {"unknown": 1}, "unknown") for name in OBJECTIVES),
        *(
            ("objective", name, {field: -1.0}, field)
            for name, parameters in OBJECTIVES.items()
            for field in sorted({"margin", "scale", "alpha"} & set(parameters.model_fields))
        ),
    ],
)
def test_parameters_are_refused_with_the_name_of_the_field(kind, name, options, message):
    """Before any file is read."""
    with pytest.raises(ValueError, match=message):
        find(kind, name).Parameters(**FITTING.get((kind, name), {}) | options)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("miner", "semihard", "unknown miner 'semihard': did you mean 'semi_hard'"),
        ("objective", "proxynca", "unknown objective 'proxynca': did you mean 'proxy_nca'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(kind, name, message):
    with pytest.raises(InputError, match=message):
        find(kind, name)
