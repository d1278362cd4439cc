"""Skin tone of drawn faces whose colours, and so whose angles, are known; colours as published."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from robust_fairness.bench.datasets.images._skin_tone import (
    ALIGNED,
    CATEGORIES,
    Patches,
    SkinToneParameters,
    category,
    lab,
    light_or_dark,
    measure,
    skin_like,
    skin_tones,
    typology_angle,
)

LIGHT, MIDDLE, DARK = (233, 203, 167), (194, 150, 130), (115, 82, 68)
BLUISH = (150, 160, 220)


def lab_of(colour):
    """L* and b* of one colour."""
    lightness, _, yellow = lab(np.array([colour], dtype=np.uint8))[0]
    return lightness, yellow


def angle_of(colour):
    """ITA of one colour in degrees."""
    lightness, yellow = lab_of(colour)
    return math.degrees(math.atan2(lightness - 50, yellow))


def blank(colour=(0, 0, 0), height=218, width=178):
    """An image of one colour, uint8 ``[1, 3, height, width]``."""
    image = np.empty((1, 3, height, width), dtype=np.uint8)
    image[:] = np.array(colour)[:, None, None]
    return image


def points(**moved):
    """The fixed landmarks, some of them elsewhere, ``[1, 5, 2]``."""
    landmarks = np.array(ALIGNED)[None]
    for name, position in moved.items():
        landmarks[0, ("left", "right", "nose").index(name)] = position
    return landmarks


def table(images, landmarks=None, **options):
    """The table of some images."""
    given = points() if landmarks is None else landmarks
    landmarks = np.repeat(given, len(images) // len(given), axis=0)
    return skin_tones(measure(images, landmarks), SkinToneParameters(**options))


EVERY_17 = np.stack(np.meshgrid(*[np.arange(0, 256, 17, dtype=np.uint8)] * 3), axis=-1)
# Published for sRGB, D65 and 2 degrees, by tables and colour calculators; the tone follows.
PUBLISHED = [
    ((255, 255, 255), (100, 0, 0), "I"),
    ((0, 0, 0), (0, 0, 0), "VI"),
    ((119, 119, 119), (50.03, 0, 0), "I"),
    ((255, 0, 0), (53.24, 80.09, 67.20), "VI"),
    ((0, 255, 0), (87.73, -86.18, 83.18), "IV"),
    ((0, 0, 255), (32.30, 79.19, -107.86), "VI"),
    ((255, 255, 0), (97.14, -21.55, 94.48), "IV"),
    ((0, 255, 255), (91.11, -48.09, -14.13), "I"),
    ((255, 0, 255), (60.32, 98.23, -60.82), "I"),
    ((56, 79, 132), (34.188, 8.072, -32.478), "VI"),
]


@pytest.mark.parametrize(("colour", "expected", "tone"), PUBLISHED)
def test_published_colours(colour, expected, tone):
    """To a few hundredths, since tables round matrix and white; and their angles, drawn."""
    assert lab(np.array([colour], dtype=np.uint8))[0] == pytest.approx(expected, abs=0.03)
    row = table(blank(colour)).iloc[0]
    lightness, _, yellow = expected
    assert row["ita"] == pytest.approx(math.degrees(math.atan2(lightness - 50, yellow)), abs=0.05)
    assert row["skin_tone"] == tone


def test_greys_have_no_colour_at_all():
    """Exactly, so that an angle of a grey is 90, 0 or -90 and not noise."""
    greys = lab(np.arange(256, dtype=np.uint8)[:, None].repeat(3, axis=1))
    assert not greys[:, 1:].any()
    assert (np.diff(greys[:, 0]) > 0).all()


def test_skin_like_colours_are_those_of_the_published_ranges():
    """Against Pillow's YCbCr, of full range: rounding may differ at the edges."""
    colours = EVERY_17.reshape(64, 64, 3)
    full = np.asarray(Image.fromarray(colours).convert("YCbCr"), dtype=float)
    cb, cr = np.moveaxis((full[..., 1:] - 128) * 224 / 255 + 128, -1, 0)
    computed = skin_like(colours)
    well_inside = (abs(cb - 102) < 24) & (abs(cr - 153) < 19)
    well_outside = (abs(cb - 102) > 26.5) | (abs(cr - 153) > 21.5)
    assert well_inside.sum() > 100 and computed[well_inside].all()
    assert well_outside.sum() > 1000 and not computed[well_outside].any()
    # light and dark skin of the usual colour chart; dark skin in poor light is the rule's fault
    known = [(194, 150, 130), (115, 82, 68), (128, 128, 128), (40, 80, 200), (30, 25, 24)]
    assert skin_like(np.array(known, dtype=np.uint8)).tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("colour", [LIGHT, MIDDLE, DARK, BLUISH])
@pytest.mark.parametrize("size", [(218, 178), (109, 89), (436, 356), (31, 25), (1, 1)])
def test_a_constant_image_has_the_angle_of_its_colour(colour, size):
    """In every size, in all patches, by either way of averaging."""
    row = table(blank(colour, *size)).iloc[0]
    for name in ("left_cheek", "right_cheek", "nose", "mean_of_patches", "mean_colour"):
        assert row[f"ita_{name}"] == pytest.approx(angle_of(colour), abs=1e-9)
    assert row["ita_disagreement"] == pytest.approx(0, abs=1e-9)
    assert not row[["clipped", "no_pixels", "patches_disagree"]].any()


@pytest.mark.parametrize(("size", "patch"), [((218, 178), 20), ((109, 89), 10)])
@pytest.mark.parametrize(
    ("place", "x", "first"),
    [("left_cheek", 69, {20: 59, 10: 30}), ("nose", 88, {20: 78, 10: 39})],
)
def test_patches_lie_where_the_source_has_them(size, patch, place, x, first):
    """Around the eye's x, or the nose's, at the nose's y: 20 pixels, or 10 at half the size.

    Rows 125 to 144 at full size; at half, 135 / 2 - 5 = 62.5 is rounded up.
    """
    top = {20: 125, 10: 63}[patch]
    image = blank(DARK, *size)
    inside = np.zeros(size, dtype=bool)
    inside[top : top + patch, first[patch] : first[patch] + patch] = True
    assert abs(first[patch] + patch / 2 - x * patch / 20) <= 0.5
    image[0][:, inside] = np.array(LIGHT)[:, None]
    assert table(image).iloc[0][f"ita_{place}"] == pytest.approx(angle_of(LIGHT), abs=1e-9)
    image = blank(LIGHT, *size)
    image[0][:, inside] = np.array(DARK)[:, None]
    assert table(image).iloc[0][f"ita_{place}"] == pytest.approx(angle_of(DARK), abs=1e-9)
    patches = measure(image, points())
    assert patches.pixels.tolist() == [[patch**2] * 3]


@given(
    x=st.floats(-60, 240),
    y=st.floats(-60, 280),
    height=st.integers(1, 60),
    width=st.integers(1, 60),
    seed=st.integers(0, 99),
)
def test_a_patch_holds_the_pixels_that_a_loop_finds(x, y, height, width, seed):
    """Anywhere in and around random images; outside pixels count for nothing."""
    images = np.random.default_rng(seed).integers(0, 256, (1, 3, height, width), dtype=np.uint8)
    patches = measure(images, points(nose=(x, y)))
    tall, wide = max(1, round(20 * height / 218)), max(1, round(20 * width / 178))
    top = math.floor(y * height / 218 - tall / 2 + 0.5)
    left = math.floor(x * width / 178 - wide / 2 + 0.5)
    inside = [
        images[0, :, row, column]
        for row in range(top, top + tall)
        for column in range(left, left + wide)
        if 0 <= row < height and 0 <= column < width
    ]
    assert patches.pixels[0, 2] == len(inside)
    assert patches.whole.tolist() == [tall * wide]
    measured = patches.lightness[0, 2], patches.yellow[0, 2]
    if inside:
        assert measured == pytest.approx(lab(np.array(inside)).mean(axis=0)[[0, 2]], abs=1e-9)
    else:
        assert np.isnan(measured).all()


def test_faces_of_a_batch_do_not_touch_each_other():
    """All at once equals one by one."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (7, 3, 55, 45), dtype=np.uint8)
    landmarks = points() + rng.normal(0, 40, (7, 5, 2))
    together = measure(images, landmarks)
    alone = [measure(images[[row]], landmarks[[row]]) for row in range(7)]
    joined = Patches(*map(np.concatenate, zip(*alone, strict=True)))
    for name in ("lightness", "yellow", "skin", "pixels", "whole"):
        assert np.array_equal(getattr(together, name), getattr(joined, name), equal_nan=True)


def halves(left, right):
    """An image of two colours that meet between the cheeks, at the nose."""
    image = blank(left)
    image[..., 88:] = np.array(right)[:, None, None]
    return image


def test_mean_of_angles_and_angle_of_the_mean_are_two_things():
    """Both are told; the one asked for counts."""
    images = halves(LIGHT, DARK)
    row = table(images).iloc[0]
    angle = {name: angle_of(colour) for name, colour in (("l", LIGHT), ("d", DARK))}
    light, dark = (np.array(lab_of(colour)) for colour in (LIGHT, DARK))
    # The nose's patch has ten columns of either colour, a cheek's only one.
    nose = (light + dark) / 2
    nose_angle = math.degrees(math.atan2(nose[0] - 50, nose[1]))
    assert row["ita_left_cheek"] == pytest.approx(angle["l"], abs=1e-9)
    assert row["ita_right_cheek"] == pytest.approx(angle["d"], abs=1e-9)
    assert row["ita_nose"] == pytest.approx(nose_angle, abs=1e-9)
    mean = (angle["l"] + angle["d"] + nose_angle) / 3
    assert row["ita_mean_of_patches"] == row["ita"] == pytest.approx(mean, abs=1e-9)
    assert row["ita_mean_colour"] == pytest.approx(nose_angle, abs=1e-9)
    assert abs(mean - nose_angle) > 1
    assert table(images, ita="mean_colour").iloc[0]["ita"] == row["ita_mean_colour"]
    assert row["ita_disagreement"] == pytest.approx(angle["l"] - angle["d"], abs=1e-9)
    assert row["patches_disagree"]
    allowed = angle["l"] - angle["d"] + 0.1
    assert not table(images, most_disagreement=allowed).iloc[0]["patches_disagree"]


def test_a_clipped_patch_counts_by_its_pixels_in_the_mean_colour():
    """And as much as the others in the mean of angles."""
    image = blank(DARK)
    image[..., :50] = np.array(LIGHT)[:, None, None]
    row = table(image, points(left=(0, 111))).iloc[0]
    assert row["clipped"] and not row["no_pixels"]
    light, dark = (np.array(lab_of(colour)) for colour in (LIGHT, DARK))
    colour = (10 * light + 40 * dark) / 50
    assert row["ita_mean_colour"] == pytest.approx(
        math.degrees(math.atan2(colour[0] - 50, colour[1])), abs=1e-9
    )
    angles = [angle_of(LIGHT), angle_of(DARK), angle_of(DARK)]
    assert row["ita_mean_of_patches"] == pytest.approx(np.mean(angles), abs=1e-9)


def test_landmarks_outside():
    """A patch without a pixel is left out; without any, skin tone is missing and says so."""
    images = blank(MIDDLE)
    row = table(images, points(left=(-500, 111))).iloc[0]
    assert math.isnan(row["ita_left_cheek"])
    assert row["ita"] == pytest.approx(angle_of(MIDDLE), abs=1e-9)
    assert row["clipped"] and not row["no_pixels"]
    for nose in ((88, 1e300), (88, -40), (88, 1000)):
        row = table(images, points(nose=nose)).iloc[0]
        assert row[["ita", "ita_mean_colour", "ita_disagreement", "least_skin"]].isna().all()
        assert row[["skin_tone", "light_or_dark"]].isna().all()
        assert row["no_pixels"] and row["clipped"]
        assert not row[["few_skin_pixels", "patches_disagree", "not_yellow"]].any()


@pytest.mark.parametrize(("level", "angle"), [(200, 90), (60, -90), (0, -90), (255, 90)])
def test_grey_images_have_no_skin_tone_worth_the_name(level, angle):
    """An angle of 90 or -90, and two flags; missing where that is asked for."""
    images = blank((level,) * 3)
    row = table(images).iloc[0]
    assert row["ita"] == angle
    assert row["few_skin_pixels"] and row["not_yellow"] and row["least_skin"] == 0
    row = table(images, flagged="missing").iloc[0]
    assert row[["skin_tone", "light_or_dark", "ita"]].isna().all()
    assert row["ita_nose"] == angle


def test_flags_make_a_skin_tone_missing_only_where_asked():
    """Clipping alone does not; the per-patch angles stay."""
    images = np.concatenate([blank(MIDDLE), halves(LIGHT, DARK), blank(BLUISH)])
    kept, left_out = table(images), table(images, flagged="missing")
    assert kept["ita"].notna().all()
    assert left_out["ita"].notna().tolist() == [True, False, False]
    assert left_out["ita_nose"].equals(kept["ita_nose"])
    clipped = table(blank(MIDDLE), points(left=(0, 111)), flagged="missing").iloc[0]
    assert clipped["clipped"] and clipped["skin_tone"] == "II"


def test_share_of_skin_like_pixels_is_that_of_the_worst_patch():
    """Of the left cheek's 400 pixels 100 are blue."""
    image = blank(MIDDLE)
    image[0, :, 125:135, 59:69] = np.array((0, 0, 255))[:, None, None]
    row = table(image).iloc[0]
    assert row["least_skin"] == 0.75 and not row["few_skin_pixels"]
    assert not table(image, least_skin=0.75).iloc[0]["few_skin_pixels"]
    assert table(image, least_skin=0.76).iloc[0]["few_skin_pixels"]


@given(lightness=st.floats(0, 100), yellow=st.floats(-100, 100).filter(lambda b: abs(b) > 1e-3))
def test_the_angle_is_as_printed_and_of_bluish_colours_half_a_turn_further(lightness, yellow):
    """The printed one is the arctangent of the ratio; the other keeps light above dark."""
    printed = math.degrees(math.atan((lightness - 50) / yellow))
    (angle,) = typology_angle(np.array([lightness]), np.array([yellow]))
    turned = 0 if yellow > 0 else 180 if lightness >= 50 else -180
    assert angle == pytest.approx(printed + turned, abs=1e-9)


@pytest.mark.parametrize(("lightness", "angle"), [(70, 90), (30, -90), (50, 0)])
def test_angles_of_a_zero_of_either_sign(lightness, angle):
    angles = typology_angle(np.full(2, float(lightness)), np.array([0.0, -0.0]))
    assert angles.tolist() == [angle, angle]


def test_eight_bit_codes_in_the_formula():
    """L* = 60 is the code 153 and b* = 20 is 148, hence arctan(103 / 148)."""
    angles = typology_angle(np.array([60.0]), np.array([20.0]), encoding="eight_bits")
    assert angles == pytest.approx([math.degrees(math.atan(103 / 148))])
    row = table(blank(DARK), encoding="eight_bits").iloc[0]
    lightness, yellow = lab_of(DARK)
    expected = math.degrees(math.atan((2.55 * lightness - 50) / (yellow + 128)))
    for name in ("ita_nose", "ita_mean_colour"):
        assert row[name] == pytest.approx(expected, abs=1e-9)


def test_categories_at_their_cuts():
    """A value at a cut is in the lighter category, the next smaller number is not."""
    cuts = [50.0, 40.0, 30.0, 20.0, 10.0]
    tones = category(np.array([180.0, *cuts, *np.nextafter(cuts, 0), -180.0, np.nan]))
    assert tones.codes.tolist() == [0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 5, -1]
    assert tuple(tones.categories) == CATEGORIES
    halves = light_or_dark(tones)
    assert list(halves.categories) == ["light", "dark"]
    assert halves.codes.tolist() == [0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, -1]


def test_no_images_give_an_empty_table():
    """With the columns of any other."""
    none = np.zeros((0, 3, 109, 89), np.uint8), np.zeros((0, 5, 2))
    tones = skin_tones(measure(*none), SkinToneParameters())
    assert (len(tones), list(tones)) == (0, list(table(blank())))
