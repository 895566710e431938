// The keyboard: items are walked through, and everything else is a letter.

import { h, put } from "./dom.js";

const KEYS = [
  ["j / k", "next and previous item"],
  ["Enter", "open it, or fold and unfold it"],
  ["x", "select a trial; two selected ones are compared"],
  ["u", "up one page"],
  ["n", "next page of a list"],
  ["/", "search"],
  ["g r, g t", "go to runs, to trends"],
  ["?", "these keys"],
];

let waiting = "";

function items() {
  return [...document.querySelectorAll("[data-item]")].filter((item) => item.offsetParent !== null);
}

function move(by) {
  const all = items();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement.closest?.("[data-item]"));
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  all[next].focus({ preventScroll: true });
  all[next].scrollIntoView({ block: "nearest" });
}

function act(selector) {
  const item = document.activeElement.closest?.("[data-item]");
  item?.querySelector(selector)?.click();
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (waiting === "g") {
    waiting = "";
    if (event.key === "r") location.hash = "#/";
    if (event.key === "t") location.hash = "#/trends";
    return;
  }
  switch (event.key) {
    case "j": move(1); break;
    case "k": move(-1); break;
    case "x": act("[data-mark]"); break;
    case "Enter": {
      const item = event.target.closest("[data-item]");
      if (item !== event.target) return;
      (item.querySelector("[data-open]") ?? item).click();
      break;
    }
    case "u": document.querySelector("[data-up]")?.click(); break;
    case "n": document.querySelector("[data-more]")?.click(); break;
    case "/": document.querySelector("#find input").focus(); break;
    case "?": help(); break;
    case "g": waiting = "g"; break;
    default: return;
  }
  event.preventDefault();
}

export function help() {
  const dialog = document.getElementById("help");
  const rows = KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]);
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  put(dialog, h("h2", {}, "Keys"), h("dl", {}, rows), close);
  dialog.showModal();
}

export function listen() {
  document.addEventListener("keydown", press);
  document.getElementById("help-button").addEventListener("click", help);
}
