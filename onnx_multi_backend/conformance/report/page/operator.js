// SPDX-License-Identifier: Apache-2.0
// One operator: what of it was tried, and how that went on each backend.

function buildOperator(operator, backends) {
  return [
    el("h3", {}, "Tried"),
    buildTried(operator, operator.cases.filter((index) => backends.some((backend) => labelOf(index, backend)))),
    el("h3", {}, backends.length === 1 ? "Result" : "Results"),
    ...backends.map((backend) => buildBackend(operator, backend, backends.length === 1)),
  ];
}

function buildTried(operator, cases) {
  const { versions, attributes, types } = triedBy(operator, cases);
  const values = attributes.map(([name, count]) => `${name} (${counted(count, "value")})`);
  const fact = (name, words) => [el("dt", {}, name), el("dd", {}, words.join(", ") || el("span", { className: "quiet" }, "none"))];
  return el(
    "dl",
    { className: "tried" },
    ...fact("Since versions", versions),
    ...fact("Attributes", values),
    ...fact("Types at inputs", types),
  );
}

function buildBackend(operator, backend, open) {
  const found = outcomesOf(operator, backend);
  const name = stateOf(found);
  const strictly = found.cases > 0 && found.passes === found.cases;
  const line = el(
    "span",
    { className: "line" },
    el("span", { className: "sample", "data-state": name, title: STATES[name].words }, STATES[name].sign),
    el("b", {}, ...breakable(BACKENDS[backend].name)),
    el("span", { className: "count" }, found.cases ? `${found.passes}/${found.cases}` : "not run"),
    yesNo("every case passed", strictly),
    yesNo("as ONNX counts", passedAsOnnxCounts(operator, backend)),
    found.unexpected ? el("span", { className: "tag alert" }, `${found.unexpected} not as expected`) : "",
  );
  const made = el("details", { className: "backend" }, el("summary", {}, line));
  made.addEventListener("toggle", () => {
    if (made.open && made.childElementCount === 1) made.append(...buildByLabel(operator, backend));
  });
  made.open = open;
  return made;
}

function buildByLabel(operator, backend) {
  const cases = operator.cases.filter((index) => labelOf(index, backend));
  const labels = LABELS.filter(({ name }) => cases.some((index) => labelOf(index, backend).name === name));
  return labels.map(({ name }) => {
    const those = cases.filter((index) => labelOf(index, backend).name === name);
    return el("div", { className: "by-label" }, el("p", {}, badge(name), ` ${counted(those.length, "case")}`), buildTried(operator, those));
  });
}

function yesNo(words, yes) {
  return el("span", { className: "yes-no" }, `${words}: `, el("b", {}, yes ? "yes" : "no"));
}
