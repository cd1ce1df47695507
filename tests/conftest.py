"""What all tests share."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Started in the background, or under nohup, a shell makes its children deaf to Ctrl-C or to a
# closed terminal, and theirs; the tests of interrupts need both heard.
for _number, _heard in (
    (signal.SIGINT, signal.default_int_handler),
    (getattr(signal, "SIGHUP", signal.SIGINT), signal.SIG_DFL),
):
    if signal.getsignal(_number) == signal.SIG_IGN:
        with contextlib.suppress(ValueError):
            signal.signal(_number, _heard)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A headless Chromium that records its console and its requests."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver on the path")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--hide-scrollbars",
        "--window-size=1280,800",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver, env={**os.environ, "HOME": str(profile)})
    found = webdriver.Chrome(options=options, service=service)
    yield found
    found.quit()


# --------------------------------------------------------------------------- the campaign


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("campaign", "the long form of the trials (make campaign)")
    group.addoption("--campaign", action="store_true", help="as many trials as the campaign has")
    group.addoption("--campaign-seed", type=int, default=0, help="seed of every random trial")
    group.addoption("--campaign-json", metavar="FILE", help="write what was counted to FILE")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "campaign: too long for `make test`; runs in the campaign")
    if config.getoption("--campaign-json") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Count(Path(config.getoption("--campaign-json"))))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--campaign"):
        for item in items:
            if item.get_closest_marker("campaign"):
                item.add_marker(pytest.mark.skip(reason="runs in `make campaign`"))


@dataclass(frozen=True)
class Campaign:
    """How much a trial shall try, and where it says what it tried."""

    long: bool
    seed: int
    _say: Callable[[str, object], None]

    def count(self, short: int, long: int) -> int:
        """Return how many trials to make: few in `make test`, many in `make campaign`."""
        return long if self.long else short

    def record(self, what: str, number: int = 1) -> None:
        """Count something for the report, such as ("kills survived", 20)."""
        self._say(what, number)


@pytest.fixture
def campaign(request: pytest.FixtureRequest, record_property: Any) -> Campaign:
    """The size and the seed of the trials, and the report's counters."""
    config = request.config
    return Campaign(
        config.getoption("--campaign"), config.getoption("--campaign-seed"), record_property
    )


class _Count:
    """Adds up what the tests recorded, and writes it when they are over."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbers: Counter[str] = Counter()
        self.findings: list[str] = []
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.findings.append(f"{report.nodeid} ({report.when})")
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped.append(report.nodeid)
        if report.when == "call":
            self.numbers["tests passed"] += report.passed
            for what, number in report.user_properties:
                self.numbers[what] += number  # type: ignore[assignment]

    def pytest_sessionfinish(self) -> None:
        found = {"numbers": self.numbers, "findings": self.findings, "skipped": self.skipped}
        self.path.write_text(json.dumps(found, indent=1) + "\n")
