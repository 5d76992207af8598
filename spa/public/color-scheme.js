// Runs before the first paint, so that a dark page does not flash white. It is a file of its own because the page's
// policy allows no inline script; the key is Mantine's.
(function () {
  var chosen = null;
  try {
    chosen = window.localStorage.getItem("mantine-color-scheme-value");
  } catch (blocked) {
    chosen = null;
  }
  if (chosen !== "light" && chosen !== "dark") {
    chosen = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.setAttribute("data-mantine-color-scheme", chosen);
})();
