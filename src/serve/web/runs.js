// All runs, the newest first.

import { ask } from "./api.js";
import { chart } from "./chart.js";
import { h, link, put } from "./dom.js";
import { bar, counts, mark, money, pages, seconds, share, stateMark, when } from "./parts.js";

function row(run) {
  return h("div", { class: "row run", "data-item": true, tabindex: "0" },
    mark(stateMark(run.state)),
    h("div", { class: "name" },
      h("a", { href: link("run", run.id), "data-open": true, tabindex: "-1" }, run.suites.join(", ") || run.id),
      h("div", { class: "faint small" }, when(run.started), " ", h("span", { class: "id" }, run.id))),
    h("span", { class: `state ${run.state.replace(" ", "-")}` }, run.state,
      (run.scripted || run.replayed) && h("span", { class: "faint" }, run.scripted ? " · scripted" : " · replayed")),
    bar(run, run.planned), counts(run),
    h("span", { class: "number" }, seconds(run.seconds)),
    h("span", { class: "number" }, money(run.cost_usd)));
}

export async function runsPage(page) {
  const list = pages(async (before) => {
    const { runs, more } = await ask(["runs"], { before });
    return { rows: runs, next: more ? runs[runs.length - 1].id : undefined };
  }, row, "No runs yet; practicum run makes one.");
  const overview = h("div", {});
  put(page, h("h1", {}, "Runs"), overview, list.whole);
  await list.restart();
  const { points } = await ask(["trend"], { metric: "pass_rate" });
  if (points.filter((point) => point.value !== null).length > 1) {
    put(overview, h("figure", {}, h("figcaption", { class: "faint" }, "Pass rate with the skill, run by run"),
      chart(points, { isShare: true, format: share, height: 150 })));
  }
}
