// Two trials side by side, with where they first part.

import { ask } from "./api.js";
import { clean, h, link, put } from "./dom.js";
import { condition, crumbs, mark } from "./parts.js";
import { placeless, stepView } from "./transcript.js";

function key(step) {
  const parts = step.kind === "tool" ? [step.name, step.input.text, step.result?.text ?? null] : [step.kind, step.text.text];
  return JSON.stringify(parts.map((part) => part && placeless(part)));
}

// How many characters two texts begin with alike.
function alike(one, other) {
  let at = 0;
  while (at < one.length && at < other.length && one[at] === other[at]) at += 1;
  return at;
}

function shownText(step) {
  return step.kind === "tool" ? step.result?.text ?? step.input.text : step.text.text;
}

async function read(run, id) {
  const [trial, page] = await Promise.all([ask(["run", run, "trial", id]), ask(["run", run, "trial", id, "steps"])]);
  return { run, id, record: trial.record, verdict: trial.verdict, ...page };
}

function column(trial, other, parting) {
  const look = { quotes: [], found: new Set() };
  const steps = trial.steps.map((step, at) => {
    const view = stepView(trial, step, at, look);
    if (at < parting) view.classList.add("same");
    if (at === parting) {
      view.classList.add("parting");
      if (view.tagName === "DETAILS") view.open = true;
      const theirs = other.steps[at];
      const body = view.querySelectorAll("pre.text");
      const last = body[body.length - 1];
      if (theirs && theirs.kind === step.kind && last) {
        const [mine, yours] = [step, theirs].map((each) => clean(placeless(shownText(each))));
        const from = alike(mine, yours);
        put(last, mine.slice(0, from), h("mark", { class: "differs" }, mine.slice(from)));
      }
    }
    return at === parting ? [h("p", { class: "part-line" }, "Here they part"), view] : view;
  });
  const rest = trial.next === null ? null : h("p", { class: "faint" }, `${trial.total - trial.steps.length} more steps are on its own page.`);
  return h("section", { class: "main" },
    h("h2", {}, mark(trial.verdict), " ", h("a", { href: link("run", trial.run, "trial", trial.id) }, `${trial.record.case} #${trial.record.attempt}`)),
    h("p", { class: "faint small" }, condition(trial.record.condition), " ", trial.run), h("div", { class: "steps" }, steps), rest);
}

export async function comparePage(page, [run, id, otherRun, otherId]) {
  const [one, other] = await Promise.all([read(run, id), read(otherRun, otherId)]);
  let parting = 0;
  while (parting < one.steps.length && parting < other.steps.length && key(one.steps[parting]) === key(other.steps[parting])) parting += 1;
  const same = parting === one.steps.length && parting === other.steps.length && one.next === null && other.next === null;
  const until = parting === 0 ? "They part at the first step." : `They are the same up to step ${parting}.`;
  const words = same ? "They said and did the same." : until;
  const swap = h("a", { class: "button", href: link("compare", otherRun, otherId, run, id) }, "Swap");
  put(page,
    crumbs(["Runs", "#/"], [run, link("run", run)], ["two trials"]),
    h("h1", {}, "Side by side"), h("p", { class: "filters" }, words, swap),
    h("div", { class: "halves" }, column(one, other, same ? -1 : parting), column(other, one, same ? -1 : parting)));
  page.querySelector(".part-line")?.scrollIntoView({ block: "center" });
}
