"""The contract of datasets."""

from abc import ABC, abstractmethod
from typing import Any, Literal

from pydantic import BaseModel

from robust_fairness.core.registry import Plugin
from robust_fairness.datasets.files import Files
from robust_fairness.samples import Samples

DataKind = Literal["table", "image", "question", "generated"]


class Dataset(Plugin, ABC):
    """A source of samples, made of its parameters.

    Features are left as they are in the files, categories one-hot: preprocessing is fitted later,
    on the training rows of each replica.

    Attributes:
        data_kind: kind of its samples; shifts and networks say which kinds they apply to.
        parameters: its parameters.
    """

    data_kind: DataKind
    parameters: Any

    def __init__(self, parameters: BaseModel | None = None) -> None:
        self.parameters = self.Parameters() if parameters is None else parameters

    def required_files(self) -> tuple[str, ...]:
        """Raw files, folders and zip files that ``load`` reads, by their paths below the root."""
        return ()

    def missing_files(self, files: Files) -> list[str]:
        """The required files that are not available."""
        return [name for name in self.required_files() if not files.available(name)]

    @abstractmethod
    def load(self, files: Files, splits: int) -> Samples:
        """The samples.

        Args:
            files: where raw files are found; their checksums become ``Samples.sources``.
            splits: number of named splits.

        Raises:
            InputError: a file is missing, damaged or does not fit its schema, or a part of a
                split lacks rows or a class.
        """


class TableDataset(Dataset):
    """A table: float32 features ``[n, d]``."""

    data_kind = "table"


class ImageDataset(Dataset):
    """Images: uint8 ``[n, c, h, w]``."""

    data_kind = "image"


class QuestionDataset(Dataset):
    """Questions on images, see ``samples.questions``."""

    data_kind = "question"
