// Trials of one run or all of them, by what they are and what was said in them.

import { ask } from "./api.js";
import { h, link, put } from "./dom.js";
import { crumbs, pages, trialRow } from "./parts.js";

export async function searchPage(page, _parts, query) {
  const state = { q: query.get("q") ?? "", run: query.get("run") ?? "", verdict: query.get("verdict") ?? "", arm: query.get("arm") ?? "" };
  const list = pages(async (after) => {
    const { trials, more } = await ask(["trials"], { ...state, after });
    return { rows: trials, next: more ? trials[trials.length - 1].n : undefined };
  }, (trial) => trialRow(trial, { showRun: !state.run }), "No trial fits.");

  function remember() {
    const given = Object.entries(state).filter(([, value]) => value);
    history.replaceState(null, "", "#/search" + (given.length ? `?${new URLSearchParams(given)}` : ""));
    list.restart();
  }
  let soon;
  const words = h("input", { type: "search", id: "words", value: state.q, placeholder: "words, or a case", "aria-label": "words, or a case" });
  words.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(() => { state.q = words.value; remember(); }, 200);
  });
  const choice = (name, options) => {
    const select = h("select", { id: name, "aria-label": name }, options.map(([value, shown]) => h("option", { value, selected: state[name] === value }, shown)));
    select.addEventListener("change", () => { state[name] = select.value; remember(); });
    return select;
  };
  put(page,
    state.run ? crumbs(["Runs", "#/"], [state.run, link("run", state.run)], ["trials"]) : null,
    h("h1", {}, "Trials"),
    h("p", { class: "filters" }, words,
      choice("verdict", [["", "any verdict"], ["pass", "passed"], ["fail", "failed"], ["not_scored", "not scored"]]),
      choice("arm", [["", "any arm"], ["with", "with skill"], ["without", "without skill"]])),
    list.whole);
  await list.restart();
}
