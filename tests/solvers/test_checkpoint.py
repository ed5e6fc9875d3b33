"""Checkpoints that are damaged, that cannot be written, and that two processes want."""

from __future__ import annotations

import builtins
import errno
import gc
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from topksvm.solvers import _checkpoint
from topksvm.solvers._checkpoint import (
    CURRENT,
    MAGIC,
    PREVIOUS,
    CheckpointError,
    CheckpointFolder,
    Snapshot,
    checked_arrays,
    checked_numbers,
)
from topksvm.solvers._lock import LOCK

IDENTITY = {"data": 1}


def state(n):
    return Snapshot({"n": n}, {"a": np.arange(5.0), "b": np.full((3, 2), n, np.int32)})


@pytest.fixture
def place(tmp_path):
    """A folder with two checkpoints."""
    with CheckpointFolder(tmp_path, IDENTITY) as place:
        place.save(state(1))
        place.save(state(2))
        yield place


def signed(body):
    return MAGIC + hashlib.sha256(body).digest() + body


def with_header(header, arrays=b"", size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return signed((len(text) if size is None else size).to_bytes(8, "little") + text + arrays)


def npy(text, data=b""):
    """An array in NumPy's format whose header is `text`."""
    text = text.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


HEADER = {"identity": IDENTITY, "facts": {"n": 3}, "arrays": ["a"]}
ABSURD = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"

DAMAGED = {
    "empty": b"",
    "five bytes": b"topks",
    "foreign": b"something else that is longer than the first line of ours",
    "no hash": MAGIC,
    "half a hash": MAGIC + bytes(7),
    "no body": signed(b""),
    "half a length": signed(bytes(3)),
    "not JSON": with_header(b"{'n': "),
    "not text": with_header(b"\xff\xfe\x00"),
    "deep JSON": with_header(b"[" * 200_000),
    "header a list": with_header([1, 2]),
    "header a number": with_header(7),
    "header null": with_header(None),
    "no identity": with_header({"facts": {}, "arrays": []}),
    "no facts": with_header({"identity": IDENTITY, "arrays": []}),
    "no arrays": with_header({"identity": IDENTITY, "facts": {}}),
    "identity a list": with_header(HEADER | {"identity": [1]}),
    "facts a text": with_header(HEADER | {"facts": "n"}),
    "arrays a number": with_header(HEADER | {"arrays": 3}),
    "arrays of lists": with_header(HEADER | {"arrays": [["a"]]}),
    "header longer than the file": with_header(HEADER, size=10_000),
    "header of exabytes": with_header(HEADER, size=2**62),
    "header beyond integers": with_header(HEADER, size=2**64 - 1),
    "array missing": with_header(HEADER),
    "array not NumPy's": with_header(HEADER, b"12345678" * 20),
    "array cut off": with_header(HEADER, npy(ABSURD % 5, bytes(17))),
    "array of exabytes": with_header(HEADER, npy(ABSURD % 2**57)),
    "array beyond integers": with_header(HEADER, npy(ABSURD % 2**80)),
    "array of objects": with_header(
        HEADER, npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", b"cos\nsystem\n.")
    ),
    "array with code": with_header(HEADER, npy("__import__('os').abort()")),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_checkpoint_does_not_hide_the_one_before(place, content):
    (place.folder / CURRENT).write_bytes(content)
    with pytest.warns(RuntimeWarning, match=rf"{CURRENT} is .*{PREVIOUS} is used instead") as seen:
        assert place.load().facts == {"n": 1}
    assert len(seen) == 1
    # A further save must not put the damaged one in the place of the only good one.
    place.save(state(3))
    assert _checkpoint.read_state(place.folder / PREVIOUS)[1].facts == {"n": 1}
    assert place.load().facts == {"n": 3}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_if_none_can_be_read_that_is_an_error(place, content):
    (place.folder / CURRENT).write_bytes(content)
    (place.folder / PREVIOUS).write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{CURRENT}.*{PREVIOUS}.*Delete .* to start anew"):
        place.load()
    (place.folder / CURRENT).unlink()
    with pytest.raises(CheckpointError, match=PREVIOUS):
        place.load()
    (place.folder / PREVIOUS).unlink()
    assert place.load() is None


def test_no_flip_of_a_byte_and_no_cut_is_taken_for_a_checkpoint(place):
    path = place.folder / CURRENT
    content = path.read_bytes()
    damages = [content[:size] for size in range(len(content))]
    damages += [
        content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(len(content))
    ]
    for damaged in damages:
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            _checkpoint.read_state(path)
    path.write_bytes(content)
    assert place.load().facts == {"n": 2}


def test_a_current_one_that_is_no_file(place):
    (place.folder / CURRENT).unlink()
    (place.folder / CURRENT).mkdir()
    with pytest.warns(RuntimeWarning, match="cannot read"):
        assert place.load().facts == {"n": 1}


def test_without_a_current_one_the_previous_is_used_silently(place):
    (place.folder / CURRENT).unlink()  # As if killed between two renames.
    assert place.load().facts == {"n": 1}
    place.save(state(3))
    assert [read_n(place, name) for name in (CURRENT, PREVIOUS)] == [3, 1]


def test_another_run_stays_an_error(place, tmp_path):
    place.close()
    with (
        CheckpointFolder(tmp_path, {"data": 2}) as other,
        pytest.raises(CheckpointError, match="belongs to another run: its data is 1, here it is 2"),
    ):
        other.load()


def read_n(place, name):
    path = place.folder / name
    return _checkpoint.read_state(path)[1].facts["n"] if path.exists() else None


class FullDisk:
    """Calls of functions of the system, of which the one with number `fails` says: disk full."""

    def __init__(self, monkeypatch, fails, for_ever):
        self.fails, self.for_ever, self.calls = fails, for_ever, 0
        for module, name in ((os, "open"), (os, "fsync"), (os, "replace"), (os, "chmod")):
            monkeypatch.setattr(module, name, self.counted(getattr(module, name)))
        opened = builtins.open

        def open_limited(file, mode="r", *args, **options):
            self.count()
            stream = opened(file, mode, *args, **options)
            return Limited(stream, self) if mode == "wb" else stream

        monkeypatch.setattr(io, "open", open_limited)

    def counted(self, function):
        def call(*args, **options):
            self.count()
            return function(*args, **options)

        return call

    def count(self):
        self.calls += 1
        if self.calls == self.fails or (self.for_ever and self.calls > self.fails):
            raise OSError(errno.ENOSPC, "No space left on device")


class Limited:
    """A file that is written to a disk which may be full."""

    def __init__(self, stream, disk):
        self.stream, self.disk = stream, disk

    def write(self, data):
        self.disk.count()
        return self.stream.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.disk.count()  # What was buffered is written now.

    def __getattr__(self, name):
        return getattr(self.stream, name)


def calls_of_a_save(folder):
    with CheckpointFolder(folder, IDENTITY) as place, pytest.MonkeyPatch.context() as patch:
        for n in (1, 2):
            place.save(state(n))
        disk = FullDisk(patch, 0, for_ever=False)
        disk.fails = -1
        place.save(state(3))
        return disk.calls


@pytest.mark.parametrize("for_ever", [False, True])
def test_a_disk_that_is_full_at_any_call_leaves_a_good_checkpoint(tmp_path, for_ever):
    n_calls = calls_of_a_save(tmp_path / "count")
    assert n_calls >= 10
    survived = 0
    for fails in range(1, n_calls + 1):
        folder = tmp_path / f"{fails}"
        with CheckpointFolder(folder, IDENTITY) as place:
            place.save(state(1))
            place.save(state(2))
            with pytest.MonkeyPatch.context() as patch:
                FullDisk(patch, fails, for_ever)
                what = re.escape(f"{folder}: No space left")
                with pytest.warns(RuntimeWarning, match=what) as seen:
                    place.save(state(3))
                if for_ever:
                    place.save(state(3))  # No second warning, which would be an error here.
            assert len(seen) == 1
            message = str(seen[0].message)
            assert "the fit goes on" in message
            # The checkpoint that the message names is there, and good.
            name = CURRENT if CURRENT in message else PREVIOUS
            assert read_n(place, name) == 2
            assert place.load().facts == {"n": 2}
            assert {path.name for path in folder.iterdir()} <= {CURRENT, PREVIOUS, LOCK}
            place.save(state(4))
            assert place.load().facts == {"n": 4}
            assert read_n(place, PREVIOUS) in (1, 2)
            survived += 1
    assert survived == n_calls


def test_a_full_disk_at_the_first_checkpoint(tmp_path):
    with CheckpointFolder(tmp_path, IDENTITY) as place:
        with pytest.MonkeyPatch.context() as patch:
            FullDisk(patch, 1, for_ever=False)
            with pytest.warns(RuntimeWarning, match="None has been written yet; the fit goes on"):
                place.save(state(1))
        assert place.load() is None


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except OSError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip("may not mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk):
    """And that there is room again on, later."""
    large = Snapshot({"n": 3}, {"a": np.zeros(1 << 14)})
    with CheckpointFolder(small_disk, IDENTITY) as place:
        place.save(state(1))
        place.save(state(2))
        with pytest.warns(RuntimeWarning, match=r"No space left on device.*is kept; the fit goes"):
            place.save(large)
        place.save(large)  # No second warning, which would be an error here.
        assert place.load().facts == {"n": 2}
        place.save(state(4))
        assert [read_n(place, name) for name in (CURRENT, PREVIOUS)] == [4, 2]


def test_remains_of_a_killed_process_are_removed(tmp_path):
    remains = tmp_path / f".{CURRENT}.0123abcd.topksvm"
    remains.write_bytes(bytes(1000))
    mine = tmp_path / "notes.txt"
    mine.write_text("mine")
    with CheckpointFolder(tmp_path, IDENTITY):
        assert not remains.exists()
        assert mine.exists()


def test_two_fits_of_one_process_conflict(tmp_path):
    with CheckpointFolder(tmp_path, IDENTITY) as place:
        with pytest.raises(CheckpointError, match="in use by another fit of this process") as found:
            CheckpointFolder(tmp_path, IDENTITY)
        assert str(tmp_path) in str(found.value)
        place.save(state(1))
    place.close()
    with CheckpointFolder(tmp_path, IDENTITY) as other:
        assert other.load().facts == {"n": 1}
    forgotten = CheckpointFolder(tmp_path, IDENTITY)
    del forgotten
    gc.collect()
    CheckpointFolder(tmp_path, IDENTITY).close()


HOLD = """
import os, sys, time
from topksvm.solvers._checkpoint import CheckpointFolder
place = CheckpointFolder(sys.argv[1], {"data": 1})
if sys.argv[2] == "fork" and os.fork() == 0:
    print("child", os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
if sys.argv[2] != "fork":
    print("held", flush=True)
time.sleep(60)
"""


def hold(folder, how):
    """Return a process that has the lock, and what it says."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), how], stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().split()


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


posix = pytest.mark.skipif(os.name != "posix", reason="SIGKILL and fork")


@posix
def test_the_second_process_is_refused_until_the_first_is_killed(tmp_path):
    process, said = hold(tmp_path, "alone")
    try:
        assert said == ["held"]
        with pytest.raises(CheckpointError, match=rf"in use by process {process.pid}\. Wait") as e:
            CheckpointFolder(tmp_path, IDENTITY)
        assert str(tmp_path) in str(e.value)
    finally:
        kill(process)
    with CheckpointFolder(tmp_path, IDENTITY) as place:
        assert place.load() is None


@posix
def test_a_child_process_does_not_outlive_the_lock(tmp_path):
    process, (_, child) = hold(tmp_path, "fork")
    try:
        with pytest.raises(CheckpointError, match="in use"):
            CheckpointFolder(tmp_path, IDENTITY)
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.kill(int(child), 0)  # It lives.
        CheckpointFolder(tmp_path, IDENTITY).close()
    finally:
        os.kill(int(child), signal.SIGKILL)
        process.stdout.close()


@posix
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_does_not_give_back_the_lock_of_its_parent(tmp_path):
    with CheckpointFolder(tmp_path, IDENTITY) as place:
        if (child := os.fork()) == 0:
            place.close()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(CheckpointError, match="in use"):
            CheckpointFolder(tmp_path, IDENTITY)


RACE = """
import sys
from topksvm.solvers._checkpoint import CheckpointError, CheckpointFolder
print("ready", flush=True)
sys.stdin.readline()
try:
    place = CheckpointFolder(sys.argv[1], {"data": 1})
    print("held", flush=True)
except CheckpointError:
    print("refused", flush=True)
sys.stdin.readline()
"""


def test_of_processes_at_the_same_time_one_wins(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    code = [sys.executable, "-c", RACE, str(tmp_path)]
    processes = [subprocess.Popen(code, **pipes) for _ in range(3)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = sorted(process.stdout.readline() for process in processes)
    for process in processes:
        process.communicate()
    assert said == ["held\n"] + 2 * ["refused\n"]


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    from topksvm.solvers import _lock

    def no_locks(_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_lock, "_lock", no_locks)
    with pytest.warns(RuntimeWarning, match="without locks: No locks available"):
        CheckpointFolder(tmp_path, IDENTITY).close()


def test_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"cannot use .*file"):
        CheckpointFolder(tmp_path / "file", IDENTITY)


SPEC = {"a": (np.float64, (5,)), "b": ("int32", (None, 2))}


def test_arrays_that_are_as_they_should_be():
    found = checked_arrays(state(1), SPEC)
    assert set(found) == {"a", "b"}
    assert found["b"].shape == (3, 2)
    assert checked_arrays(state(1), {}) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": (np.float32, (5,))}, "'a' is float64, not float32"),
        ({"a": (np.float64, (6,))}, r"'a' has the shape \(5,\), not \(6\)"),
        ({"b": (np.int32, (None, 3))}, r"'b' has the shape \(3, 2\), not \(any, 3\)"),
        ({"b": (np.int32, (None,))}, r"'b' has the shape \(3, 2\), not \(any\)"),
        ({"c": (np.int32, (None,))}, "has no array 'c'"),
    ],
)
def test_arrays_that_are_not(change, message):
    with pytest.raises(CheckpointError, match=message):
        checked_arrays(state(1), SPEC | change)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("count", [0, 7], [-1, 1.0, True, None, "1", np.nan]),
        ("finite", [0, -1.5, 7], [np.inf, np.nan, None, "1", False, [1.0]]),
        ("number", [0, -1.5, np.inf], [np.nan, None, "1", True, {}]),
    ],
)
def test_numbers(kind, good, bad):
    for value in good:
        assert checked_numbers(Snapshot({"x": value, "y": 1}, {}), {"x": kind}) == {"x": value}
    for value in bad:
        with pytest.raises(CheckpointError, match=r"its x is .*, not a .*start anew"):
            checked_numbers(Snapshot({"x": value}, {}), {"x": kind})
    with pytest.raises(CheckpointError, match="it has no x"):
        checked_numbers(Snapshot({}, {}), {"x": kind})
