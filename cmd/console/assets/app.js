// Loads the modules of all pages. Each module does nothing on a page without its elements.
import { keep } from "./store.js";
import * as paused from "./paused.js";
import "./times.js";
import "./keys.js";
import "./refresh.js";
import "./sample.js";
import "./tail.js";
import "./viewer.js";

const themes = { system: "System", light: "Light", dark: "Dark" };
const button = document.querySelector("[data-theme]:not(html)");
const show = () => {
  const now = document.documentElement.dataset.theme || "system";
  document.querySelector("[data-theme-name]").textContent = themes[now];
  button.setAttribute("aria-label", `Colours: ${themes[now]}`);
};
button.addEventListener("click", () => {
  const names = Object.keys(themes);
  const next = names[(names.indexOf(document.documentElement.dataset.theme || "system") + 1) % names.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  keep("theme", next);
  show();
});
show();
document.querySelector("[data-help]").addEventListener("click", () => document.getElementById("help").showModal());
document.querySelector("[data-pause]")?.addEventListener("click", paused.toggle);
