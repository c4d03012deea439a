// Fetches the page periodically and replaces its live parts. So only the server renders pages, with and without
// JavaScript.
import { isPaused } from "./paused.js";
const EVERY = 5000;
const parts = () => [...document.querySelectorAll("[data-live][id]")];

// inUse tells whether the user has focused, opened or selected something in a part. Such a part is not replaced.
const inUse = (part) => {
  const selected = getSelection();
  return part.contains(document.activeElement) && document.activeElement !== part || part.querySelector("details[open]") !== null ||
    selected && !selected.isCollapsed && part.contains(selected.anchorNode);
};
const refresh = async () => {
  if (isPaused() || document.querySelector("dialog[open]")) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(15000) });
    if (answer.type === "opaqueredirect") location.reload(); // the login page
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const known = parts();
    if (fresh.querySelectorAll("[data-live][id]").length !== known.length) location.reload(); // a part was added or removed
    for (const part of known) {
      const other = fresh.getElementById(part.id);
      if (!other || inUse(part) || other.innerHTML === part.innerHTML) continue;
      const left = part.scrollLeft;
      part.replaceChildren(...other.childNodes);
      part.scrollLeft = left;
    }
  } catch { /* try again at the next interval */ }
};
if (parts().length) setInterval(refresh, EVERY);
