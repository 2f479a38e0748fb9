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

/** Whether a case passed on some of the backends, and not on others. */
function differs(index, backends) {
  const labels = backends.map((backend) => labelOf(index, backend)).filter(Boolean);
  return labels.some(({ isPass }) => isPass) && !labels.every(({ isPass }) => isPass);
}

/** The cases of an operator to show for some backends, and whether the search found the operator by its own name. */
function casesThatFit(operator, backends) {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const name = `${operator.domain}.${operator.type}`.toLowerCase();
  const byName = words.every((word) => name.includes(word));
  let cases = operator.cases;
  if (!byName) cases = cases.filter((index) => words.every((word) => searchedNames[index].includes(word)));
  if (state.differ) cases = cases.filter((index) => differs(index, shownBackends()));
  if (filtersResults()) cases = cases.filter((index) => backends.some((backend) => resultFits(index, backend)));
  return { byName, cases, rank: byName ? rankOfName(operator, words.join(" ")) : 3 };
}

/** Where a search by name puts an operator: its whole name first, then names that begin so, then the others. */
function rankOfName({ domain, type }, searched) {
  const name = type.toLowerCase();
  return name === searched || `${domain}.${name}` === searched ? 0 : name.startsWith(searched) ? 1 : 2;
}

/** For each operator that fits, its cases that do, the best fit first. */
function operatorsThatFit() {
  const found = new Map();
  for (const operator of OPERATORS) {
    if (state.domain && operator.domain !== state.domain) continue;
    const fitting = casesThatFit(operator, shownBackends());
    if (fitting.cases.length) found.set(operator, fitting);
  }
  return new Map([...found].sort(([, a], [, b]) => a.rank - b.rank));
}
