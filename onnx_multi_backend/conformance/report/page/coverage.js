// SPDX-License-Identifier: Apache-2.0
// What of an operator was tried and passed; counted as report/coverage.py counts.

/** How the cases of an operator went on a backend. */
function outcomesOf(operator, backend) {
  const found = { cases: 0, passes: 0, unexpected: 0, labels: new Map() };
  for (const index of operator.cases) {
    const label = labelOf(index, backend);
    if (!label) continue;
    found.cases += 1;
    if (label.isPass) found.passes += 1;
    if (isUnexpected(index, backend)) found.unexpected += 1;
    found.labels.set(label.name, (found.labels.get(label.name) ?? 0) + 1);
  }
  return found;
}

/** Versions, attributes with their number of values, and types that some cases gave an operator. */
function triedBy(operator, cases) {
  const versions = new Set();
  const attributes = new Map();
  const types = new Set();
  for (const [, version, , given, inputs] of cases.flatMap((index) => usesOf(operator, index))) {
    if (version) versions.add(version);
    for (const input of inputs) types.add(text(input));
    for (const [name, values] of given) {
      const all = attributes.get(text(name)) ?? new Set();
      for (const value of values) all.add(value);
      attributes.set(text(name), all);
    }
  }
  return {
    versions: [...versions].sort((a, b) => a - b),
    attributes: [...attributes].map(([name, values]) => [name, values.size]).sort((a, b) => compare(a[0], b[0])),
    types: [...types].sort(),
  };
}

/** Whether a case that passed has the operator in its main graph: what ONNX's own report calls passed. */
function passedAsOnnxCounts(operator, backend) {
  return operator.cases.some(
    (index) => labelOf(index, backend)?.isPass && usesOf(operator, index).some(([, , topLevel]) => topLevel),
  );
}

function usesOf(operator, index) {
  return CASES[index].uses.filter(([number]) => number === operator.number);
}
