// The routing of a catalogue: every expected skill as a square, and the confused ones as a heat map.

import { h, svg } from "./dom.js";
import { interval, share } from "./parts.js";

const SQUARE = 18, IN_LINE = 48, CELL = 18, LETTERS = 30, MOST = 60, MOST_COLLISIONS = 50;

const expected = (row) => (row.expected.length > 0 ? row.expected.join(" or ") : "no skill");
const short = (name) => ([...name].length > LETTERS ? [...name].slice(0, LETTERS - 1).join("") + "…" : name);
const rate = (of) => (of.value === null ? "unknown" : `${share(of.value)} ${interval(of)}`);
const confused = (row) => row.right.value !== null && row.right.value < 1;

// Pale green where a few runs were wrong, the redder the more were.
function colour({ right: { value } }, goal) {
  if (value === null) return ["unsure", 0.6];
  if (value >= goal) return ["pass", value >= 1 ? 0.8 : 0.35];
  return ["fail", 0.25 + 0.7 * (1 - value)];
}

// The room that names need beside the picture.
const room = (names) => Math.max(9, ...names.map((name) => Math.min(LETTERS, [...name].length))) * 7 + 14;

function squares(rows, goal) {
  const width = Math.min(rows.length, IN_LINE) * SQUARE;
  const height = Math.ceil(rows.length / IN_LINE) * SQUARE;
  return svg("svg", { class: "squares", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${rows.length} rows` },
    rows.map((row, at) => {
      const [name, strength] = colour(row, goal);
      return svg("rect", { class: name, x: (at % IN_LINE) * SQUARE + 1, y: Math.floor(at / IN_LINE) * SQUARE + 1, width: SQUARE - 2, height: SQUARE - 2, rx: 3, "fill-opacity": strength.toFixed(2) },
        svg("title", {}, `${expected(row)}: ${rate(row.right)}`));
    }));
}

function cell(row, column, x, y) {
  const found = row.activated.find((of) => of.skill === column);
  const meant = column === null ? row.expected.length === 0 : row.expected.includes(column);
  const value = found?.share.value ?? 0;
  return svg("rect", { class: meant ? "pass" : found ? "fail" : "empty", x: x + 1, y: y + 1, width: CELL - 2, height: CELL - 2, rx: 2, "fill-opacity": (value > 0 ? 0.15 + 0.8 * value : 0).toFixed(2) },
    svg("title", {}, `${expected(row)} → ${column ?? "nothing"}: ${found ? rate(found.share) : "never"}`));
}

function heat(all) {
  const sorted = all.filter(confused).sort((a, b) => (a.right.high ?? 1) - (b.right.high ?? 1));
  const rows = sorted.slice(0, MOST);
  const weights = new Map();
  for (const of of rows.flatMap((row) => row.activated)) weights.set(of.skill, (weights.get(of.skill) ?? 0) + (of.share.value ?? 0));
  const columns = [...weights.keys()].sort((a, b) => weights.get(b) - weights.get(a)).slice(0, MOST)
    .sort((a, b) => (a === null) - (b === null) || String(a).localeCompare(String(b)));
  const left = room(rows.map(expected)), top = room(columns.filter((column) => column !== null));
  const width = left + columns.length * CELL + 10, height = top + rows.length * CELL + 4;
  return [
    h("div", { class: "wide" }, svg("svg", { class: "heat", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "expected against activated skills" },
      columns.map((column, at) => svg("text", { transform: `translate(${left + at * CELL + CELL / 2 + 4} ${top - 6}) rotate(-90)` }, short(column ?? "(nothing)"))),
      rows.map((row, line) => [
        svg("text", { x: left - 6, y: top + line * CELL + CELL - 5, "text-anchor": "end" }, short(expected(row))),
        columns.map((column, at) => cell(row, column, left + at * CELL, top + line * CELL)),
      ]))),
    sorted.length > rows.length && h("p", { class: "faint" }, `and ${sorted.length - rows.length} more rows`),
  ];
}

function listingWords(listing) {
  if (listing.unknown) return `Listing: unknown, because ${listing.unknown.why}; about ${listing.unknown.estimated_tokens_if_whole} tokens (an estimate) if nothing is cut.`;
  const { listing: of, estimated_tokens: tokens } = listing.measured;
  const parts = [["cut", of.cut], ["without a description", of.without_description], ["not listed", of.missing]];
  const more = parts.filter(([, names]) => names?.length > 0).map(([words, names]) => `, ${names.length} ${words}`).join("");
  return `Listing: ${of.whole} of ${of.skills} descriptions whole${more}; about ${tokens} tokens in every request (an estimate).`;
}

// One agent of the document that `practicum route --json` prints.
function partView(part, goal) {
  const below = part.rows.filter((row) => row.standing === "below").length;
  const collisions = part.collisions.slice(0, MOST_COLLISIONS).map((of) => h("tr", {},
    h("td", {}, expected(of)), h("td", {}, of.activated), h("td", { class: "number" }, share(of.share.value), h("span", { class: "faint" }, interval(of.share))),
    h("td", { class: "number faint" }, `${of.runs} of ${of.share.n} runs`)));
  return h("section", { class: "routing" }, h("h2", {}, `Routing with ${part.agent}`),
    h("p", {}, `${part.prompts} prompts, ${part.runs} runs. Right at the first run: ${rate(part.right_at_first)} of the prompts. ${below} of ${part.rows.length} rows are below the goal of ${share(goal)}.`),
    h("p", { class: "faint" }, listingWords(part.listing)),
    h("p", { class: "faint small" }, "A square is one row of prompts that expect the same: green where all runs were right, the redder the fewer were."),
    squares(part.rows, goal),
    part.rows.some(confused) && [h("p", { class: "faint small" }, "Expected against activated, only rows with a wrong run: the darker, the more runs."), heat(part.rows)],
    collisions.length > 0 && h("div", { class: "wide" }, h("table", { class: "plain", id: "collisions" },
      h("thead", {}, h("tr", {}, ["Expected", "Activated", "Share", ""].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, collisions))));
}

export function routingView(document) {
  return document ? document.agents.map((part) => partView(part, document.goal)) : null;
}
