// SPDX-License-Identifier: Apache-2.0
// Elements. What comes from the report only ever becomes text, never markup.

const byId = (id) => document.getElementById(id);

/** Make an element: properties, "data-"/"aria-" attributes, "on" listeners; children are nodes, texts or nothing. */
function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (name.includes("-")) {
      made.setAttribute(name, value);
    } else {
      made[name] = value;
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** A long name that may break where its words end. */
const breakable = (name) => name.split(/(?<=[._])(?=.)|(?<=[a-z])(?=[A-Z])/).flatMap((part) => [part, el("wbr")]).slice(0, -1);

const swatch = (label) => el("span", { className: "swatch", "data-label": label });

const badge = (label) => el("span", { className: "badge", "data-label": label }, swatch(label), label);

/** A button that is pressed or not. */
function toggle(pressed, listener, ...children) {
  const button = el("button", { type: "button", className: "toggle", "aria-pressed": String(pressed) }, ...children);
  button.addEventListener("click", listener);
  return button;
}

/** Names with how often each occurs, in order of first occurrence. */
function tally(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
