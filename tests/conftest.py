"""What all tests share."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
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
    driven = webdriver.Chrome(options=options, service=service)
    yield driven
    driven.quit()
