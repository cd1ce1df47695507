"use strict";
// What comes from a file is put into the page as text, never as markup.
const main = document.getElementById("main");
const roles = ["feature", "target", "id", "group", "batch", "ignored", "must be in", "never in"];
let form = null, watch = 0;

const byId = (id) => main.querySelector("#" + id);

function show(name, title) {
  main.replaceChildren(document.getElementById(name).content.cloneNode(true));
  if (title) main.querySelector("h1").textContent = title;
  main.focus({ preventScroll: true });
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made[key] = value;
  return made;
}

async function ask(path, method = "GET", body) {
  const plain = body !== undefined && !(body instanceof Blob);
  const answer = await fetch(path, { method, body: plain ? JSON.stringify(body) : body });
  const found = (answer.headers.get("content-type") || "").includes("json") ? await answer.json() : {};
  if (!answer.ok) throw new Error(found.error || "The server did not answer as it should (" + answer.status + ").");
  return found;
}

function complain(error) {
  const line = main.querySelector(".error");
  line.textContent = error.message || "The program that opened this page has ended. Start it again.";
  line.hidden = false;
}

const calm = () => { main.querySelector(".error").hidden = true; };
const send = (path, file) => ask(path + "?name=" + encodeURIComponent(file.name), "POST", file);
const percent = (value) => value === null || value === undefined ? "" : value.toFixed(2);

function inWords(seconds) {
  if (seconds < 90) return "about " + Math.max(1, Math.round(seconds)) + " seconds";
  return seconds < 5400 ? "about " + Math.round(seconds / 60) + " minutes" : "about " + (seconds / 3600).toFixed(1) + " hours";
}

const verdicts = { signal: "signal found", none: "no signal found", inconclusive: "unclear whether there is signal", "not tested": "not tested for signal" };

function inShort(run) {
  const s = run.summary;
  if (!s) return "";
  return s.panel.length + " of " + s.n_features.toLocaleString("en") + " features";
}

function score(run) {
  const s = run.summary;
  if (!s || s.score === null) return "";
  return percent(s.score) + (s.low === null ? "" : " (" + percent(s.low) + " to " + percent(s.high) + ")");
}

// --- the list of runs and the place to drop a file ---

async function home() {
  show("home");
  const drop = byId("drop"), input = byId("file");
  const take = async (file) => {
    if (!file) return;
    drop.classList.remove("over");
    calm();
    try {
      location.hash = (await send("/api/runs", file)).id;
    } catch (error) { complain(error); }
  };
  input.addEventListener("change", () => take(input.files[0]));
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files[0]); });
  try {
    const runs = await ask("/api/runs");
    byId("folder").textContent = form.folder;
    byId("runs").hidden = runs.length === 0;
    for (const run of runs) {
      const row = element("tr"), box = element("input", undefined, { type: "checkbox", value: run.id });
      box.disabled = run.state !== "finished";
      box.setAttribute("aria-label", "Compare " + run.name);
      box.addEventListener("change", () => { byId("beside").disabled = main.querySelectorAll("tbody :checked").length !== 2; });
      const link = element("a", run.name, { href: "#" + run.id });
      const when = element("small", " " + new Date(run.created * 1000).toLocaleString());
      for (const content of [[box], [link, when], [inShort(run)], [score(run)], [run.state]]) {
        const cell = element("td");
        cell.append(...content);
        row.append(cell);
      }
      main.querySelector("tbody").append(row);
    }
    byId("beside").addEventListener("click", () => {
      location.hash = [...main.querySelectorAll("tbody :checked")].map((box) => box.value).join("+");
    });
  } catch (error) { complain(error); }
}

async function pair(ids) {
  const runs = await Promise.all(ids.map((id) => ask("/api/runs/" + id)));
  main.replaceChildren(element("h1", "Two runs side by side"));
  const both = element("div", undefined, { className: "pair" });
  const panels = runs.map((run) => (run.summary ? run.summary.panel : []));
  runs.forEach((run, i) => {
    const section = element("section");
    section.append(element("h2", run.name), element("p", inShort(run) + ", balanced accuracy " + score(run)));
    section.append(element("p", run.summary ? verdicts[run.summary.verdict] || run.summary.verdict : run.state));
    const list = element("ol");
    for (const name of panels[i]) {
      const item = element("li");
      item.append(panels[1 - i].includes(name) ? element("mark", name) : name);
      list.append(item);
    }
    section.append(list, element("pre", "sparsegsvp " + run.command.join(" ")), element("a", "Open this run", { href: "#" + run.id }));
    both.append(section);
  });
  main.append(both, element("p", "Features that both panels have are marked.", { className: "fine" }));
}

// --- a file that was dropped: what is in it, what is to be done ---

async function draft(run) {
  show("draft", run.name);
  const chosen = { ...run.choices }, given = {};
  let number = 0, known = [];
  for (const [key, role] of [["keep", "feature"], ["drop", "ignored"], ["must", "must be in"], ["ban", "never in"], ["batch", "batch"]]) {
    for (const name of chosen[key] || []) given[name] = role;
  }
  for (const key of ["id", "group"]) if (chosen[key]) given[chosen[key]] = key;
  try {
    const found = await ask("/api/runs/" + run.id + "/look");
    known = found.names;
    byId("looked").hidden = false;
    byId("kind").textContent = found.kind + (found.names.length ? ": " + found.names.length.toLocaleString("en") + " columns, " + found.n_rows.toLocaleString("en") + " rows" : "");
    const head = element("tr");
    for (const name of found.shown) head.append(element("th", name));
    byId("cells").append(head);
    for (const cells of found.rows) {
      const row = element("tr");
      for (const cell of cells) row.append(element("td", cell));
      byId("cells").append(row);
    }
    byId("names").append(...found.candidates.map((one) => element("option", Object.entries(one.counts).map((pair) => pair.join(" ")).join(", "), { value: one.name })));
    byId("names").append(...found.names.slice(0, 20000).map((name) => element("option", undefined, { value: name })));
    if (!chosen.target && found.candidates.length) chosen.target = found.candidates[0].name;
    byId("target").value = chosen.target || "";
  } catch (error) { complain(error); return; }

  const fields = byId("advanced").querySelector("div");
  const visible = ["target", "positive", "group", "id", "batch", "drop", "keep", "must", "ban", "n_features", "rule", "panel", "published"];
  for (const field of form.fields.filter((field) => !visible.includes(field.name))) {
    const label = element("label", field.name.replaceAll("_", " "));
    const input = element("input", undefined, { id: "x-" + field.name });
    if (field.kind === "bool") input.type = "checkbox";
    else if (field.kind !== "str" && !field.many) { input.type = "number"; input.step = "any"; }
    const value = chosen[field.name] ?? field.default;
    if (field.kind === "bool") input.checked = Boolean(value);
    else input.value = value === null ? "" : field.many ? value.join(", ") : value;
    input.addEventListener("change", plan);
    label.append(input, element("small", field.help));
    fields.append(label);
  }
  if (chosen.n_features) { byId("small").value = "exactly"; byId("size").value = chosen.n_features; byId("size").hidden = false; }
  else if (chosen.rule) byId("small").value = chosen.rule;
  if (run.fast) byId("careful").value = "fast";

  function choices() {
    const asked = { target: byId("target").value };
    const lists = { feature: "keep", ignored: "drop", "must be in": "must", "never in": "ban", batch: "batch" };
    for (const [name, role] of Object.entries(given)) {
      if (role in lists) (asked[lists[role]] ||= []).push(name);
      else if (role === "target") asked.target = name;
      else asked[role] = name;
    }
    for (const field of form.fields) {
      const input = byId("x-" + field.name);
      if (!input) continue;
      const shown = field.default === null ? "" : field.many ? field.default.join(", ") : String(field.default);
      if (field.kind === "bool") { if (input.checked !== Boolean(field.default)) asked[field.name] = input.checked; continue; }
      if (input.value === shown || input.value === "") continue;
      const read = field.kind === "str" ? (text) => text : Number;
      asked[field.name] = field.many ? input.value.split(",").map((text) => read(text.trim())) : read(input.value);
    }
    const small = byId("small").value;
    if (small === "exactly") asked.n_features = Number(byId("size").value);
    else if (small !== "paired") asked.rule = small;
    if (byId("careful").value === "thorough") Object.assign(asked, { repeats: 10, permutations: 999, resamples: 100 }, asked);
    if (byId("positive").value) asked.positive = byId("positive").value;
    return asked;
  }

  async function plan() {
    const mine = ++number;
    if (!byId("target").value) return;
    byId("go").disabled = true;
    byId("estimate").textContent = "Reading the table, and timing one fit of each kind …";
    try {
      const found = await ask("/api/runs/" + run.id + "/plan", "POST", { choices: choices(), fast: byId("careful").value === "fast" });
      if (mine !== number) return;
      if (found.superseded) throw new Error("This run was changed in another tab: reload the page.");
      calm();
      understood(found);
    } catch (error) {
      if (mine !== number) return;
      byId("estimate").textContent = "";
      complain(error);
    }
  }

  function understood(found) {
    const data = found.data;
    byId("understood").hidden = false;
    byId("classes").textContent = data.n_samples + " samples, " + data.n_features.toLocaleString("en") + " features; " + data.classes.map((name, k) => name + " " + data.class_counts[k]).join(", ") + (data.n_missing ? "; " + data.n_missing.toLocaleString("en") + " values are missing" : "");
    byId("notices").replaceChildren(...data.notices.map((notice) => element("li", notice.title + ". " + notice.text)));
    const rows = byId("roles").tBodies[0];
    rows.replaceChildren();
    const said = new Set();
    const add = (name, role, why) => {
      if (said.has(name)) return;
      said.add(name);
      const row = element("tr"), select = element("select"), cell = element("td");
      select.setAttribute("aria-label", "Role of " + name);
      const now = given[name] || role;
      for (const one of new Set([...roles, now])) select.append(element("option", one, { value: one, selected: one === now }));
      select.addEventListener("change", () => change(name, select.value));
      cell.append(select);
      row.append(element("td", name), cell, element("td", why));
      rows.append(row);
    };
    for (const name of Object.keys(given)) add(name, given[name], "as chosen here");
    for (const line of data.roles) {
      if (line.columns.length === 0) {
        const row = element("tr");
        row.append(element("td", line.count.toLocaleString("en") + (said.size ? " other columns" : " columns")), element("td", line.role), element("td", line.reason));
        rows.append(row);
      } else line.columns.slice(0, 100).forEach((name) => add(name || "(names of rows)", line.role, line.reason));
    }
    const positive = byId("positive");
    positive.replaceChildren(...(data.classes.length === 2 ? data.classes : []).map((name) => element("option", name, { value: name, selected: name === data.positive })));
    positive.disabled = data.classes.length !== 2;
    byId("estimate").textContent = "The run would take " + inWords(found.total_seconds) + ".";
    byId("go").disabled = false;
  }

  function change(name, role) {
    if (role === "target") { delete given[name]; byId("target").value = name; byId("positive").replaceChildren(); }
    else {
      if (role === "id" || role === "group") for (const other of Object.keys(given)) if (given[other] === role) delete given[other];
      given[name] = role;
    }
    plan();
  }

  byId("target").addEventListener("change", () => { byId("positive").replaceChildren(); plan(); });
  byId("other").addEventListener("change", () => {
    const name = byId("other").value;
    if (!known.includes(name)) return;
    byId("other").value = "";
    change(name, "ignored");
  });
  for (const id of ["small", "careful", "positive", "size"]) byId(id).addEventListener("change", () => {
    byId("size").hidden = byId("small").value !== "exactly";
    plan();
  });
  for (const option of ["labels", "test"]) byId(option).addEventListener("change", async () => {
    try {
      await send("/api/runs/" + run.id + "/files/" + option, byId(option).files[0]);
      plan();
    } catch (error) { complain(error); }
  });
  byId("go").addEventListener("click", async () => {
    byId("go").disabled = true;
    try {
      await ask("/api/runs/" + run.id + "/start", "POST", {});
      route();
    } catch (error) { complain(error); }
  });
  plan();
}

// --- a run that has begun ---

function running(run) {
  show("running", run.name);
  byId("cancel").addEventListener("click", async () => {
    byId("cancel").disabled = true;
    await ask("/api/runs/" + run.id + "/cancel", "POST", {});
    route();
  });
  const update = (now) => {
    const at = now.progress;
    byId("stage").textContent = at.stage[0].toUpperCase() + at.stage.slice(1) + " …";
    if (at.part === null) byId("bar").removeAttribute("value");
    else byId("bar").value = at.part;
    byId("left").textContent = at.left === null ? "" : inWords(at.left) + " left";
  };
  update(run);
  const poll = async () => {
    try {
      const now = await ask("/api/runs/" + run.id);
      if (location.hash.slice(1) !== run.id) return;
      if (now.state !== "running") { route(); return; }
      update(now);
    } catch { byId("left").textContent = "The program that opened this page does not answer."; }
    watch = setTimeout(poll, 700);
  };
  watch = setTimeout(poll, 700);
}

function withAgain(run) {
  byId("again").addEventListener("click", async () => {
    location.hash = (await ask("/api/runs/" + run.id + "/again", "POST", {})).id;
  });
}

function ended(run) {
  show("ended", run.name);
  const words = { cancelled: "The run was cancelled; nothing was written.", interrupted: "The run was interrupted; what it had finished is kept." };
  main.querySelector(".error").textContent = run.error || words[run.state];
  byId("resume").hidden = run.state !== "interrupted";
  byId("resume").addEventListener("click", async () => {
    await ask("/api/runs/" + run.id + "/start", "POST", {});
    route();
  });
  withAgain(run);
}

function finished(run) {
  show("finished", run.name);
  const s = run.summary;
  byId("lede").textContent = inShort(run) + ": " + s.panel.slice(0, 12).join(", ") + (s.panel.length > 12 ? " …" : "") + ". Balanced accuracy " + score(run) + ", measured on panels of " + s.sizes.low + " to " + s.sizes.high + " features; " + (verdicts[s.verdict] || s.verdict) + ".";
  const page = "/runs/" + run.id + "/report/report.html";
  byId("read").href = page;
  byId("report").src = page;
  for (const name of run.outputs) {
    const item = element("li"), path = "/runs/" + run.id + "/" + name.split("/").map(encodeURIComponent).join("/");
    item.append(element("a", name, { href: path, download: name.split("/").pop() }));
    byId("outputs").append(item);
  }
  byId("command").textContent = "cd " + quote(form.folder + "/" + run.id) + "\nsparsegsvp " + run.command.map(quote).join(" ");
  withAgain(run);
  byId("panel").value = s.panel.join("\n");
  byId("bench").addEventListener("click", async () => {
    const names = byId("panel").value.split("\n").map((name) => name.trim()).filter(Boolean);
    byId("bench").disabled = true;
    byId("benched").textContent = "Scoring " + names.length + " features in the same folds …";
    try {
      const found = await ask("/api/runs/" + run.id + "/bench", "POST", { panel: names });
      byId("benched").textContent = found.sentences.join(" ");
    } catch (error) { byId("benched").textContent = error.message; }
    byId("bench").disabled = false;
  });
  byId("apply").addEventListener("change", async () => {
    byId("applied").textContent = "Classifying …";
    try {
      const found = await send("/api/runs/" + run.id + "/predict", byId("apply").files[0]);
      const counts = {};
      for (const label of found.predictions) counts[label] = (counts[label] || 0) + 1;
      const link = element("a", found.file, { href: "/runs/" + run.id + "/" + found.file, download: found.file });
      byId("applied").replaceChildren(Object.entries(counts).map((pair) => pair.join(" ")).join(", ") + ". " + found.notices.join(" ") + " ", link);
    } catch (error) { byId("applied").textContent = error.message; }
  });
}

function quote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\"'\"'") + "'";
}

// --- which of these is shown ---

async function route() {
  clearTimeout(watch);
  const id = location.hash.slice(1);
  try {
    form ||= await ask("/api/form");
    if (!id) return await home();
    if (id.includes("+")) return await pair(id.split("+").slice(0, 2));
    const run = await ask("/api/runs/" + id);
    const shown = { draft, running, finished, cancelled: ended, failed: ended, interrupted: ended };
    return await shown[run.state](run);
  } catch (error) {
    main.replaceChildren(element("p", undefined, { className: "error" }), element("a", "Back to the list", { href: "#" }));
    complain(error);
  }
}

addEventListener("hashchange", route);
route();
