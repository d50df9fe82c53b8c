/* One switch for all the code of a page, boxes for what is wider than the page, tables folded and as CSV.
   Without scripts every cell keeps its own fold, and nothing is out of reach. */
(() => {
  const SHOWN = "faithlab-code-shown";
  const MANY = 25;  // rows; of a table of more the first ones are shown
  const PHONE = 340;  // pixels that it leaves a figure
  const root = document.documentElement;
  root.classList.add("faithlab-scripted");

  const kept = () => { try { return localStorage.getItem(SHOWN) === "yes"; } catch { return false; } };
  const keep = (shown) => { try { localStorage.setItem(SHOWN, shown ? "yes" : "no"); } catch { /* a private window */ } };

  /* What a box hides at its side is said in words below it, of tables and formulas: figures say so above their caption. */
  const goesOn = (box, wider) => {
    const what = box.matches("div.math") ? "formula" : box.matches("pre") ? "code" : box.querySelector("table") && !box.querySelector(".faithlab-scroll") ? "table" : "";
    const after = box.closest("div.highlight") || box;
    const next = after.nextElementSibling, note = next?.classList.contains("faithlab-goes-on") ? next : null;
    if (note && !wider) note.remove();
    if (note || !wider || !what) return;
    const said = document.createElement("p");
    said.className = "faithlab-goes-on";
    said.textContent = `The ${what} goes on to the right.`;
    after.insertAdjacentElement("afterend", said);
  };

  /* A box that scrolls says so, and can be scrolled with the keyboard. */
  const scrolls = () => {
    for (const box of document.querySelectorAll(
      ".bd-article :is(.pst-scrollable-table-container, .cell_output, .cell_output > .output, .faithlab-scroll, div.highlight pre, div.math)")) {
      const wider = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("faithlab-scrolls", wider && !box.matches("pre, div.math"));
      const end = () => box.classList.toggle("faithlab-at-end", box.scrollLeft + box.clientWidth >= box.scrollWidth - 2);
      if (wider && !box.dataset.followed) { box.dataset.followed = "yes"; box.addEventListener("scroll", end, { passive: true }); }
      if (wider) box.tabIndex = 0; else if (box.tabIndex === 0) box.removeAttribute("tabindex");
      goesOn(box, wider);
      if (wider && !box.hasAttribute("role")) { box.setAttribute("role", "region"); box.setAttribute("aria-label", "scrolls sideways"); }
    }
  };

  /* A figure that is wider than a phone keeps its text readable there: it scrolls instead of shrinking. */
  const figures = () => {
    for (const image of document.querySelectorAll("article.bd-article figure img")) {
      const judge = () => {
        if ((image.naturalWidth || Number(image.getAttribute("width"))) < PHONE || image.closest(".faithlab-wide")) return;
        const box = document.createElement("div");
        box.className = "faithlab-scroll faithlab-wide";
        const shown = image.closest("a") || image;
        shown.replaceWith(box);
        box.append(shown);
        scrolls();
      };
      if (image.complete || image.hasAttribute("width")) judge(); else image.addEventListener("load", judge);
    }
  };

  /* The cells of a table as rows of equal length: one that spans several stands in each of them. */
  const spread = (table) => {
    const rows = [...table.rows].map(() => []);
    [...table.rows].forEach((row, r) => [...row.cells].forEach((cell) => {
      const free = Array.from({ length: rows[r].length + 1 }, (_, c) => c).find((c) => rows[r][c] === undefined);
      for (let i = 0; i < cell.rowSpan && r + i < rows.length; i++)
        for (let j = 0; j < cell.colSpan; j++) rows[r + i][free + j] = cell;
    }));
    return rows;
  };
  const said = (cell) => cell.textContent.trim().replace(/\s+/g, " ");

  /* Where a table becomes a list, every number needs the name of its column. */
  const labels = () => {
    for (const table of document.querySelectorAll("article.bd-article table.faithlab-few")) {
      const rows = spread(table), above = rows.slice(0, table.tHead ? table.tHead.rows.length : 0);
      rows.slice(above.length).forEach((row) => row.forEach((cell, c) => {
        if (cell.tagName === "TD") cell.dataset.label = [...new Set(above.map((head) => said(head[c])))].filter(Boolean).join(", ");
      }));
    }
  };

  /* Every table of numbers, as it is shown, as CSV. */
  const csv = () => {
    const quoted = (cell) => `"${said(cell).replaceAll('"', '""')}"`;
    for (const table of document.querySelectorAll("article.bd-article .cell_output table.dataframe")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "faithlab-csv";
      button.textContent = "this table as CSV";
      button.addEventListener("click", () => {
        const rows = spread(table).map((row) => row.map(quoted).join(","));
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([rows.join("\n") + "\n"], { type: "text/csv" }));
        link.download = "table.csv";
        link.click();
        URL.revokeObjectURL(link.href);
      });
      (table.closest(".cell_output") || table).insertAdjacentElement("afterend", button);
    }
  };

  /* Of a long table the first rows, and a button for all. Printed, it is whole. */
  const long = () => {
    for (const table of document.querySelectorAll("article.bd-article table")) {
      const count = table.tBodies[0]?.rows.length ?? 0;
      if (count <= MANY) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "faithlab-more";
      const show = (all) => {
        table.classList.toggle("faithlab-folded", !all);
        button.setAttribute("aria-expanded", String(all));
        button.textContent = all ? "Show the first rows" : `Show all ${count} rows`;
      };
      button.addEventListener("click", () => { show(button.getAttribute("aria-expanded") === "false"); scrolls(); });
      (table.closest(".faithlab-scroll, .cell_output, .pst-scrollable-table-container") || table).insertAdjacentElement("afterend", button);
      show(false);
    }
  };

  const code = () => {
    const article = document.querySelector("article.bd-article");
    const folds = [...document.querySelectorAll("article.bd-article div.cell > details.hide.above-input")]
      .filter((fold) => !fold.closest(".tag_parameters, .tag_injected-parameters"));
    const title = article && article.querySelector("h1");
    if (!title || !folds.length) return;
    for (const fold of folds) fold.closest("div.cell").classList.add("faithlab-code");

    const button = document.createElement("button");
    button.type = "button";
    button.className = "faithlab-switch";
    const show = (shown) => {
      root.classList.toggle(SHOWN, shown);
      for (const fold of folds) fold.open = shown;
      button.setAttribute("aria-pressed", String(shown));
      button.textContent = shown ? "Hide code" : "Show code";
    };
    button.addEventListener("click", () => {
      // What the reader looks at stays where it is.
      const before = button.getBoundingClientRect().top;
      const shown = !root.classList.contains(SHOWN);
      show(shown);
      keep(shown);
      window.scrollBy(0, button.getBoundingClientRect().top - before);
    });
    title.insertAdjacentElement("afterend", button);
    show(kept());
  };
  const ready = () => {
    code();
    labels();
    csv();
    long();
    figures();
    scrolls();
    window.addEventListener("resize", scrolls);
    document.addEventListener("toggle", scrolls, true);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
  else ready();
})();
