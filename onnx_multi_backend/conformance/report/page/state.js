// SPDX-License-Identifier: Apache-2.0
// What is searched, filtered and opened; the address has it too, so that a link shows the same.

const state = {
  search: "",
  domain: "",
  labels: new Set(),
  hidden: new Set(), // backends whose column is not shown
  unexpected: false,
  differ: false, // only cases that pass on some of the backends shown, and not on others
  operator: null, // the one that is open
  backend: -1, // the one whose results of it are shown; -1 for all
  case: -1, // the case that was opened last
};

// What the entries of the history are.
const LIST = "list";
const PANEL = "panel";

const shownBackends = () => BACKENDS.map((_, backend) => backend).filter((backend) => !state.hidden.has(backend));

/** The backends that the open operator is shown for. */
const detailedBackends = () => (state.backend < 0 ? shownBackends() : [state.backend]);

function resetFilters() {
  Object.assign(state, { search: "", domain: "", labels: new Set(), hidden: new Set(), unexpected: false, differ: false });
}

function writeAddress() {
  const words = new URLSearchParams();
  if (state.search) words.set("q", state.search);
  if (state.domain) words.set("domain", state.domain);
  for (const label of state.labels) words.append("label", label);
  for (const backend of state.hidden) words.append("hide", BACKENDS[backend].name);
  if (state.unexpected) words.set("unexpected", "1");
  if (state.differ) words.set("differ", "1");
  if (state.operator) {
    words.set("op", `${state.operator.domain}:${state.operator.type}`);
    if (state.backend >= 0) words.set("backend", BACKENDS[state.backend].name);
    if (state.case >= 0) words.set("case", CASES[state.case].name);
  }
  try {
    history.replaceState(history.state, "", `#${words}`);
  } catch {} // not where a browser shows the page without an address of its own
}

/** Make an entry in the history for the panel that opens, so that Back closes it. */
function keepPlace() {
  if (history.state === PANEL) return; // one that was closed by other means than Back left its entry
  try {
    history.replaceState(LIST, "");
    history.pushState(PANEL, "");
  } catch {}
}

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name) => BACKENDS.findIndex((backend) => backend.name === name);
  const known = new Set(LABELS.map((label) => label.name));
  Object.assign(state, {
    search: words.get("q") ?? "",
    domain: DOMAINS.includes(words.get("domain")) ? words.get("domain") : "",
    labels: new Set(words.getAll("label").filter((label) => known.has(label))),
    hidden: new Set(words.getAll("hide").map(number).filter((backend) => backend >= 0)),
    unexpected: words.has("unexpected"),
    differ: words.has("differ") && BACKENDS.length > 1,
    operator: OPERATORS.find(({ domain, type }) => `${domain}:${type}` === words.get("op")) ?? null,
    backend: number(words.get("backend")),
    case: CASES.findIndex(({ name }) => name === words.get("case")),
  });
}
