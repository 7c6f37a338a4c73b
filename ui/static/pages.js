// Keeps the pages fresh and shows times in the viewer's zone. Every page works without it.
"use strict";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
const exact = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});

// span words a length of time in milliseconds, as the server does.
function span(ms) {
  const s = ms / 1000;
  if (s < 120) return Math.floor(s) + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  if (s < 172800) return Math.floor(s / 3600) + " h";
  return Math.floor(s / 86400) + " d";
}

// The texts below the bars of charts are times too.
const forms = {
  hour: new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
  clock: new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }),
  moment: new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
};

function relative(at, now, past) {
  const d = at - now;
  if (past && d <= 0) return past;
  if (Math.abs(d) < 2000) return "now";
  return d > 0 ? "in " + span(d) : span(-d) + " ago";
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A time has its distance from now, and after that the time itself.
function tick(root) {
  const now = Date.now();
  for (const t of root.querySelectorAll("time:has(small)")) setText(t.firstElementChild, relative(Date.parse(t.dateTime), now, t.dataset.past));
}

// localize puts the viewer's own times in place of UTC. In a list they are short.
function localize(root) {
  const now = new Date();
  for (const t of root.querySelectorAll("time:has(small)")) {
    const at = new Date(t.dateTime);
    const form = !t.closest("td") || at.getFullYear() !== now.getFullYear() ? exact : at.toDateString() === now.toDateString() ? forms.clock : forms.moment;
    setText(t.lastElementChild, form.format(at));
    t.title = exact.format(at) + " " + zone;
  }
  for (const t of root.querySelectorAll("time[data-absolute]")) setText(t, exact.format(new Date(t.dateTime)));
  for (const t of root.querySelectorAll("text[data-at]")) setText(t, forms[t.dataset.form].format(new Date(t.dataset.at)));
  for (const z of root.querySelectorAll("[data-zone]")) setText(z, zone);
  tick(root);
}

// Fields for date and time hold UTC as the server sends them and are sent back in UTC; in between they show the viewer's time.
const two = (n) => String(n).padStart(2, "0");

function localizeFields() {
  for (const field of document.querySelectorAll("input[type=datetime-local]")) {
    if (!field.value) continue;
    const d = new Date(field.value + "Z");
    field.value = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}`;
    field.defaultValue = field.value;
  }
  for (const form of document.querySelectorAll("form[data-tidy]")) {
    form.addEventListener("formdata", (e) => {
      for (const field of form.querySelectorAll("input[type=datetime-local]")) {
        if (field.value) e.formData.set(field.name, new Date(field.value).toISOString().slice(0, 16));
      }
      for (const [name, value] of [...e.formData]) if (value === "") e.formData.delete(name);
    });
  }
}

// busy says whether somebody is at work in a box, so that it must not change now. Details with data-keep have only
// something to read: they stay open when the box changes.
function busy(box) {
  const selection = document.getSelection();
  return box.querySelector("details[open]:not([data-keep]), input:checked") || box.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button") ||
    selection && !selection.isCollapsed && box.contains(selection.anchorNode);
}

const offline = document.getElementById("offline");

// live asks for a box of the page again and again, while somebody can see it. The second failure in a row is shown: a single
// one is soon over.
async function live(box, last) {
  if (!document.hidden && !busy(box)) {
    try {
      const answer = await fetch(box.dataset.live, { redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (answer.type === "opaqueredirect") return location.reload(); // to the login
      if (answer.status === 404) return;
      if (!answer.ok) throw new Error(answer.status);
      const html = await answer.text();
      if (html !== last && !busy(box)) {
        const focused = box.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        const open = [...box.querySelectorAll("details[open][data-keep]")].map((d) => d.id);
        box.innerHTML = html; // made by the server from escaped text; the policy runs no script in it
        for (const d of box.querySelectorAll("details[data-keep]")) d.open = open.includes(d.id);
        localize(box);
        if (focused) box.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
        last = html;
      }
      box.dataset.failed = 0;
    } catch {
      box.dataset.failed = +(box.dataset.failed ?? 0) + 1;
    }
    offline.hidden = ![...document.querySelectorAll("[data-live]")].some((b) => b.dataset.failed > 1);
  }
  setTimeout(live, box.dataset.failed > 0 ? 1000 : box.dataset.every * 1000, box, last);
}

// further looks on where a search of the log had no time to fill its page, until it is full or the log ends. After that
// many parts somebody has to ask for more.
async function further(box) {
  for (let part = 0; part < 400; part++) {
    const nav = box.querySelector("[data-further]"), rows = box.querySelector("tbody");
    if (!nav || rows?.children.length >= nav.dataset.rows) return;
    const answer = await fetch(nav.dataset.further, { redirect: "manual", cache: "no-store" }).catch(() => null);
    if (!answer?.ok) return;
    const more = document.createElement("div");
    more.innerHTML = await answer.text();
    localize(more);
    if (!rows) box.replaceChildren(...more.children);
    else {
      rows.append(...more.querySelectorAll("tbody tr"));
      nav.replaceWith(more.querySelector("nav"));
    }
  }
}

// The keys. They do nothing while somebody types, and leave those with Ctrl, Alt or Meta to the browser.
const keys = document.getElementById("keys");

// move focuses the link of the next row, or of the one before.
function move(by) {
  const links = [...document.querySelectorAll("main tbody tr")].map((row) => row.querySelector("th a, td a")).filter(Boolean);
  const row = document.activeElement.closest("tbody tr");
  const at = links.findIndex((link) => link.closest("tr") === row);
  const to = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)];
  if (!to) return;
  to.focus({ preventScroll: true });
  to.closest("tr").scrollIntoView({ block: "nearest" });
}

// search leads to the search of the list, or of the head where there is none.
function search() {
  const field = document.querySelector("main [role=search] input[type=search]") || document.querySelector(".find input");
  if (!field) return;
  const folded = field.closest("details.fold");
  if (folded) folded.open = true;
  field.focus();
  field.select();
}

const press = {
  "/": search,
  j: () => move(1),
  k: () => move(-1),
  "?": () => keys.open ? keys.close() : keys.showModal(),
};

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.altKey || e.metaKey || e.isComposing || e.target.closest("input, select, textarea, [contenteditable]")) return;
  if (!Object.hasOwn(press, e.key) || keys.open && e.key !== "?") return;
  e.preventDefault();
  press[e.key]();
});

// The parts of the menu close when somebody clicks elsewhere, or presses Escape.
function closeMenu(keep) {
  for (const open of document.querySelectorAll("#menu[open], #menu details[open]")) {
    if (open.contains(keep)) continue;
    if (open.contains(document.activeElement)) open.firstElementChild.focus();
    open.open = false;
  }
}

document.addEventListener("click", (e) => closeMenu(e.target));
document.addEventListener("keydown", (e) => { if (e.key === "Escape") closeMenu(null); });

// A button with data-copy copies the text of the element that it names. Browsers have no clipboard on plain http: there the
// text is selected, and the old command copies it.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy);
    const copied = navigator.clipboard && await navigator.clipboard.writeText(text.textContent).then(() => true, () => false);
    if (!copied) getSelection().selectAllChildren(text);
    setText(button, copied || document.execCommand("copy") ? "Copied" : "Selected: now copy it");
    setTimeout(setText, 2000, button, "Copy");
  });
}

// A button with data-press is pressed when the field that it names changes.
for (const button of document.querySelectorAll("[data-press]")) button.form.elements[button.dataset.press].addEventListener("change", () => button.click());

// A button with data-insert writes an unsubscribe link at the cursor of the field that it names.
for (const button of document.querySelectorAll("[data-insert]")) {
  button.hidden = false;
  button.addEventListener("click", (e) => {
    const { elements } = button.form, field = elements[button.dataset.insert];
    const link = (elements["render.format"] ?? elements.format)?.value === "markdown" ? "[Unsubscribe]({{rcpt.unsubscribeUrl}})" : '<p><a href="{{rcpt.unsubscribeUrl}}">Unsubscribe</a></p>';
    e.preventDefault();
    const body = field.value.toLowerCase().lastIndexOf("</body>");
    const at = field.selectionStart || (body < 0 ? field.value.length : body); // nobody writes before the first letter
    field.setRangeText(link, at, Math.max(at, field.selectionEnd), "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
  });
}

// A file of an import is sent in part as soon as it is chosen, to show its columns.
for (const field of document.querySelectorAll("[data-preview]")) {
  field.addEventListener("change", async () => {
    const form = new FormData(field.form), file = field.files[0], box = document.getElementById("columns");
    for (const name of ["heading", "column", "automatic", "file"]) form.delete(name);
    if (file) form.append("file", file.slice(0, 65536), file.name);
    const answer = file && await fetch(field.dataset.preview, { method: "POST", body: form, redirect: "manual" }).catch(() => null);
    if (answer?.ok) box.innerHTML = await answer.text();
    else box.replaceChildren();
  });
}

// A condition of a segment offers the operators of what it is about.
const operators = { attribute: "Attributes", list: "Lists", campaign: "Campaigns", created: "Dates", consent: "Dates" };
for (const term of document.querySelectorAll("[data-term]")) {
  const about = term.querySelector(".about"), op = term.querySelector(".op");
  const offer = () => {
    const label = operators[about.value.split(":")[0]];
    for (const group of op.querySelectorAll("optgroup")) group.hidden = group.disabled = label && group.label !== label;
    if (label && op.selectedOptions[0]?.parentElement.label !== label) op.querySelector(`optgroup[label="${label}"] option`).selected = true;
  };
  about.addEventListener("change", offer);
  offer();
}

// A button with data-typed is pressed by itself, a moment after its form was typed into.
for (const button of document.querySelectorAll("[data-typed]")) {
  let timer;
  const press = () => button.form.requestSubmit(button);
  button.form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(press, 500);
  });
  press();
}

// A box with data-load is replaced once, by what takes longer than the page may.
for (const box of document.querySelectorAll("[data-load]")) {
  fetch(box.dataset.load, { redirect: "manual", cache: "no-store" }).then(async (answer) => {
    if (!answer.ok) return;
    box.innerHTML = await answer.text();
    localize(box);
  }, () => {});
}

localize(document);
localizeFields();
setInterval(tick, 1000, document);
for (const box of document.querySelectorAll("[data-live]")) setTimeout(live, box.dataset.every * 1000, box, null);
for (const nav of document.querySelectorAll("[data-further]")) further(nav.parentElement);

// What was filled into a form is kept until the next page shows that it was saved. If the session ended, the form was refused
// or Postroom failed, the form has it again. Passwords, keys and files are not kept.
const filled = (form) => [...form.elements].filter((f) => f.name && !f.matches("button, fieldset, [type=hidden], [type=password], [type=file], [data-secret]"));

document.addEventListener("submit", ({ target: form }) => {
  if (form.matches(".logout")) sessionStorage.removeItem("draft");
  else if (form.matches("main form[method=post]:not(.own)")) {
    const fields = filled(form).map((f) => [f.name, f.value, f.checked]);
    sessionStorage.setItem("draft", JSON.stringify({ action: form.getAttribute("action"), fields }));
  }
});

function restore() {
  const draft = JSON.parse(sessionStorage.getItem("draft"));
  if (!draft) return;
  if (document.querySelector(".login, .failure")) return sessionStorage.setItem("draft", JSON.stringify({ ...draft, lost: true }));
  const form = [...document.querySelectorAll("main form[method=post]")].find((f) => f.getAttribute("action") === draft.action);
  const refused = document.querySelector("body > .flash.bad:not(#offline), .flash.bad[role=alert]");
  if (form || !draft.lost) sessionStorage.removeItem("draft");
  if (!form || !draft.lost && !refused) return;
  filled(form).forEach((f, i) => {
    const [name, value, checked] = draft.fields[i] ?? [];
    if (name !== f.name) return;
    if (f.matches("[type=checkbox], [type=radio]")) f.checked = checked;
    else f.value = value;
  });
  for (let box = form.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  if (!draft.lost) return;
  const note = document.createElement("p");
  note.className = "flash wait";
  note.setAttribute("role", "status");
  note.textContent = "Here is what you had filled in. It is not saved yet.";
  form.before(note);
}

if (window.top === window) restore();

// The form of an operation of the API makes its request with the session, and shows the answer.
for (const form of document.querySelectorAll("form[data-try]")) {
  const box = form.closest("section"), status = box.querySelector("[role=status]"), shown = box.querySelector("pre");
  box.hidden = false;
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    let [method, path] = form.dataset.try.split(" ");
    const query = new URLSearchParams(), body = form.elements.body;
    for (const field of form.querySelectorAll("input")) {
      const [where, name] = field.name.split(/\.(.*)/s);
      if (where === "path") path = path.replace(`{${name}}`, encodeURIComponent(field.value));
      else if (field.value) query.set(name, field.value);
    }
    try {
      const answer = await fetch(path + (query.size ? "?" + query : ""), { method, cache: "no-store",
        ...(body && { body: body.value, headers: { "Content-Type": body.dataset.type } }) });
      const text = await answer.text();
      status.textContent = `${answer.status} ${answer.statusText}`;
      try { shown.textContent = JSON.stringify(JSON.parse(text), null, 2); } catch { shown.textContent = text.slice(0, 1e5); }
      shown.hidden = false;
    } catch {
      status.textContent = "Postroom does not answer.";
    }
  });
}
