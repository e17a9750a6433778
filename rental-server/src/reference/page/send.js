
// --- Forms that send real requests ---

// Ids and days of earlier requests, so that nobody has to copy them: the vehicle that was chosen, the customer just made.
function offer(name, value) {
  remember(`seen.${name}`, value);
  for (const input of all(`.try [data-shared="${CSS.escape(name)}"]`)) {
    if (!input.value || input.value === input.dataset.offered) {
      input.value = value;
      input.dataset.offered = value;
    }
  }
}
function offerAll() {
  for (const input of all(".try [data-shared]")) {
    const value = recall(`seen.${input.dataset.shared}`);
    // A filter that nobody asked for would hide things.
    const wanted = input.required || (input.dataset.in === "body" && input.closest(".steps")) || input.type === "date";
    if (value && wanted && !input.value) {
      input.value = value;
      input.dataset.offered = value;
    }
  }
}
document.addEventListener("change", (event) => {
  const { shared, offered } = event.target.dataset;
  if (shared && event.target.value !== offered && event.target.closest(".steps")) offer(shared, event.target.value);
});

/** What went wrong before anything was sent, and where. */
class Incomplete extends Error {
  constructor(message, input) {
    super(message);
    this.input = input;
  }
}

function valueOf(input) {
  const text = input.value;
  switch (input.dataset.type) {
    case "boolean": return text === "true";
    case "integer":
    case "number":
      if (Number.isNaN(Number(text))) throw new Incomplete(`${input.name} is a number, such as ${input.placeholder || 1}.`, input);
      return Number(text);
    case "json":
      try { return JSON.parse(text); } catch (error) { throw new Incomplete(`${input.name} is not JSON: ${error.message}`, input); }
    default: return text;
  }
}

function bodyOf(form) {
  const filled = all("[data-in=body]", form).filter((input) => input.value.trim());
  return Object.fromEntries(filled.map((input) => [input.name, valueOf(input)]));
}

/** The request of a form, without the secret. Throws Incomplete. */
function requestOf(form) {
  const asJson = one("[data-in=json]", form);
  const isJson = asJson?.closest("details").open;
  for (const input of all("[required]", form)) {
    if (!input.value.trim() && !(isJson && input.dataset.in === "body")) {
      throw new Incomplete(`${input.name || "The file"} is required.`, input);
    }
  }
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const input of all("[data-in]", form).filter((input) => input.value.trim())) {
    const value = input.value.trim();
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(value));
    if (input.dataset.in === "query") query.append(input.name, value);
    if (input.dataset.in === "header") headers[input.name] = value;
  }
  if (query.size) path += `?${query}`;
  const request = { method: form.dataset.method, path, headers, body: undefined, shown: "" };
  const file = one("[data-in=file]", form);
  if (file) {
    request.body = file.files[0];
    request.shown = file.files[0].name;
    headers["Content-Type"] = one("[data-in=media]", form).value;
  } else if ("body" in form.dataset) {
    if (isJson) {
      try { JSON.parse(asJson.value); } catch (error) { throw new Incomplete(`The body is not JSON: ${error.message}`, asJson); }
    }
    request.body = isJson ? asJson.value : JSON.stringify(bodyOf(form), null, 2);
    request.shown = request.body;
    headers["Content-Type"] = "application/json";
  }
  // The same key until a response arrives: a request that was lost on the way can be sent again and takes effect once.
  if ("idempotent" in form.dataset) headers["Idempotency-Key"] = form.dataset.repeat ??= `docs-${randomText()}`;
  return request;
}

function randomText() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Asks before a write. */
function confirmed(request) {
  const question = one("#question");
  const headers = Object.entries(request.headers).map(([name, value]) => `\n${name}: ${value}`).join("");
  one("code", question).textContent = `${request.method} ${request.path}${headers}${request.shown && `\n\n${request.shown}`}`;
  question.returnValue = "";
  question.showModal();
  return new Promise((resolve) => {
    question.addEventListener("close", () => resolve(question.returnValue === "send"), { once: true });
  });
}

async function send(form) {
  const note = one("[role=status]", form);
  const tell = (text, bad) => { note.textContent = text; note.classList.toggle("bad", Boolean(bad)); };
  all("[aria-invalid]", form).forEach((input) => input.removeAttribute("aria-invalid"));
  tell("");
  const kind = form.dataset.secret;
  if (kind !== "none" && !recall(kind)) {
    tell(`Enter your ${kind === "key" ? "API key" : "token"} at the top of the page first.`, true);
    return (kind === secretKind ? secretInput : note).focus();
  }
  let request;
  try {
    request = requestOf(form);
  } catch (error) {
    if (!(error instanceof Incomplete)) throw error;
    tell(error.message, true);
    const closed = error.input.closest("details:not([open])");
    if (closed) closed.open = true;
    error.input.setAttribute("aria-invalid", "true");
    return error.input.focus();
  }
  if (request.method !== "GET" && !(await confirmed(request))) return tell("Not sent.");
  if (kind !== "none") request.headers.Authorization = `Bearer ${recall(kind)}`;
  const button = one("[type=submit]", form);
  button.disabled = true;
  tell("Sending …");
  const began = performance.now();
  try {
    const response = await fetch(request.path, {
      method: request.method, headers: request.headers, body: request.body, credentials: "omit", cache: "no-store", redirect: "manual",
    });
    const content = await response.blob();
    delete form.dataset.repeat;
    await show(form, response, content, Math.round(performance.now() - began));
    tell("");
  } catch (error) {
    tell(`No response: ${error.message}. Send it again: ${form.dataset.repeat ? "it has the same idempotency key, so it takes effect once." : "nothing else was changed."}`, true);
  } finally {
    button.disabled = false;
  }
}

const SHOWN_HEADERS = [
  "request-id", "etag", "idempotent-replayed", "retry-after", "ratelimit", "rental-damaged-rows", "service-version", "content-type",
];
const MOST_SHOWN = 100_000;

async function show(form, response, content, took) {
  const result = one(".result", form);
  const media = response.headers.get("content-type") ?? "";
  const isJson = media.startsWith("application/json");
  const isText = isJson || media.startsWith("text/");
  let text = isText ? await content.slice(0, MOST_SHOWN).text() : "";
  let body;
  if (isJson) {
    try { body = JSON.parse(text); text = JSON.stringify(body, null, 2); } catch { /* Shown as it is. */ }
  }
  const headers = SHOWN_HEADERS.filter((name) => response.headers.has(name));
  const status = make("p", { class: response.ok || response.status === 304 ? "good" : "bad" },
    make("strong", {}, `${response.status} ${response.statusText}`.trim()), ` in ${took} ms`);
  const error = body?.error;
  result.replaceChildren(status);
  if (error) {
    const link = make("a", { href: `/docs/errors#${encodeURIComponent(error.code)}` }, error.code);
    result.append(make("p", {}, `${error.message} `, link));
  }
  result.append(...choices(body));
  result.append(make("dl", {}, ...headers.flatMap((name) => [make("dt", {}, name), make("dd", {}, response.headers.get(name))])));
  if (text) {
    result.append(make("div", { class: "block" }, make("button", { type: "button", class: "copy", "aria-label": "Copy: response" }, "Copy"),
      make("pre", { tabindex: "0", role: "group", "aria-label": "Response" }, make("code", {}, text))));
  } else if (content.size) {
    const name = `response.${media.split(/[/;+]/)[1] ?? "bin"}`;
    result.append(make("p", {}, make("a", { href: URL.createObjectURL(content), download: name }, `Save ${name}`), ` (${content.size} bytes)`));
  }
  result.hidden = false;
  result.scrollIntoView({ block: "nearest" });
}

/** An object of the response is the one that the next request is about; of a list, somebody chooses. */
function choices(body) {
  if (body?.object === "list") {
    const items = body.data.filter((item) => item.id && item.object);
    if (!body.data.length) return [make("p", {}, "The list is empty.")];
    const lines = items.slice(0, 50).map((item) => {
      const price = item.daily_rate ?? item.final_price ?? item.total;
      const number = item.invoice_number ?? item.credit_note_number ?? item.summons_number ?? item.transaction_id;
      const name = [
        item.name ?? item.full_name ?? item.number ?? number ?? item.booking_id ?? item.type ?? item.object, item.plate,
        price == null ? null : `${price} ${item.currency ?? ""}`.trim() + (item.daily_rate == null ? "" : " a day"), item.status,
      ];
      const use = make("button", { type: "button", "aria-label": `Use ${name[0]}` }, "Use");
      use.addEventListener("click", () => {
        offer(item.object, item.id);
        all("button", use.closest("ul")).forEach((button) => {
          const [word, before] = button === use ? ["Used", "Use"] : ["Use", "Used"];
          if (button.textContent === before) button.ariaLabel = button.ariaLabel.replace(before, word);
          button.textContent = word;
        });
      });
      return make("li", {}, use, name.filter(Boolean).join(", "), make("small", {}, item.id));
    });
    return lines.length ? [make("p", { class: "caption" }, "Use one in the next requests:"), make("ul", { class: "choices" }, ...lines)] : [];
  }
  if (body?.id && body.object) offer(body.object, body.id);
  return [];
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches(".try")) return;
  event.preventDefault();
  send(event.target);
});
document.addEventListener("toggle", (event) => {
  if (!event.target.matches?.(".as-json") || !event.target.open) return;
  const form = event.target.closest(".try");
  try {
    one("[data-in=json]", form).value = JSON.stringify(bodyOf(form), null, 2);
  } catch { one("[data-in=json]", form).value = "{}"; }
}, true);

chooseLanguage(recall("language"));
fillExamples();
offerAll();
reveal();
checkSecret();
