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

  // what a pointer shows
  const tip = by("tip");
  const show = (event) => {
    const target = event.target.closest("[data-tip]");
    if (!target) { tip.hidden = true; return; }
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const above = event.clientY - box.height - 12;
    tip.style.transform = `translate(${Math.max(8, x)}px, ${above > 4 ? above : event.clientY + 18}px)`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

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
    const path = JSON.parse(by("path-data").textContent);
    const cursors = [...document.querySelectorAll(".cursor")].map(
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
