// Lines over runs, one for each thing that is followed.

import { h, link, svg } from "./dom.js";
import { interval } from "./parts.js";

const PAD = { left: 52, right: 14, top: 14, bottom: 26 };

// More lines than this cannot be told apart.
export const MOST_LINES = 5;

// A run that measured nothing leaves a gap: no line is drawn through it.
function path(points, x, y) {
  const parts = points.map((point, at) => {
    if (point.value === null) return "";
    const joined = at > 0 && points[at - 1].value !== null;
    return `${joined ? "L" : "M"}${x(point).toFixed(1)} ${y(point.value).toFixed(1)}`;
  });
  return parts.join(" ");
}

// The interval of a value, as a thin line through its dot.
function range(point, at, { x, y }) {
  if (point.value === null || point.low === null || point.low === undefined) return null;
  return svg("line", { class: `range line-${at}`, x1: x(point), x2: x(point), y1: y(point.low), y2: y(point.high) });
}

function dot(point, name, at, { x, y, format }) {
  if (point.value === null) return null;
  const words = `${name ? `${name}, ` : ""}${point.run}: ${format(point.value)}${interval(point)}, n ${point.n}`;
  const spot = svg("circle", { class: `dot line-${at}`, cx: x(point), cy: y(point.value), r: 4, role: "img", "aria-label": words }, svg("title", {}, words));
  spot.addEventListener("click", () => { location.hash = link("run", point.run); });
  return spot;
}

function legend(series) {
  if (series.length < 2) return null;
  return h("ul", { class: "legend" }, series.map(({ name, line: at }) =>
    h("li", {}, svg("svg", { class: "swatch", viewBox: "0 0 22 8", width: 22, height: 8, "aria-hidden": "true" },
      svg("line", { class: `line line-${at}`, x1: 0, x2: 22, y1: 4, y2: 4 })), name)));
}

// Each of the series has a name, points and the number of its line, so that a thing has the same one on every
// page. Runs stand beside each other in the order of their ids.
export function chart(series, { isShare, format, height = 240 }) {
  // Drawn as wide as it is shown, so that its letters have their size.
  const width = Math.max(320, Math.min(1200, document.getElementById("page").clientWidth - 40));
  const points = series.flatMap((each) => each.points);
  const values = points.map((point) => point.value).filter((value) => value !== null);
  if (!values.length) return h("p", { class: "empty" }, "No run measured it.");
  const started = new Map(points.map((point) => [point.run, point.started]));
  const runs = [...started.keys()].sort();
  const place = new Map(runs.map((run, at) => [run, at]));
  const low = isShare ? 0 : Math.min(0, ...values);
  const high = isShare ? 1 : Math.max(...values) * 1.1 || 1;
  const inner = width - PAD.left - PAD.right;
  const x = ({ run }) => PAD.left + (runs.length === 1 ? inner / 2 : (inner * place.get(run)) / (runs.length - 1));
  const y = (value) => PAD.top + (height - PAD.top - PAD.bottom) * (1 - (value - low) / (high - low || 1));
  const lines = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const value = low + (high - low) * part;
    return [
      svg("line", { class: "grid", x1: PAD.left, x2: width - PAD.right, y1: y(value), y2: y(value) }),
      svg("text", { x: PAD.left - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)),
    ];
  });
  const drawn = series.map(({ name, line: at, points: own }) => [
    svg("path", { class: `line line-${at}`, d: path(own, x, y) }),
    own.map((point) => range(point, at, { x, y })),
    own.map((point) => dot(point, series.length > 1 ? name : "", at, { x, y, format })),
  ]);
  const day = (run) => started.get(run).slice(0, 10);
  const [first, last] = [day(runs[0]), day(runs[runs.length - 1])];
  const ends = [
    runs.length > 1 && first !== last && svg("text", { x: PAD.left, y: height - 6 }, first),
    svg("text", { x: width - PAD.right, y: height - 6, "text-anchor": "end" }, last),
  ];
  return h("div", {},
    svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "values over runs" }, lines, drawn, ends),
    legend(series));
}
