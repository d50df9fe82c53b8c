/* A click on the name of a column sorts its table by it: up, down, and back as it was. Without scripts it stays as it was. */
(() => {
  const said = (cell) => (cell ? cell.textContent.trim().replaceAll("−", "-").replaceAll(",", "") : "");
  const value = (text) => (/^[^\w.-]*-?\.?\d/.test(text) ? parseFloat(text.match(/-?\d*\.?\d+(e-?\d+)?/)[0]) : NaN);
  /* Numbers before words, what is empty last, whichever way. */
  const order = (a, b, up) => {
    if (!/\w/.test(a) || !/\w/.test(b)) return /\w/.test(b) - /\w/.test(a);
    const [x, y] = [value(a), value(b)];
    if (isNaN(x) !== isNaN(y)) return isNaN(x) - isNaN(y);
    return up * (isNaN(x) ? a.localeCompare(b) : x - y);
  };
  /* A name that spans several rows stands in each of them. */
  const whole = (rows) => rows.forEach((row, r) => [...row.cells].forEach((cell, c) => {
    const copies = Array.from({ length: cell.rowSpan - 1 }, (_, i) => rows[r + 1 + i]);
    cell.rowSpan = 1;
    for (const other of copies) other.insertBefore(cell.cloneNode(true), other.cells[c] ?? null);
  }));
  const sortable = (table, rows, head, place) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "faithlab-sort" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")] ?? "ascending";
      for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
      if (next === "none") return table.tBodies[0].append(...rows);
      whole(rows);
      head.setAttribute("aria-sort", next);
      const keyed = rows.map((row) => [said(row.cells[place]), row]);
      keyed.sort(([a], [b]) => order(a, b, next === "ascending" ? 1 : -1));
      table.tBodies[0].append(...keyed.map(([, row]) => row));
    });
  };
  /* In a table of many columns intervals are smaller than their numbers. */
  for (const cell of document.querySelectorAll("article.bd-article table:is(.faithlab-few, .faithlab-many) td")) {
    const [, before, interval, after] = cell.textContent.match(/^([^[]*)(\[[^\]]*\])(.*)$/) ?? [];
    if (interval) cell.replaceChildren(before, Object.assign(document.createElement("small"), { textContent: interval }), after);
  }
  for (const table of document.querySelectorAll("article.bd-article table:not(.faithlab-matrix):has(thead)")) {
    const rows = [...(table.tBodies[0]?.rows ?? [])], heads = [...(table.tHead.rows[table.tHead.rows.length - 1]?.cells ?? [])];
    const starts = heads.map((_, i) => heads.slice(0, i).reduce((sum, head) => sum + head.colSpan, 0));
    if (rows.length > 2) heads.forEach((h, i) => { if (said(h) && h.colSpan < 2 && !h.querySelector("a")) sortable(table, rows, h, starts[i]); });
  }
})();
