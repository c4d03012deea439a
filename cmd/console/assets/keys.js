// Keyboard shortcuts. "?" opens the help, which lists them and can turn them off.
import { keep, kept } from "./store.js";
import { toggle } from "./paused.js";

const pages = { f: "", c: "consumers", l: "leases", d: "dead-letters", b: "blocked", a: "audit" };
const help = document.getElementById("help");
const on = document.querySelector("[data-keys]");
let going = 0; // time at which g was pressed
on.checked = kept("keys") !== "off";
on.addEventListener("change", () => keep("keys", on.checked ? "on" : "off"));

// step moves the focus to the first link of the next or the previous row.
const step = (by) => {
  const rows = [...document.querySelectorAll("main tbody tr")].filter((r) => r.querySelector("a, button"));
  if (!rows.length) return;
  const at = rows.findIndex((r) => r.contains(document.activeElement));
  rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)].querySelector("a, button").focus();
};
const does = {
  "?": () => help.showModal(),
  "/": () => document.getElementById("key")?.focus(),
  j: () => step(1),
  k: () => step(-1),
  p: toggle,
  t: () => document.querySelector("button[data-theme]").click(),
  g: () => { going = Date.now(); },
};
document.addEventListener("keydown", (e) => {
  if (!on.checked || e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog[open]")) return;
  if (Date.now() - going < 1500 && e.key in pages) {
    const link = document.querySelector(`nav a[href="${document.body.dataset.base}${pages[e.key]}"]`);
    going = 0;
    if (link) { e.preventDefault(); link.click(); }
    return;
  }
  if (!(e.key in does)) return;
  e.preventDefault();
  does[e.key]();
});
