(() => {
  "use strict";
  const root = document.documentElement;
  const store = document.getElementById("figures");
  const specs = store ? JSON.parse(store.textContent) : [];
  const boxes = [...document.querySelectorAll("[data-figure]")];
  const drawn = new Map(); // box -> the width that it was drawn for

  // Colours: a text that begins with "$", where a colour is expected, names one of the page's.
  const COLOURED = new Set(["color", "colorscale", "fillcolor", "plot_bgcolor"]);
  const scale = (...stops) => stops.map((stop, place) => [place / (stops.length - 1), stop]);
  function painter() {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue("--" + name).trim();
    return (token) => {
      if (token === "$sequential") return scale(colour("low"), colour("middle"), colour("high"));
      if (token === "$diverging") return scale(colour("minus"), colour("zero"), colour("plus"));
      return colour(token.slice(1));
    };
  }
  function painted(value, paint, key) {
    if (Array.isArray(value)) return value.map((one) => painted(one, paint, key));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, one]) => [k, painted(one, paint, k)]));
    }
    return COLOURED.has(key) && typeof value === "string" && value[0] === "$" ? paint(value) : value;
  }

  // What the pointer shows: the full name of the place, and the figure of each table.
  function pointed(spec, layout) {
    const flat = layout.yaxis && Array.isArray(layout.yaxis.tickvals) && spec.labels;
    const side = flat ? "x" : "y";
    const share = String((layout[side + "axis"] || {}).tickformat || "").includes("%");
    return (trace) => {
      if (trace.hoverinfo === "skip" || trace.hovertemplate) return trace;
      const count = (trace.x || trace.y || []).length;
      const place = (at) => (flat && trace.y ? Math.round(trace.y[at]) : at);
      if (spec.labels) {
        trace.customdata = Array.from({ length: count }, (_, at) => spec.labels[place(at)] || "");
      }
      const number = "%{" + side + (share ? ":.1%}" : ":.3~g}");
      const apart = layout.hovermode === "closest";
      const name = spec.labels ? "%{customdata}<br>" : trace.text ? "%{text}<br>" : "%{x:.3~g}: ";
      trace.hovertemplate = (apart ? name : "") + number + (apart ? "<extra>" + trace.name + "</extra>" : "");
      if (!apart) trace.hovertemplate += "<extra>" + (trace.name || "") + "</extra>";
      return trace;
    };
  }

  function axis(own, paint, zoom) {
    const line = { gridcolor: paint("$rule"), zerolinecolor: paint("$rule"), linecolor: paint("$quiet") };
    const title = own && own.title ? { title: { standoff: 8, font: { size: 12 }, ...own.title } } : {};
    return { fixedrange: !zoom, tickfont: { size: 11 }, ...line, ...own, ...title };
  }

  function draw(box) {
    const spec = specs[Number(box.dataset.figure)];
    const width = Math.floor(box.clientWidth);
    if (!width || !window.Plotly) return;
    const paint = painter();
    const layout = painted(spec.layout, paint, "");
    const zoom = Boolean(spec.zoom) && matchMedia("(pointer: fine)").matches;
    const named = layout.hovermode === "y unified" ? "yaxis" : "xaxis";
    if (spec.labels && String(layout.hovermode).includes("unified")) {
      layout[named] = { ...layout[named], unifiedhovertitle: { text: "%{customdata}" } };
    }
    const clear = "rgba(0,0,0,0)";
    const ink = { family: "system-ui, 'Segoe UI', Roboto, Arial, sans-serif", size: 12, color: paint("$ink") };
    const whole = {
      margin: { l: 46, r: 14, t: 8, b: layout.xaxis && layout.xaxis.title ? 46 : 34 },
      paper_bgcolor: clear, plot_bgcolor: clear, font: ink, showlegend: false,
      hoverlabel: { bgcolor: paint("$card"), bordercolor: paint("$quiet"), font: { ...ink, size: 12 } },
      dragmode: zoom ? "zoom" : false, ...layout, width, height: box.clientHeight,
      xaxis: axis(layout.xaxis, paint, zoom), yaxis: axis(layout.yaxis, paint, zoom),
    };
    const data = spec.data.map((trace) => painted(trace, paint, "")).map(pointed(spec, layout));
    Plotly.react(box, data, whole, { displayModeBar: false, displaylogo: false, responsive: false });
    drawn.set(box, width);
  }

  // Pictures are drawn when they come near the screen, and again when their width changes.
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
  }, { rootMargin: "400px 0px" });
  const sized = new ResizeObserver((entries) => {
    requestAnimationFrame(() => {
      for (const { target } of entries) {
        const width = Math.floor(target.clientWidth);
        if (drawn.has(target) && width && drawn.get(target) !== width) draw(target);
      }
    });
  });
  for (const box of boxes) { seen.observe(box); sized.observe(box); }
  const redraw = () => { for (const box of drawn.keys()) draw(box); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // In print everything is open and drawn, in light colours and at the width of paper.
  const folds = [...document.querySelectorAll("details:not(.alternative)")];
  let closed = null;
  function prepare() {
    if (closed) return;
    closed = folds.filter((fold) => !fold.open);
    root.classList.add("printing");
    for (const fold of closed) fold.open = true;
    for (const box of boxes) draw(box);
  }
  function restore() {
    if (!closed) return;
    root.classList.remove("printing");
    for (const fold of closed) fold.open = false;
    closed = null;
    for (const box of boxes) if (box.clientWidth) draw(box);
  }
  addEventListener("beforeprint", prepare);
  addEventListener("afterprint", restore);
  matchMedia("print").addEventListener("change", (print) => (print.matches ? prepare() : restore()));

  // A link into a closed section opens it.
  function reveal() {
    const id = decodeURIComponent(location.hash.slice(1));
    const place = id && document.getElementById(id);
    if (!place) return;
    const inside = place.querySelector(":scope > details.section");
    if (inside) inside.open = true;
    for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    place.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();

  const button = document.getElementById("open-all");
  const all = [...document.querySelectorAll("details.section")];
  if (button && all.length) {
    button.hidden = false;
    const say = () => {
      const open = all.every((fold) => fold.open);
      button.textContent = open ? "Close all sections" : "Open all sections";
      button.setAttribute("aria-expanded", String(open));
    };
    button.addEventListener("click", () => {
      const open = !all.every((fold) => fold.open);
      for (const fold of all) fold.open = open;
    });
    for (const fold of all) fold.addEventListener("toggle", say);
    say();
  }
})();
