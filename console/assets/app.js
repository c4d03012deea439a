// Reads the feed that the page shows, through the protocol that everyone uses, and
// puts new entries on top. Without it the page stands still but can be read.
"use strict";
(() => {
  const list = document.querySelector("[data-entries]");
  if (!list) return;
  const find = (name) => document.querySelector(`[data-${name}]`);
  const [live, rate, chart, status, pause, nothing] = ["live", "rate", "chart", "status", "pause", "nothing"].map(find);
  const body = list.querySelector("tbody");
  const { feed, shard } = list.dataset; // without a shard the whole feed is shown
  let cursor = list.dataset.cursor;

  const EVERY = 1000, HEADS_EVERY = 5000, LIMIT = 500, PAGES = 20, ROWS = 50, MAX_VALUE = 160;
  const SECONDS = 60, RATE_OVER = 10;
  let paused = false, stopped = false, busy = false, timer = 0;

  // Integers beyond 2^53 keep their digits where the browser can tell us its source.
  const exact = (_, v, context) =>
    typeof v === "number" && context && context.source && JSON.rawJSON ? JSON.rawJSON(context.source) : v;

  const element = (tag, className, text) => {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const shorten = (s) => {
    const c = Array.from(s.slice(0, 2 * MAX_VALUE + 2));
    return c.length > MAX_VALUE ? c.slice(0, MAX_VALUE).join("") + "…" : s;
  };
  const values = (row, without) => {
    const all = element("span", "values");
    for (const [name, v] of Object.entries(row || {})) {
      if (without && Object.hasOwn(without, name)) continue;
      const pair = element("span", "pair");
      pair.append(element("span", "column", name),
        v === null || v === "" ? element("span", "null", v === null ? "NULL" : "empty")
          : element("span", "value", shorten(typeof v === "string" ? v : JSON.stringify(v))));
      all.append(pair);
    }
    return all;
  };
  const line = (entry) => {
    const tr = element("tr", "new");
    const cells = [0, 1, 2, 3].map(() => element("td"));
    cells[0].className = "number";
    cells[0].textContent = entry.position;
    cells[1].append(element("span", "op " + (entry.op === "delete" ? "delete" : "upsert"), entry.op));
    cells[2].append(values(entry.key));
    cells[3].append(entry.op === "delete" ? element("span", "none", "the row is gone") : values(entry.row, entry.key));
    tr.append(...cells);
    return tr;
  };
  const show = (entries) => {
    if (!entries.length) return;
    body.prepend(...entries.slice(-ROWS).reverse().map(line));
    while (body.rows.length > ROWS) body.lastElementChild.remove();
    nothing.hidden = true;
  };
  const showHead = (name, head) => {
    for (const e of document.querySelectorAll("[data-head-of]")) {
      if (e.dataset.headOf === name) e.textContent = head || "0";
    }
  };

  // One bar for each of the last seconds.
  const seconds = [];
  const bars = Array.from({ length: SECONDS }, (_, i) => {
    const r = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    r.setAttribute("x", i * 4 + 0.5);
    r.setAttribute("width", 3);
    chart.append(r);
    return r;
  });
  // The page's entries end where the server made it.
  let lastTick = performance.getEntriesByType("navigation")[0]?.responseStart || 0;
  const count = (n) => {
    const now = performance.now();
    seconds.push({ n, took: Math.max((now - lastTick) / 1000, 0.001) });
    lastTick = now;
    while (seconds.length > SECONDS) seconds.shift();
    const perSecond = seconds.map((s) => s.n / s.took);
    const recent = seconds.slice(-RATE_OVER);
    const value = recent.reduce((sum, s) => sum + s.n, 0) / recent.reduce((sum, s) => sum + s.took, 0);
    rate.textContent = value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(1).replace(/\.0$/, "");
    const top = Math.max(...perSecond, 5);
    bars.forEach((bar, i) => {
      const v = perSecond[i - (SECONDS - perSecond.length)] || 0;
      const height = v ? Math.max(46 * v / top, 1.5) : 0;
      bar.setAttribute("height", height);
      bar.setAttribute("y", 48 - height);
    });
  };

  const say = (text, kind) => {
    if (status.textContent !== text) status.textContent = text; // a screen reader reads changes
    status.className = "status" + (kind ? " " + kind : "");
  };

  const page = async () => {
    const query = new URLSearchParams({ after: cursor, limit: LIMIT });
    if (shard !== undefined) query.set("shard", shard);
    const answer = await fetch(`_feeds/fetch/${encodeURIComponent(feed)}?${query}`,
      { headers: { Accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(15000) });
    if (answer.ok) return JSON.parse(await answer.text(), exact);
    let detail = `status ${answer.status}`;
    try { detail = (await answer.json()).detail || detail; } catch { /* no problem+json: a proxy's page */ }
    const e = new Error(detail);
    e.forGood = answer.status >= 400 && answer.status < 500 && answer.status !== 429;
    throw e;
  };

  const poll = async () => {
    if (busy || paused || stopped || document.hidden) return;
    busy = true;
    clearTimeout(timer);
    let n = 0;
    try {
      for (let i = 0; i < PAGES && !paused; i++) {
        const p = await page();
        cursor = p.cursor;
        n += p.entries.length;
        show(p.entries);
        if (!p.more) break;
      }
      showHead(feed, cursor);
      if (!paused) say("Live", "on");
      count(n);
    } catch (e) {
      stopped = Boolean(e.forGood);
      if (stopped) {
        say(`Stopped: ${e.message}. Reload the page to start again.`, "off");
        pause.hidden = true;
      } else {
        say(`No answer (${e.message}). Trying again.`, "off");
      }
    }
    busy = false;
    timer = setTimeout(poll, EVERY);
  };

  const heads = async () => {
    if (paused || document.hidden) return;
    try {
      const answer = await fetch("_feeds", { cache: "no-store", signal: AbortSignal.timeout(15000) });
      if (answer.ok) for (const f of (await answer.json()).feeds) if (f.name !== feed && "head" in f) showHead(f.name, f.head);
    } catch { /* the feed's own requests tell */ }
  };

  const resume = () => {
    seconds.length = 0;
    lastTick = performance.now();
    poll();
  };
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    if (paused) say("Paused");
    else resume();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) resume(); });
  live.hidden = false;
  setInterval(heads, HEADS_EVERY);
  poll();
})();
