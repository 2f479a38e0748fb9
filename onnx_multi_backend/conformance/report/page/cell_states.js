// SPDX-License-Identifier: Apache-2.0
// The state of an operator on a backend: a colour, and a sign and words for whoever does not see it.

const STATES = {
  all: { sign: "✓", words: "all passed" },
  adapted: { sign: "≈", words: "all passed, some models adapted" },
  fallback: { sign: "↷", words: "all passed, some nodes on another provider" },
  partly: { sign: "◐", words: "partly passed" },
  unsupported: { sign: "○", words: "none passed, all refused as unsupported or skipped" },
  failed: { sign: "✕", words: "none passed, some failed" },
  none: { sign: "–", words: "not run" },
};

function stateOf({ cases, passes, labels }) {
  if (cases === (labels.get("skip") ?? 0)) return "none";
  if (passes === cases) return labels.has("fallback") ? "fallback" : labels.has("adapted") ? "adapted" : "all";
  if (passes) return "partly";
  return (labels.get("unsupported") ?? 0) + (labels.get("skip") ?? 0) === cases ? "unsupported" : "failed";
}

function describe(found) {
  const words = [found.cases ? `${found.passes}/${found.cases}` : "", STATES[stateOf(found)].words];
  const { labels } = found;
  if (labels.size > 1) words.push([...labels].map(([label, count]) => `${count} ${label}`).join(", "));
  if (found.unexpected) words.push(`${found.unexpected} not as expected`);
  return words.filter(Boolean).join("; ");
}

function showKey() {
  for (const [state, { sign, words }] of Object.entries(STATES)) {
    byId("key").append(el("li", {}, el("span", { className: "sample", "data-state": state, ariaHidden: "true" }, sign), words));
  }
  const mark = el("span", { className: "sample", ariaHidden: "true" }, el("b", { className: "mark" }, "!"));
  byId("key").append(el("li", {}, mark, "some not as expected"));
}
