// Sets the chosen colours before the page is drawn, and marks that scripts run.
"use strict";
document.documentElement.classList.add("js");
try {
  const chosen = localStorage.getItem("rowfeed-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* no storage: use the system's colours */ }
