// Names the column of each cell of wide tables, which site.css shows as blocks on narrow screens.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table.docutils")) {
    const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
    if (names.length < 4) continue;
    table.classList.add("stacked");
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.children].forEach((cell, column) => {
        cell.dataset.label = names[column] || "";
        if (!cell.textContent.trim()) cell.replaceChildren();
      });
    }
  }
});
