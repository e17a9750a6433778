// What the pages of the reference can do with scripts: search, copy, fill in the key, and send requests.
// The key stays in this tab (sessionStorage). It is sent to this server only, in the Authorization header.
"use strict";

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// Storage can be forbidden; the page then forgets everything when it is left.
const forgotten = new Map();
const recall = (name) => {
  try { return sessionStorage.getItem(name) ?? ""; } catch { return forgotten.get(name) ?? ""; }
};
const remember = (name, value) => {
  try {
    if (value) sessionStorage.setItem(name, value); else sessionStorage.removeItem(name);
  } catch { forgotten.set(name, value); }
};

// --- The key, and the examples that have it ---

const secretInput = one("#secret");
const secretState = one("#secret-state");
const secretKind = secretInput.dataset.secret;
const hint = secretState.textContent;

function fillExamples() {
  const secret = recall(secretKind);
  for (const place of all("[data-with]")) {
    place.dataset.shown ??= place.textContent;
    const wants = /\{key\}|\{token\}/.test(place.dataset.with);
    const filled = place.dataset.with.replace("{base}", location.origin).replace(/\{key\}|\{token\}/, () => secret);
    place.textContent = wants && !secret ? place.dataset.shown : filled;
  }
  secretInput.value = secret;
  one("#forget").hidden = !secret;
}

function say(text, bad = false) {
  secretState.textContent = text;
  secretState.classList.toggle("bad", bad);
}

async function checkSecret() {
  const secret = recall(secretKind);
  if (!secret) return say(hint);
  const path = secretKind === "key" ? "/v1/me" : "/admin/v1/status";
  try {
    const response = await fetch(path, { headers: { Authorization: `Bearer ${secret}` }, credentials: "omit" });
    const body = await response.json();
    if (!response.ok) return say(body.error.message, true);
    say(secretKind === "key" ? `${body.organization_name}, scope ${body.scope}` : "The server takes this token.");
  } catch {
    say("The server did not answer.", true);
  }
}

/** The secret in what somebody pastes: a header, or a line of a shell that sets a variable, quoted or not. */
function secretIn(text) {
  // Of the admin token nothing is known but that it is visible ASCII.
  const own = () => text.trim().replace(/^(?:export\s+)?RENTAL_\w+=/, "").replace(/^(["'])(.*)\1$/, "$2")
    .replace(/^(?:authorization:\s*)?bearer\s+/i, "").replace(/[^!-~]/g, "");
  return /(?:rk|op)_live_\w+/.exec(text)?.[0] ?? own();
}

secretInput.addEventListener("change", () => {
  remember(secretKind, secretIn(secretInput.value));
  fillExamples();
  checkSecret();
});
secretInput.form.addEventListener("submit", (event) => event.preventDefault());
one("#forget").addEventListener("click", () => {
  remember(secretKind, "");
  fillExamples();
  say("Forgotten.");
  secretInput.focus();
});

// --- Copy ---

async function copy(text) {
  // The clipboard needs HTTPS or this machine; elsewhere the old way does it.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = make("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("refused");
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  try {
    await copy(one("pre", button.parentElement).textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl+C";
    getSelection().selectAllChildren(one("pre", button.parentElement));
  }
  button.focus();
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

// --- The language of the examples, the same in all of them ---

function chooseLanguage(language) {
  for (const input of all(`.tabs input[value="${CSS.escape(language)}"]`)) input.checked = true;
}
document.addEventListener("change", (event) => {
  if (!event.target.matches(".tabs input")) return;
  remember("language", event.target.value);
  const before = event.target.getBoundingClientRect().top;
  chooseLanguage(event.target.value);
  // Other examples above changed their height: what is read stays where it is.
  scrollBy(0, event.target.getBoundingClientRect().top - before);
});

// --- Search ---

const search = one("#search");
const found = one("#found");
let entries;

async function loadEntries() {
  entries ??= fetch(search.dataset.index).then((response) => response.json()).catch(() => { entries = undefined; return []; });
  return entries;
}

/** The word, and its singular if it can be a plural. */
const forms = (word) => (/...s$/.test(word) ? [word, word.replace(/ies$/, "y").replace(/s$/, "")] : [word]);

// Words of a question that say nothing about what is looked for.
const SMALL = new Set(("a an and any are at be by can do does for from has have how i in is it me my of on or our that the there " +
  "this to use using what when where which why with you your").split(" "));

/** How many of the words are in an entry or are other words for it, and how well they fit: higher is better. */
function score([kind, title, text, , others = ""], words) {
  const [name, rest, synonyms] = [title.toLowerCase(), `${text} ${others}`.toLowerCase(), others.split(" ")];
  let sum = { page: 4, operation: 3, section: 3, event: 2, error: 2, header: 2, field: 1 }[kind];
  let fitting = 0;
  for (const word of words) {
    const points = Math.max(...forms(word).map((form) => {
      if (name === form || name.split(".").at(-1) === form) return 30;
      if (synonyms.includes(form)) return 24;
      if (name.startsWith(form)) return 20;
      if (name.includes(form)) return 12;
      return rest.includes(form) ? 4 : 0;
    }));
    if (points) fitting += 1;
    sum += points;
  }
  return [fitting, sum];
}

/** What fits a question best, and what to say about it: entries with all words, else those with most, else all pages. */
function answer(list, question) {
  const asked = question.toLowerCase().split(/\s+/).map((word) => word.replace(/^["'(]+|["')?!.,;:]+$/g, "")).filter(Boolean);
  const words = asked.filter((word) => !SMALL.has(word));
  const scored = list.map((entry) => [...score(entry, words), entry]).filter(([fitting]) => fitting);
  const most = Math.max(0, ...scored.map(([fitting]) => fitting));
  if (!most) {
    const pages = list.filter(([kind]) => kind === "page");
    return [pages, pages.length ? `${words.length ? "Nothing found." : ""} All pages:`.trim() : "Nothing found"];
  }
  const best = scored.filter(([fitting]) => fitting === most).sort(([, a], [, b]) => b - a).slice(0, 12);
  return [best.map(([, , entry]) => entry), most < words.length && "Nothing has all of these words. Nearest:"];
}

async function showFound() {
  const question = search.value.trim();
  const [best, note] = question ? answer(await loadEntries(), question) : [[]];
  found.replaceChildren(...best.map(([kind, title, text, address], at) =>
    make("li", { role: "option", id: `found-${at}`, "data-address": address, "aria-selected": "false" },
      make("i", {}, kind), title, make("small", {}, text.replaceAll("`", "")))));
  if (note) found.prepend(make("li", { role: "option", "aria-disabled": "true", "aria-selected": "false" }, note));
  found.hidden = !question;
  search.setAttribute("aria-expanded", String(!found.hidden));
  // What was not asked for is chosen by nobody but the reader.
  select(note ? -1 : 0);
  found.scrollTop = 0;
}

function select(at) {
  const options = all("[data-address]", found);
  options.forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
  if (options[at]) {
    search.setAttribute("aria-activedescendant", options[at].id);
    options[at].scrollIntoView({ block: "nearest" });
  } else search.removeAttribute("aria-activedescendant");
}

function closeFound() {
  found.hidden = true;
  search.setAttribute("aria-expanded", "false");
  search.removeAttribute("aria-activedescendant");
}

function open(option) {
  if (!option) return;
  closeFound();
  location.assign(option.dataset.address);
}

search.addEventListener("input", showFound);
search.addEventListener("focus", loadEntries);
// Somebody who comes back at once sees the results of what is typed then.
search.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== search) closeFound(); }, 150));
found.addEventListener("pointerdown", (event) => { event.preventDefault(); open(event.target.closest("[data-address]")); });
search.addEventListener("keydown", (event) => {
  const options = all("[data-address]", found);
  const at = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
  if (event.key === "ArrowDown") select(Math.min(at + 1, options.length - 1));
  else if (event.key === "ArrowUp") select(Math.max(at - 1, 0));
  else if (event.key === "Enter") open(options[at]);
  else if (event.key === "Escape") { search.value = ""; closeFound(); }
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, dialog")) return;
  event.preventDefault();
  search.focus();
  search.select();
});

/** Opens what hides the field that the address names. */
function reveal() {
  let place;
  try { place = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
  const hiding = [];
  for (let around = place?.parentElement; around; around = around.parentElement) {
    if (around.matches("details:not([open])")) hiding.push(around);
  }
  hiding.forEach((details) => { details.open = true; });
  if (hiding.length) place.scrollIntoView();
}
addEventListener("hashchange", reveal);
