"""Predicted answers as the official evaluations of GQA and GQA-OOD read them."""

from collections.abc import Sequence

from robust_fairness.bench.training.records import Prediction
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.samples import Samples


def prediction_of(
    predictions: Sequence[Prediction], trial: str, seed: int, test_set: str
) -> Prediction:
    """The record of one replica on one sample set; ``test_set`` is "" for the dataset itself."""
    result = list(predictions)
    for field, wanted in (("trial", trial), ("seed", seed), ("test_set", test_set)):
        known = {str(getattr(item, field)) for item in result}
        result = [item for item in result if getattr(item, field) == wanted]
        if not result:
            raise unknown_name(f"{field.replace('_', ' ')} of predictions", str(wanted), known)
    return result[0]


def official_answers(prediction: Prediction, samples: Samples) -> list[dict[str, str]]:
    """A list of ``questionId`` and ``prediction``, in the order of the predicted rows."""
    if samples.questions is None or not samples.classes:
        raise InputError("answers exist only for datasets of questions about images")
    if prediction.rows.max(initial=-1) >= len(samples):
        raise InputError(
            f"predictions of row {prediction.rows.max()}, but the samples have {len(samples)} "
            "rows: they are from another run"
        )
    answers = prediction.outputs.argmax(-1)
    return [
        {"questionId": str(question), "prediction": samples.classes[answer]}
        for question, answer in zip(samples.id[prediction.rows], answers.tolist(), strict=True)
    ]
