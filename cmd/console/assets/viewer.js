// Shows an entry in full in a dialog. Its content comes from the entry's own page.
const viewer = document.getElementById("viewer");
document.addEventListener("click", async (e) => {
  const link = e.target.closest("a.open");
  if (!link || e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0) return;
  e.preventDefault();
  try {
    const answer = await fetch(link.href, { cache: "no-store", signal: AbortSignal.timeout(15000) });
    const entry = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-entry]");
    if (!entry) throw new Error("no entry");
    viewer.querySelector("[data-viewer]").replaceChildren(...entry.childNodes);
    viewer.showModal();
  } catch {
    location.href = link.href; // the entry's page shows the error
  }
});
