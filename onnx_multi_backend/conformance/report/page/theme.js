// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system has it until the button is pressed.

function startTheme() {
  const root = document.documentElement;
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.ariaLabel = `${button.textContent} colours`;
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
    try {
      localStorage.setItem("onnx-conformance-theme", root.dataset.theme);
    } catch {} // a page of a file may have no storage: then the choice lasts as long as the page
  });
  try {
    const kept = localStorage.getItem("onnx-conformance-theme");
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch {}
  system.addEventListener("change", show);
  show();
  button.hidden = false;
}
