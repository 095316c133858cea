// Draws boxes and lines as SVG, and changes attributes in place as states change.
const SVG = "http://www.w3.org/2000/svg";
// The state of a group is the first of these that one of its nodes is in.
const STATE_PRIORITY = ["failed", "running", "queued", "pending", "cancelled", "completed"];
const TEXT_LINES = [20, 34, 48]; // where lines of text stand in a box

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.appendChild(made);
  return made;
}

function html(name, attributes, parent) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.appendChild(made);
  return made;
}

let drawings = 0;

class Drawing {
  constructor(svg) {
    this.svg = svg;
    this.arrow = `tk-arrow-${(drawings += 1)}`;
    this.arrangement = { boxes: new Map(), lines: [], wide: 0, high: 0 };
    this.groups = [];
  }

  // Draw everything anew: another graph, or a group that was opened or closed.
  draw(graph, open) {
    this.arrangement = arrange(graph, open);
    this.groups = graph.groups;
    const { boxes, lines } = this.arrangement;
    const parts = document.createDocumentFragment();
    const marker = element(
      "marker",
      { id: this.arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 10, markerHeight: 10,
        markerUnits: "userSpaceOnUse", orient: "auto" },
      element("defs", {}, parts),
    );
    element("path", { d: "M0 0 8 4 0 8z", class: "tk-arrow" }, marker);
    for (const box of boxes.values()) if (box.group && open.has(box.group.key)) this.drawBox(box, true, parts);
    for (const line of lines) {
      line.element = element(
        "path", { d: line.path, class: "tk-edge", "marker-end": `url(#${this.arrow})` }, parts,
      );
    }
    this.near = element("g", { class: "tk-near" }, parts);
    for (const box of boxes.values()) {
      if (!box.element) this.drawBox(box, false, parts);
    }
    this.svg.replaceChildren(parts);
  }

  drawBox(box, isOpen, parent) {
    const { x, y, wide, high, node, group } = box;
    const key = (node ?? group).key;
    const names = node ? { "data-node": node.id } : { "data-group": group.id };
    const g = element("g", { role: "button", tabindex: "-1", "data-key": key, ...names }, parent);
    box.element = g;
    box.open = isOpen;
    if (group) g.setAttribute("aria-expanded", String(isOpen));
    if (group && !isOpen) {
      for (const by of [6, 3]) {
        element("rect", { x: x + by, y: y + by, width: wide, height: high, rx: 8 }, g);
      }
    }
    element("rect", { x, y, width: wide, height: high, rx: 8, class: "tk-box" }, g);
    const middle = x + wide / 2;
    const line = (i, kind, words) => {
      const made = element("text", { x: middle, y: y + TEXT_LINES[i], class: kind }, g);
      made.textContent = words;
      return made;
    };
    const shown = node ?? group;
    box.title = line(0, "tk-title", group ? `${isOpen ? "▾" : "▸"} ${shown.title}` : shown.title);
    line(1, "tk-below", shown.below);
    box.state = line(2, "tk-state", "");
    if (group) {
      const bar = { x: middle - 80, y: y + 52, height: 2.5, width: 0 };
      box.done = element("rect", { ...bar, class: "tk-done" }, g);
      box.failed = element("rect", { ...bar, class: "tk-failed" }, g);
    }
  }

  // Show states, of all nodes or of those that changed; a group shows how many are in each.
  paint(states, nodes, changed) {
    const touched = new Set();
    for (const node of changed) {
      if (node.box !== node.key) touched.add(node.box);
      const box = this.arrangement.boxes.get(node.key);
      if (!box) continue;
      const [status, line] = states[node.id] ?? ["pending", ""];
      box.element.dataset.status = status;
      box.element.setAttribute("aria-label", `${node.id}, ${node.below}, ${line || status}`);
      if (box.state.textContent !== line) box.state.textContent = line;
    }
    for (const group of this.groups) {
      if (touched.has(group.key)) this.paintGroup(group, states, nodes);
    }
  }

  paintGroup(group, states, nodes) {
    const box = this.arrangement.boxes.get(group.key);
    const counts = new Map();
    for (const member of group.members) {
      const [status] = states[nodes[member].id] ?? ["pending"];
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
    const present = STATE_PRIORITY.filter((status) => counts.has(status));
    const tells = (status) => `${counts.get(status)} ${status}`;
    const urgent = present.find((status) => ["failed", "running"].includes(status));
    const done = `${counts.get("completed") ?? 0} of ${group.members.length} done`;
    const label = `${group.title}, ${group.below}, ${present.map(tells).join(", ")}`;
    box.element.dataset.status = present[0] ?? "pending";
    box.element.setAttribute("aria-label", label);
    box.state.textContent = urgent ? `${done}, ${tells(urgent)}` : done;
    const share = (status) => (160 * (counts.get(status) ?? 0)) / group.members.length;
    const left = box.x + box.wide / 2 - 80;
    box.done.setAttribute("width", share("completed"));
    box.failed.setAttribute("x", left + share("completed"));
    box.failed.setAttribute("width", share("failed"));
  }

  // Bring out a box's lines: those drawn, and those its group keeps together.
  bringOut(key, around) {
    for (const line of this.arrangement.lines) {
      line.element.classList.toggle("tk-bold", line.from === key || line.to === key);
    }
    const { boxes } = this.arrangement;
    const half = boxes.size ? 28 : 0;
    const drawn = new Set(this.arrangement.lines.map(({ from, to }) => `${from} ${to}`));
    this.near.replaceChildren();
    for (const [from, to] of around) {
      if (from === to || drawn.has(`${from} ${to}`) || this.near.childElementCount > 400) continue;
      drawn.add(`${from} ${to}`);
      const path = joinBoxes(boxes.get(from), boxes.get(to), half);
      element("path", { d: path, class: "tk-edge tk-bold", "marker-end": `url(#${this.arrow})` }, this.near);
    }
  }
}
