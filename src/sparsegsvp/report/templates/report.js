"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const data = JSON.parse(by("page-data").textContent);

  // light and dark
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  by("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });

  // tips of drawings: titles become data, so that the browser does not show them as well
  for (const title of all("svg title")) {
    title.parentElement.dataset.tip = title.textContent;
    title.remove();
  }
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
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.addEventListener("scroll", () => { if (!document.querySelector(".here")) hush(); }, { passive: true });
  document.addEventListener("focusout", hush);
  // in a drawing, arrow keys go from one thing to the next, and Enter chooses it
  for (const svg of all("svg[tabindex]")) {
    svg.addEventListener("keydown", (event) => {
      const parts = all("[data-tip]", svg);
      const at = parts.indexOf(svg.querySelector(".here"));
      if (event.key === "Escape") { hush(); return; }
      if (event.key === "Enter" && at >= 0) { parts[at].dispatchEvent(new Event("click", { bubbles: true })); return; }
      const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: parts.length - 1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      const target = parts[Math.min(Math.max(steps[event.key], 0), parts.length - 1)];
      hush();
      target.classList.add("here");
      const box = target.getBoundingClientRect();
      say(target, box.left + box.width / 2, box.top);
    });
  }

  // the same method in a drawing and in a table
  const light = (event) => {
    const link = event.target.closest("[data-link]")?.dataset.link;
    for (const part of all("[data-link]")) part.classList.toggle("lit", part.dataset.link === link);
  };
  if (document.querySelector("[data-link]")) {
    document.addEventListener("pointerover", light);
    document.addEventListener("pointerdown", light);
  }

  // sortable tables
  for (const table of all("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button")?.addEventListener("click", () => {
        const text = head.dataset.kind === "text";
        const before = head.getAttribute("aria-sort");
        // numbers start with the largest, but for the rank in the first column
        const first = text || column === 0 ? "ascending" : "descending";
        const order = before ? (before === "ascending" ? "descending" : "ascending") : first;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const key = (row) => row.cells[column].dataset.sort;
        table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => {
          const x = key(a), y = key(b);
          if (text) return sign * x.localeCompare(y, undefined, { numeric: true });
          if (x === "" || y === "") return (x === "") - (y === "");
          return sign * (Number(x) - Number(y));
        }));
      });
    });
  }

  // the ladder: any size shows its panel
  const panel = by("panel-table");
  if (panel && data.rungs && by("ladder-table")) {
    const rows = new Map([...panel.tBodies[0].rows].map((row) => [Number(row.dataset.feature), row]));
    const percent = (v) => `${Math.round(100 * v)}%`;
    const own = by("ladder-table").querySelector("tr.own")?.dataset.rung ?? "";
    const show = (size) => {
      const rung = data.rungs[size];
      for (const row of rows.values()) row.hidden = true;
      rung.features.forEach(([index, itself, any], i) => {
        const row = rows.get(index);
        row.hidden = false;
        row.cells[0].textContent = row.cells[0].dataset.sort = i + 1;
        const cell = row.querySelector(".again");
        if (!cell || any === null) return;
        cell.dataset.sort = any;
        cell.querySelector("b").textContent = percent(any);
        cell.querySelector("small").textContent = `${percent(itself)} itself`;
        const bars = all(".bar", cell);
        bars[0].setAttribute("width", 100 * any);
        bars[1].setAttribute("width", 100 * itself);
      });
      const n = rung.features.length;
      const names = rung.features.map(([index]) => rows.get(index).querySelector(".feature").dataset.sort);
      const named = n > 6 ? `${names.slice(0, 5).join(", ")} and ${n - 5} more` : names.join(", ");
      by("rung-words").textContent = `Shown: the panel of ${n} feature${n === 1 ? "" : "s"} (${named}), balanced accuracy ${rung.score}. For its model and a page of its own, run again with ${n} as the number of features (--n-features ${n}).`;
      by("rungbar").hidden = size === own;
      for (const part of all("[data-rung]")) part.classList.toggle("lit", part.dataset.rung === size);
      panel.tHead.querySelector("button").dispatchEvent(new Event("click"));
      if (panel.tHead.rows[0].cells[0].getAttribute("aria-sort") !== "ascending") panel.tHead.querySelector("button").dispatchEvent(new Event("click"));
    };
    for (const part of all("[data-rung]")) {
      part.addEventListener("click", () => show(part.dataset.rung));
    }
    by("rung-back").addEventListener("click", () => show(own));
    for (const part of all(`tr[data-rung="${own}"]`)) part.classList.add("lit");
  }

  // where to draw the line: what acting from a probability on gives, at a prevalence
  const threshold = by("threshold");
  if (threshold) {
    const counts = data.slider, act = data.act;
    const prevalence = by("prevalence");
    const cursor = document.querySelector(".cursor");
    const ends = cursor?.dataset.ends.split(" ").map(Number);
    const lines = cursor?.getAttribute("d").match(/[\d.]+/g).map(Number);
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
      const from = odds / (1 + odds);
      const shown = {
        threshold: from, sensitivity, specificity,
        ppv: right + wrong > 0 ? right / (right + wrong) : null,
        npv: rest + missed > 0 ? rest / (rest + missed) : null,
      };
      for (const [name, value] of Object.entries(shown)) by(`at-${name}`).textContent = percent(value);
      const benefit = right - wrong * odds, everyone = share - (1 - share) * odds;
      by("at-net_benefit").textContent = benefit.toFixed(3);
      // whole samples that add up
      const [ill, hits, alarms] = [share, right, wrong].map((v) => Math.round(1000 * v));
      by("at-words").textContent = `Of 1,000 samples at this prevalence, ${ill} are ${act.label}: `
        + `${hits} of them are found and ${ill - hits} missed; ${alarms} of the ${1000 - ill} others are called so too. `
        + (benefit >= Math.max(everyone, 0) ? "Acting on the model is worth more here than acting on all or on no one."
          : `Acting on ${everyone > 0 ? "all" : "no one"} would be worth more here.`);
      threshold.setAttribute("aria-valuetext", `act from ${percent(from)}`);
      if (cursor) {
        const x = (ends[0] + from * (ends[1] - ends[0])).toFixed(1);
        cursor.setAttribute("d", `M${x} ${lines[1]}L${x} ${lines[3]}`);
        // the curve is for one prevalence only
        cursor.toggleAttribute("hidden", Math.abs(share - act.prevalence) > 1e-4);
      }
    };
    threshold.addEventListener("input", draw);
    prevalence.addEventListener("input", draw);
    draw();
  }

  // figures to take away: the drawing as it is, with the light rules inside
  const SVG = "http" + "://www.w3.org/2000/svg";
  const made = (name, attributes, text = "") => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const picture = (source) => {
    const copy = source.cloneNode(true);
    const [width, height] = source.getAttribute("viewBox").split(" ").slice(2);
    copy.removeAttribute("tabindex");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    for (const part of all("[data-tip]", copy)) {
      part.append(made("title", {}, part.dataset.tip));
      part.removeAttribute("data-tip");
    }
    for (const part of all(".cursor, .rung", copy)) part.remove();
    copy.prepend(made("style", {}, data.css), made("rect", { width, height, fill: "#ffffff" }));
    return copy;
  };
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  for (const button of all("[data-give]")) {
    button.addEventListener("click", () => {
      const { give: name, as: kind } = button.dataset;
      if (kind === "csv") { save(new Blob([data.numbers[name]], { type: "text/csv" }), `${name}.csv`); return; }
      const holder = by(`figure-${name}`);
      const svg = picture((holder.content ?? holder).querySelector("svg"));
      const text = new XMLSerializer().serializeToString(svg);
      if (kind === "svg") { save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`); return; }
      const image = new Image();
      image.addEventListener("load", () => {
        const canvas = document.createElement("canvas");
        canvas.width = 3 * svg.getAttribute("width");
        canvas.height = 3 * svg.getAttribute("height");
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
      });
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }

  // copying
  for (const button of all(".copy")) {
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
