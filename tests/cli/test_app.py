"""The page that runs the commands: a real server, real processes, a real browser."""

from __future__ import annotations

import asyncio
import csv
import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from sparsegsvp.datasets import make_planted
from sparsegsvp.io.errors import InputError

pytest.importorskip("starlette", reason="needs the extra app")
pytest.importorskip("uvicorn", reason="needs the extra app")

from sparsegsvp.cli.web.forms import command_words, fields
from sparsegsvp.cli.web.runs import Runs, safe_name

LONG = 240.0  # seconds after which a step that takes a few has failed, on a busy machine too


def write_table(path: Path, n_features: int = 60, n_samples: int = 40) -> Path:
    """A wide table with classes, names and an age, which is left out unless asked for."""
    data = make_planted(n_samples, n_features, 2, effect=3.0, random_state=1)
    ages = np.random.default_rng(0).integers(30, 80, n_samples)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["sample", "state", "age", *(f"<b>g{j}" for j in range(n_features))])
        for i, (row, label) in enumerate(zip(data.X, data.y)):
            out.writerow([f"s{i}", ("well", "ill")[label], ages[i], *(f"{v:.4f}" for v in row)])
    return path


class Server:
    """A server process, and a client that has its token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "sparsegsvp.cli",
                "app",
                "--no-browser",
                "--folder",
                str(folder),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.address = re.search(r"http://\S+", line).group()  # type: ignore[union-attr]
        parts = urlsplit(self.address)
        self.host, self.port = parts.netloc, parts.port
        self.token = parts.query.removeprefix("token=")

    def ask(self, path: str, body: object = None, method: str | None = None, **headers: str):
        """The answer to a request as the page sends it, but for the headers given."""
        sent = {
            "Host": self.host,
            "Origin": f"http://{self.host}",
            "Cookie": f"sparsegsvp-{self.port}={self.token}",
            **headers,
        }
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        connection.putrequest(method or ("GET" if data is None else "POST"), path, skip_host=True)
        for name, value in sent.items():
            if value:
                connection.putheader(name, value)
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = answer.headers.get("content-type", "")
        return answer.status, json.loads(text) if "json" in kind else text

    def wait(self, run: str, *states: str) -> dict:
        """The run, once it has come to one of these states."""
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            found = self.ask(f"/api/runs/{run}")[1]
            if found["state"] in states:
                return found
            time.sleep(0.1)
        raise AssertionError(found)

    def begin(self, table: Path, **choices: object) -> str:
        """Drop a table, plan and start; returns the run."""
        run = self.ask(f"/api/runs?name={table.name}", table.read_bytes())[1]["id"]
        asked = {"choices": {"target": "state", **choices}, "fast": False}
        status, found = self.ask(f"/api/runs/{run}/plan", asked)
        assert status == 200, found
        assert self.ask(f"/api/runs/{run}/start", {})[0] == 200
        return run

    def children(self) -> list[int]:
        """Processes of commands that still run."""
        listed = subprocess.run(["ps", "-ewwo", "pid,args"], capture_output=True, text=True).stdout
        return [
            int(line.split()[0])
            for line in listed.splitlines()
            if "sparsegsvp.cli select" in line and "progress.jsonl" in line
        ]

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("app") / "runs")
    yield made
    made.close()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("table") / "genes.csv")


# --- who is answered -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Cookie": ""}, None),
        ({"Cookie": "sparsegsvp-1=x"}, None),
        ({"Host": "example.org"}, None),
        ({"Host": "127.0.0.1"}, None),
        ({"Origin": "http://example.org"}, None),
        ({"Origin": "http://example.org"}, {}),
        ({"Origin": ""}, {}),
    ],
    ids=["no token", "wrong token", "host", "port", "origin", "origin of a post", "no origin"],
)
def test_strangers_are_refused(server, headers, body):
    status, text = server.ask("/api/runs", body, **headers)
    assert status == 403
    assert b"answer" in text or b"token" in text


def test_the_token_is_handed_to_a_cookie_that_no_script_sees(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", f"/?token={server.token}")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    connection.close()
    assert server.ask("/?token=wrong", Cookie="")[0] == 403


def test_nothing_but_what_a_run_has_written_is_given_out(server, table):
    run = server.ask("/api/runs?name=a.csv", table.read_bytes())[1]["id"]
    for path in ("run.json", "..%2f..%2fetc%2fpasswd", "../run.json", "/etc/passwd", "a.csv"):
        assert server.ask(f"/runs/{run}/{path}")[0] == 404
    assert server.ask("/api/runs/..")[0] in (400, 404)
    assert server.ask("/runs.py")[0] == 404


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"must": ["@/etc/passwd"]}, "file"),
        ({"adjust": ["@/etc/passwd"]}, "file"),
        ({"categorical": ["@/etc/passwd"]}, "file"),
        ({"labels": "/etc/passwd"}, "no option"),
        ({"n_jobs": 4}, "no option"),
        ({"folds": "5; ls"}, "no value"),
        ({"folds": True}, "no value"),
        ({"log2": 1}, "no value"),
        ({"must": "g1"}, "list"),
        ({"na": "a\0b"}, "no value"),
    ],
)
def test_choices_are_checked_before_they_become_words(choices, said):
    with pytest.raises(InputError, match=said):
        command_words("select", "a.csv", {"target": "state", **choices}, {})


def test_the_form_has_every_option_that_is_no_file():
    named = {field["name"]: field for field in fields()}
    assert {"target", "batch", "must", "n_features", "repeats", "na"} <= set(named)
    assert not {"labels", "test", "costs", "log", "n_jobs"} & set(named)
    assert all(field["help"] for field in named.values())


def test_words_that_look_like_options_stay_values():
    words = command_words("select", "a.csv", {"target": "--out", "must": ["-x y"]}, {})
    assert words == ["select", "a.csv", "--target", "--out", "--must", "-x y"]


@pytest.mark.parametrize(
    "name", ["", "..", "../..", "-o.csv", "a\0b.csv", "CON/.csv", "é.csv", "x" * 300]
)
def test_a_name_is_only_a_name(name):
    made = safe_name(name)
    assert made and "/" not in made and "\\" not in made and not made.startswith((".", "-"))
    assert len(made.encode()) < 255


def test_uploads_are_bounded_and_leave_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise InputError("it cannot be written (No space left on device)")

    async def body(n):
        for _ in range(n):
            yield b"x" * 10

    async def run():
        runs = Runs(tmp_path / "runs", largest=50)
        with pytest.raises(InputError, match="larger"):
            await runs.add("a.csv", body(6))
        with pytest.raises(InputError, match="empty"):
            await runs.add("a.csv", body(0))
        monkeypatch.setattr("sparsegsvp.cli.web.runs.write_atomic", full)
        with pytest.raises(InputError, match="No space"):
            await runs.add("a.csv", body(1))
        return list(runs), list((tmp_path / "runs").iterdir())

    assert asyncio.run(run()) == ([], [])


# --- runs ------------------------------------------------------------------------------


def test_a_run_equals_the_printed_command_byte_for_byte(server, table, tmp_path):
    run = server.begin(table, repeats=1, permutations=0, resamples=0, tau=[1.0], n_deltas=5)
    found = server.wait(run, "finished", "failed")
    assert found["state"] == "finished", found["error"]
    assert len(found["summary"]["panel"]) >= 1
    folder = server.folder / run
    words = [
        sys.executable,
        "-m",
        "sparsegsvp.cli",
        *found["command"],
        "--out",
        str(tmp_path / "own"),
    ]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    for name in ("results.json", "panel.csv", "report.html"):
        assert (tmp_path / "own" / name).read_bytes() == (folder / "report" / name).read_bytes()
    status, text = server.ask(f"/runs/{run}/report/results.json")
    assert status == 200 and text["panel"]


def test_a_cancelled_run_writes_nothing_and_leaves_no_process(server, table):
    run = server.begin(table)
    assert server.wait(run, "running")["progress"]["stage"]
    assert len(server.children()) == 1
    assert server.ask(f"/api/runs/{run}/cancel", {})[0] == 200
    assert server.wait(run, "cancelled")["outputs"] == []
    end = time.monotonic() + 20
    while server.children() and time.monotonic() < end:
        time.sleep(0.1)
    assert server.children() == []
    assert not (server.folder / run / "report").exists()


def test_a_killed_worker_is_told_and_can_start_again(server, table):
    run = server.begin(table, repeats=1, permutations=0, resamples=0, tau=[1.0], n_deltas=5)
    os.kill(server.children()[0], signal.SIGKILL)
    found = server.wait(run, "failed", "finished")
    assert found["state"] == "failed" and "SIGKILL" in found["error"]
    assert server.ask(f"/api/runs/{run}/start", {})[0] == 200
    assert server.wait(run, "finished", "failed")["state"] == "finished"


def test_a_run_whose_server_died_goes_on_with_the_next(tmp_path, table):
    first = Server(tmp_path / "runs")
    run = first.begin(table, repeats=2, permutations=0, resamples=0, tau=[1.0], n_deltas=5)
    first.process.kill()
    first.process.wait()
    second = Server(tmp_path / "runs")
    try:
        assert second.ask(f"/api/runs/{run}")[1]["state"] == "interrupted"
        assert second.ask(f"/api/runs/{run}/start", {})[0] == 200
        assert second.wait(run, "finished", "failed")["state"] == "finished"
    finally:
        second.close()


def test_a_run_begins_once(server, table):
    run = server.begin(table, repeats=1, permutations=0, resamples=0, tau=[1.0], n_deltas=5)
    status, found = server.ask(f"/api/runs/{run}/start", {})
    assert status == 400 and "begun" in found["error"]
    asked = {"choices": {"target": "state"}, "fast": True}
    assert server.ask(f"/api/runs/{run}/plan", asked)[0] == 400
    server.ask(f"/api/runs/{run}/cancel", {})
    assert server.wait(run, "cancelled")["summary"] is None


def test_a_bad_file_gets_the_readers_message(server):
    run = server.ask("/api/runs?name=bad.csv", b"a,b\n1,2\n3,4,5\n")[1]["id"]
    status, found = server.ask(f"/api/runs/{run}/plan", {"choices": {"target": "b"}})
    assert status == 400 and "line 3" in found["error"]
    assert server.ask("/api/runs")[0] == 200


# --- the page --------------------------------------------------------------------------


class Page:
    """The page in a browser, as one uses it."""

    def __init__(self, browser, server):
        self.browser, self.server = browser, server

    def one(self, query):
        return self.browser.find_element("css selector", query)

    def there(self, query):
        return bool(self.browser.find_elements("css selector", query))

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, LONG).until(lambda _: condition())

    def ready(self):
        return self.one("#understood").is_displayed() and self.one("#go").is_enabled()

    def home(self):
        self.browser.get(self.server.address)
        self.wait(lambda: self.one("#drop").is_displayed())

    def drop(self, table):
        self.browser.execute_script(
            """const data = new DataTransfer();
            data.items.add(new File([arguments[0]], "genes.csv"));
            const how = {dataTransfer: data, bubbles: true, cancelable: true};
            document.getElementById("drop").dispatchEvent(new DragEvent("drop", how));""",
            table.read_text(),
        )


def test_the_page_in_a_browser(server, table, tmp_path, browser):
    from selenium.webdriver.support.ui import Select

    page = Page(browser, server)
    one, wait, ready = page.one, page.wait, page.ready
    browser.get_log("browser")
    page.home()
    assert "token" not in browser.current_url
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n3,4,5\n")
    one("#file").send_keys(str(bad))
    wait(lambda: "line 3" in one(".error").text)
    browser.get_log("browser")  # a refusal is logged as such

    # a file that is dropped
    page.home()
    page.drop(table)
    wait(ready)
    assert one("#target").get_attribute("value") == "state"
    assert "ill 20, well 20" in one("#classes").text
    role = Select(one("[aria-label='Role of age']"))
    assert role.first_selected_option.text == "covariate"
    role.select_by_visible_text("feature")
    Select(one("#careful")).select_by_value("fast")
    wait(lambda: "61 features" in one("#classes").text and ready())
    one("#go").click()
    wait(lambda: page.there("#bar"))
    wait(lambda: page.there("#report"))
    assert "Balanced accuracy" in one("#lede").text and "<b>g" in one("#lede").text
    assert "--keep age" in one("#command").get_attribute("textContent")
    browser.switch_to.frame(one("#report"))
    wait(lambda: "features selected" in one("h1").text)
    browser.switch_to.default_content()

    # another panel, judged after the fact
    box = one("#panel")
    first = box.get_attribute("value").split("\n")[0]
    box.clear()
    box.send_keys(first)
    one("#bench").click()
    wait(lambda: "after the fact" in one("#benched").text)
    # the model on new samples
    one("#apply").send_keys(str(table))
    wait(lambda: "predictions-1.csv" in one("#applied").text)
    # a file to keep
    kept = tmp_path / "kept"
    where = {"behavior": "allow", "downloadPath": str(kept)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    browser.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    one("#outputs a[download='panel.csv']").click()
    wait(lambda: (kept / "panel.csv").exists() and "<b>g" in (kept / "panel.csv").read_text())
    assert browser.get_log("browser") == []
    # by keyboard alone: the first thing that is reached is the way home
    browser.get(f"http://{server.host}/")
    wait(lambda: one("#runs").is_displayed())
    assert one("#runs tbody tr td:nth-child(2)").text.startswith("genes.csv")


def test_two_tabs_show_the_same_run_and_either_can_cancel_it(server, table, browser):
    page = Page(browser, server)
    page.home()
    page.drop(table)
    page.wait(page.ready)
    page.one("#go").click()
    page.wait(lambda: page.there("#bar"))
    first, address = browser.current_window_handle, browser.current_url
    browser.switch_to.new_window("tab")
    try:
        browser.get(address)
        page.wait(lambda: page.there("#cancel"))
        page.one("#cancel").click()
        page.wait(lambda: page.there(".error") and "cancelled" in page.one(".error").text)
    finally:
        browser.close()
        browser.switch_to.window(first)
    page.wait(lambda: page.there(".error") and "cancelled" in page.one(".error").text)
    page.one("#again").click()  # another run on the same file
    page.wait(lambda: page.there("#looked") and page.one("#looked").is_displayed())
    assert browser.current_url != address


def test_two_runs_side_by_side(server, browser):
    page = Page(browser, server)
    done = [run["id"] for run in server.ask("/api/runs")[1] if run["state"] == "finished"][:2]
    page.home()
    for run in done:
        page.one(f"#runs input[value='{run}']").click()
    page.one("#beside").click()
    page.wait(lambda: page.there(".pair"))
    shown = browser.find_elements("css selector", ".pair section")
    assert len(shown) == 2 and all("balanced accuracy" in one.text for one in shown)


def test_the_command_is_shown_as_a_shell_takes_it(server):
    runs = [run for run in server.ask("/api/runs")[1] if run["state"] == "finished"]
    for run in runs:
        assert shlex.split(shlex.join(run["command"])) == run["command"]
