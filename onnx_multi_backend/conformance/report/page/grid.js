// SPDX-License-Identifier: Apache-2.0
// The table of operators by backends. It is built once; filters hide and show, and a search puts the best fits first.

const rows = new Map(); // of each operator: its row, the button that opens it, a note, and by backend the cell
const headings = []; // of the columns
const groups = new Map(); // of each domain: its rows, and how many there are
let sorted = [...OPERATORS]; // as the rows are now

function buildGrid() {
  const table = byId("grid").querySelector("table");
  const head = el("tr", { role: "row" }, el("th", { role: "columnheader", scope: "col", className: "corner" }, "Operator"));
  for (const { name } of BACKENDS) headings.push(el("th", { role: "columnheader", scope: "col" }, ...breakable(name)));
  head.append(...headings);
  table.tHead.append(head);
  for (const domain of DOMAINS) {
    const count = el("span", { className: "quiet" });
    const title = el("th", { role: "rowheader", scope: "rowgroup", colSpan: BACKENDS.length + 1 }, el("span", {}, domain || "no domain", " ", count));
    const body = el("tbody", { role: "rowgroup" }, el("tr", { role: "row", className: "domain" }, title));
    for (const operator of OPERATORS) if (operator.domain === domain) body.append(buildRow(operator));
    groups.set(domain, { body, count });
    table.append(body);
  }
  table.addEventListener("keydown", moveByArrow);
  byId("grid").hidden = false;
}

function buildRow(operator) {
  const note = el("span", { className: "note" });
  const button = el(
    "button",
    { type: "button", className: "operator", "aria-expanded": "false", "aria-controls": "details", "aria-haspopup": "dialog" },
    ...breakable(operator.type),
  );
  button.addEventListener("click", () => openDetails(operator, -1, button));
  const row = el("tr", { role: "row" }, el("th", { role: "rowheader", scope: "row" }, el("div", {}, button, note)));
  const cells = BACKENDS.map((_, backend) => buildCell(operator, backend));
  row.append(...cells);
  rows.set(operator, { row, button, note, cells });
  return row;
}

function buildCell(operator, backend) {
  const found = outcomesOf(operator, backend);
  const name = stateOf(found);
  const words = describe(found);
  const button = el(
    "button",
    { type: "button", tabIndex: -1, "data-state": name, ariaLabel: words, title: words },
    el("span", { className: "sign" }, STATES[name].sign),
    found.cases ? `${found.passes}/${found.cases}` : "",
    found.unexpected ? el("b", { className: "mark" }, "!") : "",
  );
  button.addEventListener("click", () => openDetails(operator, backend, button));
  return el("td", { role: "cell" }, button);
}

function showGrid(found) {
  byId("grid").style.setProperty("--columns", shownBackends().length);
  headings.forEach((heading, backend) => (heading.hidden = state.hidden.has(backend)));
  for (const [operator, { row, button, note, cells }] of rows) {
    const fitting = found.get(operator);
    row.hidden = !fitting;
    if (!fitting) continue;
    note.textContent = fitting.byName ? "" : counted(fitting.cases.length, "case");
    button.setAttribute("aria-expanded", String(operator === state.operator));
    row.classList.toggle("open", operator === state.operator);
    cells.forEach((cell, backend) => {
      cell.hidden = state.hidden.has(backend);
      const faded = filtersResults() && !fitting.cases.some((index) => resultFits(index, backend));
      cell.classList.toggle("faded", faded);
    });
  }
  for (const [domain, { body, count }] of groups) {
    const shown = [...found.keys()].filter((operator) => operator.domain === domain).length;
    body.hidden = !shown;
    count.textContent = counted(shown, "operator");
  }
  byId("none").hidden = found.size > 0;
  sortGrid(found);
}

/** Put the rows that are found in their order, within their domains, and the domains by their first. */
function sortGrid(found) {
  const order = new Map([...found.keys()].map((operator, place) => [operator, place]));
  const rank = (operator) => order.get(operator) ?? order.size + OPERATORS.indexOf(operator);
  const wanted = [...rows.keys()].sort((a, b) => rank(a) - rank(b));
  if (wanted.every((operator, place) => operator === sorted[place])) return;
  sorted = wanted;
  for (const operator of wanted) groups.get(operator.domain).body.append(rows.get(operator).row);
  const table = byId("grid").querySelector("table");
  for (const domain of new Set(wanted.map((operator) => operator.domain))) table.append(groups.get(domain).body);
}

/** Move between the buttons of the table as between the cells of a sheet. */
function moveByArrow(event) {
  const { key, target } = event;
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (!(key in steps || key === "Home" || key === "End") || event.ctrlKey || event.altKey || event.metaKey) return;
  const inTable = [...byId("grid").querySelectorAll("tr:has(.operator)")];
  const buttons = inTable.filter((row) => !row.hidden).map(shownButtons);
  const y = buttons.findIndex((line) => line.includes(target));
  if (y < 0) return;
  const [down, right] = steps[key] ?? [0, 0];
  const line = buttons[y + down] ?? buttons[y];
  const x = buttons[y].indexOf(target) + right;
  const next = key === "Home" ? line[0] : key === "End" ? line.at(-1) : line[x];
  event.preventDefault();
  next?.focus();
}

function shownButtons(row) {
  return [...row.cells].filter((cell) => !cell.hidden).map((cell) => cell.querySelector("button"));
}
