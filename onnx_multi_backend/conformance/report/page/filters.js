// SPDX-License-Identifier: Apache-2.0
// The controls above the table.

function startFilters() {
  const form = byId("filters");
  for (const domain of DOMAINS) byId("domain").append(el("option", { value: domain }, domain || "no domain"));
  byId("search").addEventListener("input", () => filter({ search: byId("search").value.trim() }));
  byId("domain").addEventListener("change", () => filter({ domain: byId("domain").value }));
  byId("unexpected").addEventListener("change", () => filter({ unexpected: byId("unexpected").checked }));
  byId("differ").addEventListener("change", () => filter({ differ: byId("differ").checked }));
  byId("differ").parentElement.hidden = BACKENDS.length < 2;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    resetFilters();
    show();
  });
  buildLabelFilters();
  buildBackendFilters();
  for (const button of document.querySelectorAll("[data-unexpected-of]")) {
    button.addEventListener("click", () => showUnexpectedOf(Number(button.dataset.unexpectedOf)));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select") || byId("details").matches(":modal")) return;
    event.preventDefault();
    byId("search").focus();
  });
  form.hidden = false;
  document.querySelector("[type=reset]").hidden = false;
}

function filter(change) {
  Object.assign(state, change);
  everyCase = false;
  show();
}

function flip(set, value) {
  if (!set.delete(value)) set.add(value);
  filter({});
}

function buildLabelFilters() {
  const counts = tally(BACKENDS.flatMap((_, backend) => CASES.map(({ index }) => labelOf(index, backend)?.name)));
  for (const { name } of LABELS) {
    if (!counts.has(name)) continue;
    const button = toggle(false, () => flip(state.labels, name), swatch(name), name, el("b", {}, String(counts.get(name))));
    button.dataset.filter = name;
    byId("label-filters").append(button);
  }
}

function buildBackendFilters() {
  BACKENDS.forEach(({ name }, backend) => {
    byId("backend-filters").append(toggle(true, () => flip(state.hidden, backend), name));
  });
}

function showUnexpectedOf(backend) {
  resetFilters();
  const others = BACKENDS.map((_, other) => other).filter((other) => other !== backend);
  filter({ unexpected: true, hidden: new Set(others) });
  byId("operators").scrollIntoView();
  byId("status").focus();
}

/** Set the controls as the state is, and say what is shown. */
function showFilters(found) {
  if (byId("search").value.trim() !== state.search) byId("search").value = state.search;
  byId("domain").value = state.domain;
  byId("unexpected").checked = state.unexpected;
  byId("differ").checked = state.differ;
  for (const button of byId("label-filters").children) button.ariaPressed = String(state.labels.has(button.dataset.filter));
  [...byId("backend-filters").children].forEach((button, backend) => (button.ariaPressed = String(!state.hidden.has(backend))));
  const cases = new Set([...found.values()].flatMap((fitting) => fitting.cases)).size;
  byId("status").textContent = `${found.size} of ${OPERATORS.length} operators, ${cases} of ${CASES.length} cases`;
}
