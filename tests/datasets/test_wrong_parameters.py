"""Parameters that no dataset takes are refused before any file is read."""

import pytest

from robust_fairness.core.registry import find

LOAN = {"file": "own/loans.csv", "target": "repaid", "positive": "yes", "sensitive": ["sex"]}
WRONG = {
    "celeba": [
        ({"target": "Male"}, "Male is listed twice"),
        ({"sensitive": ("Male", "Male")}, "Male is listed twice"),
        ({"sensitive": ()}, "at least 1 item"),
        ({"size": 0}, "greater than 0"),
        ({"size": (8, 8, 3)}, "at most 2 items"),
        ({"crop": "circle"}, "square"),
    ],
    "celeba_identity": [
        ({"sensitive": ()}, "at least 1 item"),
        ({"sensitive": ("Male",)}, "skin_tone"),
        ({"sensitive": ("ita", "ita")}, "ita is listed twice"),
        ({"skin_tone": "anywhere"}, "landmarks"),
        ({"skin_tone": {"least_skin": 2}}, "less than or equal to 1"),
        ({"skin_tone": {"encoding": "sine"}}, "'cielab' or 'eight_bits'"),
        ({"skin_tone": None}, "SkinToneParameters"),
    ],
    "cars196": [
        ({"images": "cars196/cars_train"}, "annotations: 2 files for 1 folders"),
        ({"images": ()}, "at least 1 item"),
        ({"images": ("a/cars", "b/cars")}, "the last parts of cars, cars are equal"),
        ({"images": ("../cars", "cars")}, "allowed: a path below the data root"),
        ({"sensitive": ("color",)}, "'class'"),
    ],
    "cub200": [
        ({"color": "both"}, "'species' or 'image'"),
        ({"sensitive": ("colour",)}, "'color' or 'class'"),
        ({"sensitive": ("color", "color")}, "color is listed twice"),
        ({"min_images": 0}, "greater than 0"),
    ],
    "lfw": [
        ({"attribute": "race"}, "'kumar' or 'predicted'"),
        ({"images": "/lfw"}, "allowed: a path below the data root"),
    ],
    "imbalanced": [
        ({"of": "digitss"}, "unknown dataset 'digitss': did you mean 'digits'"),
        ({"of": {"source": "digits", "sed": 3}}, "dataset digits: sed: Extra inputs"),
        ({"of": "digits", "cut": 0.5, "percent": 60}, "cut and percent exclude each other"),
        ({"of": "digits", "percent": 40}, "greater than or equal to 50"),
        ({"of": "digits", "minority": 0}, "greater than 0"),
        ({"of": "digits", "minority": ()}, "minority: must be a number or distinct names"),
        ({"of": "digits", "minority": ("1", "1")}, "minority: must be a number or distinct"),
        ({"of": "digits", "sensitive": ()}, "at least 1 item"),
        ({"of": "digits", "split": {"train_rows": 5}}, "Extra inputs"),
    ],
    "coloured_digits": [
        ({"sensitive": ("colour",)}, "sensitive"),
        ({"frequencies": (1, 1, 1, 1, 1, 0)}, "frequencies"),
        ({"frequencies": (1, 1, 1, 1, 1, float("inf"))}, "frequencies"),
        ({"frequencies": (1, 1)}, "frequencies"),
        ({"correlation": 1.1}, "correlation"),
        ({"color_seed": -1}, "color_seed"),
        ({"train_rows": 5}, "train_rows"),
    ],
    "mnist": [
        ({"size": 8}, "28, 14 or 7"),
        ({"sensitive": ("color",)}, "color needs colors"),
        ({"colors": {"correlation": 2}}, "less than or equal to 1"),
    ],
    "gqa_ood": [
        ({"folder": "../gqa"}, "without '..'"),
        ({"sensitive": ("answer", "answer")}, "answer is listed twice"),
        ({"sensitive": ("color",)}, "head_tail"),
        ({"train_share": 0.0}, "greater than 0"),
        ({"beta": -1.0}, "greater than -1"),
        ({"beta": float("nan")}, "finite"),
        ({"tokens": 0}, "greater than 0"),
        ({"boxes": 0}, "greater than or equal to 1"),
        ({"boxes": 40_000}, "less than 32768"),
    ],
    "generated_scenes": [
        ({"features": 25}, "features"),
        ({"noise": 0.11}, "noise"),
        ({"objects": 6}, "objects"),
        ({"bias": 1.1}, "bias"),
        ({"mistakes": 0.6}, "mistakes"),
        ({"train_scenes": 0}, "train_scenes"),
        ({"boxes": 36}, "boxes"),
    ],
    "sepsis": [
        ({"drop": ["fluid"]}, "unknown feature 'fluid': did you mean 'fluid_"),
        ({"sensitive": ["outcome"]}, "sensitive"),
    ],
    "acs": [
        ({"sensitive": ["PWGTP"]}, "sensitive"),
        ({"states": ["XX"]}, "states"),
        ({"states": ["SD", "SD"]}, "states"),
        ({"task": "Poverty"}, "task"),
        ({"task": "Employment", "threshold": 1}, "threshold"),
        ({"drop": ["OCC"]}, "drop"),
        ({"train_rows": 300}, "train_rows"),
        ({"year": 2020}, "year"),
        ({"year": 2019, "drop": ["RELP"]}, "drop"),
    ],
    "biased_mnist": [
        ({"canvas": 40}, "divisors of 96"),
        ({"p_bias": 0.05}, "greater than or equal to 0.1"),
        ({"p_bias": {"texture": 1.5}}, "less than or equal to 1"),
        ({"p_bias": float("nan")}, "less than or equal to 1"),
        ({"p_bias": {"textur": 0.5}}, "unknown bias variable 'textur': did you mean 'texture'"),
        ({"sensitive": ["digit_colour"]}, "unknown bias variable 'digit_colour'"),
    ],
    "table": [
        ({"file": "/etc/loans.csv"}, "file"),
        ({"positive": True}, "positive"),
        ({"positive": []}, "positive"),
        ({"outcome": "continuous"}, "outcome"),
        ({"sensitive": []}, "sensitive"),
        ({"sensitive": ["sex", "sex"]}, "sensitive"),
        ({"sensitive": ["repaid"]}, "sensitive"),
        ({"bins": {"age": [30]}}, "bins"),
        ({"bins": {"sex": 1}}, "bins"),
        ({"types": {"age": "text"}}, "types"),
        ({"tagret": "x"}, "tagret"),
    ],
    "acs_states": [({"states": ["TX"]}, "unknown state 'TX'")],
    "cifar10": [
        ({"train_files": ()}, "at least 1"),
        ({"test_files": ("../x.bin",)}, "allowed"),
        ({"sensitive": ("sex",)}, "class"),
    ],
    "digits": [({"sensitive": ("writer",)}, "class")],
    "kdd_census": [
        ({"drop": ["country"]}, "unknown feature 'country'.*did you mean"),
        ({"drop": ["instance weight"]}, "unknown feature 'instance weight'"),
    ],
}


@pytest.mark.parametrize(
    ("name", "options", "message"), [(name, *row) for name, rows in WRONG.items() for row in rows]
)
def test_wrong_parameters_are_refused(name: str, options: dict[str, object], message: str) -> None:
    given = LOAN | options if name == "table" else options
    with pytest.raises(ValueError, match=message):
        find("dataset", name).Parameters(**given)
