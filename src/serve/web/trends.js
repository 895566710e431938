// A number over runs.

import { ask } from "./api.js";
import { chart } from "./chart.js";
import { h, link, put } from "./dom.js";
import { money, seconds, share, when } from "./parts.js";

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

export async function trendsPage(page, _parts, query) {
  const state = { metric: query.get("metric") ?? "pass_rate", suite: query.get("suite") ?? "", arm: query.get("arm") ?? "" };
  const [{ runs }, doubts] = await Promise.all([ask(["runs"], { limit: 100 }), ask(["audit"])]);
  const suites = [...new Set(runs.flatMap((run) => run.suites))].sort();
  const figure = h("figure", {});
  const rows = h("tbody", {});
  async function show() {
    const [, , format, isShare] = METRICS.find(([name]) => name === state.metric) ?? METRICS[0];
    const { points } = await ask(["trend"], state);
    put(figure, points.length ? chart(points, { isShare, format }) : h("p", { class: "empty" }, "No run measured it."));
    put(rows, points.slice().reverse().map((point) => h("tr", { "data-item": true, tabindex: "0" },
      h("td", {}, h("a", { href: link("run", point.run), "data-open": true, tabindex: "-1" }, when(point.started), " ", h("span", { class: "faint id" }, point.run))),
      h("td", { class: "number" }, point.value === null ? "–" : format(point.value)), h("td", { class: "number faint" }, `n ${point.n}`))));
  }
  const choice = (name, options) => {
    const select = h("select", { id: name, "aria-label": name }, options.map(([value, words]) => h("option", { value, selected: state[name] === value }, words)));
    select.addEventListener("change", () => {
      state[name] = select.value;
      history.replaceState(null, "", `#/trends?${new URLSearchParams(Object.entries(state).filter(([, value]) => value))}`);
      show();
    });
    return select;
  };
  const doubtful = doubts.doubts.map((doubt) => h("li", {}, h("strong", {}, doubt.check), ` of ${doubt.case}, `, h("span", { class: "faint" }, doubt.suite), ": ",
    doubt.concern.replaceAll("_", " "), h("span", { class: "faint" }, ` (${doubt.passed} of ${doubt.passed + doubt.failed} passed)`)));
  put(page, h("h1", {}, "Trends"),
    h("p", { class: "filters" }, choice("metric", METRICS.map(([name, words]) => [name, words])),
      choice("suite", [["", "all suites"], ...suites.map((suite) => [suite, suite])]),
      choice("arm", [["", "with the skill"], ["without", "without the skill"]])),
    figure, h("div", { class: "wide" }, h("table", { class: "plain" }, rows)),
    doubtful.length ? h("section", {}, h("h2", {}, "Checks to doubt"), h("ul", { class: "doubts" }, doubtful)) : null);
  await show();
}
