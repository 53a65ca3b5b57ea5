// Draws a group's lanes, and keeps a page of `kohort ui` up to date. Loads nothing, writes text only as text.
"use strict";
(() => {
  const NOBODY = -1, UNKNOWN = -2, ROW = 20, AXIS = 44, LAG = 90, LEFT = 190, RIGHT = 74;
  const SVG = "http://www.w3.org/2000/svg";
  const $ = (id) => document.getElementById(id);

  function make(name, attributes = {}, ...children) {
    const made = name.startsWith("svg:") ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  // An owner keeps its colour while the page is open. Those that come one after the other get hues far apart; the
  // lightness is the style's.
  const numbers = new Map();
  function colour([, id]) {
    if (!numbers.has(id)) numbers.set(id, numbers.size);
    return `oklch(var(--lane-l) var(--lane-c) ${((numbers.get(id) * 137.508 + 250) % 360).toFixed(1)})`;
  }
  const count = (value) => (value === null || value === undefined ? "-" : value.toLocaleString("en"));

  // Times are UTC, or in the browser's zone if its user has chosen so; pages are rendered in UTC.
  const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone, KEPT = "kohort-local-time";
  let local = false;
  try { local = localStorage.getItem(KEPT) === "yes"; } catch { /* where nothing may be kept, UTC comes back */ }
  const zone = () => (local ? ZONE : "UTC");
  const ahead = (ms) => (local ? new Date(ms).getTimezoneOffset() * -60_000 : 0);
  const stamp = (ms, digits = 19) => new Date(ms + ahead(ms)).toISOString().slice(0, digits).replace("T", " ");
  const zoned = (text) => text.replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)?( UTC)?/g,
    (_, day, time, part = "", named = "") => stamp(Date.parse(`${day}T${time}${part}Z`), 19 + part.length) + (named && ` ${zone()}`));
  function showZone(root) {
    for (const place of root.querySelectorAll("time, .dated, #trouble, .notes li")) {
      if (place.children.length) continue;
      place.dataset.utc ??= place.textContent;
      if (place.textContent !== zoned(place.dataset.utc)) place.textContent = zoned(place.dataset.utc);
    }
    const swap = (text) => text.replace(local ? "(UTC)" : `(${ZONE})`, `(${zone()})`);
    for (const head of root.querySelectorAll("thead th:not(:has(*)), thead button, option")) {
      if (head.textContent !== swap(head.textContent)) head.textContent = swap(head.textContent);
    }
    for (const cell of root.querySelectorAll("[data-label$=')']")) cell.dataset.label = swap(cell.dataset.label);
  }
  const brief = (value) =>
    value === null ? "-" : value < 1e4 ? String(value) : value < 1e6 ? `${(value / 1e3).toFixed(0)}k`
      : value < 1e9 ? `${(value / 1e6).toFixed(1)}M` : `${(value / 1e9).toFixed(1)}G`;
  const cut = (text, width) => {
    const most = Math.floor(width / 6.3);
    return text.length <= most ? text : most < 3 ? "" : `${text.slice(0, most - 1)}…`;
  };

  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
    604800, 2592000, 31536000].map((s) => s * 1000);

  class Lanes {
    constructor(root, model) {
      this.root = root;
      this.follow = this.fit = true;
      this.filter = "";
      this.by = "partition";
      this.view = null;
      this.chosen = 0;
      this.build();
      this.load(model);
      new ResizeObserver(() => this.later()).observe(root);
    }

    build() {
      const button = (words, label, act) =>
        make("button", { type: "button", "aria-label": label, title: label, onclick: act }, words);
      this.followButton = button("now", "Follow the present", () => { this.follow = this.fit = !this.follow; this.load(this.model); });
      this.range = make("span", { class: "range" });
      const find = make("input", {
        type: "search", "aria-label": "Show only partitions and owners with this text", placeholder: "topic or owner",
        oninput: () => { this.filter = find.value.trim().toLowerCase(); this.arrange(); },
      });
      const rows = make("select", { "aria-label": "A row for each", onchange: () => { this.by = rows.value; this.arrange(); } },
        make("option", { value: "partition" }, "by partition"), make("option", { value: "moved" }, "that moved"),
        make("option", { value: "lag" }, "by lag"), make("option", { value: "owner" }, "by owner"));
      const bar = make("div", { class: "bar", role: "toolbar", "aria-label": "Time and rows" },
        button("−", "Longer time", () => this.zoom(2)), button("+", "Shorter time", () => this.zoom(0.5)),
        button("◀", "Earlier", () => this.pan(-0.5)), button("▶", "Later", () => this.pan(0.5)),
        button("all", "All that is known", () => this.all()), this.followButton, rows, find, this.range);
      this.axis = make("svg:svg", { height: AXIS, role: "group", "aria-label": "Generations: arrow keys go from one to the next" });
      this.body = make("svg:svg", { "aria-hidden": "true" });
      this.tall = make("div", {}, this.body);
      this.rows = make("div", { class: "rows", tabindex: "0", role: "region", "aria-label": "Rows of the picture",
        onscroll: () => this.later(), onpointermove: (e) => this.point(e), onpointerleave: () => { this.tip.hidden = true; },
        onwheel: (e) => { if (e.ctrlKey || e.metaKey) { e.preventDefault(); this.zoom(e.deltaY > 0 ? 1.3 : 0.77); } } }, this.tall);
      this.lag = make("svg:svg", { height: LAG, role: "img" });
      this.tip = make("div", { class: "tip", hidden: "" });
      this.root.replaceChildren(bar, this.axis, this.rows, this.lag, this.tip);
      this.axis.addEventListener("keydown", (e) => this.key(e));
    }

    load(model) {
      if (model !== this.model) this.offset = model.now - performance.now();
      this.model = model;
      if (this.fit) {
        // the last rebalances fill the picture, not the quiet time before them
        const known = model.generations.slice(-8);
        const first = known.length ? known[0][1] - (known[0][2] || 0) : model.since;
        this.view = { from: first - Math.max(3_000, model.now - first) * 0.06, to: model.now };
      }
      this.arrange();
      this.swatches();
    }

    swatches() {
      const owners = new Map(this.model.owners.map((owner) => [owner[1], owner]));
      for (const swatch of document.querySelectorAll(".swatch[data-owner]")) {
        const owner = owners.get(swatch.dataset.owner);
        if (owner) swatch.style.background = colour(owner);
      }
    }

    tick(news) {
      this.model.now = news.now;
      this.offset = news.now - performance.now();
      if (news.lags && news.lags.length === this.model.lanes.length) news.lags.forEach((lag, i) => { this.model.lanes[i][2] = lag; });
      if (news.lag !== null) this.model.lag.push([news.now, news.lag]);
      if (this.model.lag.length > 1200) this.model.lag.splice(1, 300);
      this.later();
    }

    arrange() {
      const { lanes, owners } = this.model;
      const wanted = ([topic, partition, , spans]) => !this.filter || `${topic}-${partition}`.toLowerCase().includes(this.filter)
        || spans.some(([, owner]) => owner >= 0 && owners[owner][0].toLowerCase().includes(this.filter));
      let shown = lanes.filter(wanted);
      if (this.by === "moved") shown = shown.filter((lane) => lane[3].length > 1);
      if (this.by === "lag") shown = [...shown].sort((a, b) => (b[2] ?? -1) - (a[2] ?? -1));
      this.shown = this.by === "owner" ? this.byOwner() : shown.map((lane) => ({
        name: `${lane[0]}-${lane[1]}`, lane, spans: lane[3],
      }));
      this.later();
    }

    // a row for each owner: how many partitions it had when
    byOwner() {
      const changes = this.model.owners.map(() => []);
      for (const [, , , spans] of this.model.lanes) {
        spans.forEach(([start, owner], i) => {
          if (owner < 0) return;
          changes[owner].push([start, 1]);
          if (i + 1 < spans.length) changes[owner].push([spans[i + 1][0], -1]);
        });
      }
      const rows = changes.map((list, owner) => {
        list.sort((a, b) => a[0] - b[0]);
        const steps = [];
        let total = 0;
        for (const [at, by] of list) {
          total += by;
          if (steps.length && steps.at(-1)[0] === at) steps.at(-1)[2] = total;
          else steps.push([at, owner, total]);
        }
        return { name: this.model.owners[owner][0], owner, spans: steps, total };
      });
      return rows.filter((row) => !this.filter || row.name.toLowerCase().includes(this.filter))
        .sort((a, b) => b.total - a.total || a.name.localeCompare(b.name));
    }

    later() {
      if (!this.waiting) this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
    }

    get now() { return this.model.live ? this.offset + performance.now() : this.model.now; }
    get width() { return Math.max(240, this.rows.clientWidth); }
    get left() { return Math.min(LEFT, this.width * 0.3); }
    x(ms) { return this.left + (ms - this.view.from) / (this.view.to - this.view.from) * (this.width - this.left - RIGHT); }
    at(x) { return this.view.from + (x - this.left) / (this.width - this.left - RIGHT) * (this.view.to - this.view.from); }

    zoom(factor) {
      this.fit = false;
      const span = Math.min(Math.max((this.view.to - this.view.from) * factor, 200), 4e11);
      const middle = this.follow ? this.view.to - span / 2 : (this.view.from + this.view.to) / 2;
      this.view = { from: middle - span / 2, to: middle + span / 2 };
      this.later();
    }
    pan(part) {
      const by = (this.view.to - this.view.from) * part;
      this.follow = this.fit = false;
      this.view = { from: this.view.from + by, to: this.view.to + by };
      this.later();
    }
    all() {
      const { since, generations, now } = this.model;
      const first = Math.min(since, ...generations.map((g) => g[1] - (g[2] || 0)));
      this.view = { from: first - (now - first) * 0.03 - 500, to: now };
      this.follow = true;
      this.fit = false;
      this.later();
    }

    draw() {
      if (this.follow) {
        const by = this.now - this.view.to;
        this.view = { from: this.fit ? Math.min(this.view.from, this.now - 3_000) : this.view.from + by, to: this.now };
      }
      this.followButton.setAttribute("aria-pressed", String(this.follow));
      this.range.textContent = `${stamp(this.view.from)} to ${stamp(this.view.to).slice(11)} ${zone()}`;
      this.drawAxis();
      this.drawRows();
      this.drawLag();
    }

    ticks() {
      const span = this.view.to - this.view.from;
      const step = STEPS.find((each) => each > span / Math.max(2, this.width / 130)) ?? STEPS.at(-1);
      const found = [];
      const by = ahead(this.view.from);
      for (let at = Math.ceil((this.view.from + by) / step) * step - by; at < this.view.to; at += step) found.push(at);
      return { found, digits: step >= 86400000 ? [0, 10] : step >= 60000 ? [11, 16] : [11, 19] };
    }

    drawAxis() {
      const parts = [];
      const { found, digits } = this.ticks();
      for (const at of found) parts.push(make("svg:text", { x: this.x(at), y: 12, "text-anchor": "middle" }, stamp(at).slice(...digits)));
      const focused = document.activeElement?.closest?.("[data-gen]")?.dataset.gen;
      let last = -Infinity;
      const { generations } = this.model;
      this.chosen = Math.min(this.chosen, Math.max(0, generations.length - 1));
      generations.forEach(([generation, at, , headline], i) => {
        const x = this.x(at);
        if (at < this.view.from || x > this.width - RIGHT + 1) return;
        const room = x - last > 26;
        if (room) last = x;
        const label = `Generation ${generation < 0 ? "unknown" : generation}, ${stamp(at)} ${zone()}: ${headline}`;
        parts.push(make("svg:g", { role: "button", tabindex: i === this.chosen ? 0 : -1, "data-gen": i, "aria-label": label,
          onclick: () => this.open(i), onfocus: (e) => this.tell(label, e.target.getBoundingClientRect()), onblur: () => { this.tip.hidden = true; },
          onpointerenter: (e) => this.tell(label, e.target.getBoundingClientRect()), onpointerleave: () => { this.tip.hidden = true; } },
        make("svg:rect", { x: x - 7, y: 18, width: 14, height: AXIS - 18, fill: "transparent" }),
        make("svg:line", { class: "gen", x1: x, x2: x, y1: room ? 33 : 36, y2: AXIS }),
        room ? make("svg:text", { x, y: 30, "text-anchor": "middle" }, generation < 0 ? "?" : String(generation)) : ""));
      });
      // the one that the Tab key reaches has to be in sight
      if (!parts.some((part) => part.getAttribute("tabindex") === "0")) parts.findLast((part) => part.dataset.gen)?.setAttribute("tabindex", "0");
      this.axis.replaceChildren(...parts);
      if (focused !== undefined) this.axis.querySelector(`[data-gen="${focused}"]`)?.focus({ preventScroll: true });
    }

    key(e) {
      const current = Number(document.activeElement?.dataset?.gen ?? -1);
      const by = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[e.key];
      if (current < 0) return;
      if (e.key === "Enter" || e.key === " ") { e.preventDefault(); this.open(current); return; }
      if (!by) return;
      e.preventDefault();
      this.chosen = Math.min(Math.max(current + by, 0), this.model.generations.length - 1);
      const at = this.model.generations[this.chosen][1];
      if (at < this.view.from || at > this.view.to) {
        const half = (this.view.to - this.view.from) / 2;
        this.follow = this.fit = false;
        this.view = { from: at - half, to: at + half };
      }
      this.drawAxis();
      this.axis.querySelector(`[data-gen="${this.chosen}"]`)?.focus();
      this.later();
    }

    open(i) {
      const [generation, at] = this.model.generations[i];
      this.chosen = i;
      const details = $(`g-${generation}-${at}`);
      if (!details) return;
      details.open = true;
      details.scrollIntoView({ block: "center" });
      details.querySelector("summary").focus({ preventScroll: true });
    }

    drawRows() {
      const height = this.shown.length * ROW;
      this.tall.style.height = `${Math.max(height, ROW)}px`;
      const seen = Math.min(this.rows.clientHeight || 600, Math.max(height, ROW));
      const top = Math.min(this.rows.scrollTop, Math.max(0, height - seen));
      this.body.setAttribute("height", seen);
      this.body.style.transform = "";
      const first = Math.floor(top / ROW);
      const parts = [make("svg:defs", {}, make("svg:pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        make("svg:line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 6 })))];
      for (const at of this.ticks().found) parts.push(make("svg:line", { class: "grid", x1: this.x(at), x2: this.x(at), y1: 0, y2: seen }));
      const most = Math.max(1, ...this.shown.flatMap((row) => (row.lane ? [] : row.spans.map((span) => span[2]))));
      for (let i = first; i < Math.min(this.shown.length, first + seen / ROW + 2); i++) this.drawRow(parts, this.shown[i], i * ROW - top, most);
      for (const [, at, took] of this.model.generations) {
        if (at < this.view.from || at > this.view.to) continue;
        const x = this.x(at), from = Math.max(this.x(at - (took || 0)), this.left);
        if (x - from > 1) parts.push(make("svg:rect", { class: "took", x: from, y: 0, width: x - from, height: seen }));
        parts.push(make("svg:line", { class: "gen", x1: x, x2: x, y1: 0, y2: seen }));
      }
      if (!this.shown.length) parts.push(make("svg:text", { x: 8, y: 15 }, this.model.lanes.length ? "nothing matches" : "no partitions"));
      this.body.replaceChildren(...parts);
    }

    drawRow(parts, row, y, most) {
      parts.push(make("svg:text", { class: "label", x: 4, y: y + 14 }, cut(row.name, this.left - 8)));
      const end = Math.min(this.x(this.now), this.width - RIGHT);
      row.spans.forEach((span, i) => {
        const from = Math.max(this.x(span[0]), this.left);
        const to = i + 1 < row.spans.length ? Math.min(this.x(row.spans[i + 1][0]), end) : end;
        if (to <= from || span[2] === 0) return;
        const owner = span[1], tall = row.lane ? ROW - 4 : Math.max(3, (ROW - 4) * span[2] / most);
        const rect = make("svg:rect", { x: from, y: y + ROW - 2 - tall, width: Math.max(to - from - 0.5, 0.7), height: tall, rx: 2,
          class: owner === NOBODY ? "nobody" : owner === UNKNOWN ? "unknown" : null });
        if (owner >= 0) rect.style.fill = colour(this.model.owners[owner]);
        parts.push(rect);
        const words = row.lane ? (owner >= 0 ? this.model.owners[owner][0] : "") : String(span[2]);
        const text = tall >= 11 ? cut(words, to - from - 8) : "";
        if (text) parts.push(make("svg:text", { class: "name", x: from + 4, y: y + 14 }, text));
      });
      const right = row.lane ? row.lane[2] : row.total;
      parts.push(make("svg:text", { class: "label", x: this.width - 6, y: y + 14, "text-anchor": "end" }, brief(right ?? null)));
    }

    drawLag() {
      const { lag } = this.model;
      const seen = lag.filter(([at], i) => at <= this.view.to && (lag[i + 1]?.[0] ?? Infinity) >= this.view.from);
      const newest = lag.at(-1)?.[1] ?? this.model.total;
      const parts = [];
      this.lag.setAttribute("height", seen.length > 1 ? LAG : 28);
      this.lag.setAttribute("aria-label", `Lag: ${count(newest)} now`);
      const most = Math.max(1, ...seen.map(([, value]) => value));
      parts.push(make("svg:text", { class: "label", x: 4, y: 20 }, "lag"),
        make("svg:text", { class: "label", x: this.width - 6, y: 20, "text-anchor": "end" }, brief(newest)));
      if (seen.length > 1) {
        const points = seen.map(([at, value]) => `${Math.max(this.x(at), this.left).toFixed(1)},${(LAG - 4 - (value / most) * (LAG - 20)).toFixed(1)}`);
        parts.push(...this.areas(seen, points),
          ...(this.model.gaps ?? []).filter(([from, to]) => to > this.view.from && from < this.view.to).map(([from, to]) => {
            const left = Math.max(this.x(from), this.left), right = Math.min(this.x(to), this.width - RIGHT);
            return make("svg:rect", { class: "unknown", x: left, y: 24, width: Math.max(right - left, 1), height: LAG - 28 });
          }),
          make("svg:text", { x: this.left - 6, y: 20, "text-anchor": "end" }, brief(most)), make("svg:text", { x: this.left - 6, y: LAG - 4, "text-anchor": "end" }, "0"));
      } else {
        parts.push(make("svg:text", { x: this.left, y: 20 }, this.model.live ? "drawn from now on, while somebody looks" : "only as it is now; kohort ui draws it over time"));
      }
      this.lag.replaceChildren(...parts);
    }

    // An area for each stretch in which somebody looked: between two samples with a gap the lag is not known.
    areas(seen, points) {
      const parts = [[]];
      seen.forEach(([at], i) => {
        const gap = i && (this.model.gaps ?? []).some(([from, to]) => from < at && to > seen[i - 1][0]);
        if (gap) parts.push([]);
        parts.at(-1).push(points[i]);
      });
      const x = (point) => point.split(",")[0];
      return parts.map((part) => make("svg:polygon", { class: "area",
        points: `${x(part[0])},${LAG - 4} ${part.join(" ")} ${x(part.at(-1))},${LAG - 4}` }));
    }

    point(e) {
      const box = this.body.getBoundingClientRect();
      const row = this.shown[Math.floor((e.clientY - box.top + this.rows.scrollTop) / ROW)];
      const at = this.at(e.clientX - box.left);
      const i = row ? row.spans.findLastIndex(([start]) => start <= at) : -1;
      if (i < 0 || at > this.now) { this.tip.hidden = true; return; }
      const [start, owner, held] = row.spans[i];
      const end = row.spans[i + 1]?.[0];
      const [name, id, host] = owner >= 0 ? this.model.owners[owner] : [owner === NOBODY ? "nobody" : "not known", "", ""];
      const who = name === id ? name : `${name} ${id && `(${id})`}`;
      this.tell(`${row.lane ? row.name : `${held} partitions`}: ${who} ${host}, ${stamp(start)} to ${end ? stamp(end).slice(11) : "now"}`
        + (row.lane ? `, lag ${count(row.lane[2])}` : ""), { left: e.clientX + 12, bottom: e.clientY + 10 });
    }

    tell(words, where) {
      const box = this.root.getBoundingClientRect();
      this.tip.textContent = words;
      this.tip.hidden = false;
      this.tip.style.left = `${Math.max(0, Math.min(where.left - box.left, box.width - this.tip.offsetWidth - 8))}px`;
      this.tip.style.top = `${where.bottom - box.top + 4}px`;
    }
  }

  // What the server has rendered anew takes the place of what is there; focus, scroll and open details stay.
  let patching = null;
  async function patch() {
    if ($("waiting")) { location.reload(); return; }
    if (patching) { patching.again = true; return; }
    patching = { again: false };
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      showZone(fresh);
      for (const now of fresh.querySelectorAll("[data-live]")) {
        const old = $(now.id);
        if (!old || old.innerHTML === now.innerHTML) continue;
        const open = [...old.querySelectorAll("details[open]")].map((each) => each.id);
        const ticked = [...old.querySelectorAll("input:checked")].map((each) => each.id);
        const scrolled = [...old.querySelectorAll(".wide")].map((each) => each.scrollTop);
        const focus = old.contains(document.activeElement) ? path(old, document.activeElement) : null;
        const typing = focus && document.activeElement.matches("input, select") ? document.activeElement : null;
        old.replaceChildren(...now.childNodes);
        for (const id of open) if (id && $(id)) $(id).open = true;
        for (const id of ticked) if (id && $(id)) $(id).checked = true;
        old.querySelectorAll(".wide").forEach((each, i) => { each.scrollTop = scrolled[i] ?? 0; });
        if (typing) carry(typing, $(typing.id));
        else if (focus) find(old, focus)?.focus({ preventScroll: true });
      }
    } catch { /* the next event tries again */ } finally {
      const { again } = patching;
      patching = null;
      if (again) patch();
    }
  }
  const path = (root, element) => {
    const details = element.closest("details[id]");
    if (details && element.tagName === "SUMMARY") return `#${CSS.escape(details.id)} > summary`;
    if (element.id) return `#${CSS.escape(element.id)}`;
    if (element.getAttribute("href")) return `[href="${CSS.escape(element.getAttribute("href"))}"]`;
    return element.matches(".wide") ? `.wide[aria-label="${CSS.escape(element.getAttribute("aria-label"))}"]` : null;
  };
  const find = (root, selector) => root.querySelector(selector);
  // what somebody is typing is newer than what the server has rendered
  function carry(from, to) {
    if (!to) return;
    to.value = from.value;
    to.focus({ preventScroll: true });
    if (from.selectionStart !== null && from.selectionStart !== undefined) to.setSelectionRange(from.selectionStart, from.selectionEnd);
  }

  // What is asked of a table goes into the address; then the page is rendered anew, as after any news.
  function ask(form, submitter) {
    const asked = new URLSearchParams();
    for (const [name, value] of new FormData(form, submitter)) value ? asked.set(name, value) : asked.delete(name);
    history.replaceState(null, "", asked.size ? `?${asked}` : location.pathname);
    return patch().then(() => { $("news").textContent = $(form.id)?.querySelector(".count").textContent ?? ""; });
  }
  let typed = 0;
  addEventListener("submit", (e) => {
    if (!e.target.matches(".tools")) return;
    e.preventDefault();
    ask(e.target, e.submitter);
  });
  addEventListener("input", (e) => {
    const form = e.target.closest?.(".tools");
    if (!form || e.target.matches("select")) return;
    clearTimeout(typed);
    typed = setTimeout(() => ask($(form.id) ?? form), 250);
  });
  addEventListener("change", (e) => {
    if (e.target.matches?.(".tools select")) ask(e.target.form);
  });

  function live(url, lanes) {
    let source = null;
    const say = (words) => {
      const place = $("trouble");
      if (!place || place.dataset.utc === words) return;
      place.dataset.utc = words;
      place.textContent = zoned(words);
    };
    const open = () => {
      if (source) return;
      source = new EventSource(url);
      source.addEventListener("page", patch);
      source.addEventListener("trouble", (e) => say(JSON.parse(e.data)));
      source.addEventListener("model", (e) => {
        const model = JSON.parse(e.data), before = lanes?.model.generations.at(-1)?.[1];
        model.live = true;
        lanes?.load(model);
        const newest = model.generations.at(-1);
        if (newest && before !== undefined && newest[1] > before) $("news").textContent = `Generation ${newest[0]}: ${newest[3]}`;
        patch().then(() => lanes?.swatches());
      });
      source.addEventListener("tick", (e) => {
        const news = JSON.parse(e.data);
        lanes?.tick(news);
        for (const place of document.querySelectorAll("[data-field=lag]")) place.textContent = count(news.lag);
        for (const field of ["oldest", "trend"]) {
          if (news[field]) for (const place of document.querySelectorAll(`[data-field=${field}]`)) place.textContent = news[field];
        }
        const cells = document.querySelectorAll("[data-lag]");
        if (news.lags) for (const cell of cells) cell.textContent = count(news.lags[cell.dataset.lag]);
        const column = cells[0]?.closest("td").cellIndex;
        if (cells[0]?.closest("table").rows[0].cells[column].hasAttribute("aria-sort")) patch();
      });
      source.onerror = () => {
        say(source.readyState === EventSource.CLOSED ? "kohort ui does not let this page in any more: load it again"
          : "kohort ui does not answer: what is shown may be old. Trying again.");
      };
      source.onopen = () => say("");
    };
    const close = () => { source?.close(); source = null; };
    // a browser opens few connections to one place: pages that nobody sees give theirs back
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
    addEventListener("pagehide", close);
    if (!document.hidden) open();
  }

  const place = $("lanes"), data = $("model");
  const url = document.body.dataset.events;
  let lanes = null;
  if (place && data) {
    const model = JSON.parse(data.textContent);
    model.live = Boolean(url) && !("past" in place.dataset);
    lanes = new Lanes(place, model);
    if ("past" in place.dataset) lanes.all();
  }
  if (url) live(url, lanes);

  const choice = make("button", { type: "button", class: "zone", onclick: () => {
    local = !local;
    try { localStorage.setItem(KEPT, local ? "yes" : "no"); } catch { /* it holds until the page is left */ }
    offer();
  } });
  function offer() {
    choice.textContent = `Times in ${zone()}`;
    choice.setAttribute("aria-label", `Times in ${zone()}: show them in ${local ? "UTC" : ZONE}`);
    showZone(document);
    lanes?.later();
  }
  // a choice made in another tab
  addEventListener("storage", (e) => { if (e.key === KEPT) { local = e.newValue === "yes"; offer(); } });
  (document.querySelector(".top") ?? document.querySelector("h1"))?.append(choice);
  offer();
})();
