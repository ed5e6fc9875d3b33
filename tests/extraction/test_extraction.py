"""Features of pictures: those of the network, and a run that was killed goes on."""

from __future__ import annotations

import json

import numpy as np
import pytest

from topksvm.cli import main
from topksvm.datasets import load_features

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
Image = pytest.importorskip("PIL.Image")

MEAN, STD = np.array([0.5, 0.4, 0.3]), np.array([0.2, 0.25, 0.5])
OPTIONS = ["--size", "8", "--mean", *map(str, MEAN), "--std", *map(str, STD), "--shard", "4"]


def _make_network(path, batch="n", size="side", outputs=1):
    """Write a network whose features are the means of the colours, then of their squares."""
    make, float32 = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [make.make_node("GlobalAveragePool", ["x"], ["mean"])]
    results = [make.make_tensor_value_info("mean", float32, [batch, 3, 1, 1])]
    if outputs == 2:
        nodes += [
            make.make_node("Mul", ["x", "x"], ["squared"]),
            make.make_node("GlobalAveragePool", ["squared"], ["square"]),
        ]
        results.append(make.make_tensor_value_info("square", float32, [batch, 3, 1, 1]))
    images = make.make_tensor_value_info("x", float32, [batch, 3, size, size])
    graph = make.make_graph(nodes, "tiny", [images], results)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.fixture
def network(tmp_path):
    return _make_network(tmp_path / "tiny.onnx")


@pytest.fixture
def images(tmp_path):
    """Ten pictures of 8 x 8 random pixels in two classes, and a file that is none."""
    rng = np.random.default_rng(0)
    for i in range(10):
        folder = tmp_path / "images" / ("cat" if i < 3 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (8, 8, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.png")
    (tmp_path / "images" / "dog" / "notes.txt").write_text("no picture")
    return tmp_path / "images"


def _expected(images, power=1):
    """The features by NumPy."""
    files = sorted(images.rglob("*.png"))
    pixels = np.stack([np.asarray(Image.open(file)) for file in files]) / 255.0
    return (((pixels - MEAN) / STD) ** power).mean(axis=(1, 2))


def _extract(images, network, out, *more):
    return main(
        ["extract", str(images), "--model", str(network), "--out", str(out), *OPTIONS, *more]
    )


def test_features_and_labels_as_load_features_reads_them(images, network, tmp_path, capsys):
    for split in ("train", "test"):
        assert _extract(images, network, tmp_path / "out", "--split", split, "--json") == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (answer["rows"], answer["features"]) == (10, 3)
    data = load_features(tmp_path / "out")
    assert isinstance(data.X_train, np.memmap)
    np.testing.assert_allclose(data.X_train, _expected(images), atol=1e-5)
    np.testing.assert_array_equal(data.y_test, [0] * 3 + [1] * 7)
    assert data.class_names == ("cat", "dog")
    assert (tmp_path / "out" / "test_files.txt").read_text().splitlines()[3] == "dog/3.png"
    assert not list((tmp_path / "out").glob("*.shards"))


def test_hidden_files_and_folders_are_passed_over(images, network, tmp_path):
    (images / "cat" / "._0.png").write_bytes(b"what a system leaves behind")
    (images / ".thumbnails").mkdir()
    (images / ".thumbnails" / "0.png").write_bytes((images / "cat" / "0.png").read_bytes())
    assert _extract(images, network, tmp_path / "out") == 0
    assert len(np.load(tmp_path / "out" / "train.npy")) == 10


def test_a_place_that_cannot_be_written_is_found_first(images, network, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert _extract(images, network, tmp_path / "file" / "out") == 2
    assert "cannot write to the folder" in capsys.readouterr().err


def test_one_file_for_all_splits(images, network, tmp_path):
    assert _extract(images, network, tmp_path / "out", "--split", "features") == 0
    (tmp_path / "out" / "splits").mkdir()
    (tmp_path / "out" / "splits" / "01_train.txt").write_text("0\n9\n")
    (tmp_path / "out" / "splits" / "01_test.txt").write_text("8\n")
    data = load_features(tmp_path / "out")
    np.testing.assert_allclose(data.X_test, _expected(images)[[8]], atol=1e-5)


def test_a_fixed_batch_and_an_output_by_name(images, tmp_path):
    network = _make_network(tmp_path / "fixed.onnx", batch=3, size=8, outputs=2)
    assert _extract(images, network, tmp_path / "out", "--output-name", "square") == 0
    np.testing.assert_allclose(
        np.load(tmp_path / "out" / "train.npy"), _expected(images, power=2), rtol=1e-4
    )


def test_a_stopped_run_goes_on(images, network, tmp_path, capsys):
    bad = images / "dog" / "8.png"
    good = bad.read_bytes()
    bad.write_bytes(good[:40])
    assert _extract(images, network, tmp_path / "out") == 2
    assert "cannot read the picture" in capsys.readouterr().err
    shards = tmp_path / "out" / "train.shards"
    assert sorted(shard.name for shard in shards.glob("*.npy")) == ["000000.npy", "000001.npy"]
    assert not (tmp_path / "out" / "train.npy").exists()

    bad.write_bytes(good)
    marked = np.load(shards / "000000.npy") + 100  # To see that it is not computed again.
    np.save(shards / "000000.npy", marked)
    assert _extract(images, network, tmp_path / "out", "--mean", "0", "0", "0") == 2
    assert "shards of another run: mean differ" in capsys.readouterr().err
    assert _extract(images, network, tmp_path / "out") == 0
    found = np.load(tmp_path / "out" / "train.npy")
    np.testing.assert_allclose(found[:4], _expected(images)[:4] + 100, atol=1e-4)
    np.testing.assert_allclose(found[4:], _expected(images)[4:], atol=1e-5)


def test_the_largest_square_is_taken(images, network, tmp_path):
    """A wide picture, black but for a red square in its middle, is all red."""
    for file in images.rglob("*.png"):
        file.unlink()
    wide = np.zeros((16, 48, 3), np.uint8)
    wide[:, 14:34, 0] = 255  # A little more: resizing blends neighbours.
    Image.fromarray(wide).save(images / "cat" / "wide.png")
    assert _extract(images, network, tmp_path / "out") == 0
    red = (np.array([1, 0, 0]) - MEAN) / STD
    np.testing.assert_allclose(np.load(tmp_path / "out" / "train.npy"), [red], rtol=1e-4)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--output-name", "fc7"], "has no output fc7. Choose one by its name: mean"),
        (["--batch", "0"], "--batch: '0' is not a whole number of at least 1"),
        (["--std", "1", "0", "1"], "--std: '0' is not a number above 0"),
        (["--model", "none.onnx"], "none.onnx is not a file"),
    ],
)
def test_bad_options(images, network, tmp_path, capsys, more, words):
    assert _extract(images, network, tmp_path / "out", *more) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_bad_networks(images, tmp_path, capsys):
    (tmp_path / "bad.onnx").write_bytes(b"not a network")
    assert _extract(images, tmp_path / "bad.onnx", tmp_path / "out") == 2
    assert "cannot open" in capsys.readouterr().err
    assert _extract(images, _make_network(tmp_path / "a.onnx", size=9), tmp_path / "out") == 2
    assert "made for a size of 9, not 8" in capsys.readouterr().err
    assert _extract(images, _make_network(tmp_path / "b.onnx", outputs=2), tmp_path / "out") == 2
    assert "has several outputs. Choose one by its name: mean, square" in capsys.readouterr().err


def test_bad_folders(images, network, tmp_path, capsys):
    assert _extract(images / "dog", network, tmp_path / "out") == 2
    assert "no pictures in sub-folders" in capsys.readouterr().err
    assert _extract(tmp_path / "none", network, tmp_path / "out") == 2
    assert "is not a folder" in capsys.readouterr().err
    assert _extract(images, network, tmp_path / "out") == 0
    assert _extract(images, network, tmp_path / "out") == 2
    assert "train.npy is there already" in capsys.readouterr().err
