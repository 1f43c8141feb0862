"use strict";

// Tables: numbers by value, text by letters, unknown cells last whichever way.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, place) => {
    heading.querySelector("button").addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      const key = (row) => row.cells[place].dataset.key;
      const rows = [...table.tBodies[0].rows].sort((one, other) => {
        const a = key(one), b = key(other);
        if (a === "" || b === "") return (a === "") - (b === "");
        const numbers = !isNaN(a) && !isNaN(b);
        return sign * (numbers ? a - b : a.localeCompare(b, "en", { numeric: true }));
      });
      table.tBodies[0].append(...rows);
    });
  });
}

// Figures: a click shows one in full, a second one closer; a third leaves, and so do Escape and a click beside it.
const large = document.getElementById("large");
const shown = large.querySelector("img");
for (const button of document.querySelectorAll(".zoom")) {
  button.addEventListener("click", () => {
    const picture = button.querySelector("img");
    shown.src = picture.src;
    shown.alt = picture.alt;
    large.classList.remove("closer");
    large.showModal();
  });
}
shown.addEventListener("click", () => { if (!large.classList.toggle("closer")) large.close(); });
large.addEventListener("click", (event) => { if (event.target === large) large.close(); });

// On paper every setting is readable.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => { opened.forEach((one) => { one.open = false; }); });
