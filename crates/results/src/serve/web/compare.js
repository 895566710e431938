// Two trials side by side, with where they first part.

import { ask } from "./api.js";
import { clean, h, link, put } from "./dom.js";
import { condition, crumbs, mark } from "./parts.js";
import { placeless, stepView } from "./transcript.js";

// The texts of a step in the order in which they are shown.
function texts(step) {
  const shown = step.kind === "tool" ? [step.input.text, step.result?.text ?? ""] : [step.text.text];
  return shown.map((text) => clean(placeless(text)));
}

function same(one, other) {
  const key = (step) => JSON.stringify([step.kind, step.name, step.ok, texts(step)]);
  return key(one) === key(other);
}

// How many characters two texts have alike, from their beginning.
function alike(one, other) {
  let at = 0;
  while (at < one.length && at < other.length && one[at] === other[at]) at += 1;
  return at;
}

function reversed(text) {
  return [...text].reverse().join("");
}

// A text with what the other has not marked in it: all between what they begin and end with alike.
function differing(mine, yours) {
  const from = alike(mine, yours);
  const until = mine.length - alike(reversed(mine.slice(from)), reversed(yours.slice(from)));
  return [mine.slice(0, from), h("mark", { class: "differs" }, mine.slice(from, until)), mine.slice(until)];
}

async function read(run, id) {
  const [trial, page] = await Promise.all([ask(["run", run, "trial", id]), ask(["run", run, "trial", id, "steps"])]);
  return { run, id, record: trial.record, verdict: trial.verdict, ...page };
}

// The step in which two trials part, open and with the difference marked.
function partingView(view, step, theirs) {
  view.classList.add("parting");
  if (view.tagName === "DETAILS") view.open = true;
  if (theirs?.kind !== step.kind || theirs.name !== step.name) return;
  const yours = texts(theirs);
  const bodies = view.querySelectorAll("pre.text");
  texts(step).forEach((mine, at) => {
    if (bodies[at] && mine !== yours[at]) put(bodies[at], differing(mine, yours[at]));
  });
}

function column(trial, other, parting) {
  const look = { quotes: [], found: new Set() };
  const steps = trial.steps.map((step, at) => {
    const view = stepView(trial, step, at, look);
    if (at < parting) view.classList.add("same");
    if (at !== parting) return view;
    partingView(view, step, other.steps[at]);
    return [h("p", { class: "part-line" }, "Here they part"), view];
  });
  // One that ends where the other goes on parts there, too.
  if (trial.steps.length === parting && trial.next === null) steps.push(h("p", { class: "part-line" }, "It ends here"));
  const rest = trial.next === null ? null : h("p", { class: "faint" }, `${trial.total - trial.steps.length} more steps are on its own page.`);
  return h("section", { class: "main" },
    h("h2", {}, h("span", { class: "cell" }, mark(trial.verdict), h("a", { href: link("run", trial.run, "trial", trial.id) }, `${trial.record.case} #${trial.record.attempt}`))),
    h("p", { class: "faint small" }, condition(trial.record.condition), " ", h("span", { class: "id" }, trial.run)), h("div", { class: "steps" }, steps), rest);
}

export async function comparePage(page, [run, id, otherRun, otherId]) {
  const [one, other] = await Promise.all([read(run, id), read(otherRun, otherId)]);
  let parting = 0;
  while (parting < one.steps.length && parting < other.steps.length && same(one.steps[parting], other.steps[parting])) parting += 1;
  const alikeThroughout = parting === one.steps.length && parting === other.steps.length && one.next === null && other.next === null;
  const until = parting === 0 ? "They part at the first step." : parting === 1 ? "Only their first step is the same." : `Their first ${parting} steps are the same.`;
  const words = alikeThroughout ? "They said and did the same." : until;
  const swap = h("a", { class: "button", href: link("compare", otherRun, otherId, run, id) }, "Swap sides");
  const at = alikeThroughout ? -1 : parting;
  put(page,
    crumbs(["Runs", "#/"], [run, link("run", run)], ["two trials"]),
    h("h1", {}, "Side by side"), h("p", { class: "filters" }, words, swap),
    h("div", { class: "halves" }, column(one, other, at), column(other, one, at)));
  page.querySelector(".part-line")?.scrollIntoView({ block: "center" });
}
