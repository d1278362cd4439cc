"""CelebA as a data set of people: which face is whose, and skin tone as the attribute.

"Is Fairness Only Metric Deep?" (ICLR 2022), 3.3 and D.1: the people of training and test are the
same, split within each of them. Images are decoded once.
"""

from dataclasses import replace
from typing import Literal

from pydantic import PositiveInt

from robust_fairness.bench.datasets.base import DerivedDataset, Listed
from robust_fairness.bench.datasets.images import _celeba
from robust_fairness.bench.datasets.images._class_images import (
    CLASS,
    ClassImageParameters,
    large_classes,
    samples_of,
)
from robust_fairness.bench.datasets.images._image_files import opened, with_images
from robust_fairness.bench.datasets.images._skin_tone import SkinToneParameters
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples


class CelebaIdentity(DerivedDataset):
    """Faces with the person they show, their skin tone, and splits within each person.

    Classes are the numbers of people in the official file, in ascending order.
    """

    derivation = "label_skin_tone"

    class Parameters(ClassImageParameters):
        """Parameters of the people of CelebA.

        Attributes:
            sensitive: ``skin_tone`` (I to VI), ``light_or_dark`` (I to III, IV to VI) or ``ita``
                (degrees, continuous).
            images: folder, or zip file of that name, of the aligned JPEG files.
            min_images: as in ``ClassImageParameters``; with four a person has two in training and
                two in the test.
            crop: skin tone is measured on the whole image, whatever is cropped.
        """

        sensitive: Listed[Literal["skin_tone", "light_or_dark", "ita"]] = ("skin_tone",)
        images: str = _celeba.IMAGES
        min_images: PositiveInt = 4
        skin_tone: SkinToneParameters = SkinToneParameters()

    def required_files(self) -> tuple[str, ...]:
        return (self.parameters.images, _celeba.IDENTITIES)

    def originals(self, files: Files, splits: int) -> Samples:
        """Faces with what is measured of their colours."""
        parameters = self.parameters
        people = _celeba.whole_numbers(files, _celeba.IDENTITIES)
        with opened(files, parameters.images) as source:
            table = people.astype("category").to_frame(CLASS)
            table = with_images(table, source, _celeba.IDENTITIES, parameters)
            table = large_classes(table, parameters.min_images)
            colours = _celeba.Colours(files, table.index, parameters.skin_tone)
            faces = samples_of(table, (), source, files, parameters, splits, colours)
        return replace(faces, attributes=colours.measured())

    def derive(self, originals: Samples) -> Samples:
        """The faces with their skin tones."""
        parameters = self.parameters
        return _celeba.labelled_with_skin_tone(
            originals, parameters.skin_tone, parameters.sensitive
        )
