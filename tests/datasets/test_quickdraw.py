"""Quick, Draw!: the very pictures of the source, in fixed splits, and what is made of them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from topksvm.datasets import load_quickdraw
from topksvm.datasets._hog import describe_gradients
from topksvm.datasets._packing import LEVELS, pack_images, quantise, unpack_images

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TOPKSVM_DATA", ROOT.parent / "shared" / "data"))
FILE_SHA256 = "a836859c1472bd0aa0fc299695917b6553fdee033b992ada9cd9e961aafaf952"
LEVELS_SHA256 = "a5212e600ec9950cee85231c79480c7dd12e60db23db7610f15bec377e213f34"


@pytest.fixture(scope="module")
def pixels():
    return load_quickdraw()


def _class_by_class(data):
    """Return all pictures in the order of the source."""
    rounds = np.concatenate([data.images(split) for split in ("train", "val", "test")])
    return rounds.reshape(100, 345, 28, 28).swapaxes(0, 1).reshape(-1, 28, 28) // 85


def test_the_file_is_the_one_that_was_made():
    folder = files("topksvm.datasets").joinpath("data")
    packed = folder.joinpath("quickdraw.xz").read_bytes()
    assert hashlib.sha256(packed).hexdigest() == FILE_SHA256
    assert len(packed) < 3e6
    assert "Google" in folder.joinpath("quickdraw_licence.txt").read_text()
    assert "CC BY 4.0" in folder.joinpath("quickdraw_licence.txt").read_text()


def test_pictures_and_names(pixels):
    levels = _class_by_class(pixels)
    assert hashlib.sha256(levels.tobytes()).hexdigest() == LEVELS_SHA256
    assert pixels.class_names[:2] == ("The Eiffel Tower", "The Great Wall of China")
    assert len(set(pixels.class_names)) == 345
    assert "Google" in pixels.description
    assert "CC BY 4.0" in pixels.description


def test_pictures_are_those_of_the_source(pixels):
    path = DATA / "quickdraw345_28x28.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent; set TOPKSVM_DATA to the folder that holds it")
    tool = ROOT / "tools" / "make_quickdraw.py"
    if not tool.exists():
        pytest.skip(f"{tool} is absent: it is in the repository only")
    spec = importlib.util.spec_from_file_location("make", tool)
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    levels, names = make.read_levels(path)
    assert tuple(names) == pixels.class_names
    np.testing.assert_array_equal(_class_by_class(pixels), levels)
    gray = np.load(path)["X"].reshape(-1, 28, 28)
    assert np.abs(gray / 1000 - levels / 3.0).max() <= 1 / 6 + 1e-12


def test_splits_are_balanced_and_go_round_the_classes(pixels):
    assert pixels.splits == ("train", "val", "test")
    for split, per_class in (("train", 70), ("val", 10), ("test", 20)):
        X, y = pixels.split(split)
        assert X.shape == (345 * per_class, 784)
        np.testing.assert_array_equal(y, np.tile(np.arange(345), per_class))


def test_pixels_are_the_pictures_at_unit_norm(pixels):
    X, images = pixels.X_test, pixels.images("test")
    assert X.dtype == np.float32
    flat = images.reshape(len(images), -1).astype(np.float64)
    expected = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    np.testing.assert_allclose(X, expected, atol=1e-6)


def test_all_rows_in_one(pixels):
    X, y = load_quickdraw(return_X_y=True)
    np.testing.assert_array_equal(X, np.concatenate([pixels.split(s)[0] for s in pixels.splits]))
    np.testing.assert_array_equal(y, np.arange(34500) % 345)


def test_unknown_features():
    with pytest.raises(ValueError, match=r"features='sift' is not known.*pixels, hog"):
        load_quickdraw(features="sift")


@pytest.mark.parametrize("n", [1, 3])
def test_packing_there_and_back(n):
    levels = np.random.default_rng(n).integers(0, LEVELS, (n, 6, 6)).astype(np.uint8)
    packed = pack_images(levels)
    assert packed == pack_images(levels.copy())
    np.testing.assert_array_equal(unpack_images(packed, 6), levels)


def test_quantising_takes_the_nearest_level():
    gray = np.arange(1001, dtype=np.uint16)
    nearest = np.abs(gray[:, None] / 1000 - np.arange(4) / 3).argmin(axis=1)
    np.testing.assert_array_equal(quantise(gray, 1000), nearest)


def _hog_by_hand(image):
    """The descriptor of one picture, pixel by pixel."""
    side = len(image)
    cells = np.zeros((side // 4, side // 4, 8))
    for i in range(side):
        for j in range(side):
            down = image[min(i + 1, side - 1), j] - image[max(i - 1, 0), j]
            right = image[i, min(j + 1, side - 1)] - image[i, max(j - 1, 0)]
            angle = np.degrees(np.arctan2(down, right)) % 180
            for orientation in range(8):
                away = abs(angle - 22.5 * orientation)
                away = min(away, 180 - away)
                share = max(0.0, 1 - away / 22.5)
                cells[i // 4, j // 4, orientation] += share * np.hypot(down, right)
    blocks = []
    for i in range(side // 4 - 1):
        for j in range(side // 4 - 1):
            block = cells[i : i + 2, j : j + 2].ravel()
            blocks.append(block / (np.linalg.norm(block) or 1.0))
    return np.concatenate(blocks) / (np.linalg.norm(blocks) or 1.0)


def test_hog_against_a_loop_over_pixels(pixels):
    images = pixels.images("test")[[0, 17, 400]] // 85
    found = describe_gradients(images, LEVELS)
    assert found.shape == (3, 1152)
    expected = [_hog_by_hand(image.astype(float)) for image in images]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_hog_of_an_empty_picture_is_zero():
    assert not describe_gradients(np.zeros((1, 28, 28), np.uint8), LEVELS).any()


def test_hog_is_what_is_loaded(pixels):
    data = load_quickdraw(features="hog")
    assert data.name == "quickdraw-hog"
    assert data.X_val.shape == (3450, 1152)
    np.testing.assert_allclose(
        data.X_val[-3:], describe_gradients(pixels.images("val")[-3:] // 85, LEVELS), atol=1e-6
    )
    np.testing.assert_allclose(np.linalg.norm(data.X_test, axis=1), 1, atol=1e-5)


def test_importing_reads_no_data_and_opens_no_network_library():
    code = (
        "import sys, topksvm; before = set(sys.modules); import topksvm.datasets\n"
        "heavy = {'pooch', 'requests', 'http.client', 'ssl', 'scipy.io', 'pyarrow'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
