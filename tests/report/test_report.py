"""The page in a real browser: it loads without errors, tables sort, the explorer filters."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess
import zlib

import numpy as np
import pytest

from topksvm.datasets import Dataset
from topksvm.report import write_report
from topksvm.report._explorer import choose_rows, confusable_pairs, explore
from topksvm.report._sprites import COLUMNS, encode_png, sprite_sheet

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# Runs in the page after its own script and leaves what it saw in the document.
PROBE = """
const seen = {};
const rows = () => [...document.querySelectorAll("#table tbody tr")];
const names = () => rows().map((r) => r.cells[0].textContent);
const press = (text) => [...document.querySelectorAll("#table th button")]
  .find((b) => b.textContent.startsWith(text)).click();
const cards = () => [...document.querySelectorAll(".card b")].map((b) => b.textContent);
const choose = (id, value) => {
  document.getElementById(id).value = value;
  document.getElementById(id).dispatchEvent(new Event("input"));
};
seen.start = names();
press("top-1"); seen.falling = names();
press("top-1"); seen.rising = names();
press("method"); seen.byName = names();
seen.all = cards();
choose("search", "b"); seen.found = cards(); choose("search", "");
choose("outcome", "missed"); seen.missed = cards();
choose("outcome", "later"); seen.later = cards();
choose("outcome", "first"); seen.first = cards();
choose("model", "two"); seen.other = cards();
choose("outcome", "all"); choose("model", "one");
document.querySelector("#pairs button").click(); seen.pair = cards();
seen.lines = document.querySelectorAll("#curve-chart path").length;
document.querySelector("#curve-chart .legend button").click();
seen.fewer = document.querySelectorAll("#curve-chart path").length;
const colours = (home) => Object.fromEntries(
  [...document.querySelectorAll(`#${home} .legend button`)]
  .map((b) => [b.textContent, b.querySelector("i").style.background]));
seen.curveColours = colours("curve-chart");
seen.traceColours = colours("convergence-chart");
seen.paper = [...document.querySelectorAll("#table small")].map((cell) => cell.textContent);
seen.spills = [...document.querySelectorAll("#pairs button")].some(
  (b) => b.scrollWidth > b.clientWidth);
seen.scores = [...document.querySelectorAll(".card:first-child .guess :last-child")]
  .map((span) => span.textContent);
seen.title = document.getElementById("title").textContent;
seen.wide = document.documentElement.scrollWidth > innerWidth;
seen.errors = errors;
document.getElementById("about").textContent = JSON.stringify(seen);
"""
WATCH = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)));
const loud = console.error;
console.error = (...words) => { errors.push(words.join(" ")); loud(...words); };
</script>"""


LONG = "d" + 30 * "at" + "e"


def small_data():
    images = np.zeros((8, 4, 4), np.uint8)
    images[np.arange(8), np.arange(8) % 4, 0] = 255
    y = np.array([0, 1, 2, 3, 4, 5, 0, 1])
    names = ("apple", "banana", "cherry </script>", LONG, "elder", "fig")
    X = np.zeros((8, 2))
    return Dataset("tiny", X, y, X, y, names, "", images_train=images, images_test=images)


def small_guesses(ranks):
    y = small_data().y_test
    classes = np.zeros((8, 5), np.int64)
    for i, rank in enumerate(ranks):
        others = [c for c in range(6) if c != y[i]]
        order = [*others[: rank - 1], y[i], *others[rank - 1 :]]
        classes[i] = order[:5]
    scores = np.tile([0.03125, 0.03091, 0.0301, 0.0, -12.3456], (8, 1))  # Small, but different.
    return {"classes": classes, "scores": scores, "ranks": np.array(ranks)}


def method(name, one, ten):
    return {
        "name": name,
        "setting": "0.1",
        "seconds": 1.0,
        "gap": 1e-3,
        "accuracy": {1: one, 10: ten},
        "std": {},
        "paper": {1: one - 0.1},
        "curve": [[1, one], [10, ten]],
        "history": [[0.1, 0.5], [1.0, 1e-3]],
    }


def content():
    models = {
        "one": small_guesses([1, 2, 6, 1, 3, 1, 1, 6]),
        "two": small_guesses([1, 1, 1, 1, 1, 1, 1, 1]),
    }
    return {
        "title": "A <title> & more",
        "lead": "Lead.",
        "note": "Note.",
        "columns": [1, 10],
        "methods": [
            method("b 10", 20.0, 50.0) | {"history": []},  # It has a curve but no trace.
            method("b 9", 30.0, 40.0),
            method("a", 25.0, 45.0) | {"paper": {1: 25.001}},
        ],
        "notes": ["b 9: a note."],
        "shown": ["b 10", "a"],
        "explorer": explore(small_data(), models, "one"),
        "about": "About.",
    }


def browse(page, *flags):
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={page.parent / 'profile'}",
            *flags,
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_page_in_a_browser(tmp_path):
    page = tmp_path / "report.html"
    write_report(page, "A <title> & more", content())
    text = page.read_text()
    assert not re.search(r"(src|href)=\"?https?:", text), "the page must need no network"
    start = text.index("<script type=")
    page.write_text(
        text[:start] + WATCH + text[start:].replace("</body>", f"<script>{PROBE}</script></body>")
    )
    document = browse(page, "--window-size=390,800")
    footer = re.search(r'<footer id="about">(.*?)</footer>', document, re.DOTALL)
    seen = json.loads(html.unescape(footer.group(1)))
    assert seen["errors"] == []
    assert seen["title"] == "A <title> & more"
    assert seen["start"] == ["b 10", "b 9", "a"]
    assert seen["falling"] == ["b 9", "a", "b 10"]
    assert seen["rising"] == ["b 10", "a", "b 9"]
    assert seen["byName"] == ["a", "b 9", "b 10"]
    names = small_data().class_names
    truth = [names[c] for c in small_data().y_test]
    assert seen["all"] == truth
    assert seen["found"] == ["banana", "banana"]
    assert seen["missed"] == [names[2], "banana"]
    assert seen["later"] == ["banana", "elder"]
    assert seen["first"] == [truth[i] for i in (0, 3, 5, 6)]
    assert seen["other"] == truth
    pair = content()["explorer"]["pairs"][0]
    assert seen["pair"] == [name for name in truth if name in (names[pair[0]], names[pair[1]])]
    assert (seen["lines"], seen["fewer"]) == (2, 1)
    assert not seen["wide"], "the page must fit a phone"
    assert not seen["spills"], "long names of classes must stay on their button"
    assert seen["scores"] == ["0.0313", "0.0309", "0.0301", "0.00", "-12.3"]
    assert seen["paper"] == ["25.00 (+0.00)", "29.90 (+0.10)", "19.90 (+0.10)"]
    assert len(set(seen["curveColours"].values())) == 3
    del seen["curveColours"]["b 10"]
    assert seen["traceColours"] == seen["curveColours"], "a method has one colour in all charts"


def test_data_cannot_end_the_script_early(tmp_path):
    write_report(tmp_path / "report.html", "t", content())
    text = (tmp_path / "report.html").read_text()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert "cherry </script>" in json.loads(data.group(1))["explorer"]["classes"]


def test_confusable_pairs_count_what_is_preferred_to_the_truth():
    y = np.array([0, 0, 1, 1, 2, 2])
    found = {
        "classes": np.array([[1, 0, 2], [0, 1, 2], [0, 1, 2], [2, 0, 1], [2, 0, 1], [2, 1, 0]]),
        "ranks": np.array([2, 1, 2, 3, 1, 1]),
    }
    pairs = confusable_pairs(y, found, 3)
    # 0 and 1: rows 0, 2 and 3; 1 and 2: row 3.
    assert pairs == [[0, 1, 0.75], [1, 2, 0.25]]


def test_rows_of_the_explorer_are_balanced():
    y = np.repeat([0, 1, 2], [50, 3, 10])
    rows = choose_rows(y, 3, most=9)
    assert np.bincount(y[rows]).tolist() == [3, 3, 3]
    assert (np.diff(rows) > 0).all()


def test_png_holds_the_pixels():
    picture = np.arange(12, dtype=np.uint8).reshape(3, 4)
    data = encode_png(picture)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    place = data.index(b"IDAT")
    size = int.from_bytes(data[place - 4 : place], "big")
    lines = zlib.decompress(data[place + 4 : place + 4 + size])
    assert lines == b"".join(b"\0" + row.tobytes() for row in picture)
    sheet = base64.b64decode(sprite_sheet(np.ones((COLUMNS + 1, 2, 3), np.uint8)).split(",")[1])
    assert (sheet[16:20], sheet[20:24]) == (
        (COLUMNS * 3).to_bytes(4, "big"),
        (4).to_bytes(4, "big"),
    )
