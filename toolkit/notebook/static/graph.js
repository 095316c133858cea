// Draws the graph that Python laid out, and changes attributes in place as its states change.
const SVG = "http://www.w3.org/2000/svg";
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.appendChild(made);
  return made;
}

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "tk-graph";
  el.appendChild(root);
  const drawn = new Map();

  function choose(id) {
    model.set("selected", id);
    model.save_changes();
  }

  function reach(id) {
    for (const [other, { group }] of drawn) {
      group.setAttribute("tabindex", other === id ? "0" : "-1");
    }
  }

  // The nearest node in an arrow's direction: what lies aside of it counts double.
  function neighbour(from, [dx, dy]) {
    let best = null;
    for (const { node, group } of drawn.values()) {
      const ahead = (node.x - from.x) * dx + (node.y - from.y) * dy;
      const aside = Math.abs((node.x - from.x) * dy) + Math.abs((node.y - from.y) * dx);
      if (ahead > 0 && (best === null || ahead + 2 * aside < best.far)) {
        best = { far: ahead + 2 * aside, node, group };
      }
    }
    return best;
  }

  function onKey(event, node) {
    if (event.key === "Enter" || event.key === " ") choose(node.id);
    else if (event.key in ARROWS) {
      const next = neighbour(node, ARROWS[event.key]);
      if (next) {
        reach(next.node.id);
        next.group.focus();
      }
    } else return;
    event.preventDefault();
    event.stopPropagation(); // the notebook has shortcuts of its own on these keys
  }

  function draw() {
    const { width = 0, height = 0, box = [0, 0], nodes = [], edges = [] } = model.get("graph");
    const [wide, high] = box;
    root.replaceChildren();
    drawn.clear();
    const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group" });
    const arrow = `tk-arrow-${model.model_id ?? Math.random().toString(36).slice(2)}`;
    const marker = element(
      "marker",
      { id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
        orient: "auto" },
      element("defs", {}, svg),
    );
    element("path", { d: "M0 0 8 4 0 8z", class: "tk-arrow" }, marker);
    for (const edge of edges) {
      element("path", { d: edge.path, class: "tk-edge", "marker-end": `url(#${arrow})` }, svg);
    }
    for (const node of nodes) {
      const group = element("g", { role: "button", tabindex: "-1", "data-node": node.id }, svg);
      element("rect", { x: node.x, y: node.y, width: wide, height: high, rx: 8 }, group);
      const x = node.x + wide / 2;
      const line = (y, kind, words) => {
        const made = element("text", { x, y: node.y + y, class: kind }, group);
        made.textContent = words;
        return made;
      };
      line(20, "tk-title", node.title);
      line(34, "tk-below", node.below);
      const state = line(48, "tk-state", "");
      group.addEventListener("click", () => { reach(node.id); choose(node.id); });
      group.addEventListener("keydown", (event) => onKey(event, node));
      drawn.set(node.id, { node, group, state });
    }
    if (nodes.length) reach(nodes[0].id);
    root.appendChild(svg);
    paint();
  }

  function paint() {
    const states = model.get("states");
    const selected = model.get("selected");
    const svg = root.querySelector("svg");
    svg?.setAttribute("aria-label", model.get("label"));
    for (const [id, { node, group, state }] of drawn) {
      const { status = "pending", line = "" } = states[id] ?? {};
      group.setAttribute("data-status", status);
      group.setAttribute("aria-pressed", String(id === selected));
      group.setAttribute("aria-label", `${id}, ${node.below}, ${line || status}`);
      if (state.textContent !== line) state.textContent = line;
    }
  }

  model.on("change:graph", draw);
  model.on("change:states", paint);
  model.on("change:selected", paint);
  model.on("change:label", paint);
  draw();
  return () => {
    model.off("change:graph", draw);
    for (const name of ["states", "selected", "label"]) model.off(`change:${name}`, paint);
  };
}

export default { render };
