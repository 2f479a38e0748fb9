// SPDX-License-Identifier: Apache-2.0
// One case: its label on each backend, and once it is opened all that is known of it there.

function buildCase(index, backends) {
  const names = namesOf(index);
  const title = el("span", { className: "name" }, ...breakable(names.length === 1 ? names[0] : CASES[index].name));
  const made = el("details", { className: "case" }, el("summary", {}, el("span", {}, title, buildLabels(index, backends))));
  made.addEventListener("toggle", () => {
    if (made.open && made.childElementCount === 1) made.append(buildResults(index, backends));
    if (made.open) state.case = index;
    else if (state.case === index) state.case = -1;
    writeAddress();
  });
  made.open = index === state.case;
  return made;
}

/** Each label with the backends that have it; just the label where only one backend is shown. */
function buildLabels(index, backends) {
  const byLabel = new Map();
  for (const backend of backends) {
    const name = labelOf(index, backend)?.name ?? "";
    byLabel.set(name, [...(byLabel.get(name) ?? []), BACKENDS[backend].name]);
  }
  const parts = [...byLabel].map(([name, on]) =>
    el("span", { className: "on" }, name ? badge(name) : el("span", { className: "badge" }, "not run"), backends.length > 1 ? on.join(", ") : ""),
  );
  if (backends.some((backend) => isUnexpected(index, backend))) {
    parts.push(el("span", { className: "tag alert" }, "not as expected"));
  }
  return el("span", { className: "labels" }, ...parts);
}

function buildResults(index, backends) {
  const ran = backends.filter((backend) => labelOf(index, backend));
  return el("div", { className: "results" }, ...ran.map((backend) => buildResult(index, backend)));
}

function buildResult(index, backend) {
  const result = resultOf(index, backend);
  const facts = el("dl", {});
  const fact = (name, ...children) => facts.append(el("dt", {}, name), el("dd", {}, ...children));
  if (namesOf(index).length > 1) fact("Case", result.name);
  if (result.unexpected) fact("Not as expected", el("strong", { className: "alert" }, result.unexpected));
  if (result.reason) fact("Reason", result.reason);
  if (result.changes.length) fact("Adaptations", buildChanges(result.changes));
  fact("Placement", ...buildPlacement(result));
  if (result.error) fact("Error", el("pre", { tabIndex: 0 }, result.error));
  const milliseconds = result.duration.toLocaleString("en", { maximumSignificantDigits: 3 });
  return el(
    "section",
    { className: "result" },
    el(
      "h4",
      {},
      BACKENDS[backend].name,
      badge(result.label.name),
      result.was ? el("span", { className: "was" }, "was ", badge(result.was)) : "",
      el("span", { className: "quiet" }, `${milliseconds} ms`),
    ),
    facts,
  );
}

function buildChanges(changes) {
  return el(
    "ul",
    { className: "changes" },
    ...changes.map(([pass, node, change, reason]) =>
      el("li", {}, el("code", {}, pass), node ? ` on ${node}` : "", ": ", el("b", {}, change), reason ? `, as ${reason}` : ""),
    ),
  );
}

function buildPlacement({ placement }) {
  if (!placement.length) return [el("span", { className: "quiet" }, "not told, or nothing was left to run")];
  return [...tally(placement.map(([provider]) => provider))].map(([provider, count]) => {
    const nodes = placement.filter(([other]) => other === provider);
    const types = tally(nodes.map(([, domain, type]) => (domain && domain !== "ai.onnx" ? `${domain}.${type}` : type)));
    const words = [...types].map(([type, times]) => (times > 1 ? `${type} ×${times}` : type)).join(", ");
    const named = nodes.filter(([, , , name]) => name);
    return el(
      "div",
      { className: "provider" },
      el("b", {}, provider),
      ` ${counted(count, "node")}: ${words}`,
      named.length ? el("details", {}, el("summary", {}, "names"), named.map(([, , type, name]) => `${type} ${name}`).join(", ")) : "",
    );
  });
}
