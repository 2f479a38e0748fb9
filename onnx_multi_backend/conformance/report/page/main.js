// SPDX-License-Identifier: Apache-2.0
// From here on the page lives: whatever changes the state calls show.

function show() {
  const found = operatorsThatFit();
  showGrid(found);
  showFilters(found);
  showDetails();
  writeAddress();
}

function showAddress() {
  if (location.hash !== "#operators") readAddress(); // that is the link that skips what comes before them
  show();
  if (state.operator) raise();
  else closeDetails();
}

startTheme();
buildGrid();
showKey();
startFilters();
startDetails();
startChanges();
if (location.hash.length > 1) showAddress();
else show();
addEventListener("popstate", ({ state: entry }) => {
  if (entry !== LIST) return showAddress();
  closeDetails();
  writeAddress(); // the filters stay as they are now
});
