// All runs, the newest first.

import { ask } from "./api.js";
import { MOST_LINES, chart } from "./chart.js";
import { h, link, put } from "./dom.js";
import { bar, counts, mark, money, named, origin, pages, seconds, share, stateMark, unscoredWords, when } from "./parts.js";

function row(run) {
  // Until it ends, nobody knows how many of the planned trials are only compared with.
  const shown = run.state === "running" ? run : run.examined;
  const source = origin(run);
  return h("div", { class: "row run", "data-item": true, tabindex: "0" },
    mark(stateMark(run.state)),
    h("div", { class: "name" },
      h("a", { href: link("run", run.id), "data-open": true, tabindex: "-1" }, named(run.suites) || run.id),
      h("div", { class: "faint small" }, when(run.started), " ", h("span", { class: "id" }, run.id))),
    h("span", { class: `state ${run.state.replace(" ", "-")}` }, run.state, source && h("div", { class: "faint small" }, source)),
    bar(shown, run.state === "running" ? run.planned : undefined),
    h("span", { class: "told-counts" }, counts(shown), unscoredWords(shown)),
    h("span", { class: "number" }, seconds(run.seconds)),
    h("span", { class: "number" }, money(run.cost_usd)));
}

export async function runsPage(page) {
  const seen = new Set();
  const state = h("div", {});
  const list = pages(async (before) => {
    const { runs, more, importing } = await ask(["runs"], { before });
    put(state, importing && h("p", { class: "notice", id: "importing" }, "The index is being made, so runs may be missing; load the page again in a while."));
    runs.forEach((run) => run.suites.forEach((suite) => seen.add(suite)));
    return { rows: runs, next: more ? runs[runs.length - 1].id : undefined };
  }, row, "No runs yet; practicum run makes one.");
  const overview = h("div", {});
  put(page, h("h1", {}, "Runs"), state, overview, list.whole);
  await list.restart();
  const suites = [...seen].sort().slice(0, MOST_LINES);
  const trends = await Promise.all(suites.map((suite) => ask(["trend"], { metric: "pass_rate", suite })));
  // One point shows no trend.
  const series = trends.map(({ points }, line) => ({ name: suites[line], line, points }))
    .filter(({ points }) => points.filter((point) => point.value !== null).length > 1);
  if (series.length) {
    put(overview, h("figure", {}, h("figcaption", { class: "faint" }, "Pass rate with the skill, run by run", series.length === 1 && `: ${series[0].name}`),
      chart(series, { isShare: true, format: share, height: 150 })));
  }
}
