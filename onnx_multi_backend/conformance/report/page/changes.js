// SPDX-License-Identifier: Apache-2.0
// What changed since the report that this one was compared with.

function startChanges() {
  byId("changes")?.addEventListener("toggle", () => {
    if (!byId("changed").childElementCount) byId("changed").append(...packed.changed.map(buildChange));
  });
}

function buildChange([word, index, backend, headline]) {
  const { name, was, label } = resultOf(index, backend);
  const button = el("button", { type: "button", className: "name" }, ...breakable(name));
  button.addEventListener("click", () => openCase(index, backend, button));
  const lost = word === "newly failing" || word === "worse";
  return el(
    "li",
    {},
    el("span", { className: lost ? "tag alert" : "tag" }, word),
    button,
    el("span", { className: "quiet" }, BACKENDS[backend].name),
    el("span", {}, badge(was), " → ", badge(label.name)),
    el("span", { className: "quiet first" }, headline),
  );
}

/** Open a case in the panel of its first operator. */
function openCase(index, backend, button) {
  resetFilters();
  openDetails(OPERATORS.find((operator) => operator.cases.includes(index)), backend, button, index);
}
