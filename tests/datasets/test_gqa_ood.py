"""GQA-OOD: parser, words, groups, tail labels and parts, on real and on small written files."""

import gzip
import hashlib
import json
import re
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.datasets.questions import gqa_ood
from robust_fairness.bench.datasets.questions._questions import (
    Book,
    entries,
    joined,
    questions_of,
    words_of,
)
from robust_fairness.core import raw_files as _files
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import Boxes, in_tail
from robust_fairness.core.raw_files import Files
from tests.datasets import loading
from tests.datasets.loading import one_line
from tests.datasets.test_boxes import world

REAL = ("ood_testdev_head", "ood_testdev_tail", "val_bal_tail_-0.7")
TRAIN, VAL, TEST = (f"gqa/{part}_balanced_questions.json" for part in ("train", "val", "testdev"))


load = partial(loading.load, "gqa_ood")


def entry(question, answer, local, kind="color", image="n1", **further):
    """A question with the fields that are read, and some that are not."""
    return {
        "semantic": [{"operation": "select", "dependencies": [], "argument": "ball (1)"}],
        "entailed": ["7"],
        "equivalent": [],
        "question": question,
        "imageId": image,
        "isBalanced": True,
        "groups": {"global": kind, "local": local},
        "answer": answer,
        "types": {"detailed": "directOf", "semantic": "attr", "structural": "query"},
        "annotations": {"answer": {}, "question": {"0": "1"}, "fullAnswer": {}},
        "fullAnswer": f"It is {answer}.",
        **further,
    }


# In the group "ball" red is asked for three times, blue once: mu is 2, so that with beta 0.2 blue
# is rare; in "there" both answers are asked for once, which is less than 1.2.
TRAINING = {
    "11": entry("What color is the ball?", "red", "ball", image="n3"),
    "12": entry("What color is the ball?", "red", "ball", image="n1"),
    "13": entry("What's the ball's color, red or blue?", "red", "ball", image="n10"),
    "14": entry("What color is the ball?", "blue", "ball", image="n2"),
    "15": entry("Is it there?", "yes", "there", None),
    "16": entry("Isn't it there?", "no", "there", None),
}
VALIDATION = {
    "head": {"21": entry("Which color is the ball?", "red", "ball")},
    "tail": {"22": entry("What color is it?", "blue", None, image="n2")},
}
TESTING = {
    "head": {"31": entry("What color is the cube?", "red", "cube", image="n4")},
    "tail": {
        "32": entry("What color is the ball?", "teal", "ball"),
        "33": entry("Is it there?", "no", "there", None),
    },
}


def write(path: Path, content) -> None:
    """Write JSON as the official files have it, in one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def root(tmp_path) -> Path:
    """Small files of GQA and GQA-OOD."""
    write(tmp_path / TRAIN, TRAINING)
    for part, sides in (("val", VALIDATION), ("testdev", TESTING)):
        for side, questions in sides.items():
            write(tmp_path / f"gqa_ood/ood_{part}_{side}.json", questions)
    return tmp_path


@pytest.fixture
def requests(monkeypatch) -> list:
    """What was asked of the conversion of features, which is left out."""
    asked: list = []

    def convert(features, images, boxes, target):
        asked.append((features, list(images), boxes, target))
        return Boxes(str(target), (len(images), boxes, 8), "abc")

    monkeypatch.setattr(gqa_ood, "convert", convert)
    return asked


def questions_from(files, name, book, tokens):
    """The questions of a file."""
    return questions_of(entries(files, name), name, book, tokens)


def told(samples, row: int) -> str:
    """The words of a row, as text."""
    return " ".join(samples.questions.words[token] for token in samples.x["tokens"][row]).strip()


def test_each_question_has_its_words_image_answer_and_groups(root, requests):
    """In the order of the files: training, then head and tail of validation and test."""
    samples = load(root, tokens=6)
    assert samples.id.tolist() == ["11", "12", "13", "14", "15", "16", "21", "22", "31", "32", "33"]
    words = ["'s", "ball", "blue", "color", "is", "isn't", "it", "or", "red", "the", "there"]
    assert samples.questions.words == ("", "<unknown>", *words, "what")
    assert samples.x["tokens"].dtype == samples.x["image"].dtype == np.int32
    assert told(samples, 0) == "what color is the ball"
    assert samples.x["tokens"][0, 0] == 0  # padding is in front
    assert told(samples, 2) == "what 's the ball 's color"  # the first six
    assert told(samples, 6) == "<unknown> color is the ball"  # "which" is in no training question
    assert told(samples, 8) == "what color is the <unknown>"
    images = requests[0][1]
    assert images == ["n1", "n10", "n2", "n3", "n4"]
    assert [images[row] for row in samples.x["image"]] == (
        ["n3", "n1", "n10", "n2", "n1", "n1", "n1", "n2", "n4", "n1", "n1"]
    )
    answers = ["red", "red", "red", "blue", "yes", "no", "red", "blue", "red", "<unseen>", "no"]
    assert samples.classes == ("blue", "no", "red", "yes", "<unseen>")
    assert [samples.classes[y] for y in samples.y] == answers
    attributes = samples.attributes
    assert attributes["answer"].tolist() == answers
    assert attributes["head_tail"].tolist() == (
        ["head", "head", "head", "tail", "tail", "tail", "head", "tail", "head", "tail", "tail"]
    )
    assert attributes["global_group"].cat.categories.tolist() == ["color", "none"]
    assert attributes["global_group"].tolist()[3:6] == ["color", "none", "none"]
    assert attributes["local_group"].cat.categories.tolist() == ["ball", "cube", "none", "there"]
    assert attributes["local_group"].tolist()[6:9] == ["ball", "none", "cube"]
    assert samples.splits["split_0"].tolist() == ["train"] * 6 + ["val"] * 2 + ["test"] * 3
    assert samples.sensitive == ("head_tail",)


def test_each_question_is_on_its_image_s_features(root, tmp_path):
    """From the official files to what is looked up by the row of the image."""
    asked = ["n4", "n2", "n1", "n10", "n3"]
    truth = world(root / "gqa/objects", [*asked, *(f"unasked {k}" for k in range(7))])
    samples = load(root, boxes=3, boxes_folder=str(tmp_path / "kept"))
    boxes = samples.questions.boxes
    assert boxes.shape == (5, 3, 8)
    every = TRAINING | VALIDATION["head"] | VALIDATION["tail"] | TESTING["head"] | TESTING["tail"]
    for row, question in enumerate(samples.id):
        kept = truth[every[question]["imageId"]][:3]
        expected = np.zeros((3, 8), np.float16)
        expected[: len(kept)] = kept
        np.testing.assert_array_equal(boxes.features[samples.x["image"][row]], expected)
    again = load(root, boxes=3, boxes_folder=str(tmp_path / "kept"), train_share=0.5)
    assert again.questions.boxes == boxes  # so that a search over shares converts once
    assert samples.sources[TRAIN] == hashlib.sha256((root / TRAIN).read_bytes()).hexdigest()
    assert samples.sources["gqa/objects"] == boxes.sha256 and len(samples.sources) == 6


def test_a_share_of_the_training_questions_is_drawn_by_split(root, requests):
    """Words, answers and tail labels stay those of all; what no split draws is left out."""
    write(root / TRAIN, {f"1{n}": entry("Is it red?", f"a{n % 7}", "g") for n in range(100)})
    whole, tenth = load(root, splits=2), load(root, splits=2, train_share=0.1)
    assert (whole.splits["split_0"] == "train").sum() == 100
    rows = [tenth.rows(split, "train") for split in tenth.split_names]
    assert list(map(len, rows)) == [10, 10]
    assert set(rows[0]) != set(rows[1])
    assert len(tenth) == len(set(rows[0]) | set(rows[1])) + 5
    for split in tenth.split_names:
        assert tenth.splits[split].value_counts().to_dict() == {"train": 10, "val": 2, "test": 3}
    assert tenth.classes == whole.classes
    assert tenth.questions.words == whole.questions.words
    place = {question: row for row, question in enumerate(whole.id)}
    same = [place[question] for question in tenth.id]
    taken = whole.take(np.array(same)).attributes
    assert (taken["head_tail"] == tenth.attributes["head_tail"]).all()
    again = load(root, splits=1, train_share=0.1)
    drawn = [samples.id[samples.rows("split_0", "train")].tolist() for samples in (tenth, again)]
    assert drawn[0] == drawn[1]
    other = load(root, splits=1, train_share=0.1, seed=1)
    assert other.id.tolist() != again.id.tolist()


def test_parts_without_files_of_gqa_ood_are_labelled_by_the_rule(root, requests):
    """The balanced questions, head and tail together, in their order."""
    for part, name in (("val", VAL), ("testdev", TEST)):
        for side in ("head", "tail"):
            (root / f"gqa_ood/ood_{part}_{side}.json").unlink()
        write(root / name, {f"{part}{number}": question for number, question in TRAINING.items()})
    samples = load(root)
    sides = ["head", "head", "head", "tail", "tail", "tail"]
    assert samples.attributes["head_tail"].tolist() == sides * 3
    fewer = load(root, beta=-0.4)  # under 1.2 of 2, and under 0.6 of 1
    assert fewer.attributes["head_tail"].tolist() == ["head"] * 3 + ["tail"] + ["head"] * 2 + (
        (["head"] * 3 + ["tail"] + ["head"] * 2) * 2
    )


@pytest.mark.parametrize("beta", [-0.7, 0.0, 0.2, 0.3, 1.0, 1.1])
def test_beta_is_the_size_of_the_tail_of_training_questions(root, requests, beta):
    """A brute-force restatement of A.1 with <; validation and test keep their own labels."""
    generator = np.random.default_rng(1)
    questions = {
        str(n): entry("Is it?", f"a{generator.geometric(0.4)}", f"g{generator.integers(4)}")
        for n in range(200)
    }
    write(root / TRAIN, questions)
    counts = Counter((asked["groups"]["local"], asked["answer"]) for asked in questions.values())
    expected = []
    for question in questions.values():
        group = question["groups"]["local"]
        counts_of_group = [count for (local, _), count in counts.items() if local == group]
        mean = Fraction(sum(counts_of_group), len(counts_of_group))
        rare = counts[group, question["answer"]] < (1 + Fraction(str(beta))) * mean
        expected.append("tail" if rare else "head")
    sides = load(root, beta=beta).attributes["head_tail"]
    assert sides.tolist() == expected + ["head", "tail", "head", "tail", "tail"]


def test_the_published_labels_follow_the_strict_rule(shared_data):
    """All 2,796; with <=, as A.1 prints it, 2,688."""
    book, files = Book(), Files(shared_data)
    head, tail = (questions_from(files, f"gqa_ood/{name}.json", book, 14) for name in REAL[:2])
    assert (len(head), len(tail)) == (1733, 1063)
    rows = joined([head, tail])
    y, group = rows.answer.astype(np.int64), rows.local_group.astype(np.int64)
    published = np.repeat([False, True], [1733, 1063])
    assert (in_tail(y, group, len(book.answers), 0.2) == published).all()
    counts = Counter(zip(group.tolist(), y.tolist(), strict=True))
    present, totals = Counter(local for local, _ in counts), Counter(group.tolist())
    at_most = [
        counts[local, answer] <= Fraction(6, 5) * Fraction(totals[local], present[local])
        for local, answer in zip(group.tolist(), y.tolist(), strict=True)
    ]
    assert (np.array(at_most) == published).sum() == 2688


@pytest.mark.parametrize("name", REAL)
def test_real_files_are_read_as_a_parser_of_whole_files_reads_them(shared_data, name, monkeypatch):
    """Question by question; blocks of odd size cut entries, escapes and white space anywhere."""
    monkeypatch.setattr(_files, "BLOCK", 10_007)
    files, book = Files(shared_data), Book()
    rows = questions_from(files, f"gqa_ood/{name}.json", book, 14)
    content = files.content(f"gqa_ood/{name}.json")
    whole = json.loads(content)
    assert files.sources == {f"gqa_ood/{name}.json": hashlib.sha256(content).hexdigest()}
    assert rows.id.tolist() == list(whole)
    columns = {
        name: np.array(list(getattr(book, f"{name}s")), dtype=object)[getattr(rows, name)].tolist()
        for name in ("answer", "image", "local_group", "global_group")
    }
    assert columns["answer"] == [question["answer"] for question in whole.values()]
    assert columns["image"] == [question["imageId"] for question in whole.values()]
    named = {None: "none", "": "unnamed"}
    for kind in ("local", "global"):
        groups = [question["groups"][kind] for question in whole.values()]
        expected = [named.get(group, group) for group in groups]
        assert columns[f"{kind}_group"] == expected
    assert {"none", "unnamed"} < set(columns["global_group"])
    words = list(book.words)
    for tokens, question in zip(rows.tokens, whole.values(), strict=True):
        text = re.sub(r"[,?]", "", question["question"].lower())
        split = re.sub(r"'s(?=\s|$)", " 's", text).split()  # what published code makes of it
        assert [words[token] for token in tokens if token] == split[:14]
        assert (np.diff((tokens > 0).astype(int)) >= 0).all()


@given(st.lists(st.text("ab',?. -T"), max_size=5))
def test_words_are_what_is_written_between_white_space_and_punctuation(parts):
    """No mark is part of a word, and no letter is lost."""
    question = " ".join(parts)
    words = words_of(question)
    assert all(words)
    assert not set("".join(words)) & set(",?. T")
    kept = re.sub(r"[,?. ]", "", question.lower())
    assert "".join(words) == kept


@pytest.mark.parametrize("block", [1, 2, 7, 64])
def test_blocks_may_end_anywhere(root, monkeypatch, block):
    """Between the bytes of a letter, too."""
    questions = {"1": entry("Où est l'œuf?", "à droite", "œuf", note='\\" }')}
    write(root / "one.json", json.dumps(questions, ensure_ascii=False, indent=1) + " \n")
    whole = questions_from(Files(root), "one.json", Book(), 3)
    monkeypatch.setattr(_files, "BLOCK", block)
    book = Book()
    pieces = questions_from(Files(root), "one.json", book, 3)
    for name, array in vars(whole).items():
        np.testing.assert_array_equal(getattr(pieces, name), array)
    assert list(book.words) == ["", "<unknown>", "où", "est", "l'œuf"]


def test_gzipped_and_plain_files_are_the_same(root, requests):
    """Also in a folder that is named in full."""
    plain = load(root)
    zipped = root / "elsewhere"
    for path in (root / "gqa_ood").iterdir():
        write(zipped / f"{path.name}.gz", "")
        (zipped / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    moved = load(root, ood_folder=str(zipped))
    np.testing.assert_array_equal(moved.x["tokens"], plain.x["tokens"])
    assert sorted(moved.sources.values()) == sorted(plain.sources.values())


def without(name):
    """An entry that lacks a field."""
    without_field = entry("Is it?", "yes", "there")
    del without_field[name]
    return {"1": without_field}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (without("answer"), "question 1: answer: Field required"),
        (without("groups"), "question 1: groups: Field required"),
        ({"1": entry("Is it?", "yes", "there") | {"groups": {"global": None}}}, "groups.local: F"),
        (
            {"1": entry("Is it?", 7, "there")},
            "question 1: answer: Input should be .* string .got 7",
        ),
        ({"1": entry("Is it?", "", "there")}, "question 1: answer: String should have at least 1"),
        ({"1": entry("Is it?", "yes", 7)}, "question 1: groups.local: .* string .got 7"),
        ({"1": entry("?", "yes", "there")}, "question 1, question: '\\?' has no words"),
        ({"1": "yes"}, "question 1: .*got 'yes'"),
        ({}, "no questions"),
        ("", "'', expected the rest of one JSON object"),
        (b'{"1": "\xff"}', "not UTF-8 text"),
        ("[1]", r"'\[1\]', expected the rest"),
        (json.dumps(TRAINING)[:-30], "'.*, expected the rest of one JSON object"),
        (json.dumps(TRAINING) + "{}", r"'\}\{\}', expected the rest"),
        (json.dumps(TRAINING).replace('", "', '" "', 1), "expected the rest"),
        ('{"1" 2}', "expected the rest"),
        ("{1: 2}", "expected the rest"),
        ('{"1": {} "2": {}}', "question 1: "),
        ('{"1": ' + "[" * 200_000, "expected the rest"),
        (
            f'{{"1": {json.dumps(TRAINING["11"])}, "1": {json.dumps(TRAINING["12"])}}}',
            "question 1: occurs twice in the file",
        ),
    ],
)
def test_a_damaged_file_is_one_line(root, content, message):
    """Which names file, question and what is allowed."""
    write(root / TRAIN, content)
    with pytest.raises(InputError, match=message) as error:
        questions_from(Files(root), TRAIN, Book(), 14)
    assert str(error.value).startswith(TRAIN)
    assert "\n" not in str(error.value)


def test_damaged_text_is_not_read_to_the_end_of_a_large_file(root, monkeypatch):
    """It looks like text whose rest comes later; no entry is as long as that."""
    monkeypatch.setattr("robust_fairness.bench.datasets.questions._questions.LONGEST_QUESTION", 100)
    monkeypatch.setattr(_files, "BLOCK", 64)
    taken = []
    blocks = Files.blocks

    def counted(self, name):
        for block in blocks(self, name):
            taken.append(block)
            yield block

    monkeypatch.setattr(Files, "blocks", counted)
    write(root / TRAIN, '{"1": {"question": nothing' + " " * 10_000)
    with pytest.raises(InputError, match="nothing.*expected the rest of one JSON"):
        questions_from(Files(root), TRAIN, Book(), 14)
    assert len(taken) < 5


def test_a_question_in_head_and_tail_is_refused(root, requests):
    """It would be scored in both."""
    write(root / "gqa_ood/ood_testdev_head.json", TESTING["head"] | {"32": TESTING["tail"]["32"]})
    message = "ood_testdev_head.json and gqa_ood/ood_testdev_tail.json: question 32 is in both"
    with pytest.raises(InputError, match=message):
        load(root)


def test_missing_files_are_named_with_what_may_take_their_place(root, requests):
    """And with the command that downloads them, where there is one."""
    (root / "gqa_ood/ood_testdev_tail.json").unlink()
    with pytest.raises(InputError, match="ood_testdev_tail.json is missing.*fetch gqa_ood"):
        load(root)
    (root / "gqa_ood/ood_testdev_head.json").unlink()
    with one_line("testdev_balanced_questions.json are missing"):
        load(root)
    (root / TRAIN).unlink()
    with pytest.raises(InputError, match="train_balanced_questions.json is missing"):
        load(root)


def test_a_share_without_a_question_and_no_split_are_refused(root, requests):
    """One line each."""
    with pytest.raises(InputError, match="train_share: 0.01 of 6 training questions is none"):
        load(root, train_share=0.01)
    with pytest.raises(InputError, match="splits: 0, allowed"):
        load(root, splits=0)
