"""Draw ``skin_tones.png``: faces of known colour in three lights, with the category they get.

Run from the root of the project: ``python docs/images/draw_skin_tones.py``.
"""

from math import radians, tan
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from skimage.color import lab2rgb

from robust_fairness.datasets.images._skin_tone import (
    ALIGNED,
    HEIGHT,
    WIDTH,
    SkinToneParameters,
    measure,
    skin_tones,
)

ANGLES = (55, 45, 35, 25, 15, 0)  # degrees, one in each category
LIGHTS = {"half the light": 0.5, "as drawn": 1.0, "half as much again": 1.5}
A, B = 12, 18  # of every colour in CIELAB; its lightness follows from the angle
MARGIN, TITLE = 8, 24


def colour(angle: float) -> np.ndarray:
    """Linear red, green and blue (0 to 1) of the colour with that individual typology angle."""
    rgb = lab2rgb(np.array([50 + B * tan(radians(angle)), A, B]))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def face(angle: float, light: float) -> np.ndarray:
    """A face of one colour on grey, uint8 ``[3, height, width]``."""
    linear = np.clip(light * colour(angle), 0, 1)
    curve = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    skin = tuple(int(value) for value in np.rint(255 * curve))
    picture = Image.new("RGB", (WIDTH, HEIGHT), (128, 128, 128))
    draw = ImageDraw.Draw(picture)
    draw.ellipse((39, 40, 139, 190), fill=skin)
    (left, right, nose, *mouth) = ALIGNED
    for x, y in (left, right):
        draw.ellipse((x - 9, y - 5, x + 9, y + 5), fill=(255, 255, 255))
        draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill=(40, 30, 20))
    draw.line([tuple(nose), (nose[0] - 5, nose[1] + 8)], fill=(60, 40, 30), width=2)
    draw.line([tuple(point) for point in mouth], fill=(150, 60, 60), width=4)
    return np.asarray(picture).transpose(2, 0, 1)


def main() -> None:
    """Draw, label and save."""
    columns, rows = len(ANGLES), len(LIGHTS)
    size = (columns * (WIDTH + MARGIN), rows * (HEIGHT + TITLE + MARGIN))
    sheet = Image.new("RGB", size, (255, 255, 255))
    text = ImageDraw.Draw(sheet)
    for row, (name, light) in enumerate(LIGHTS.items()):
        faces = np.stack([face(angle, light) for angle in ANGLES])
        landmarks = np.tile(np.array(ALIGNED), (columns, 1, 1))
        table = skin_tones(measure(faces, landmarks), SkinToneParameters())
        for column, one in enumerate(faces):
            left, top = column * (WIDTH + MARGIN), row * (HEIGHT + TITLE + MARGIN)
            found = table.iloc[column]
            told = f"{name}: {found['skin_tone']}, {found['ita']:.0f} degrees"
            text.text((left + 4, top + 4), told, fill=(0, 0, 0))
            sheet.paste(Image.fromarray(one.transpose(1, 2, 0)), (left, top + TITLE))
    sheet.save(Path(__file__).with_name("skin_tones.png"), optimize=True)


if __name__ == "__main__":
    main()
