// One run: how it stands, its gates, and its cases against what they were run under.

import { ask, follow } from "./api.js";
import { h, link, put } from "./dom.js";
import { bar, condition, counts, crumbs, mark, money, pages, seconds, share, stateMark, together, when } from "./parts.js";

function columnKey({ agent, model, arm, mode }) {
  return JSON.stringify([agent, model, arm, mode]);
}

function interval({ low, high }) {
  return low === null || low === undefined ? "" : ` [${share(low)}, ${share(high)}]`;
}

function cellView(run, suite, id, cell) {
  if (!cell) return h("td", { class: "faint" }, "–");
  const verdict = together(cell);
  // One answer says next to nothing about the rate, and its interval would only fill the page.
  const sure = cell.passed + cell.failed > 1 && h("span", { class: "faint small" }, interval(cell));
  return h("td", {}, h("a", { class: "cell", tabindex: "-1", href: link("run", run, "case", suite, id) }, mark(verdict), counts(cell), sure));
}

// What the summary measured, each with how sure it is.
function measured(summary) {
  const activation = summary?.activation ?? {};
  const rows = [["pass rate", summary?.pass_rate], ["precision", activation.precision], ["recall", activation.recall], ["F1", activation.f1]]
    .filter(([, estimate]) => estimate && estimate.value !== null && estimate.value !== undefined);
  if (!rows.length) return null;
  return h("p", { class: "told measured" }, rows.map(([name, estimate]) =>
    h("span", {}, `${name} `, h("strong", {}, share(estimate.value)), h("span", { class: "faint" }, interval(estimate)))));
}

function gates(summary) {
  if (!summary?.gates.length) return null;
  const rows = summary.gates.map((gate) => h("tr", {},
    h("td", {}, mark(gate.ok ? "pass" : gate.value === null ? "not_scored" : "fail")),
    h("td", {}, gate.name.replaceAll("_", " ")), h("td", { class: "faint" }, gate.suite),
    h("td", { class: "number" }, share(gate.value), h("span", { class: "faint" }, interval(gate))),
    h("td", { class: "number faint" }, `needs ${share(gate.threshold)}`)));
  return h("section", {}, h("h2", {}, "Gates"), h("div", { class: "wide" }, h("table", { class: "plain" }, h("tbody", {}, rows))));
}

function arms(summary) {
  const difference = summary?.arms?.difference;
  if (!difference) return null;
  return h("p", { class: "told" }, "With the skill against without: ",
    h("strong", {}, summary.arms.verdict ?? ""), ` ${share(difference.value)}`, h("span", { class: "faint" }, interval(difference)));
}

function agreementView({ labels, agree, kappa }) {
  if (!labels) return null;
  const beyond = kappa ? [`, κ ${share(kappa.value)}`, h("span", { class: "faint" }, interval(kappa))] : ", too alike for κ";
  return h("p", { class: "told", id: "agreement" }, `People agree with the judge on ${agree} of ${labels} checks`, beyond);
}

function liveView(run, refresh) {
  const view = h("section", { class: "live", "aria-live": "polite" });
  let last = -1, soon = null;
  const stop = follow(run.id, (standing) => {
    const running = Object.values(standing.running);
    const shown = running.slice(0, 8).map((name) => h("li", {}, name));
    if (running.length > 8) shown.push(h("li", { class: "faint" }, `and ${running.length - 8} more`));
    const unscored = standing.done - standing.passed - standing.failed;
    put(view,
      h("p", {}, h("strong", { id: "progress" }, standing.finished ? "Finished" : `${standing.done} of ${standing.planned} done`)),
      bar({ passed: standing.passed, failed: standing.failed, not_scored: unscored }, standing.planned),
      !standing.finished && h("ul", { class: "underway" }, shown));
    if (standing.done !== last || standing.finished) {
      last = standing.done;
      clearTimeout(soon);
      soon = setTimeout(() => refresh(standing.finished), standing.finished ? 900 : 700);
    }
  });
  return { view, stop: () => { stop(); clearTimeout(soon); } };
}

export async function runPage(page, [id]) {
  const run = await ask(["run", id]);
  const state = h("div", { class: "headline" });
  const grid = h("div", {});
  let troubled = false, columns = run.columns, live;

  function headline(now) {
    const verdict = stateMark(now.state);
    put(state, mark(verdict), h("span", { class: "state" }, now.state), bar(now, now.planned),
      h("span", {}, counts(now), " passed"), now.seconds !== null && h("span", { class: "faint" }, seconds(now.seconds)), now.cost_usd !== null && h("span", { class: "faint" }, money(now.cost_usd)));
  }

  function row(each) {
    const cells = new Map(each.cells.map((cell) => [columnKey(cell.column), cell]));
    const name = h("a", { href: link("run", id, "case", each.suite, each.case), "data-open": true, tabindex: "-1" }, each.case);
    return h("tr", { "data-item": true, tabindex: "0", "data-suite": each.suite }, h("th", { scope: "row" }, name, h("div", { class: "faint small" }, each.suite)),
      columns.map((column) => cellView(id, each.suite, each.case, cells.get(columnKey(column.column)))));
  }

  const body = pages(async (after) => {
    const { cases, more } = await ask(["run", id, "cases"], { ...after, troubled: troubled || undefined });
    const last = cases[cases.length - 1];
    return { rows: cases, next: more ? { suite: last.suite, case: last.case } : undefined };
  }, row, "No case fits.", h("tbody", {}));

  function table() {
    const head = h("tr", {}, h("th", { scope: "col" }, "Case"),
      columns.map((column) => h("th", { scope: "col" }, condition(column.column), h("div", { class: "small" }, counts(column)))));
    put(grid, h("div", { class: "wide" }, h("table", { class: "grid" }, h("thead", {}, head), body.list)), body.more);
  }

  const only = h("input", { type: "checkbox", id: "troubled" });
  only.addEventListener("change", () => { troubled = only.checked; body.restart(); });
  const find = h("a", { class: "button", href: link("search") + `?run=${encodeURIComponent(id)}` }, "Filter and search its trials");
  const agreed = h("div", {});
  put(page,
    crumbs(["Runs", "#/"], [id]),
    h("h1", {}, run.suites.join(", ") || "Run"), h("p", { class: "faint" }, when(run.started), " ", h("span", { class: "id" }, id)),
    state, run.notices.map((notice) => h("p", { class: "faint small" }, notice)),
    run.scripted && h("p", { class: "notice" }, "The model's answers came from a script: this run tests the evals, not a model."),
    run.replayed && h("p", { class: "notice" }, "The model's answers were recorded earlier."),
    h("div", { id: "live" }), measured(run.summary), arms(run.summary), agreed, gates(run.summary),
    h("section", {}, h("h2", {}, "Cases"), h("p", { class: "filters" }, h("label", {}, only, " only what did not pass"), find), grid));
  headline(run);
  table();
  await body.restart();
  ask(["run", id, "agreement"]).then((told) => put(agreed, agreementView(told))).catch(() => {});
  if (run.state === "running") {
    live = liveView(run, async (finished) => {
      const now = await ask(["run", id]).catch(() => null);
      if (!now) return;
      headline(now);
      columns = now.columns;
      table();
      await body.restart();
      if (finished) put(page.querySelector("#live"));
    });
    put(page.querySelector("#live"), live.view);
  }
  return () => live?.stop();
}
