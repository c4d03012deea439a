// Sets the colours that were chosen before anything is drawn, and says that scripts run.
"use strict";
document.documentElement.classList.add("js");
try {
  const chosen = localStorage.getItem("rowfeed-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* no storage: the system's colours */ }
