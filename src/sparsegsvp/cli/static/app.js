"use strict";
// What comes from a file is put into the page as text, never as markup.
const main = document.getElementById("main");
const verdicts = { signal: "signal found", weak: "weak signal", none: "no better than chance", inconclusive: "not decided", "not tested": "not tested" };
// what a column may be for, by the option that says so
const uses = { keep: "feature", target: "the classes", id: "names of the samples", group: "keep together", batch: "batch, audited", adjust: "adjusted for", must: "feature, always in", ban: "feature, never in", drop: "left out" };
const lists = ["keep", "batch", "adjust", "must", "ban", "drop"], singles = ["target", "id", "group"];
let form = null, watch = 0;

const byId = (id) => main.querySelector("#" + id);
const many = (count, noun) => count.toLocaleString("en") + " " + noun + (count === 1 ? "" : "s");
const score = (s) => s.value === null ? "" : s.value.toFixed(2) + (s.low === null ? "" : " (" + s.low.toFixed(2) + " to " + s.high.toFixed(2) + ")");

function show(name, title) {
  main.replaceChildren(document.getElementById(name).content.cloneNode(true));
  if (title) main.querySelector("h1").textContent = title;
  main.focus({ preventScroll: true });
}

function element(name, content, attributes = {}) {
  const made = document.createElement(name);
  made.append(...[content ?? []].flat());
  for (const [key, value] of Object.entries(attributes)) if (key.includes("-")) made.setAttribute(key, value); else made[key] = value;
  return made;
}

const button = (content, act, attributes = {}) => element("button", content, { type: "button", onclick: act, ...attributes });
const row = (cells) => element("tr", cells.map((cell) => element("td", cell)));

async function ask(path, method = "GET", body) {
  const plain = body !== undefined && !(body instanceof Blob);
  let answer;
  try {
    answer = await fetch(path, { method, body: plain ? JSON.stringify(body) : body });
  } catch { throw new Error("The program that opened this page has ended. Start it again."); }
  const json = (answer.headers.get("content-type") || "").includes("json") ? await answer.json() : {};
  if (!answer.ok) throw Object.assign(new Error(json.error || "The server did not answer as it should (" + answer.status + ")."), json);
  return json;
}

const send = (path, file, more = "") => ask(path + "?name=" + encodeURIComponent(file.name) + more, "POST", file);

function complain(error, act) {
  const box = main.querySelector(".error");
  box.replaceChildren(error.message, actions(error.actions, act));
  box.hidden = false;
}

const calm = () => { main.querySelector(".error").hidden = true; };

function actions(offered, act) {
  const known = act ? (offered || []).filter((one) => form.fields.some((field) => field.name === one.option)) : [];
  return known.length ? element("div", known.map((one) => button(one.label, () => act(one.option, one.value))), { className: "actions" }) : "";
}

// --- the list of runs and the place to drop a file ---

async function home() {
  show("home");
  const drop = byId("drop"), input = byId("file");
  const take = async (file) => {
    drop.classList.remove("over");
    if (!file) return;
    calm();
    try { location.hash = (await send("/api/runs", file)).id; } catch (error) { complain(error); }
  };
  input.addEventListener("change", () => take(input.files[0]));
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files[0]); });
  const runs = await ask("/api/runs");
  byId("folder").textContent = form.folder;
  byId("runs").hidden = runs.length === 0;
  main.querySelector("tbody").append(...runs.map((run) => {
    const s = run.summary, when = element("small", " " + new Date(run.created * 1000).toLocaleString());
    return row([[element("a", run.name, { href: "#" + run.id }), when], s ? s.panel.length + " of " + many(s.n_features, "feature") : [], s ? score(s.score) : [], s ? verdicts[s.answer] : run.state === "draft" ? "not run yet" : run.state]);
  }));
}

// --- a file that was dropped: what is in it, what is to be done ---

async function draft(run) {
  show("draft", run.name);
  const at = "/api/runs/" + run.id;
  const choices = { ...run.choices };
  let files = run.files, care = run.care, seen = null, number = 0;
  const labelOf = (name) => form.fields.find((field) => field.name === name).label;

  // every change goes through here: what was understood before is grey until it is renewed
  async function renew() {
    const mine = ++number;
    byId("understood").classList.add("stale");
    byId("understood").inert = true;
    byId("go").disabled = byId("x-positive").disabled = true;
    byId("status").textContent = "Reading the table …";
    for (const made of byId("targets").children) made.setAttribute("aria-pressed", made.dataset.name === (choices.target || seen.target));
    chosen();
    try {
      const answer = await ask(at + "/look", "POST", { choices, care });
      if (mine !== number) return;
      if (answer.superseded) throw new Error("This run was changed in another tab: reload the page.");
      seen = answer;
      calm();
      // a cell that cannot be read is often one of a page before the data
      const sheets = seen.notices.filter((notice) => notice.code === "sheets").flatMap((notice) => notice.actions ?? []);
      if (seen.error) complain({ message: seen.error, actions: [...sheets, ...seen.actions] }, apply);
      understood();
    } catch (error) {
      if (mine === number) complain(error, apply);
    }
    if (mine === number) byId("status").textContent = "";
  }

  function forget(name) {
    for (const list of lists) if (choices[list]) choices[list] = choices[list].filter((other) => other !== name);
    for (const single of singles) if (choices[single] === name) delete choices[single];
  }

  function apply(option, value) {
    const names = [value].flat();
    if (option in uses) names.forEach(forget);
    if (option === "target") delete choices.positive;
    if (lists.includes(option)) choices[option] = [...(choices[option] || []), ...names];
    else if (option === "na" && choices.na) choices.na += "," + value;
    else choices[option] = option in uses ? names[0] : value;
    // a column that looked like no feature has to become one first
    if (["must", "ban"].includes(option)) choices.keep = [...(choices.keep || []), ...names];
    if (singles.includes(option)) for (const other of byId("roles").querySelectorAll("select")) if (other.value === option && other.dataset.name !== names[0]) other.value = "";
    renew();
  }

  function useOf(column) {
    for (const list of ["must", "ban", "batch", "adjust"]) if (choices[list]?.includes(column.name)) return list;
    if (!column.role) return [...lists, ...singles].find((option) => [choices[option]].flat().includes(column.name)) || "";
    return { target: "target", id: "id", group: "group", feature: "keep" }[column.role] || "drop";
  }

  function understood() {
    byId("looked").hidden = !seen.candidates.length && !seen.columns.length && !seen.shown;
    const { table, target } = seen;
    const candidates = seen.candidates.slice(0, 12);
    if (target && !candidates.some((one) => one.name === target)) candidates.unshift({ name: target, counts: table ? Object.fromEntries(table.classes.map((name, k) => [name, table.class_counts[k]])) : {} });
    byId("targets").replaceChildren(...candidates.map((one) => {
      const counts = Object.entries(one.counts).slice(0, 6).map((pair) => pair.join(" ")).join(", ");
      const guess = one.name === target && seen.proposed ? element("small", "a guess: please check") : "";
      return button([one.name, element("small", counts), guess], () => apply("target", one.name), { "aria-pressed": one.name === target, "data-name": one.name });
    }));
    if (!candidates.length) byId("targets").append("No column looks like classes: name it, or give a second file that has them.");
    byId("names").replaceChildren(...[...new Set([...seen.candidates, ...seen.columns].map((one) => one.name))].map((name) => element("option", [], { value: name })));
    byId("cells").replaceChildren(element("tr", (seen.shown || []).map((name) => element("th", name))), ...(seen.rows || []).map(row));
    byId("classes").textContent = !table ? "The table cannot be used yet." : many(table.n_samples, "sample") + ", " + many(table.n_features, "feature") + (table.classes.length ? ": " + table.classes.map((name, k) => name + " " + table.class_counts[k]).join(", ") : "") + (table.n_missing ? "; " + many(table.n_missing, "value") + " missing" : "") + ".";
    const grave = ["serious", "caution", "note"], notices = seen.notices.filter((notice) => notice.code !== "raw" || !choices.log2).sort((a, b) => grave.indexOf(a.severity) - grave.indexOf(b.severity));
    byId("notices").replaceChildren(...notices.map((notice) => element("li", [element("b", notice.title + ". "), notice.text, actions(notice.actions, apply)], { className: notice.severity })));
    // a table that cannot be used yet has no roles: those of its columns that are no plain numbers can be given
    const columns = table ? seen.columns : seen.candidates.map((one) => ({ name: one.name, role: one.name === target ? "target" : "", reason: Object.keys(one.counts).length + " values" }));
    const features = columns.filter((column) => useOf(column) === "keep" && !choices.keep?.includes(column.name) && column.reason === "numbers");
    // text that is adjusted for is there as "sex=m vs f", once for each of its levels but one
    const source = (column) => choices.adjust?.find((name) => column.name.startsWith(name + "=")) ?? column.name;
    const listed = columns.filter((column, i, all) => !features.includes(column) && all.findIndex((other) => source(other) === source(column)) === i).map((column) => ({ ...column, name: source(column) }));
    const rows = listed.slice(0, 60).map((column) => {
      const now = useOf(column), name = column.name || "(names of the rows)";
      const select = element("select", [element("option", "…", { value: "", hidden: true }), ...Object.entries(uses).map(([value, text]) => element("option", text, { value }))], { value: now, "aria-label": "What " + name + " is for", "data-name": name, disabled: !column.name });
      select.onchange = () => apply(select.value, column.name);
      const text = column.reason.startsWith("text");
      const offer = column.role === "covariate" && now === "drop" ? button(text ? "Adjust for it, as categories" : "Adjust for it", () => apply("adjust", column.name)) : column.role === "batch" && now === "drop" ? button("Audit it", () => apply("batch", column.name)) : "";
      return row([name, select, [column.reason, offer]]);
    });
    if (listed.length > 60) rows.push(row(["and " + (listed.length - 60) + " more", "", ""]));
    if (table) rows.push(row([many(table.n_features, "column"), "feature" + (table.n_features === 1 ? "" : "s"), "numbers"]));
    byId("roles").tBodies[0].replaceChildren(...rows);
    byId("roles").hidden = !rows.length;
    const classes = table && table.classes.length === 2 ? table.classes : [];
    const positive = byId("x-positive");
    positive.replaceChildren(...classes.map((name) => element("option", name + (name === table.positive && table.positive_guessed ? " (a guess)" : ""), { value: name, selected: name === table.positive })));
    for (const name of ["positive", "prevalence"]) byId("x-" + name).closest("label").hidden = !classes.length;
    byId("understood").classList.remove("stale");
    byId("understood").inert = false;
    byId("x-positive").disabled = false;
    byId("go").disabled = !table || !target;
  }

  // --- options: chips show what is chosen, fields change it ---

  const asText = (field, value) => value === undefined || value === null ? "" : field.many ? value.join(", ") : String(value);

  function chosen() {
    const chips = [];
    const chip = (text, undo) => chips.push(button(text, async () => { await undo(); renew(); }, { title: "Take it back" }));
    for (const [name, value] of Object.entries(choices)) {
      const hidden = ["target", "positive", "n_features"].includes(name);
      if (hidden || value === undefined || value === "" || value === false) continue;
      if (Array.isArray(value)) for (const one of value) chip(labelOf(name) + ": " + one, () => { choices[name] = value.filter((other) => other !== one); });
      else chip(value === true ? labelOf(name) : labelOf(name) + ": " + value, () => { delete choices[name]; });
    }
    for (const [option, name] of Object.entries(files)) chip((option === "labels" ? "File of the classes: " : "Another cohort: ") + name, () => attach(option, null));
    byId("chips").replaceChildren(...chips);
    for (const field of form.fields) {
      const input = byId("x-" + field.name);
      if (!input || input === document.activeElement) continue;
      if (input.type === "checkbox") input.checked = Boolean(choices[field.name]);
      else if (field.name !== "positive") input.value = asText(field, choices[field.name]);
    }
  }

  for (const field of form.fields) {
    if (["target", "fast"].includes(field.name)) continue;
    const switchable = field.kind === "bool" && field.default === false, id = "x-" + field.name;
    const input = field.name === "positive" || (field.kind === "bool" && !switchable) ? element("select", [], { id }) : element("input", [], { id, autocomplete: "off" });
    if (switchable) input.type = "checkbox";
    else if (field.kind === "bool") input.append(...[["", "find out"], ["true", "yes"], ["false", "no"]].map(([value, text]) => element("option", text, { value })));
    else if (["int", "float"].includes(field.kind)) Object.assign(input, { type: "number", step: field.kind === "int" ? "1" : "any", placeholder: field.default ?? "" });
    input.addEventListener("change", () => {
      const text = input.value.trim();
      if (switchable) choices[field.name] = input.checked || undefined;
      else if (text === "") delete choices[field.name];
      else if (field.kind === "bool") choices[field.name] = text === "true";
      else if (field.many) choices[field.name] = text.split(",").map((one) => one.trim()).filter(Boolean);
      else choices[field.name] = field.kind === "str" ? text : Number(text);
      renew();
    });
    const everyday = ["positive", "n_features", "prevalence"].includes(field.name);
    const place = everyday ? "everyday" : ["Rarely needed", "The run"].includes(field.section) ? "rare" : "more";
    const label = switchable ? element("label", [input, field.label]) : element("label", [field.label, input]);
    label.append(element("small", field.help));
    byId(place).append(label);
  }

  async function attach(option, file) {
    files = (await send(at + "/attach", file || { name: "" }, "&as=" + option)).files;
  }

  for (const option of ["labels", "test"]) byId(option).addEventListener("change", async () => {
    try { await attach(option, byId(option).files[0]); renew(); } catch (error) { complain(error); }
  });
  byId("care").value = care;
  byId("care").addEventListener("change", () => { care = byId("care").value; renew(); });
  byId("target").addEventListener("change", () => { const name = byId("target").value; byId("target").value = ""; if (name) apply("target", name); });
  byId("other").addEventListener("change", () => { const name = byId("other").value; byId("other").value = ""; if (name) apply("drop", name); });
  byId("go").addEventListener("click", async () => {
    byId("go").disabled = true;
    try {
      await ask(at + "/start", "POST", { choices: { ...choices, target: seen.target }, care });
      route();
    } catch (error) { complain(error, apply); byId("go").disabled = false; main.scrollIntoView(); }
  });
  await renew();
}

// --- a run that has begun ---

function running(run) {
  show("running", run.name);
  byId("cancel").addEventListener("click", async () => {
    byId("cancel").disabled = true;
    await ask("/api/runs/" + run.id + "/cancel", "POST", {});
    route();
  });
  const update = ({ stage, done, total }) => {
    byId("stage").textContent = stage[0].toUpperCase() + stage.slice(1) + (total > 1 ? ": " + done + " of " + total : "") + " …";
    if (total > 1) byId("bar").value = done / total;
    else byId("bar").removeAttribute("value");
  };
  update(run.progress);
  const poll = async () => {
    try {
      const now = await ask("/api/runs/" + run.id);
      if (location.hash.slice(1) !== run.id) return;
      if (now.state !== "running") { route(); return; }
      update(now.progress);
    } catch (error) { byId("stage").textContent = error.message; }
    watch = setTimeout(poll, 500);
  };
  watch = setTimeout(poll, 500);
}

async function again(run, choices = {}) {
  return await ask("/api/runs/" + run.id + "/again", "POST", { choices });
}

function ended(run) {
  show("ended", run.name);
  const words = { cancelled: "The run was cancelled; nothing was written.", interrupted: "The program ended before the run did; nothing was written." };
  complain({ message: run.error || words[run.state] });
  byId("again").addEventListener("click", async () => { location.hash = (await again(run)).id; });
}

function finished(run) {
  const s = run.summary, at = "/runs/" + run.id;
  show("finished", run.name);
  byId("source").textContent = s.headline;
  // the run itself, whose folds chose their sizes, has the place of the size that it chose
  const own = { size: s.panel.length, score: s.score, chosen: true };
  const ladder = [...s.ladder.filter((rung) => !rung.chosen), own].sort((a, b) => a.size - b.size);
  let size = null;
  const choose = (rung) => {
    size = rung.chosen ? null : rung.size;
    byId("apply").value = "";
    byId("applied").replaceChildren();
    const page = size === null ? at + "/report/index.html" : at + "/report/sizes/" + size + "/index.html";
    byId("read").href = byId("report").src = page;
    const place = "report/" + (size === null ? "" : "sizes/" + size + "/");
    const names = run.outputs.filter((name) => name.startsWith(place) && !name.slice(place.length).includes("/") || name.startsWith("predictions-"));
    byId("outputs").replaceChildren(...names.map((name) => element("li", element("a", name.split("/").pop(), { href: at + "/" + name.split("/").map(encodeURIComponent).join("/"), download: name.split("/").pop() }))));
    byId("which").textContent = "The model of " + many(size ?? s.panel.length, "feature") + " is used.";
    [...byId("ladder").children].forEach((made, i) => made.setAttribute("aria-pressed", ladder[i] === rung));
  };
  byId("sizes").hidden = ladder.length < 2;
  byId("ladder").append(...ladder.map((rung) => {
    const value = rung.score;
    return button([element("b", String(rung.size)), rung.size === 1 ? " feature" : " features", element("meter", [], { min: 0, max: 1, value: value.value, "aria-hidden": true }), value.value.toFixed(2), element("small", value.low === null ? "" : value.low.toFixed(2) + " to " + value.high.toFixed(2)), element("small", rung.chosen ? "chosen by the run" : "")], () => choose(rung));
  }));
  choose(ladder.find((rung) => rung.chosen));
  byId("command").textContent = "cd " + quote(form.folder + "/" + run.id) + "\nsparsegsvp " + run.command.map(quote).join(" ");
  byId("again").addEventListener("click", async () => { location.hash = (await again(run)).id; });
  byId("panel").value = s.panel.join("\n");
  byId("bench").addEventListener("click", async () => {
    const panel = byId("panel").value.split("\n").map((name) => name.trim()).filter(Boolean);
    try {
      const next = await again(run, { panel });
      await ask("/api/runs/" + next.id + "/start", "POST", { choices: next.choices, care: next.care });
      location.hash = next.id;
    } catch (error) { complain(error); main.scrollIntoView(); }
  });
  byId("apply").addEventListener("change", async () => {
    byId("applied").textContent = "Classifying …";
    try {
      const made = await send("/api/runs/" + run.id + "/predict", byId("apply").files[0], size === null ? "" : "&as=" + size);
      const counts = Object.entries(made.counts).map((pair) => pair.join(" ")).join(", ");
      const link = element("a", "all " + many(made.n_rows, "prediction"), { href: at + "/" + made.file, download: made.file });
      const rows = element("table", [element("tr", made.header.map((name) => element("th", name))), ...made.rows.map((cells) => row(cells.map((cell) => /^0\.\d{4,}/.test(cell) ? Number(cell).toFixed(3) : cell)))], { className: "cells" });
      byId("applied").replaceChildren(element("p", [counts + ": ", link]), ...made.notes.map((note) => element("p", note.replace("note: ", ""), { className: "fine" })), element("div", rows, { className: "wide" }));
    } catch (error) { byId("applied").replaceChildren(element("div", error.message, { className: "error" })); }
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
    const run = await ask("/api/runs/" + id);
    return await ({ draft, running, finished }[run.state] || ended)(run);
  } catch (error) {
    main.replaceChildren(element("div", [], { className: "error" }), element("a", "Back to the list", { href: "#" }));
    complain(error);
  }
}

addEventListener("hashchange", route);
route();
