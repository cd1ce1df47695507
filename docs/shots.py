"""Take the pictures of page and app: ``make shots``.

The data are those of the docs and of scikit-learn; chromium and chromedriver must be on the path.
"""

from __future__ import annotations

import base64
import csv
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait
from sklearn.datasets import load_digits

DOCS = Path(__file__).parent
SHOTS = DOCS / "shots"
PROGRAM = [sys.executable, "-m", "sparsegsvp.cli"]
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def open_browser(profile: Path) -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--no-first-run", f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(flag)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


class Camera:
    """A browser that is asked for pictures."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def look(self, width: int, media: str = "screen", scheme: str = "light") -> None:
        """Set the width of the window, the medium, and light or dark."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        asked = {"media": media, "features": features}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", asked)

    def wait(self, condition: str) -> None:
        """Wait until an expression of the page is true."""
        WebDriverWait(self.browser, 300).until(
            lambda browser: browser.execute_script(f"return Boolean({condition})")
        )

    def click(self, text: str) -> None:
        """Press the button that begins with a text, and wait until the table is read again."""
        self.browser.execute_script(
            "[...document.querySelectorAll('main button')]"
            ".find((made) => made.textContent.startsWith(arguments[0])).click()",
            text,
        )

    def shoot(self, path: Path, height: int, part: str = "body") -> None:
        """Write a picture that begins at a part of the page."""
        top, width, end = self.browser.execute_script(
            "const top = document.querySelector(arguments[0]).getBoundingClientRect().top;"
            "return [top + scrollY, innerWidth, document.documentElement.scrollHeight]",
            part,
        )
        clip = {"x": 0, "y": top, "width": width, "height": min(height, end - top), "scale": 1}
        asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        made = self.browser.execute_cdp_cmd("Page.captureScreenshot", asked)["data"]
        picture = Image.open(io.BytesIO(base64.b64decode(made))).convert("RGB")
        # page and app have few colours, and a palette is a third of the bytes
        picture.quantize(96, kmeans=3, dither=Image.Dither.NONE).save(path, optimize=True)
        print(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size:,} bytes")


def select(folder: Path, table: Path, *words: str) -> str:
    """Run select, and return the address of its page."""
    out = folder / f"{table.stem}-report"
    asked = ["select", str(table), *words, "--out", str(out)]
    subprocess.run([*PROGRAM, *asked], check=True, stdout=subprocess.DEVNULL)
    return (out / "index.html").as_uri()


def write_digits(path: Path) -> Path:
    """Ten classes: the digits, 64 pixels each."""
    digits = load_digits()
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["digit", *digits.feature_names])
        lines.writerows([NUMBERS[k], *row] for k, row in zip(digits.target, digits.data))
    return path


def write_study(path: Path) -> Path:
    """The table of the docs with what needs a decision: patients, sexes and codes."""
    with (DOCS / "data" / "tumors.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow([head[0], "patient", "sex", *head[1:]])
        for i, row in enumerate(rows):
            row[9] = "-9999" if i % 9 == 0 else row[9]
            lines.writerow([row[0], f"P{i // 2 + 1:02}", "FM"[i * i % 3 % 2], *row[1:]])
    return path


@contextmanager
def app(folder: Path) -> Any:
    """The app, by its address."""
    words = [*PROGRAM, "app", "--no-browser", "--folder", str(folder)]
    variables = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=variables)
    try:
        yield re.search(r"http://\S+", process.stdout.readline()).group()  # type: ignore[union-attr]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def shoot_report(camera: Camera, folder: Path) -> None:
    cohort = ("--test", str(DOCS / "data" / "cohort.csv"))
    table = DOCS / "data" / "tumors.csv"
    page = select(folder, table, "--target", "diagnosis", "--batch", "plate", *cohort)
    pictures: list[tuple[str, int, int, str, str, str]] = [
        ("../report", 1280, 1340, "body", "screen", "light"),
        ("report-desktop", 1280, 1500, "#which", "screen", "light"),
        ("report-dark", 1280, 1200, "#good", "screen", "dark"),
        ("report-phone", 390, 1500, "body", "screen", "light"),
        ("report-print", 720, 1300, "body", "print", "light"),
    ]
    for name, width, height, part, media, scheme in pictures:
        camera.look(width, media, scheme)
        camera.browser.get(page)
        if media == "print":
            camera.browser.execute_script("document.body.style.padding = '2rem'")
        camera.shoot((SHOTS / f"{name}.png").resolve(), height, part)
    camera.look(1280)
    camera.browser.get(select(folder, write_digits(folder / "digits.csv"), "-t", "digit", "--fast"))
    camera.shoot(SHOTS / "report-classes.png", 1000, "#good")


def shoot_app(camera: Camera, folder: Path) -> None:
    ready = "document.querySelector('#go') && !document.querySelector('#go').disabled"
    with app(folder / "runs") as address:
        camera.look(1000)
        camera.browser.get(address)
        camera.wait("document.querySelector('#file')")
        dropped = camera.browser.find_element("css selector", "#file")
        dropped.send_keys(str(write_study(folder / "study.csv")))
        camera.wait(ready)
        camera.shoot(SHOTS / "app.png", 1500)
        camera.look(1000, scheme="dark")
        camera.shoot(SHOTS / "app-dark.png", 700)
        camera.look(390)
        camera.shoot(SHOTS / "app-phone.png", 1300)
        camera.look(1000)
        for text in ("Keep the samples", "Treat -9999", "Audit plate"):
            camera.click(text)
            camera.wait(ready)
        camera.click("Run")
        camera.wait("document.querySelector('#report')")
        frame = camera.browser.find_element("css selector", "#report")
        camera.browser.switch_to.frame(frame)
        camera.wait("document.querySelector('h1')")
        camera.browser.switch_to.default_content()
        camera.shoot(SHOTS / "app-ladder.png", 1000)


def main() -> None:
    shots: list[Callable[[Camera, Path], None]] = [shoot_report, shoot_app]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = open_browser(folder / "profile")
        try:
            for shoot in shots:
                shoot(Camera(browser), folder)
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
