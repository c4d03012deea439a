// Fetches samples of all feeds, and shows their rates and waiting changes. A rate is the progress of a feed's head. Feeds
// with several heads or ULIDs have no rate.
import { isPaused } from "./paused.js";
import { draw, keepRecent } from "./plot.js";
import { age } from "./times.js";

const EVERY = 2000, STEP = 10000; // milliseconds
const MANY = 100000;
const history = new Map(); // points by the name of the feed, about one for each STEP
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
  if (!history.has(f.name)) history.set(f.name, []);
  const points = history.get(f.name);
  if (points.length > 1 && at - points[points.length - 2].at < STEP) points.pop();
  points.push({ at, position: positionOf(f.head), value: f.waiting });
  keepRecent(points);
};
const rate = (from, to) => ((to.position - from.position) * 1000) / (to.at - from.at);
// A new generation begins at a lower position: there is no rate between the two.
const isRate = (r) => r >= 0;
const show = (f) => {
  const points = history.get(f.name);
  const recent = points.slice(-3), now = rate(recent[0], recent[recent.length - 1]);
  const rates = points.slice(1).map((p, i) => ({ at: p.at, value: rate(points[i], p) })).filter((p) => isRate(p.value));
  for (const row of document.querySelectorAll("[data-feed-row]")) {
    if (row.dataset.feedRow !== f.name) continue;
    set(row, "rate", rateText(isRate(now) ? now : null));
    set(row, "waiting", number(f.waiting) + (f.waiting >= MANY ? "+" : ""));
    const inTable = row.tagName === "TR", oldest = (inTable ? "" : ", the oldest for ") + age(f.oldest_seconds);
    set(row, "oldest", f.waiting ? oldest : inTable ? "–" : "");
    const position = positionOf(f.head);
    if (Number.isFinite(position)) set(row, "head", f.head.includes(":") ? f.head : number(position));
    plot(row, "rate", rates, 5);
    plot(row, "waiting", points, 5);
  }
  return isRate(now) ? now : null;
};
let lastAt = 0, answered = -Infinity;
const sample = async () => {
  if (isPaused()) return;
  try {
    const missed = performance.now() - answered > 2 * STEP; // the page is new, or was paused
    const answer = await fetch(`${base}_console/sample${missed ? "?past" : ""}`, { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok) return;
    const { at, feeds, past = [] } = await answer.json();
    answered = performance.now();
    if (at === lastAt) return;
    if (missed) history.clear();
    for (const p of past.filter((p) => p.at < at)) for (const f of p.feeds) addSample(f, p.at);
    lastAt = at;
    let total = null, waiting = 0, many = false;
    for (const f of feeds) {
      addSample(f, at);
      const r = show(f);
      if (r !== null) total = (total || 0) + r;
      waiting += f.waiting;
      many ||= f.waiting >= MANY;
    }
    set(document, "total-rate", rateText(total));
    set(document, "total-waiting", number(waiting) + (many ? "+" : ""));
  } catch { /* the next one may be answered */ }
};
if (document.querySelector("[data-sample]")) {
  setInterval(sample, EVERY);
  sample();
}
