// Draws a line over time into an SVG of 100 by 24, the newest at its right end.
const SPAN = 900000; // milliseconds
const make = (svg, name) => svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));

// keepRecent drops points that are too old for a plot.
export const keepRecent = (points) => {
  while (points.length > 1 && points[1].at < points[points.length - 1].at - SPAN) points.shift();
};
// draw draws [{at, value}] and returns the value at the top of the plot.
export const draw = (svg, points, least) => {
  const area = svg.querySelector(".area") || make(svg, "path");
  const line = svg.querySelector(".line") || make(svg, "path");
  area.setAttribute("class", "area");
  line.setAttribute("class", "line");
  const top = Math.max(least, ...points.map((p) => p.value));
  const now = points.length ? points[points.length - 1].at : 0;
  const at = (p) => `${(Math.max(100 - (100 * (now - p.at)) / SPAN, 0)).toFixed(2)} ${(23 - (21.5 * p.value) / top).toFixed(2)}`;
  const path = points.map((p, i) => `${i ? "L" : "M"}${at(p)}`).join("");
  line.setAttribute("d", path);
  area.setAttribute("d", points.length > 1 ? `${path}L100 24L${at(points[0]).split(" ")[0]} 24Z` : "");
  return top;
};
