// Every trial of one case of a run, with what each check found.

import { ask } from "./api.js";
import { h, link, put } from "./dom.js";
import { condition, crumbs, mark, marker, money, pages, seconds, verdictOf } from "./parts.js";

export async function casePage(page, [run, suite, id]) {
  const checks = [];
  const head = h("tr", {});

  // Checks that only some trials have get their column when the first such trial comes.
  function learn(trials) {
    for (const check of trials.flatMap((trial) => trial.checks)) {
      if (!checks.includes(check.id)) checks.push(check.id);
    }
    const column = (name, kind) => h("th", { scope: "col", class: kind }, name);
    put(head, column("Trial"), column("Run with"), checks.map((name) => column(name, "check-name")), column("Time", "number"), column("Cost", "number"), column("Compare", "screen-only"));
  }

  function row(trial) {
    const found = new Map(trial.checks.map((check) => [check.id, check]));
    const cell = (check) => (check ? mark(verdictOf(check.passed)) : h("span", { class: "faint" }, "–"));
    return h("tr", { class: "trial", "data-item": true, tabindex: "0" },
      h("th", { scope: "row" }, h("span", { class: "cell" }, mark(verdictOf(trial.passed)),
        h("a", { class: "name", href: link("run", run, "trial", trial.id), "data-open": true, tabindex: "-1" }, `attempt ${trial.attempt}`)),
        trial.why && h("div", { class: "faint small" }, trial.why), trial.reused && h("div", { class: "faint small" }, "reused")),
      h("td", {}, condition(trial)), checks.map((check) => h("td", {}, cell(found.get(check)))),
      h("td", { class: "number" }, seconds(trial.seconds)), h("td", { class: "number" }, money(trial.cost_usd)),
      h("td", { class: "screen-only" }, marker(run, trial.id)));
  }

  const list = pages(async (after) => {
    const { trials, more } = await ask(["trials"], { run, suite, case: id, checks: true, after });
    learn(trials);
    return { rows: trials, next: more ? trials[trials.length - 1].n : undefined };
  }, row, "It has no trials yet.", h("tbody", {}));
  put(page,
    crumbs(["Runs", "#/"], [run, link("run", run)], [id]),
    h("h1", {}, id), h("p", { class: "faint" }, suite),
    h("p", { class: "faint small screen-only" }, "Mark two trials to see them side by side."),
    h("div", { class: "wide" }, h("table", { class: "grid" }, h("thead", {}, head), list.list)), list.more);
  await list.restart();
}
