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
  else if (byId("details").open) byId("details").close();
}

startTheme();
buildGrid();
showKey();
startFilters();
startDetails();
if (location.hash.length > 1) showAddress();
else show();
addEventListener("hashchange", showAddress);
