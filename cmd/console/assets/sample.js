// Fetches samples of all feeds, and shows their rates and waiting changes. A rate is the progress of a feed's head. Feeds
// with several heads or ULIDs have no rate.
import { isPaused } from "./paused.js";
import { draw, keepRecent } from "./plot.js";
import { age } from "./times.js";

const EVERY = 2000, RATE_OVER = 5; // samples
const MANY = 100000;
const history = new Map(); // points by the name of the feed
const base = document.body.dataset.base;
const number = (n) => n.toLocaleString("en");
export const rateText = (r) => (r === null ? "–" : r >= 100 ? number(Math.round(r)) : r.toFixed(1).replace(/\.0$/, ""));

// positionOf returns the number in a head: "12", or "2:12" in the second generation.
const positionOf = (head) => (/^(\d+:)?\d{1,15}$/.test(head) ? Number(head.split(":").pop()) : NaN);
const set = (row, name, text) => {
  const e = row.querySelector(`[data-${name}]`);
  if (e && e.textContent !== text) e.textContent = text;
};
const plot = (row, name, points, least) => {
  const svg = row.querySelector(`[data-plot="${name}"]`);
  if (!svg) return;
  const top = draw(svg, points, least);
  set(row, `top="${name}"`, `up to ${rateText(top)}`);
};
const addSample = (f, at) => {
  let h = history.get(f.name);
  if (!h) history.set(f.name, h = { heads: [], rates: [], waits: [], rate: null });
  const position = positionOf(f.head);
  if (h.heads.length && position < h.heads[h.heads.length - 1].position) h.heads.length = 0; // a new generation
  if (Number.isFinite(position)) {
    h.heads.push({ at, position });
    while (h.heads.length > RATE_OVER) h.heads.shift();
    const first = h.heads[0];
    if (at > first.at) {
      h.rate = ((position - first.position) * 1000) / (at - first.at);
      const before = h.heads[h.heads.length - 2];
      h.rates.push({ at, value: ((position - before.position) * 1000) / (at - before.at) });
    }
  }
  h.waits.push({ at, value: f.waiting });
  keepRecent(h.rates);
  keepRecent(h.waits);
  return h;
};
const show = (f, h) => {
  for (const row of document.querySelectorAll("[data-feed-row]")) {
    if (row.dataset.feedRow !== f.name) continue;
    set(row, "rate", rateText(h.rate));
    set(row, "waiting", number(f.waiting) + (f.waiting >= MANY ? "+" : ""));
    set(row, "oldest", f.waiting ? age(f.oldest_seconds) : row.tagName === "TR" ? "–" : "");
    const position = positionOf(f.head);
    if (Number.isFinite(position)) set(row, "head", f.head.includes(":") ? f.head : number(position));
    plot(row, "rate", h.rates, 5);
    plot(row, "waiting", h.waits, 5);
  }
};
let lastAt = 0;
const sample = async () => {
  if (isPaused()) return;
  try {
    const answer = await fetch(`${base}_console/sample`, { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok) return;
    const { at, feeds } = await answer.json();
    if (at === lastAt) return;
    lastAt = at;
    let rate = null, waiting = 0, many = false;
    for (const f of feeds) {
      const h = addSample(f, at);
      show(f, h);
      if (h.rate !== null) rate = (rate || 0) + h.rate;
      waiting += f.waiting;
      many ||= f.waiting >= MANY;
    }
    set(document, "total-rate", rateText(rate));
    set(document, "total-waiting", number(waiting) + (many ? "+" : ""));
  } catch { /* the next one may be answered */ }
};
if (document.querySelector("[data-sample]")) {
  setInterval(sample, EVERY);
  sample();
}
