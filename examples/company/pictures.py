"""Real pictures: originals in the size of a photo, made smaller by Pillow."""

import os
from pathlib import Path
from random import Random
from typing import Final

from PIL import Image, ImageDraw, UnidentifiedImageError

SIZE: Final = (1600, 1200)


def make_originals(folder: Path, count: int) -> list[Path]:
    """Draw some photos, each of them different."""
    paths = [folder / f"photo-{number}.jpg" for number in range(count)]
    for number, path in enumerate(paths):
        _photo(Random(number)).save(path, quality=85)
    return paths


def resize(original: Path, width: int, into: Path) -> tuple[int, int]:
    """Write a smaller copy; return its size. Raises ValueError if it is not a picture, OSError if half is missing."""
    with _opened(original) as picture:
        height = round(picture.height * width / picture.width)
        smaller = picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    # Written beside and renamed, so that a process killed while it writes leaves no half a picture.
    beside = into.with_suffix(f".{os.getpid()}")
    smaller.save(beside, format="JPEG", quality=85)
    beside.replace(into)
    return smaller.size


def _opened(path: Path) -> Image.Image:
    try:
        return Image.open(path)
    except UnidentifiedImageError:
        raise ValueError(f"{path.name} is not a picture") from None


def size_of(path: Path) -> tuple[int, int]:
    """Open a picture, read every pixel of it, and return its size."""
    with Image.open(path) as picture:
        picture.load()
        return picture.size


def _photo(dice: Random) -> Image.Image:
    sky = Image.linear_gradient("L").resize(SIZE)
    photo = Image.merge("RGB", [sky.point([min(255, v + dice.randrange(60)) for v in range(256)]) for _ in range(3)])
    draw = ImageDraw.Draw(photo)
    for _ in range(60):
        x, y, size = dice.randrange(SIZE[0]), dice.randrange(SIZE[1]), dice.randrange(20, 240)
        draw.ellipse((x, y, x + size, y + size), fill=(dice.randrange(256), dice.randrange(256), dice.randrange(256)))
    return photo
