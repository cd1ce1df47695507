"use strict";
(() => {
  const by = (id) => document.getElementById(id);

  // light and dark
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  by("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });

  const data = JSON.parse(by("page-data").textContent);

  // what a pointer shows, and what the keyboard reaches
  const tip = by("tip");
  const say = (target, x, y) => {
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(x + 14, window.innerWidth - box.width - 8);
    const above = y - box.height - 12;
    tip.style.transform = `translate(${Math.max(8, left)}px, ${above > 4 ? above : y + 18}px)`;
  };
  const hush = () => {
    tip.hidden = true;
    document.querySelector(".here")?.classList.remove("here");
  };
  const point = (event) => {
    const target = event.target.closest("[data-tip]");
    if (target) say(target, event.clientX, event.clientY);
    else if (!document.querySelector(".here")) tip.hidden = true;
  };
  const reach = (target) => {
    hush();
    target.classList.add("here");
    const box = target.getBoundingClientRect();
    say(target, box.left + box.width / 2, box.top);
  };
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.addEventListener("scroll", () => { if (!document.querySelector(".here")) hush(); }, { passive: true });
  document.addEventListener("focusin", (event) => {
    if (event.target.matches("td[data-tip]") && event.target.matches(":focus-visible")) reach(event.target);
  });
  document.addEventListener("focusout", hush);
  for (const cell of document.querySelectorAll("td[data-tip]")) cell.tabIndex = 0;
  // in a drawing, arrow keys go from one thing to the next
  for (const svg of document.querySelectorAll("svg[tabindex]")) {
    svg.addEventListener("keydown", (event) => {
      const all = [...svg.querySelectorAll("[data-tip]")];
      const at = all.indexOf(svg.querySelector(".here"));
      const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };
      if (event.key === "Escape") { hush(); return; }
      if (!(event.key in steps)) return;
      event.preventDefault();
      reach(all[Math.min(Math.max(steps[event.key], 0), all.length - 1)]);
    });
  }

  // the same thing in a drawing and in a table
  const light = (event) => {
    const link = event.target.closest("[data-link]")?.dataset.link;
    for (const part of document.querySelectorAll("[data-link]")) {
      part.classList.toggle("lit", part.dataset.link === link);
    }
  };
  if (document.querySelector("[data-link]")) {
    document.addEventListener("pointerover", light);
    document.addEventListener("pointerdown", light);
  }

  // sortable tables
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const text = head.dataset.kind === "text";
        const before = head.getAttribute("aria-sort");
        // numbers start with the largest, but for the rank in the first column
        const first = text || column === 0 ? "ascending" : "descending";
        const order = before ? (before === "ascending" ? "descending" : "ascending") : first;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const key = (row) => row.cells[column].dataset.sort;
        const rows = [...body.rows].sort((a, b) => {
          const x = key(a), y = key(b);
          if (text) return sign * x.localeCompare(y, undefined, { numeric: true });
          if (x === "" || y === "") return (x === "") - (y === "");
          return sign * (Number(x) - Number(y));
        });
        body.append(...rows);
        fold(table, false);
      });
    });
  }

  // long tables start folded
  const most = 20;
  function fold(table, first) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length <= most + 5 || table.dataset.open) return;
    rows.forEach((row, i) => row.classList.toggle("hide", i >= most));
    if (!first) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "showall";
    button.textContent = `Show all ${rows.length} ${table.dataset.rows}`;
    button.addEventListener("click", () => {
      table.dataset.open = "yes";
      rows.forEach((row) => row.classList.remove("hide"));
      button.remove();
    });
    table.after(button);
  }
  document.querySelectorAll("table.sortable").forEach((table) => fold(table, true));

  // the path
  const slider = by("slider");
  if (slider) {
    const path = data.path;
    const cursors = [...document.querySelectorAll(".cursor:not(.act)")].map(
      (line) => [line, line.dataset.places.split(" ")]);
    const number = (v) => Number(v.toPrecision(3)).toString();
    const names = (list) => list.slice(0, 8).map((f) => path.features[f]).join(", ")
      + (list.length > 8 ? ` and ${list.length - 8} more` : "");
    const shown = 60;
    const draw = () => {
      const at = Number(slider.value);
      const step = path.steps[at];
      const known = step.accuracy !== null;
      const value = known ? step.accuracy : step.score;
      const error = known ? step.accuracy_error : step.score_error;
      by("path-delta").textContent = step.delta.map(number).join(" / ");
      by("path-size").textContent = `${step.panel.length} feature${step.panel.length === 1 ? "" : "s"}`;
      by("path-score").textContent = `${value.toFixed(3)} ± ${error.toFixed(3)}`;
      const fresh = new Set(step.entering);
      const chips = step.panel.slice(0, shown).map((f) => {
        const chip = document.createElement("li");
        chip.textContent = path.features[f];
        if (fresh.has(f)) chip.className = "new";
        return chip;
      });
      if (step.panel.length > shown) {
        const more = document.createElement("li");
        more.className = "more";
        more.textContent = `and ${step.panel.length - shown} more`;
        chips.push(more);
      }
      by("path-panel").replaceChildren(...chips);
      const changes = [];
      if (at > 0 && step.entering.length) changes.push(`Entering here: ${names(step.entering)}.`);
      if (step.leaving.length) changes.push(`Leaving: ${names(step.leaving)}.`);
      if (at === 0) changes.push("Where the path starts.");
      if (at === path.chosen) changes.push("This is the chosen step.");
      if (!changes.length) changes.push("The same panel as one step before.");
      by("path-changes").textContent = changes.join(" ");
      slider.setAttribute("aria-valuetext", `${step.panel.length} features`);
      for (const [line, places] of cursors) {
        line.setAttribute("x1", places[at]);
        line.setAttribute("x2", places[at]);
      }
    };
    slider.addEventListener("input", draw);
    draw();
  }

  // where to draw the line: what acting from a probability on gives, at a prevalence
  const threshold = by("threshold");
  if (threshold) {
    const { counts, decision } = data;
    const prevalence = by("prevalence");
    const cursor = document.querySelector(".cursor.act");
    const ends = cursor?.dataset.places.split(" ").map(Number);
    const percent = (v) => (v === null ? "–" : `${(100 * v).toFixed(1)}%`);
    const draw = () => {
      const share = Number(prevalence.value) / 100;
      prevalence.setAttribute("aria-invalid", !(share > 0 && share < 1));
      if (!(share > 0 && share < 1)) return;
      const evidence = Number(threshold.value);
      const balanced = 1 / (1 + Math.exp(-evidence));
      const at = counts.threshold.findIndex((cut) => cut >= balanced);
      const rate = (yes, no) => counts[yes][at] / (counts[yes][at] + counts[no][at]);
      const sensitivity = at < 0 ? 0 : rate("tp", "fn");
      const specificity = at < 0 ? 1 : rate("tn", "fp");
      const right = share * sensitivity, wrong = (1 - share) * (1 - specificity);
      const missed = share - right, rest = 1 - share - wrong;
      const odds = Math.exp(evidence) * share / (1 - share);
      const act = odds / (1 + odds);
      const shown = {
        threshold: act, sensitivity, specificity,
        ppv: right + wrong > 0 ? right / (right + wrong) : null,
        npv: rest + missed > 0 ? rest / (rest + missed) : null,
      };
      for (const [name, value] of Object.entries(shown)) by(`at-${name}`).textContent = percent(value);
      const benefit = right - wrong * odds, all = share - (1 - share) * odds;
      by("at-net_benefit").textContent = benefit.toFixed(3);
      const many = (v) => Math.round(1000 * v).toLocaleString("en");
      by("at-words").textContent = `Of 1,000 samples at this prevalence, ${many(share)} are ${decision.label}: `
        + `${many(right)} of them are found and ${many(missed)} missed; ${many(wrong)} of the ${many(1 - share)} others are called so too. `
        + (benefit >= Math.max(all, 0) ? "Acting on the model is worth more here than acting on all or on no one."
          : `Acting on ${all > 0 ? "all" : "no one"} would be worth more here.`);
      threshold.setAttribute("aria-valuetext", `act from ${percent(act)}`);
      if (cursor) {
        const x = ends[0] + act * (ends[1] - ends[0]);
        cursor.setAttribute("x1", x);
        cursor.setAttribute("x2", x);
        // the curve is for one prevalence only
        cursor.toggleAttribute("hidden", Math.abs(share - decision.prevalence) > 1e-4);
      }
    };
    threshold.addEventListener("input", draw);
    prevalence.addEventListener("input", draw);
    draw();
  }

  // figures to take away: light, with their legend, complete in themselves
  const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin",
    "opacity", "font-size", "font-weight", "text-anchor"];
  const SVG = "http" + "://www.w3.org/2000/svg";
  const made = (name, attributes, ...children) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const styled = (source) => {
    const copy = source.cloneNode(true);
    const from = [...source.querySelectorAll("*")];
    [...copy.querySelectorAll("*")].forEach((part, i) => {
      const look = getComputedStyle(from[i]);
      if (part.matches(".act, .hit")) { part.remove(); return; }
      let target = part;
      if (part.localName === "use") {
        const d = document.querySelector(part.getAttribute("href")).getAttribute("d");
        target = made("path", { d, transform: `translate(${part.getAttribute("x")} ${part.getAttribute("y")})` });
        part.replaceWith(target);
      }
      if (part.localName !== "g") for (const name of kept) target.setAttribute(name, look.getPropertyValue(name));
      if (part.dataset.tip) target.append(made("title", {}, part.dataset.tip));
      for (const name of ["class", "data-tip", "data-link", "data-places"]) target.removeAttribute(name);
    });
    return copy;
  };
  const picture = (drawings) => {
    const root = document.documentElement, before = root.dataset.theme;
    root.dataset.theme = "light";
    let top = 0, width = 0;
    const parts = drawings.map((source, k) => {
      const copy = styled(source);
      const { width: wide, height } = source.viewBox.baseVal;
      const keys = copy.querySelector("[data-height]");
      const inside = made("g", {}, ...[...copy.childNodes].filter((node) => node !== keys));
      const group = made("g", { transform: `translate(0 ${top})` });
      let head = 0;
      if (keys && k === 0) {
        head = Number(keys.dataset.height);
        group.append(made("g", {}, ...keys.childNodes));
      }
      if (source.dataset.title) {
        head += 22;
        group.append(made("text", { x: 8, y: head - 7, "font-size": 12, "font-weight": 600, fill: "#1c2127" }, source.dataset.title));
      }
      inside.setAttribute("transform", `translate(0 ${head})`);
      group.append(inside);
      top += head + height;
      width = Math.max(width, wide);
      return group;
    });
    if (before === undefined) delete root.dataset.theme; else root.dataset.theme = before;
    const size = { width, height: top };
    return made("svg", { ...size, viewBox: `0 0 ${width} ${top}`, "font-family": "Inter, Segoe UI, Helvetica, Arial, sans-serif" },
      made("rect", { ...size, fill: "#ffffff" }), ...parts);
  };
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const drawn = (name) => (name === "boxes" ? [...document.querySelectorAll("svg.boxes")]
    : [document.querySelector(`[id="figure-${name}"] svg`)]);
  for (const button of document.querySelectorAll("[data-give]")) {
    button.addEventListener("click", () => {
      const { give: name, as: kind } = button.dataset;
      if (kind === "csv") { save(new Blob([data.numbers[name]], { type: "text/csv" }), `${name}.csv`); return; }
      const svg = picture(drawn(name));
      const text = new XMLSerializer().serializeToString(svg);
      if (kind === "svg") { save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`); return; }
      const image = new Image();
      image.addEventListener("load", () => {
        const canvas = document.createElement("canvas");
        const scale = 3;
        canvas.width = scale * svg.getAttribute("width");
        canvas.height = scale * svg.getAttribute("height");
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
      });
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }

  // copying
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const source = by(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        const range = document.createRange();
        range.selectNodeContents(source);
        const selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        button.textContent = "Selected";
      }
    });
  }
})();
