// Trials of one run or all of them, by what they are and what was said in them.

import { ask } from "./api.js";
import { h, link, put } from "./dom.js";
import { choice, crumbs, pages, remember, trialRow } from "./parts.js";

const KEPT = ["q", "run", "verdict", "suite", "agent", "arm", "order"];

export async function searchPage(page, _parts, query) {
  const state = Object.fromEntries(KEPT.map((name) => [name, query.get(name) ?? ""]));
  const known = await ask(["choices"], { run: state.run });
  const list = pages(async (after) => {
    const { trials, more } = await ask(["trials"], { ...state, after });
    return { rows: trials, next: more ? trials[trials.length - 1].n : undefined };
  }, (trial) => trialRow(trial, { showRun: !state.run }), "No trial fits.");

  const restart = () => {
    remember("search", state);
    list.restart();
  };
  let soon;
  const words = h("input", { type: "search", id: "words", value: state.q, placeholder: "words, or a case", "aria-label": "words, or a case" });
  words.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(() => { state.q = words.value; restart(); }, 200);
  });
  const choose = (name, options) => choice(state, name, options, restart);
  // A choice between one thing and nothing is none.
  const among = (name, any, values) => (values.length > 1 || state[name] ? choose(name, [["", any], ...values.map((value) => [value, value])]) : null);
  const orders = [["slowest", "slowest first"], ["dearest", "dearest first"]];
  put(page,
    state.run ? crumbs(["Runs", "#/"], [state.run, link("run", state.run)], ["trials"]) : null,
    h("h1", {}, "Trials"),
    h("p", { class: "filters" }, words,
      choose("verdict", [["", "any verdict"], ["pass", "passed"], ["fail", "failed"], ["not_scored", "not scored"]]),
      among("suite", "any suite", known.suites), among("agent", "any agent", known.agents),
      known.arms.length > 1 || state.arm ? choose("arm", [["", "any arm"], ...known.arms.map((arm) => [arm, arm === "with" || arm === "without" ? `${arm} skill` : arm])]) : null,
      choose("order", state.run ? [["", "in the order of the cases"], ["newest", "latest first"], ...orders] : [["", "newest first"], ...orders])),
    list.whole);
  await list.restart();
}
