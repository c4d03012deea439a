// Follows the feed of the page through the public HTTP protocol, and shows new entries at the top.
import { isPaused, onChange } from "./paused.js";

const list = document.querySelector("[data-entries]:not([data-still])");
const base = document.body.dataset.base;
const ROWS = 50, MAX_VALUE = 160;

// Integers beyond 2^53 keep their digits if the browser supports JSON.rawJSON.
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
    if (without && JSON.stringify(without[name]) === JSON.stringify(v)) continue; // a row can have another text of its key
    const pair = element("span", "pair");
    pair.append(element("span", "column", name),
      v === null || v === "" ? element("span", "null", v === null ? "NULL" : "empty")
        : element("bdi", "value", shorten(typeof v === "string" ? v : JSON.stringify(v))));
    all.append(pair);
  }
  return all;
};

if (list) {
  const body = list.querySelector("tbody"), nothing = list.querySelector("[data-nothing]"), status = list.querySelector("[data-status]");
  const { feed, shard } = list.dataset; // without a shard the whole feed is shown
  const part = shard === undefined ? "" : `&shard=${shard}`;
  let cursor = list.dataset.cursor, source = null, waiting = [], drawing = 0;

  const line = ({ entry, before }) => {
    const tr = element("tr", "new");
    const cells = [0, 1, 2, 3].map(() => element("td"));
    const open = element("a", "open", entry.position);
    open.href = `${base}feeds/${encodeURIComponent(feed)}?entry=${encodeURIComponent(before)}&position=${encodeURIComponent(entry.position)}${part}`;
    cells[0].className = "number";
    cells[0].append(open);
    cells[1].append(element("span", "op " + (entry.op === "delete" ? "delete" : "upsert"), entry.op));
    cells[2].append(values(entry.key));
    cells[3].append(entry.op === "delete" ? element("span", "none", "row deleted") : values(entry.row, entry.key));
    tr.append(...cells);
    return tr;
  };
  // If more entries arrive than the screen can show, only the last ones are drawn.
  const drawAll = () => {
    drawing = 0;
    body.prepend(...waiting.map(({ data, before }) => line({ entry: JSON.parse(data, exact), before })).reverse());
    waiting = [];
    while (body.rows.length > ROWS && !body.lastElementChild.contains(document.activeElement)) body.lastElementChild.remove();
    nothing.hidden = true;
  };
  const say = (text, kind) => {
    if (status.textContent !== text) status.textContent = text; // a screen reader reads changes
    status.className = "status scripted" + (kind ? " " + kind : "");
  };
  const stop = (text, kind) => {
    source?.close();
    source = null;
    say(text, kind);
  };
  const follow = () => {
    source = new EventSource(`${base}_feeds/stream/${encodeURIComponent(feed)}?after=${encodeURIComponent(cursor)}${part}`);
    const mine = source;
    source.addEventListener("open", () => say("Live", "on"));
    source.addEventListener("message", (e) => {
      waiting.push({ data: e.data, before: cursor });
      cursor = e.lastEventId;
      if (waiting.length > ROWS) waiting.shift();
      drawing ||= requestAnimationFrame(drawAll);
    });
    source.addEventListener("problem", (e) => {
      let detail = "the feed cannot be read";
      try { detail = JSON.parse(e.data).detail || detail; } catch { /* not ours */ }
      stop(`Stopped: ${detail}. Reload the page to start again.`, "off");
    });
    source.addEventListener("error", () => {
      if (mine !== source) return;
      if (mine.readyState === EventSource.CLOSED) stop("Stopped: the server no longer serves this feed to this browser. Reload the page.", "off");
      else say("The server does not answer. Connecting again.", "off");
    });
  };
  onChange(() => {
    if (isPaused()) { if (source) stop("Paused"); } else if (!source) follow();
  });
  addEventListener("pagehide", () => source?.close());
  follow();
}
