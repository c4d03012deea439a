// Updates the ages of times on the page, in the format of the server (words.go).
const two = (a, unit, b, smaller) => (b && a < 10 ? `${a} ${unit} ${b} ${smaller}` : `${a.toLocaleString("en")} ${unit}`);
export const age = (seconds) => {
  const n = Math.floor(Math.max(seconds, 0));
  if (seconds <= 0) return "0 s";
  if (seconds < 1) return `${Math.max(Math.floor(seconds * 1000), 1)} ms`;
  if (n < 60) return `${n} s`;
  if (n < 3600) return two(Math.floor(n / 60), "min", n % 60, "s");
  if (n < 86400) return two(Math.floor(n / 3600), "h", Math.floor((n % 3600) / 60), "min");
  return two(Math.floor(n / 86400), "d", Math.floor((n % 86400) / 3600), "h");
};
setInterval(() => {
  for (const t of document.querySelectorAll("time[datetime]")) {
    const seconds = (Date.now() - Date.parse(t.dateTime)) / 1000;
    if (seconds > 2 && !t.contains(document.activeElement)) t.textContent = `${age(seconds)} ago`;
  }
}, 10000);
