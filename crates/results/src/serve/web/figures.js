// Rates and activation as pictures, as the HTML report draws them.

import { svg } from "./dom.js";
import { share } from "./parts.js";

const WIDTH = 160, HEIGHT = 18, MARGIN = 6;

function x(value) {
  return (MARGIN + Math.min(1, Math.max(0, value)) * (WIDTH - 2 * MARGIN)).toFixed(1);
}

// A rate between 0 and 1: a dot on its interval, with the threshold that it must reach.
export function rateFigure({ value, low, high }, verdict, threshold) {
  if (value === null || value === undefined) return null;
  const has = (number) => number !== null && number !== undefined;
  const middle = HEIGHT / 2;
  const words = `${share(value)}${has(low) && has(high) ? `, between ${share(low)} and ${share(high)}` : ""}${has(threshold) ? `, needs ${share(threshold)}` : ""}`;
  return svg("svg", { class: `rate ${verdict}`, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": words },
    svg("title", {}, words),
    svg("line", { class: "track", x1: x(0), x2: x(1), y1: middle, y2: middle }),
    has(low) && has(high) && svg("rect", { class: "range", x: x(low), y: middle - 3, width: Math.max(2, x(high) - x(low)).toFixed(1), height: 6, rx: 3 }),
    svg("circle", { class: "spot", cx: x(value), cy: middle, r: 4 }),
    has(threshold) && svg("line", { class: "threshold", x1: x(threshold), x2: x(threshold), y1: 1, y2: HEIGHT - 1 }));
}

// Expected against observed activation, each field coloured by its count.
export function confusionFigure({ tp, fp, tn, fn }) {
  const most = Math.max(tp, fp, tn, fn, 1);
  const field = (count, word, verdict, left, top) => {
    const strength = count === 0 ? 0.04 : 0.12 + (0.33 * count) / most;
    return svg("g", { class: verdict },
      svg("rect", { class: "field", x: left, y: top, width: 75, height: 62, rx: 6, "fill-opacity": strength.toFixed(2) }),
      svg("text", { class: "count", x: left + 37.5, y: top + 34 }, count), svg("text", { x: left + 37.5, y: top + 52 }, word));
  };
  const words = `${tp} activated as expected, ${fn} expected and not activated, ${fp} activated and not expected, ${tn} rightly not activated`;
  return svg("svg", { class: "confusion", viewBox: "0 0 250 156", width: 250, height: 156, role: "img", "aria-label": words },
    svg("title", {}, words),
    svg("text", { class: "axis", x: 125, y: 16 }, "activated"), svg("text", { class: "axis", x: 204, y: 16 }, "not"),
    svg("text", { class: "axis side", x: 78, y: 56 }, "expected"), svg("text", { class: "axis side", x: 78, y: 122 }, "not expected"),
    field(tp, "TP", "pass", 88, 24), field(fn, "FN", "fail", 167, 24), field(fp, "FP", "fail", 88, 90), field(tn, "TN", "pass", 167, 90));
}
