// Tells whether updates of the page are paused: by the user, or because the tab is hidden.
let paused = false;
const listeners = [];
export const isPaused = () => paused || document.hidden;
export const onChange = (f) => listeners.push(f);
export const toggle = () => {
  paused = !paused;
  const button = document.querySelector("[data-pause]");
  if (button) button.textContent = paused ? "Continue" : "Pause";
  for (const f of listeners) f();
};
document.addEventListener("visibilitychange", () => { for (const f of listeners) f(); });
