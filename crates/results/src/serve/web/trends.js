// A number over runs, and checks that say little.

import { ask } from "./api.js";
import { MOST_LINES, chart } from "./chart.js";
import { h, link, put } from "./dom.js";
import { choice, interval, money, origin, remember, seconds, share, when } from "./parts.js";

const METRICS = [
  ["pass_rate", "pass rate", share, true],
  ["criteria_pass_rate", "judged checks that pass", share, true],
  ["mean_score", "mean score of judged checks", share, true],
  ["precision", "precision of activation", share, true],
  ["recall", "recall of activation", share, true],
  ["f1", "F1 of activation", share, true],
  ["accuracy", "accuracy of activation", share, true],
  ["unscored", "trials without an answer", share, true],
  ["cost_usd", "cost of a trial", money, false],
  ["seconds", "time of a trial", seconds, false],
  ["tokens", "tokens of a trial", (value) => value.toFixed(0), false],
];

const CONCERNS = {
  never_fails: "It never failed: it may ask for too little.",
  same_without_skill: "It passes as often without the skill, so it says nothing about the skill.",
  flaky: "Repeating the same trial changes its answer.",
};

// A check may be doubted for several reasons.
function byCheck(doubts) {
  const found = new Map();
  for (const doubt of doubts) {
    const key = JSON.stringify([doubt.suite, doubt.case, doubt.check]);
    found.set(key, [...(found.get(key) ?? []), doubt]);
  }
  return [...found.values()];
}

function doubtTable(doubts) {
  const column = (name, number) => h("th", { scope: "col", class: number && "number" }, name);
  const words = ({ concern }) => CONCERNS[concern] ?? concern.replaceAll("_", " ");
  const row = ([doubt, ...more]) => h("tr", {},
    h("th", { scope: "row" }, doubt.check, h("div", { class: "faint small" }, `${doubt.case} · ${doubt.suite}`)),
    h("td", {}, [doubt, ...more].map((each) => h("div", {}, words(each)))),
    h("td", { class: "number" }, `${doubt.passed} of ${doubt.passed + doubt.failed}`));
  return h("section", {}, h("h2", {}, "Checks to doubt"),
    h("p", { class: "faint small" }, "Over the newest runs. A check that cannot fail, or does not depend on the skill, makes the exam look better than it is."),
    h("div", { class: "wide" }, h("table", { class: "grid" },
      h("thead", {}, h("tr", {}, column("Check"), column("Doubt"), column("Passed", true))), h("tbody", {}, byCheck(doubts).map(row)))));
}

export async function trendsPage(page, _parts, query) {
  const state = { metric: query.get("metric") ?? "pass_rate", suite: query.get("suite") ?? "", arm: query.get("arm") ?? "" };
  const [{ suites }, { doubts }] = await Promise.all([ask(["choices"]), ask(["audit"])]);
  const figure = h("figure", {});
  const table = h("div", { class: "wide" });
  async function show() {
    const [, , format, isShare] = METRICS.find(([name]) => name === state.metric) ?? METRICS[0];
    // Suites ask different things, so each has its own line.
    const followed = state.suite ? [state.suite] : suites.slice(0, MOST_LINES);
    const trends = await Promise.all(followed.map((suite) => ask(["trend"], { ...state, suite })));
    const series = trends.map(({ points }, at) => ({ name: followed[at], line: Math.max(0, suites.indexOf(followed[at])) % MOST_LINES, points })).filter(({ points }) => points.some((point) => point.value !== null));
    put(figure, series.length ? chart(series, { isShare, format }) : h("p", { class: "empty" }, "No run measured it."),
      !state.suite && suites.length > MOST_LINES && h("p", { class: "faint small" }, `The first ${MOST_LINES} of ${suites.length} suites; choose one to see another.`));
    const points = series.flatMap(({ name, points: own }) => own.map((point) => ({ ...point, suite: name })));
    points.sort((a, b) => (a.run < b.run ? 1 : a.run > b.run ? -1 : 0));
    const row = (point) => h("tr", { "data-item": true, tabindex: "0" },
      h("td", {}, h("a", { href: link("run", point.run), "data-open": true, tabindex: "-1" }, when(point.started)), " ", h("span", { class: "faint id" }, point.run)),
      h("td", {}, point.suite),
      h("td", { class: "number" }, point.value === null ? "–" : format(point.value), h("span", { class: "faint" }, interval(point))), h("td", { class: "number faint" }, point.n), h("td", { class: "faint small" }, origin(point)));
    const head = ["Run", "Suite"].map((name) => h("th", { scope: "col" }, name));
    const numbers = ["Value", "Answers"].map((name) => h("th", { scope: "col", class: "number" }, name));
    put(table, points.length > 0 && h("table", { class: "grid" }, h("thead", {}, h("tr", {}, head, numbers, h("th", { scope: "col" }, ""))), h("tbody", {}, points.map(row))));
  }
  const choose = (name, options) => choice(state, name, options, () => { remember("trends", state); show(); });
  put(page, h("h1", {}, "Trends"),
    h("p", { class: "filters" }, choose("metric", METRICS.map(([name, words]) => [name, words])),
      choose("suite", [["", "all suites"], ...suites.map((suite) => [suite, suite])]),
      choose("arm", [["", "with the skill"], ["without", "without the skill"]])),
    figure, table, doubts.length > 0 && doubtTable(doubts));
  await show();
}
