// SPDX-License-Identifier: Apache-2.0
// Which operators and cases fit the search and the filters.

const searchedNames = CASES.map(({ index }) => namesOf(index).join(" ").toLowerCase());

const filtersResults = () => state.labels.size > 0 || state.unexpected;

/** Whether a result fits the filters on results. */
function resultFits(index, backend) {
  const label = labelOf(index, backend);
  if (!label || (state.labels.size && !state.labels.has(label.name))) return false;
  return !state.unexpected || isUnexpected(index, backend);
}

/** The cases of an operator to show for some backends, and whether the search found the operator by its own name. */
function casesThatFit(operator, backends) {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const name = `${operator.domain}.${operator.type}`.toLowerCase();
  const byName = words.every((word) => name.includes(word));
  let cases = operator.cases;
  if (!byName) cases = cases.filter((index) => words.every((word) => searchedNames[index].includes(word)));
  if (filtersResults()) cases = cases.filter((index) => backends.some((backend) => resultFits(index, backend)));
  return { byName, cases };
}

/** For each operator that fits, its cases that do. */
function operatorsThatFit() {
  const found = new Map();
  for (const operator of OPERATORS) {
    if (state.domain && operator.domain !== state.domain) continue;
    const fitting = casesThatFit(operator, shownBackends());
    if (fitting.cases.length) found.set(operator, fitting);
  }
  return found;
}
