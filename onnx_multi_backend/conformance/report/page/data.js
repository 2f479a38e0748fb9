// SPDX-License-Identifier: Apache-2.0
// The report. html_data.py tells what its numbers mean.

const packed = JSON.parse(byId("data").textContent);

const text = (number) => packed.texts[number];

const LABELS = packed.labels.map(([name, isPass]) => ({ name, isPass }));

const BACKENDS = packed.backends;

const CASES = packed.cases.map(([name, kind, uses], index) => ({
  index,
  name: text(name),
  kind: text(kind),
  uses: uses.map((use) => packed.uses[use]),
}));

/** The default domain first, as its name is the shortest of ONNX's own. */
const OPERATORS = packed.operators
  .map(([domain, type], number) => ({ number, domain: text(domain), type: text(type), cases: [] }))
  .sort((a, b) => rankOfDomain(a) - rankOfDomain(b) || compare(a.domain, b.domain) || compare(a.type, b.type));

const DOMAINS = [...new Set(OPERATORS.map((operator) => operator.domain))];

/** The label of a case on a backend, or null where it was not run. */
function labelOf(index, backend) {
  const outcome = packed.outcomes[BACKENDS[backend].outcomes[index]];
  return outcome ? LABELS[outcome[0]] : null;
}

/** Whether the result of a case on a backend is there and not as expected. */
function isUnexpected(index, backend) {
  const outcome = packed.outcomes[BACKENDS[backend].outcomes[index]];
  return Boolean(outcome && text(outcome[3]));
}

/** All that is known of a case on a backend, or null. */
function resultOf(index, backend) {
  const outcome = packed.outcomes[BACKENDS[backend].outcomes[index]];
  if (!outcome) return null;
  const [label, reason, error, unexpected, changes, placement] = outcome;
  return {
    name: CASES[index].name + BACKENDS[backend].suffix,
    label: LABELS[label],
    reason: text(reason),
    error: text(error),
    unexpected: text(unexpected),
    changes: changes.map((change) => packed.changes[change].map(text)),
    placement: packed.placements[placement].map((node) => packed.nodes[node].map(text)),
    duration: BACKENDS[backend].durations[index],
    was: LABELS[BACKENDS[backend].was[index]]?.name,
  };
}

/** The names of a case as ONNX's runner gives them, one for each device. */
function namesOf(index) {
  const ran = BACKENDS.filter((backend) => backend.outcomes[index] >= 0);
  return [...new Set(ran.map((backend) => CASES[index].name + backend.suffix))];
}

function rankOfDomain(operator) {
  return operator.domain === "ai.onnx" ? 0 : operator.domain === "" ? 2 : 1;
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

{
  const operators = new Map(OPERATORS.map((operator) => [operator.number, operator]));
  for (const { index, uses } of CASES) {
    for (const number of new Set(uses.map((use) => use[0]))) operators.get(number).cases.push(index);
  }
}
