/* One switch for all the code of a page. Without scripts every cell keeps its own fold, and nothing is out of reach. */
(() => {
  const SHOWN = "faithlab-code-shown";
  const root = document.documentElement;
  root.classList.add("faithlab-scripted");

  const kept = () => { try { return localStorage.getItem(SHOWN) === "yes"; } catch { return false; } };
  const keep = (shown) => { try { localStorage.setItem(SHOWN, shown ? "yes" : "no"); } catch { /* a private window */ } };

  const ready = () => {
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
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
  else ready();
})();
