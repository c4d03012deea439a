// Asks for the page again now and then, and puts its live parts in the place of these: what the
// server makes is made once, for those without scripts as well.
import { isHeld } from "./held.js";
const EVERY = 5000;
const parts = () => [...document.querySelectorAll("[data-live][id]")];

// inUse: nothing is taken from under somebody who reads, selects or types in it.
const inUse = (part) => {
  const selected = getSelection();
  return part.contains(document.activeElement) && document.activeElement !== part || part.querySelector("details[open]") !== null ||
    selected && !selected.isCollapsed && part.contains(selected.anchorNode);
};
const refresh = async () => {
  if (isHeld() || document.querySelector("dialog[open]")) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(15000) });
    if (answer.type === "opaqueredirect") location.reload(); // to log in
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const known = parts();
    if (fresh.querySelectorAll("[data-live][id]").length !== known.length) location.reload(); // something has come or gone
    for (const part of known) {
      const other = fresh.getElementById(part.id);
      if (!other || inUse(part) || other.innerHTML === part.innerHTML) continue;
      const left = part.scrollLeft;
      part.replaceChildren(...other.childNodes);
      part.scrollLeft = left;
    }
  } catch { /* the next one may be answered */ }
};
if (parts().length) setInterval(refresh, EVERY);
