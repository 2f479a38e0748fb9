// SPDX-License-Identifier: Apache-2.0
// The panel of the operator that is open: beside the table on a wide screen, over it on a narrow one.

const wide = matchMedia("(min-width: 60rem)");
let opener = null; // gets the focus back
let everyCase = false; // also those that do not fit the filters

function startDetails() {
  const panel = byId("details");
  panel.addEventListener("close", afterClosing);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && panel.open) {
      event.preventDefault();
      panel.close();
    }
  });
  wide.addEventListener("change", () => panel.open && raise());
}

/** Open an operator, for one backend or (-1) for all, and maybe one of its cases. */
function openDetails(operator, backend, button, index = -1) {
  if (!state.operator) keepPlace();
  Object.assign(state, { operator, backend, case: index });
  opener = button;
  everyCase = false;
  show();
  raise();
}

/** Put the panel up as the width of the screen wants it. */
function raise() {
  const panel = byId("details");
  panel.close(); // it comes back at once, and afterClosing sees that
  if (wide.matches) panel.show();
  else panel.showModal();
  panel.scrollTop = 0;
  byId("details-title").focus();
  rows.get(state.operator).row.scrollIntoView({ block: "nearest" }); // the page has another width now
}

function closeDetails() {
  if (byId("details").open) byId("details").close();
}

function afterClosing() {
  if (byId("details").open) return;
  const { operator } = state;
  state.operator = null;
  show();
  const target = opener?.checkVisibility() ? opener : rows.get(operator)?.button;
  (target?.checkVisibility() ? target : byId("search")).focus();
}

/** Build the panel anew. */
function showDetails() {
  const { operator } = state;
  document.body.classList.toggle("with-details", Boolean(operator));
  if (!operator) return;
  const backends = detailedBackends();
  const fitting = everyCase ? operator.cases : casesThatFit(operator, backends).cases;
  const cases = inOrder(fitting.filter((index) => backends.some((backend) => labelOf(index, backend))), backends);
  byId("details").replaceChildren(
    buildHead(operator),
    el(
      "div",
      { className: "body" },
      ...buildOperator(operator, backends),
      el("div", { className: "cases-head" }, el("h3", {}, "Cases"), buildCount(cases, operator, backends)),
      ...cases.map((index) => buildCase(index, backends)),
    ),
  );
}

function buildHead(operator) {
  const choice = el("select", {}, el("option", { value: -1 }, "all shown"));
  BACKENDS.forEach(({ name }, backend) => choice.append(el("option", { value: backend }, name)));
  choice.value = state.backend;
  choice.addEventListener("change", () => {
    state.backend = Number(choice.value);
    show();
    byId("details").querySelector("select").focus();
  });
  return el(
    "div", // a header would be a second banner of the page
    { className: "head" },
    el("h2", { id: "details-title", tabIndex: -1 }, ...breakable(operator.type)),
    el("span", { className: "quiet domain-name" }, operator.domain),
    el("label", {}, "Backend ", choice),
    el("button", { type: "button", className: "close", ariaLabel: "Close", on: { click: () => byId("details").close() } }, "✕"),
  );
}

function buildCount(cases, operator, backends) {
  const all = operator.cases.filter((index) => backends.some((backend) => labelOf(index, backend))).length;
  if (cases.length === all) return el("span", { className: "quiet" }, String(all));
  const button = el("button", { type: "button" }, `Show all ${all}`);
  button.addEventListener("click", () => {
    everyCase = true;
    showDetails();
    byId("details-title").focus();
  });
  return el("span", { className: "quiet" }, `${cases.length} of ${all} fit the filters `, button);
}

/** The case that is searched by its whole name; then what needs a look: not as expected, then not passed; else ONNX's order. */
function inOrder(cases, backends) {
  const rank = (index) => {
    if (namesOf(index).some((name) => name === state.search)) return -1;
    if (backends.some((backend) => isUnexpected(index, backend))) return 0;
    return backends.some((backend) => labelOf(index, backend)?.isPass === false) ? 1 : 2;
  };
  const ranks = new Map(cases.map((index) => [index, rank(index)]));
  return [...cases].sort((a, b) => ranks.get(a) - ranks.get(b) || a - b);
}
