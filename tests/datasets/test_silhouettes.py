"""Caltech 101 Silhouettes: found, downloaded, checked, upright."""

from __future__ import annotations

import hashlib
import http.server
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from topksvm.datasets import _silhouettes, load_silhouettes

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TOPKSVM_DATA", ROOT.parent / "shared" / "data"))
FILE = "caltech101_silhouettes_28_split1.mat"


def _make_file(path, **changes):
    """Write a file of the right shapes with random content; a change of None leaves it out."""
    rng = np.random.default_rng(0)
    names = np.empty((1, 101), dtype=object)
    names[0] = [f"class {i}" for i in range(101)]
    content = {"classnames": names}
    for split, n in (("train", 4100), ("val", 2264), ("test", 2307)):
        content[f"{split}_data"] = np.tile(rng.integers(0, 2, (1, 784)).astype(np.uint8), (n, 1))
        content[f"{split}_labels"] = rng.integers(1, 102, (n, 1)).astype(np.uint8)
    content |= changes
    savemat(path, {k: v for k, v in content.items() if v is not None}, do_compression=True)
    return content


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """A download fails; the cache is an empty folder."""
    pytest.importorskip("pooch", reason="needs topksvm[datasets]")
    monkeypatch.delenv("TOPKSVM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_silhouettes, "URL", "http://127.0.0.1:9/" + FILE)


@pytest.fixture
def server(monkeypatch, no_network):  # noqa: ARG001 (pytest knows no other way)
    """Serve `server.content` under the address, announcing `server.length` bytes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.requests += 1
            self.send_response(200)
            self.send_header("Content-Length", str(self.server.length))
            self.end_headers()
            self.wfile.write(self.server.content)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as running:
        running.requests = 0
        monkeypatch.setattr(_silhouettes, "URL", f"http://127.0.0.1:{running.server_port}/{FILE}")
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def _serve_made_up(server, monkeypatch, tmp_path):
    made = _make_file(tmp_path / "made.mat")
    server.content = (tmp_path / "made.mat").read_bytes()
    server.length = len(server.content)
    monkeypatch.setattr(_silhouettes, "SHA256", hashlib.sha256(server.content).hexdigest())
    return made


def test_the_real_file():
    if not (DATA / FILE).exists():
        pytest.skip(f"{DATA / FILE} is absent; set TOPKSVM_DATA to the folder that holds it")
    data = load_silhouettes(DATA / FILE)
    content = loadmat(DATA / FILE)
    assert repr(data).endswith("101 classes, 784 features, 4100 train, 2264 val, 2307 test)")
    for split in data.splits:
        X, y = data.split(split)
        assert X.dtype == np.float32
        np.testing.assert_array_equal(X, content[f"{split}_data"])
        np.testing.assert_array_equal(y + 1, content[f"{split}_labels"][:, 0])
    assert data.class_names[0] == "Airplanes Side 2"
    # A pyramid stands on its base: the object's lower half is the larger one.
    pyramids = data.images("train")[data.y_train == data.class_names.index("pyramid")]
    assert pyramids[:, 14:].sum() > 1.3 * pyramids[:, :14].sum()
    assert 0.8 < pyramids[:, :, 14:].sum() / pyramids[:, :, :14].sum() < 1.25


def test_pictures_are_the_pixels_turned_and_inverted(tmp_path):
    content = _make_file(tmp_path / "other.mat")
    data = load_silhouettes(tmp_path / "other.mat", check=False)
    i, row, column = 7, 3, 20
    pixel = content["test_data"][i, column * 28 + row]
    assert data.images("test")[i, row, column] == 255 * (1 - pixel)
    assert data.class_names[5] == "class 5"


def test_the_download_is_kept(server, monkeypatch, tmp_path, capsys):
    made = _serve_made_up(server, monkeypatch, tmp_path)
    for _ in range(2):
        data = load_silhouettes()
        np.testing.assert_array_equal(data.X_val, made["val_data"])
    assert server.requests == 1
    assert [p.name for p in (tmp_path / "cache" / "topksvm").iterdir()] == [FILE]
    assert capsys.readouterr().err == ""  # Not a terminal: no progress.
    (tmp_path / "new").write_text("")
    mode = (tmp_path / "new").stat().st_mode
    assert (tmp_path / "cache" / "topksvm" / FILE).stat().st_mode == mode


def test_progress_on_a_terminal(server, monkeypatch, tmp_path, capsys):
    _serve_made_up(server, monkeypatch, tmp_path)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    load_silhouettes()
    assert "100%" in capsys.readouterr().err


def test_a_folder_in_the_environment_is_the_cache(server, monkeypatch, tmp_path):
    _serve_made_up(server, monkeypatch, tmp_path)
    monkeypatch.setenv("TOPKSVM_DATA", str(tmp_path / "mine"))
    load_silhouettes()
    assert (tmp_path / "mine" / FILE).exists()
    monkeypatch.setenv("TOPKSVM_DATA", str(tmp_path / "mine" / FILE))
    load_silhouettes()
    load_silhouettes(tmp_path / "mine")
    assert server.requests == 1


@pytest.mark.parametrize("fault", ["truncated", "another"])
def test_a_bad_download_leaves_nothing(server, monkeypatch, tmp_path, fault):
    _serve_made_up(server, monkeypatch, tmp_path)
    if fault == "truncated":
        server.content = server.content[:1000]
        error, words = ConnectionError, r"cannot download .*1000 of|IncompleteRead"
    else:
        server.content = b"<html>moved</html>".ljust(server.length)
        error, words = ValueError, r"not the file expected: sha256 .* Nothing was kept"
    with pytest.raises(error, match=words):
        load_silhouettes()
    assert not list((tmp_path / "cache" / "topksvm").iterdir())


@pytest.mark.usefixtures("no_network")
def test_offline_says_what_to_do():
    with pytest.raises(
        ConnectionError, match=r"cannot download http.*people\.cs\.umass.*path=.*TOPKSVM_DATA"
    ):
        load_silhouettes()


def test_without_pooch_a_download_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setenv("TOPKSVM_DATA", str(tmp_path))
    with pytest.raises(ImportError, match=r"pip install 'topksvm\[datasets\]'.*path="):
        load_silhouettes()
    _make_file(tmp_path / FILE)  # A file that is there needs no download.
    assert len(load_silhouettes(check=False).y_train) == 4100
    assert len(load_silhouettes(tmp_path, check=False).y_train) == 4100


def test_a_truncated_file(tmp_path):
    _make_file(tmp_path / FILE)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        ValueError, match=r"is not the .* expected: sha256 .*truncated.*check=False"
    ):
        load_silhouettes(tmp_path / FILE)
    with pytest.raises(ValueError, match=r"cannot read .* as a MATLAB file"):
        load_silhouettes(tmp_path / FILE, check=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"val_data": None}, "no array val_data"),
        ({"test_data": np.zeros((5, 784))}, r"test_data of shape \(5, 784\).*\(2307, 784\)"),
        ({"val_labels": np.zeros((2264, 1))}, "val_labels that are not between 1 and 101"),
        ({"train_data": np.full((4100, 784), 255)}, "train_data that are not between 0 and 1"),
    ],
)
def test_another_matlab_file(tmp_path, changes, words):
    _make_file(tmp_path / "x.mat", **changes)
    with pytest.raises(ValueError, match=words):
        load_silhouettes(tmp_path / "x.mat", check=False)


def test_a_path_that_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"given by path=.* is not a file\. Download it"):
        load_silhouettes(tmp_path)
    monkeypatch.setenv("TOPKSVM_DATA", str(tmp_path / "typo.mat"))
    with pytest.raises(FileNotFoundError, match=r"typo\.mat, given by the environment variable"):
        load_silhouettes()
