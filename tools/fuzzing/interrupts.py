"""Ctrl-C at random moments: a model with a right certificate, or KeyboardInterrupt."""

from __future__ import annotations

import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

CHILD = Path(__file__).with_name("interrupted_fits.py")
KINDS = ("hinge", "softmax", "streamed", "kernel", "path", "search")
PATIENCE = 120.0
"""Seconds for a fit that takes five at most; more is a hang."""


class Child:
    """A process that fits again and again, of which each fit is interrupted."""

    def __init__(self, kind: str):
        self.kind = kind
        self.process = subprocess.Popen(
            [sys.executable, str(CHILD), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def read(self, seconds: float) -> str:
        """Return the next line, empty at the end; TimeoutError if there is none in time."""
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise TimeoutError
        return self.process.stdout.readline().decode().strip()

    def attempt(self, moments: list[float]) -> str:
        """Send interrupts at the moments, return what became of the fit."""
        self.process.stdin.write(b"fit\n")
        self.process.stdin.flush()
        if self.read(600) != "ready":
            return self.last_words()
        begin = time.monotonic()
        for moment in moments:
            wait = max(0.0, begin + moment - time.monotonic())
            if select.select([self.process.stdout], [], [], wait)[0]:
                break
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
        return self.read(PATIENCE) or self.last_words()

    def last_words(self) -> str:
        """Return how the process ended; an interrupt between fits is an interrupt."""
        text = self.process.communicate()[1].decode().strip()
        last = text.splitlines()[-1] if text else f"exit code {self.process.returncode}"
        return "KeyboardInterrupt" if last == "KeyboardInterrupt" else f"failed: {text[-1500:]}"

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def run(seed: int, end: float, jobs: int, tell) -> Counter:
    """Interrupt fits until the time is over."""
    total, lock = Counter(), threading.Lock()

    def work(number):
        rng = random.Random(f"{seed} {number}")
        while time.monotonic() < end:
            count = _several(KINDS[rng.randrange(len(KINDS))], rng, end, tell)
            with lock:
                total.update(count)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return total


def _several(kind, rng, end, tell, most=10):
    """Interrupt some fits of one process."""
    child, count = Child(kind), Counter()
    try:
        while count["tried"] < most and child.process.poll() is None and time.monotonic() < end:
            moments = _moments(rng)
            count["tried"] += 1
            outcome = child.attempt(moments)
            if not outcome.startswith(("right", "KeyboardInterrupt")):
                count["failures"] += 1
                tell(f"{kind}, interrupted after {moments} s: {outcome}")
    except (TimeoutError, BrokenPipeError) as error:
        count["failures"] += 1
        tell(f"{kind}, interrupted after {moments} s: {type(error).__name__}, it hangs or is gone")
    finally:
        child.close()
    return count


def _moments(rng):
    """Return one to ten moments, some of them close together."""
    first = 10 ** rng.uniform(-3, 0.5)
    pause = 10 ** rng.uniform(-4, -0.5)
    many = rng.choice([1, 1, 1, 2, 2, 3, 5, 10])
    return [round(first + i * pause * rng.uniform(0.5, 1.5), 4) for i in range(many)]
