// A line over runs.

import { h, link, svg } from "./dom.js";

const PAD = { left: 52, right: 14, top: 14, bottom: 26 };

export function chart(points, { isShare, format, height = 240 }) {
  // Drawn as wide as it is shown, so that its letters have their size.
  const width = Math.max(320, Math.min(1200, document.getElementById("page").clientWidth - 40));
  const told = points.filter((point) => point.value !== null);
  if (!told.length) return h("p", { class: "empty" }, "No run measured it.");
  const values = told.map((point) => point.value);
  const low = isShare ? 0 : Math.min(0, ...values);
  const high = isShare ? 1 : Math.max(...values) * 1.1 || 1;
  const inner = width - PAD.left - PAD.right;
  const x = (at) => PAD.left + (points.length === 1 ? inner / 2 : (inner * at) / (points.length - 1));
  const y = (value) => PAD.top + (height - PAD.top - PAD.bottom) * (1 - (value - low) / (high - low || 1));
  const lines = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const value = low + (high - low) * part;
    return [
      svg("line", { class: "grid", x1: PAD.left, x2: width - PAD.right, y1: y(value), y2: y(value) }),
      svg("text", { x: PAD.left - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)),
    ];
  });
  // A run that measured nothing leaves a gap: no line is drawn through it.
  const path = [];
  points.forEach((point, at) => {
    if (point.value === null) return;
    const joined = at > 0 && points[at - 1].value !== null;
    path.push(`${joined ? "L" : "M"}${x(at).toFixed(1)} ${y(point.value).toFixed(1)}`);
  });
  const dots = points.map((point, at) => {
    if (point.value === null) return null;
    const words = `${point.run}: ${format(point.value)}, n ${point.n}`;
    const dot = svg("circle", { class: "dot", cx: x(at), cy: y(point.value), r: 4, role: "img", "aria-label": words }, svg("title", {}, words));
    dot.addEventListener("click", () => { location.hash = link("run", point.run); });
    return dot;
  });
  const ends = [points[0], points[points.length - 1]].map((point, last) =>
    svg("text", { x: last ? width - PAD.right : PAD.left, y: height - 6, "text-anchor": last ? "end" : "start" }, point.started.slice(0, 10)));
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "values over runs" },
    lines, svg("path", { class: "line", d: path.join(" ") }), dots, points.length > 1 ? ends : ends.slice(1));
}
