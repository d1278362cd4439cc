"""Train the generator of digits that the package contains, about a minute of one core.

    python -m tools.digits_generator [FILE]    # by default over the package's own

scikit-learn's digits, the training rows of the first split. Weights are stored with half precision,
which changes few pixels, and by one level. Another processor rounds differently and trains other
weights.
"""

import sys
from pathlib import Path

import torch

from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.generation.fitting import GeneratorParameters, fit
from robust_fairness.bench.generation.generator import BUNDLED, Generator, write
from robust_fairness.core.raw_files import Files, default_root
from robust_fairness.core.registry import find

NAME = "digits_generator"  # of its checkpoints
SETTINGS = {
    "network": {"channels": (16, 32), "groups": 4},
    "sampler": {"steps": 10},
    "images": 131_072,
    "batch_size": 64,
}


def trained() -> Generator:
    """The generator with the weights of its training."""
    dataset = find("dataset", "digits")
    samples = dataset(dataset.Parameters()).load(Files(default_root()), 1)
    rows = samples.rows(samples.split_names[0], "train")
    x, y = torch.from_numpy(samples.x[rows]), torch.from_numpy(samples.y[rows])
    parameters = GeneratorParameters.model_validate(SETTINGS)
    generator, _ = fit(parameters, x, y, samples.classes, NAME)
    checkpoints.drop(NAME)
    return generator


def save(generator: Generator, path: Path) -> None:
    """Write a generator with half of the precision of its weights."""
    halved = {name: weight.half() for name, weight in generator.weights.items()}
    write(path, generator.settings.model_dump(mode="json"), halved)


if __name__ == "__main__":
    save(trained(), Path(sys.argv[1]) if sys.argv[1:] else BUNDLED["digits"])
