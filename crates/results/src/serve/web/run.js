// One run: how it stands, its gates, and its suites and cases against what they were run with.

import { ask, follow } from "./api.js";
import { h, link, put } from "./dom.js";
import { confusionFigure, rateFigure } from "./figures.js";
import { agreementView, bar, condition, counts, crumbs, interval, mark, money, named, pages, seconds, share, stateMark, together, unscoredWords, when } from "./parts.js";
import { routingView } from "./routing.js";

function columnKey({ agent, model, arm, mode }) {
  return JSON.stringify([agent, model, arm, mode]);
}

function signed(value) {
  return `${value > 0 ? "+" : ""}${share(value)}`;
}

// What the summary measured, each with how sure it is.
function measured(summary) {
  const activation = summary?.activation ?? {};
  const { difference, verdict } = summary?.arms ?? {};
  const tile = (name, estimate, { value = share, more } = {}) => {
    if (estimate?.value === null || estimate?.value === undefined) return null;
    const sure = estimate.low === null || estimate.low === undefined ? "" : `${value(estimate.low)} to ${value(estimate.high)}`;
    return h("div", { class: "tile" }, h("h2", {}, name), h("p", { class: "value" }, value(estimate.value)), h("p", { class: "faint small" }, [sure, more].filter(Boolean).join(" · ")));
  };
  const tiles = [
    tile("Pass rate", summary?.pass_rate), tile("Precision", activation.precision), tile("Recall", activation.recall), tile("F1", activation.f1),
    tile("With − without skill", difference, { value: signed, more: verdict }),
  ].filter(Boolean);
  return tiles.length > 0 && h("section", { class: "tiles", "aria-label": "Measured" }, tiles);
}

// How many trials were reused, with what they had cost in their own runs.
function reusedWords(run) {
  const saved = run.summary?.saved;
  const tokens = saved ? saved.tokens.input + saved.tokens.output : 0;
  const cost = saved && saved.cost_usd !== null ? `, ${money(saved.cost_usd)}` : ", cost unknown";
  return `${run.reused} of its trials were reused from earlier runs${saved ? `; saved: ${tokens} tokens${cost}` : ""}.`;
}

// What single results vary with.
function varianceView(summary) {
  const of = summary?.variance;
  if (!of) return null;
  const part = (value, words) => `${Math.round(value * 100)} % ${words}`;
  const judge = of.judge === null || of.judge === undefined ? "" : `, ${part(of.judge, "by the judge")}`;
  return h("p", { class: "faint", id: "variance" }, `What varies: ${part(of.case, "between cases")}, ${part(of.run, "between runs of a case")}${judge}.`);
}

const STANDINGS = { on_frontier: "on the frontier", unclear: "perhaps behind", behind: "behind" };

// Cost against quality: each agent, model, mode and version that was run.
function frontierView(summary) {
  const points = summary?.frontier ?? [];
  if (points.length === 0) return null;
  const cost = (of) => of.value === null ? "–" : [money(of.value), of.low !== null && h("span", { class: "faint" }, ` [${money(of.low)}, ${money(of.high)}]`)];
  const row = (point) => h("tr", {}, h("th", { scope: "row" }, point.name),
    h("td", { class: "number" }, share(point.pass_rate.value), h("span", { class: "faint" }, interval(point.pass_rate))),
    h("td", { class: "number" }, cost(point.cost_usd)),
    h("td", {}, STANDINGS[point.standing] ?? "cannot be placed", point.behind && ` ${point.behind}`));
  const heads = ["", "Pass rate", "Cost of a trial", ""].map((name) => h("th", { scope: "col" }, name));
  return h("section", {}, h("h2", {}, "Cost against quality"), h("div", { class: "wide" },
    h("table", { class: "plain", id: "frontier" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, points.map(row)))));
}

// Of more gates than this only those that fail are shown at once.
const MOST_GATES = 12;

const GATE_MARKS = { holds: "pass", fails: "fail" };

function gates(summary) {
  if (!summary) return null;
  const row = (gate) => h("tr", {},
    h("td", {}, mark(GATE_MARKS[gate.standing] ?? "not_scored")),
    h("td", {}, gate.name.replaceAll("_", " "), h("div", { class: "faint small" }, gate.agent ? `${gate.suite} with ${gate.agent}` : gate.suite)),
    h("td", {}, rateFigure(gate, GATE_MARKS[gate.standing] ?? "not_scored", gate.threshold)),
    h("td", { class: "number" }, share(gate.value), h("span", { class: "faint" }, interval(gate))),
    h("td", { class: "number faint" }, `needs ${share(gate.threshold)}`),
    h("td", {}, gate.standing, (gate.lost ?? []).map((name) => h("div", { class: "small" }, `worse: ${name}`)), (gate.cannot_tell ?? []).map((name) => h("div", { class: "faint small" }, `cannot tell: ${name}`)), gate.standing === "open" && gate.worst !== null && h("div", { class: "faint small" }, `at worst ${share(gate.worst)}`)));
  const table = (gates) => gates.length > 0 && h("div", { class: "wide" }, h("table", { class: "plain gates" }, h("tbody", {}, gates.map(row))));
  const many = summary.gates.length > MOST_GATES;
  const failing = summary.gates.filter((gate) => gate.standing === "fails");
  const others = summary.gates.filter((gate) => gate.standing !== "fails");
  return h("section", {}, h("h2", {}, "Gates"),
    summary.gates.length === 0 && h("p", { class: "faint" }, "No gate is set, so nothing that failed could fail the run."),
    table(many ? failing : summary.gates),
    many && others.length > 0 && h("details", {}, h("summary", {}, `${others.length} that do not fail`), table(others)));
}

// How often a skill was activated where it was expected, and where it was not.
function activationView(summary) {
  const of = summary?.activation;
  if (!of || of.tp + of.fp + of.tn + of.fn === 0) return null;
  return h("section", { id: "activation" }, h("h2", {}, "Activation"), confusionFigure(of));
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

function columnHeads(columns) {
  return columns.map((column) => h("th", { scope: "col" }, condition(column.column)));
}

function cellsOf(columns, cells, href, shown) {
  const found = new Map(cells.map((cell) => [columnKey(cell.column), cell]));
  return columns.map(({ column }) => {
    const cell = found.get(columnKey(column));
    return cell ? h("td", {}, h("a", { class: "cell", tabindex: "-1", href: href(column) }, shown(cell))) : h("td", { class: "faint" }, "–");
  });
}

function ofCase(cell) {
  // One answer says next to nothing about the rate, and its interval would only fill the page.
  const sure = cell.passed + cell.failed > 1 && h("span", { class: "faint small" }, interval(cell));
  return [mark(together(cell)), counts(cell), sure];
}

// Of many cases one that failed would make the whole look failed.
function ofSuite(cell) {
  return [bar(cell), counts(cell)];
}

// Suites against agents and arms, with a line for all of them.
function suiteGrid(id, { grid, columns }) {
  if (grid.length < 2) return null;
  const trials = (suite) => ({ agent, arm }) => `${link("search")}?${new URLSearchParams({ run: id, ...(suite ? { suite } : {}), agent, arm })}`;
  const row = (name, suite, cells) => h("tr", {}, h("th", { scope: "row" }, name), cellsOf(columns, cells, trials(suite), ofSuite));
  return h("section", {}, h("h2", {}, "Suites"), h("div", { class: "wide" }, h("table", { class: "grid", id: "suites" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Suite"), columnHeads(columns))),
    h("tbody", {}, grid.map(({ suite, cells }) => row(suite, suite, cells))),
    h("tfoot", {}, row("all", null, columns)))));
}

export async function runPage(page, [id]) {
  const run = await ask(["run", id]);
  const state = h("div", { class: "headline" });
  const suites = h("div", {});
  const grid = h("div", {});
  let troubled = false, now = run, live;

  function headline() {
    const going = now.state === "running";
    const shown = going ? now : now.examined;
    const only = now.passed + now.failed + now.not_scored - shown.passed - shown.failed - shown.not_scored;
    put(state, mark(stateMark(now.state)), h("strong", { class: "state" }, now.state), bar(shown, going ? now.planned : undefined),
      h("span", {}, counts(shown), " passed"), unscoredWords(shown),
      only > 0 && h("span", { class: "faint" }, `without the skill ${now.passed - shown.passed}/${only}`),
      now.seconds !== null && h("span", { class: "faint" }, seconds(now.seconds)), now.cost_usd !== null && h("span", { class: "faint" }, money(now.cost_usd)));
  }

  let suite = null;
  function row(each) {
    const address = link("run", id, "case", each.suite, each.case);
    const name = h("a", { href: address, "data-open": true, tabindex: "-1" }, each.case);
    const line = h("tr", { "data-item": true, tabindex: "0" }, h("th", { scope: "row" }, name), cellsOf(now.columns, each.cells, () => address, ofCase));
    if (each.suite === suite) return [line];
    suite = each.suite;
    return [now.grid.length > 1 && h("tr", { class: "of-suite" }, h("th", { scope: "colgroup", colspan: now.columns.length + 1 }, suite)), line].filter(Boolean);
  }

  const body = pages(async (after) => {
    const { cases, more } = await ask(["run", id, "cases"], { ...after, troubled: troubled || undefined });
    if (!after) suite = null;
    const last = cases[cases.length - 1];
    return { rows: cases, next: more ? { suite: last.suite, case: last.case } : undefined };
  }, row, "No case fits.", h("tbody", {}));

  function tables() {
    put(suites, suiteGrid(id, now));
    put(grid, h("div", { class: "wide" }, h("table", { class: "grid", id: "cases" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Case"), columnHeads(now.columns))), body.list)), body.more);
  }

  const only = h("input", { type: "checkbox", id: "troubled" });
  only.addEventListener("change", () => { troubled = only.checked; body.restart(); });
  const find = h("a", { class: "button", href: link("search") + `?run=${encodeURIComponent(id)}` }, "Filter and search its trials");
  const label = h("a", { class: "button", id: "label", href: link("run", id, "label"), hidden: true }, "Label what its judge decided");
  const agreed = h("div", {});
  const routed = h("div", { id: "routing" });
  put(page,
    crumbs(["Runs", "#/"], [id]),
    h("h1", {}, named(run.suites) || "Run"), h("p", { class: "faint" }, when(run.started)),
    state, run.notices.map((notice) => h("p", { class: "faint small" }, notice)),
    run.scripted && h("p", { class: "notice" }, "The model's answers came from a script: this run tests the evals, not a model."),
    run.replayed && h("p", { class: "notice" }, "The model's answers were recorded earlier."),
    run.reused > 0 && h("p", { class: "notice", id: "reused" }, reusedWords(run)),
    h("div", { id: "live" }), measured(run.summary), varianceView(run.summary), frontierView(run.summary), routed, agreed, gates(run.summary), activationView(run.summary), suites,
    h("section", {}, h("h2", {}, "Cases"), h("p", { class: "filters" }, h("label", {}, only, " only what did not pass"), find, label), grid));
  headline();
  tables();
  await body.restart();
  ask(["run", id, "label"]).then(({ left, labelled }) => { label.hidden = left + labelled === 0; }).catch(() => {});
  if (run.suites.includes("route")) ask(["run", id, "routing"]).then((document) => put(routed, routingView(document))).catch(() => {});
  ask(["run", id, "agreement"]).then((told) => put(agreed, agreementView(told))).catch(() => {});
  if (run.state === "running") {
    live = liveView(run, async (finished) => {
      const fresh = await ask(["run", id]).catch(() => null);
      if (!fresh) return;
      now = fresh;
      headline();
      tables();
      await body.restart();
      if (finished) put(page.querySelector("#live"));
    });
    put(page.querySelector("#live"), live.view);
  }
  return () => live?.stop();
}
