"""Generated scenes with questions whose answers are known, in the files of GQA and GQA-OOD.

A world of toys (``_scenes``) is written as GQA's questions, GQA-OOD's head and tail and GQA's
object features are (``_scene_files``), and read as those are (``gqa_ood``). Answers follow the
prior of their local group as far as ``bias`` says, and the best accuracies with and without the
image follow from the parameters (``_scenes.best_accuracies``).
"""

import hashlib
import logging
from dataclasses import replace
from pathlib import Path

from pydantic import PositiveInt

from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_folder
from robust_fairness.datasets.base import QuestionDataset
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.questions._scene_files import (
    FEATURES_FOLDER,
    OOD_FOLDER,
    QUESTIONS_FOLDER,
    write,
)
from robust_fairness.datasets.questions._scenes import WorldParameters
from robust_fairness.datasets.questions.gqa_ood import GqaOod, Sensitive
from robust_fairness.samples import Samples

EDITION = 2  # raised where the same parameters give other files
BOXES_FOLDER = "boxes"

logger = logging.getLogger(__name__)


class GeneratedScenes(QuestionDataset):
    """The questions of a world as ``gqa_ood`` reads them; the world is written first if needed."""

    class Parameters(WorldParameters):
        """A world, and how its questions are read.

        Attributes:
            folder: where worlds are kept, each in a folder of its own; a relative path starts
                where the command is run.
            tokens: number of words of a question that are kept.
        """

        folder: str = "data/01_raw/generated_scenes"
        tokens: PositiveInt = 14
        sensitive: Sensitive = ("head_tail",)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        folder = written(parameters)
        files_of_scenes = GqaOod.Parameters(
            folder=QUESTIONS_FOLDER,
            ood_folder=OOD_FOLDER,
            features_folder=FEATURES_FOLDER,
            boxes_folder=str(folder / BOXES_FOLDER),
            boxes=2 * parameters.objects,
            tokens=parameters.tokens,
            sensitive=parameters.sensitive,
        )
        result = Files(folder)
        samples = GqaOod(files_of_scenes).load(result, splits)
        # they are not the official files of these names
        files.sources.update({f"{self.name}/{name}": item for name, item in result.sources.items()})
        return replace(samples, sources=dict(files.sources))


def written(parameters: GeneratedScenes.Parameters) -> Path:
    """The folder of a world, written atomically if it does not exist."""
    folder = Path(parameters.folder) / key(parameters)
    if folder.is_dir():
        return folder
    logger.info("%s: writing generated scenes", folder)
    try:
        with atomic_folder(folder) as temporary:
            write(parameters, temporary)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error}") from error
    return folder


def key(world: WorldParameters) -> str:
    """Name of the folder of a world: 16 digits of a hash of all that it is drawn from."""
    drawn_from = WorldParameters(**world.model_dump(include=set(WorldParameters.model_fields)))
    content = f"{EDITION} {drawn_from.model_dump_json()}"
    return hashlib.sha256(content.encode()).hexdigest()[:16]
