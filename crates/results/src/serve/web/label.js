// One judged check after another, in random order. The judge's verdict is not even fetched before the person has said theirs.

import { ask, tell } from "./api.js";
import { h, link, put } from "./dom.js";
import { agreementView, crumbs, mark } from "./parts.js";
import { transcript } from "./transcript.js";
import { fileView } from "./trial.js";

function judgeView({ verdict, rationale, evidence }, agrees) {
  return h("section", { id: "judge" }, h("h2", {}, agrees ? "The judge agrees" : "The judge disagrees"),
    h("p", {}, mark(verdict), " ", rationale), evidence.map((quote) => h("blockquote", {}, quote)));
}

export async function labelPage(page, [run]) {
  const agreed = h("div", { class: "faint small" });
  const room = h("div", {});
  put(page, crumbs(["Runs", "#/"], [run, link("run", run)], ["label"]), h("h1", {}, "Label"),
    h("p", { class: "faint" }, "Does the statement hold for what the agent did? The judge's verdict is shown after yours."), room, agreed);

  async function show(after) {
    const { next, labelled, left } = await ask(["run", run, "label"], { after });
    const count = h("p", { class: "faint", id: "labelled" }, `${labelled} labelled, ${left} left`);
    if (!next) {
      put(room, count, h("p", { class: "empty" }, left ? "You have seen all of them; what you skipped is left." : "Every verdict of the judge has a label."));
      return;
    }
    const answer = h("div", { class: "label", role: "group", "aria-label": "your word" });
    const button = (id, words, act) => h("button", { type: "button", id, onclick: act }, words);
    async function say(passed) {
      try {
        const { label, judge } = await tell(["run", run, "trial", next.trial, "label"], { check: next.check, passed });
        put(answer, h("span", {}, `You said: ${passed ? "pass" : "fail"} `), button("next", "Next", () => show(after)), judgeView(judge, label.passed === label.judge_passed));
        put(agreed, agreementView(await ask(["run", run, "agreement"])));
      } catch (error) {
        put(answer, h("p", { class: "problem" }, error.message));
      }
    }
    put(answer, button("pass", "Pass", () => say(true)), button("fail", "Fail", () => say(false)), button("skip", "Skip", () => show(next.order)));
    const told = transcript({ run, id: next.trial }, { quotes: [], found: new Set(), changed: () => {} });
    put(room, count,
      h("section", {}, h("h2", { id: "statement" }, next.statement), h("p", { class: "faint small" }, next.case), answer),
      h("section", {}, h("h2", {}, "Transcript"), told.whole),
      next.files.length > 0 && h("section", {}, h("h2", {}, "Files"), next.files.map((file) => fileView(run, next.trial, file))));
    await told.ready;
  }
  await show();
}
