"""The page that runs the commands: a real server, real processes, a real browser."""

from __future__ import annotations

import asyncio
import csv
import gzip
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
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

from sparsegsvp.io.errors import InputError, option

pytest.importorskip("starlette", reason="needs the extra app")
pytest.importorskip("uvicorn", reason="needs the extra app")

from sparsegsvp.cli.options import command_words, explain, fields
from sparsegsvp.cli.runs import Runs, safe_name

LONG = 240.0  # seconds after which a step that takes a few has failed, on a busy machine too
QUICK = {"folds": 3, "permutations": 19, "repeats": 1}


def sample_rows(n: int = 36, n_features: int = 60, seed: int = 1) -> list[list[object]]:
    """Raw intensities with two informative genes, codes for missing values, and what is known of
    the samples: names that look like markup, sex, age, plate and patient."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    X = rng.normal(9, 1.5, size=(n, n_features))
    X[:, :2] += 4 * labels[:, None]
    X[:, 5] = rng.uniform(0, 3, size=n)
    X = np.round(2.0**X, 1)
    header = ["sample", "Sex", "Age", "plate", "patient", "state"]
    rows: list[list[object]] = [[*header, *(f"<b>g{j}" for j in range(n_features))]]
    for i in range(n):
        known = [f"s{i}", "mf"[rng.integers(2)], int(rng.integers(30, 80)), f"p{i % 3}"]
        values = [float(v) for v in X[i]]
        if i % 4 == 0:
            values[5] = -9999.0
        rows.append([*known, f"person {i // 2}", ("well", "ill")[labels[i]], *values])
    return rows


def write_csv(path: Path, rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def write_workbook(path: Path, rows: list[list[object]]) -> Path:
    """The table on the second sheet, behind a title page."""
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.title = "read me"
    book.active.append(["Data of the study", "of 2026"])
    sheet = book.create_sheet("data")
    for row in rows:
        sheet.append(row)
    book.save(path)
    return path


class Server:
    """A server process, and a client that has its token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        words = [sys.executable, "-m", "sparsegsvp.cli", "app", "--no-browser", "--folder", folder]
        # a run that starts no workers is done sooner than its workers are loaded
        variables = {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.address = re.search(r"http://\S+", line).group()  # type: ignore[union-attr]
        parts = urlsplit(self.address)
        self.host, self.port = parts.netloc, parts.port
        self.token = parts.query.removeprefix("token=")

    def ask(self, path: str, body: object = None, **headers: str):
        """The answer to a request as the page sends it, but for the headers given."""
        sent = {
            "Host": self.host,
            "Origin": f"http://{self.host}",
            "Cookie": f"sparsegsvp-{self.port}={self.token}",
            **headers,
        }
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        connection.putrequest("GET" if data is None else "POST", path, skip_host=True)
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

    def drop(self, path: Path) -> str:
        status, run = self.ask(f"/api/runs?name={quote(path.name)}", path.read_bytes())
        assert status == 200, run
        return run["id"]

    def look(self, run: str, care: str = "usual", **choices: object) -> dict:
        status, seen = self.ask(f"/api/runs/{run}/look", {"choices": choices, "care": care})
        assert status == 200, seen
        return seen

    def start(self, run: str, care: str = "fast", **choices: object) -> None:
        asked = {"choices": {"target": "state", **QUICK, **choices}, "care": care}
        status, answer = self.ask(f"/api/runs/{run}/start", asked)
        assert status == 200, answer

    def wait(self, run: str, *states: str) -> dict:
        """The run, once it has come to one of these states."""
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            described = self.ask(f"/api/runs/{run}")[1]
            if described["state"] in states:
                return described
            time.sleep(0.1)
        raise AssertionError(described)

    def commands(self) -> list[int]:
        """Processes of runs in this server's folder, workers among them."""
        running = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if str(self.folder) in os.readlink(path / "cwd"):
                    running.append(int(path.name))
            except OSError:
                continue
        return running

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(30) == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("app") / "runs")
    yield made
    made.close()


@pytest.fixture(scope="module")
def genes(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("table") / "genes.csv", sample_rows())


def offered(seen: dict) -> dict[str, dict]:
    """All actions that a preview offers, by option and value."""
    actions = [
        *seen.get("actions", ()),
        *(a for n in seen["notices"] for a in n.get("actions", ())),
    ]
    return {f"{a['option']}={a['value']}": a for a in actions}


# --- who is answered, and with what --------------------------------------------------------


STRANGERS = {
    "no token": ({"Cookie": ""}, None),
    "wrong token": ({"Cookie": "sparsegsvp-1=x"}, None),
    "host": ({"Host": "example.org"}, None),
    "port": ({"Host": "127.0.0.1"}, None),
    "origin": ({"Origin": "http://example.org"}, None),
    "origin of a post": ({"Origin": "http://example.org"}, {}),
    "no origin": ({"Origin": ""}, {}),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_strangers_are_refused(server, who):
    headers, body = STRANGERS[who]
    status, text = server.ask("/api/runs", body, **headers)
    assert status == 403 and (b"answer" in text or b"token" in text)


def test_the_token_is_handed_to_a_cookie_that_no_script_sees(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", f"/?token={server.token}")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    connection.close()
    assert server.ask("/?token=wrong", Cookie="")[0] == 403
    assert server.ask("/?token=", Cookie=f"sparsegsvp-{server.port}=")[0] == 403


def test_nothing_but_what_a_run_has_written_is_given_out(server, genes):
    run = server.drop(genes)
    for path in ("run.json", "..%2f..%2fetc%2fpasswd", "../run.json", "/etc/passwd", "genes.csv"):
        assert server.ask(f"/runs/{run}/{path}")[0] == 404
    assert server.ask("/api/runs/..")[0] in (400, 404)
    assert server.ask("/runs.py")[0] == 404
    for body in (b"", b"[]", b'{"choices": 3}', b"\xff"):
        assert server.ask(f"/api/runs/{run}/look", body)[0] == 400


@pytest.mark.parametrize("name", ["labels", "n_jobs", "rungs", "out"])
def test_only_options_of_the_form_are_taken(name):
    with pytest.raises(InputError, match="no option"):
        command_words("select", ["a.csv"], {"target": "state", name: "/etc/passwd"})


@pytest.mark.parametrize(
    ("name", "value"),
    [("folds", "5; ls"), ("folds", True), ("log2", 1), ("must", "g1"), ("target", ["g1"]),
     ("na", "a\0b")],
)  # fmt: skip
def test_values_are_checked_before_they_become_words(name, value):
    with pytest.raises(InputError, match="no value"):
        command_words("select", ["a.csv"], {"target": "state", name: value})


def test_the_form_speaks_of_options_by_their_labels():
    named = {field["name"]: field for field in fields()}
    assert {"target", "batch", "must", "n_features", "repeats", "na"} <= set(named)
    assert not {"labels", "test", "out", "force", "n_jobs"} & set(named)
    assert all(field["label"] and field["help"] for field in named.values())
    assert not any("--" in field["help"] or "@" in field["help"] for field in named.values())
    error = InputError(
        "it holds text", remedy=f"use {option('drop', ['a', 'b'])} or {option('na')}"
    )
    assert explain(error) == {
        "error": "it holds text; use “Leave out: a, b” or “Codes for missing values”",
        "actions": [{"option": "drop", "value": ["a", "b"], "label": "Leave out: a, b"}],
    }


@pytest.mark.parametrize(
    "name", ["", "../..", "-o.csv", "a\0b.csv", "C:\\a\\b.csv", "C/.csv", "é.csv", "𝒳" * 300]
)
def test_a_name_is_only_a_name(name):
    made = safe_name(name)
    assert made and "/" not in made and "\\" not in made and not made.startswith((".", "-"))
    assert len(made.encode()) < 250


def test_uploads_are_bounded_and_leave_nothing(tmp_path):
    async def body(n):
        for _ in range(n):
            yield b"x" * 10

    async def run():
        runs = Runs(tmp_path / "runs", largest=50)
        with pytest.raises(InputError, match="larger"):
            await runs.add("a.csv", body(6))
        with pytest.raises(InputError, match="empty"):
            await runs.add("a.csv", body(0))
        return list(runs), list((tmp_path / "runs").iterdir())

    assert asyncio.run(run()) == ([], [])


# --- looking at a table --------------------------------------------------------------------


def test_notes_are_actions_that_see_to_themselves(server, genes):
    run = server.drop(genes)
    seen = server.look(run)
    assert (seen["target"], seen["proposed"]) == ("state", True)
    assert not any(c["proposed"] for c in seen["candidates"] if c["name"] != "state")
    roles = {c["name"]: (c["role"], c["reason"]) for c in seen["columns"]}
    assert roles["sample"][0] == "id" and roles["plate"][0] == "batch" and all(roles["Sex"])
    asked = {"batch=plate", "group=patient", "na=-9999"}
    assert asked <= set(offered(seen))
    seen = server.look(run, batch=["plate"], group="patient", na="-9999", adjust=["Sex"])
    assert not asked & set(offered(seen)) and "log2=True" in offered(seen)
    assert {c["name"]: c["role"] for c in seen["columns"]}["patient"] == "group"
    assert seen["table"]["n_missing"] == 9
    # text that is adjusted for is taken as categories
    assert any(c["name"].startswith("Sex=") for c in seen["columns"])


def test_a_preset_never_overwrites_what_was_set_by_hand(server, genes):
    run = server.drop(genes)
    server.look(run, care="paper", target="state", repeats=3)
    words = server.ask(f"/api/runs/{run}")[1]["command"]
    assert "repeats=3" in words and "permutations=999" in words
    server.look(run, care="fast", target="state", repeats=3)
    words = server.ask(f"/api/runs/{run}")[1]["command"]
    assert "repeats=3" in words and "--fast" in words
    status, answer = server.ask(f"/api/runs/{run}/look", {"choices": {}, "care": "sloppy"})
    assert status == 400 and "sloppy" in answer["error"]


def test_a_refusal_offers_its_remedies(server, tmp_path):
    rows = [["Sex", "a", "b", "state"]]
    rows += [["mf"[i % 2], i * 7 % 5, i * 3 % 7, "xy"[i % 3 == 0]] for i in range(12)]
    seen = server.look(server.drop(write_csv(tmp_path / "small.csv", rows)), target="state")
    assert seen["table"] is None and "text" in seen["error"]
    assert offered(seen)["adjust=['Sex']"]["label"] == "Adjust for: Sex"
    assert offered(seen)["drop=['Sex']"]["label"] == "Leave out: Sex"


BAD = {
    "ragged.csv": b"a,b\n1,2\n3,4,5\n",
    "short.csv.gz": gzip.compress(b"a,b\n" + b"1,2\n" * 99)[:-12],
    "bomb.csv.gz": gzip.compress(b"a,b\n" + b"0," * 100_000_000, 1),
    "noise.xlsx": bytes(range(256)) * 40,
    "noise.h5ad": b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 40,
    "noise.parquet": b"PAR1" + bytes(range(256)) * 40 + b"PAR1",
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_by_name_and_harms_nothing(server, tmp_path, name):
    (tmp_path / name).write_bytes(BAD[name])
    seen = server.look(server.drop(tmp_path / name))
    assert name in seen["error"] and seen["table"] is None
    assert server.ask("/api/runs")[0] == 200


# --- runs ----------------------------------------------------------------------------------


def test_a_workbook_from_the_sheet_to_predictions(server, tmp_path):
    """The run is its command, every rung has its report, new samples are read as the first were."""
    rows = sample_rows()
    run = server.drop(write_workbook(tmp_path / "study.xlsx", rows))
    assert "sheet=data" in offered(server.look(run))
    seen = server.look(run, sheet="data", na="-9999")
    assert seen["target"] == "state" and seen["table"]["n_missing"] == 9
    server.start(run, sheet="data", na="-9999", log2=True)
    done = server.wait(run, "finished", "failed")
    assert done["state"] == "finished", done["error"]
    folder = server.folder / run
    results = json.loads((folder / "report" / "results.json").read_text(encoding="utf-8"))
    assert shlex.split(results["run"]["command"]) == ["sparsegsvp", *done["command"]]

    # the ladder: each size has a report of its own
    sizes = [rung["size"] for rung in done["summary"]["ladder"]]
    for size in (sizes[0], sizes[-1]):
        page = server.ask(f"/runs/{run}/report/sizes/{size}/index.html")
        results = server.ask(f"/runs/{run}/report/sizes/{size}/results.json")
        assert page[0] == results[0] == 200 and len(results[1]["panel"]) == size
    assert sum(rung["chosen"] for rung in done["summary"]["ladder"]) <= 1

    # prediction keeps names, sheet and codes for missing values
    coded = rows[1:9:4]
    blank = [[None if cell == -9999.0 else cell for cell in row] for row in coded]
    new = [[f"new {i}", *row[1:]] for i, row in enumerate([*coded, *blank])]
    path = write_workbook(tmp_path / "new.xlsx", [rows[0], *new])
    asked = f"/api/runs/{run}/predict?name=new.xlsx&as={sizes[-1]}"
    status, answer = server.ask(asked, path.read_bytes())
    assert status == 200, answer
    assert [row[0] for row in answer["rows"]] == ["new 0", "new 1", "new 2", "new 3"]
    assert [row[1:] for row in answer["rows"][:2]] == [row[1:] for row in answer["rows"][2:]]
    status, text = server.ask(f"/runs/{run}/{answer['file']}")
    assert status == 200 and text.startswith(b"sample,prediction")
    status, refused = server.ask(
        asked, write_workbook(path, [["sample", "x"], ["a", 1]]).read_bytes()
    )
    assert status == 400 and "g" in refused["error"]


def test_a_run_begins_once_and_a_cancelled_one_leaves_nothing(server, genes):
    run = server.drop(genes)
    server.start(run, care="paper")
    status, answer = server.ask(f"/api/runs/{run}/start", {"choices": {"target": "state"}})
    assert status == 400 and "begun" in answer["error"]
    assert server.wait(run, "running")["progress"]["stage"]
    assert server.commands()
    assert server.ask(f"/api/runs/{run}/cancel", {})[0] == 200
    assert server.wait(run, "cancelled")["outputs"] == []
    end = time.monotonic() + 20
    while server.commands() and time.monotonic() < end:
        time.sleep(0.1)
    assert server.commands() == []
    assert not list((server.folder / run).glob("*report*"))
    again = server.ask(f"/api/runs/{run}/again", {"choices": {"panel": ["<b>g0"]}})[1]
    assert again["state"] == "draft"
    assert again["choices"]["target"] == "state" and again["choices"]["panel"] == ["<b>g0"]


def test_killed_runs_and_servers_are_told(tmp_path, genes):
    first = Server(tmp_path / "runs")
    killed, lost = first.drop(genes), first.drop(genes)
    first.start(killed)
    for pid in first.commands():
        os.kill(pid, signal.SIGKILL)
    ended = first.wait(killed, "failed", "finished")
    assert ended["state"] == "failed" and "SIGKILL" in ended["error"]
    first.start(lost, care="paper")
    first.process.kill()
    first.process.wait()
    second = Server(tmp_path / "runs")
    try:
        assert second.ask(f"/api/runs/{lost}")[1]["state"] == "interrupted"
        assert second.ask(f"/api/runs/{killed}")[1]["state"] == "failed"
    finally:
        second.close()


# --- the page ------------------------------------------------------------------------------


class Page:
    """The page in a browser, as one uses it."""

    def __init__(self, browser, server):
        self.browser, self.server = browser, server

    def one(self, query):
        return self.browser.find_element("css selector", query)

    def all(self, query):
        return self.browser.find_elements("css selector", query)

    def wait(self, condition):
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        # a part of the page that is renewed between finding and reading it is looked for again
        waiting = WebDriverWait(
            self.browser, LONG, 0.1, ignored_exceptions=[StaleElementReferenceException]
        )
        return waiting.until(lambda _: condition())

    def ready(self):
        return bool(self.all("#go")) and self.one("#go").is_enabled()

    def home(self):
        self.browser.get(self.server.address)
        self.wait(lambda: self.all("#drop"))

    def press(self, text):
        """Press the button with this text, see that what is stale is grey, wait for the new."""
        next(made for made in self.all("main button") if made.text.startswith(text)).click()
        assert not self.ready() and "stale" in self.one("#understood").get_attribute("class")
        self.wait(self.ready)
        assert "stale" not in self.one("#understood").get_attribute("class")

    def uses(self):
        """What each column is for."""
        return {
            s.get_attribute("data-name"): s.get_property("value") for s in self.all("#roles select")
        }


def test_the_page_in_a_browser(server, genes, tmp_path, browser):
    from selenium.webdriver.support.ui import Select

    page = Page(browser, server)
    one, wait = page.one, page.wait
    browser.get_log("browser")
    page.home()
    assert "token" not in browser.current_url
    browser.execute_script(
        """const data = new DataTransfer();
        data.items.add(new File([arguments[0]], "genes.csv"));
        const how = {dataTransfer: data, bubbles: true, cancelable: true};
        document.getElementById("drop").dispatchEvent(new DragEvent("drop", how));""",
        genes.read_text(),
    )
    wait(page.ready)
    assert one("#targets [aria-pressed='true']").text.startswith("state")
    assert "ill 18, well 18" in one("#classes").text
    assert page.uses() | {"plate": "drop", "Sex": "drop"} == page.uses()

    # every note is a button
    for text in ("Audit plate", "Keep the samples", "Treat -9999", "Take logarithms"):
        page.press(text)
    page.press("Adjust for it")
    uses = page.uses()
    assert (uses["plate"], uses["patient"], uses["Sex"]) == ("batch", "group", "adjust")
    assert "9 values missing" in one("#classes").text
    page.press("Adjust for: Sex")  # taken back
    assert page.uses()["Sex"] == "drop"

    # while another target is on its way, there are not two
    roles = [s for s in page.all("#roles select") if s.get_attribute("data-name") == "Sex"]
    Select(roles[0]).select_by_value("target")
    assert list(page.uses().values()).count("target") == 1
    assert one("#targets [aria-pressed='true']").text.startswith("Sex")
    wait(page.ready)
    assert page.uses()["Sex"] == "target"
    page.press("state")

    Select(one("#care")).select_by_value("fast")
    wait(page.ready)
    one("#go").click()
    wait(lambda: page.all("#bar"))
    wait(lambda: page.all("#report"))
    command = one("#command").get_attribute("textContent")
    for words in ("--batch plate", "--group patient", "--na -9999", "--log2", "--fast"):
        assert words in command

    # the ladder is live
    rung = next(made for made in page.all("#ladder button") if "chosen" not in made.text)
    size = rung.text.split()[0]
    rung.click()
    browser.switch_to.frame(one("#report"))
    wait(lambda: page.all("h1") and f"{size} of" in one("h1").text)
    browser.switch_to.default_content()
    one("#apply").send_keys(str(genes))
    wait(lambda: page.all("#applied table"))
    assert f"model of {size} feature" in one("#which").text
    assert page.all("#applied td")[0].text == "s0"
    next(made for made in page.all("#ladder button") if "chosen" in made.text).click()
    assert not page.all("#applied table")  # of another model
    kept = tmp_path / "kept"
    allowed = {"behavior": "allow", "downloadPath": str(kept)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
    browser.execute_script(
        "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
    )
    one("#outputs a[download='panel.csv']").click()
    wait(lambda: (kept / "panel.csv").exists() and "<b>g" in (kept / "panel.csv").read_text())
    assert browser.get_log("browser") == []


def test_a_bad_file_in_a_browser(server, tmp_path, browser):
    page = Page(browser, server)
    page.home()
    page.one("#file").send_keys(str(write_workbook(tmp_path / "book.xlsx", sample_rows())))
    page.wait(lambda: page.all(".error button"))  # the page before the data is no table
    assert not page.ready() and page.one(".error button").text == "Read sheet data"
    page.press("Read sheet data")
    assert "ill 18, well 18" in page.one("#classes").text
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n3,4,5\n")
    page.home()
    page.one("#file").send_keys(str(bad))
    page.wait(lambda: page.all(".error") and "line 3" in page.one(".error").text)
    assert not page.ready()
    page.home()
    assert page.one("#runs tbody tr").text.startswith("bad.csv")
