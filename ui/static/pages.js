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

function tick(root) {
  const now = Date.now();
  for (const t of root.querySelectorAll("time[data-relative]")) setText(t, relative(Date.parse(t.dateTime), now, t.dataset.relative));
}

// localize puts the viewer's own times in place of UTC.
function localize(root) {
  for (const t of root.querySelectorAll("time[data-absolute]")) setText(t, exact.format(new Date(t.dateTime)));
  for (const t of root.querySelectorAll("time[title]")) t.title = exact.format(new Date(t.dateTime)) + " " + zone;
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
  return box.querySelector("details[open]:not([data-keep])") || box.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button") ||
    selection && !selection.isCollapsed && box.contains(selection.anchorNode);
}

const offline = document.getElementById("offline");

// live asks for a box of the page again and again, while somebody can see it.
async function live(box, last) {
  if (!document.hidden && !busy(box)) {
    try {
      const answer = await fetch(box.dataset.live, { redirect: "manual", cache: "no-store" });
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
      offline.hidden = true;
    } catch {
      offline.hidden = false;
    }
  }
  setTimeout(live, box.dataset.every * 1000, box, last);
}

localize(document);
localizeFields();
setInterval(tick, 1000, document);
for (const box of document.querySelectorAll("[data-live]")) setTimeout(live, box.dataset.every * 1000, box, null);
