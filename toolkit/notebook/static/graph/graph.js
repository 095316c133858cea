// The graph as a widget: what a person does with it, and what the kernel says of it.
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const ZOOM_STEP = 1.3;
const MIN_TOOLS = 8; // nodes up to which there is nothing to search for

// The graph that Python laid out, with keys: nodes and groups may have the same id.
function readGraph({ nodes = [], groups = [], edges = [], links = [], ...rest }) {
  const read = {
    ...rest, edges, links,
    nodes: nodes.map((node, i) => ({ ...node, key: `n${i}`, box: `n${i}` })),
    groups: groups.map((group, i) => ({ ...group, key: `g${i}` })),
  };
  for (const group of read.groups) {
    for (const member of group.members) read.nodes[member].box = group.key;
  }
  const joins = read.groups.length
    ? links.map(([from, to]) => [read.nodes[from], read.nodes[to]])
    : edges.map(({ from, to }) => [read.nodes[+from.slice(1)], read.nodes[+to.slice(1)]]);
  for (const node of read.nodes) Object.assign(node, { up: [], down: [] });
  for (const [from, to] of joins) {
    from.down.push(to);
    to.up.push(from);
  }
  return read;
}

class GraphView {
  constructor(model, el) {
    this.model = model;
    this.open = new Set(); // keys of the groups that show their nodes
    this.root = html("div", { class: "tk-graph" }, el);
    this.buildTools();
    this.frame = html("div", { class: "tk-frame" }, this.root);
    this.svg = element("svg", { role: "group" }, this.frame);
    const map = html("canvas", { class: "tk-map", "aria-hidden": "true" }, this.frame);
    this.drawing = new Drawing(this.svg);
    this.viewport = new Viewport(this.frame, this.svg, map);
    this.svg.addEventListener("click", (event) => this.onClick(event));
    this.svg.addEventListener("focusin", (event) => this.onFocus(event));
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    this.listeners = {
      "change:graph": () => this.load(),
      "change:drawn_states": () => this.paintAll(),
      "change:changed_states": () => this.paintChanged(),
      "change:selected": () => this.showSelected(),
      "change:label": () => this.svg.setAttribute("aria-label", model.get("label")),
    };
    for (const [name, listener] of Object.entries(this.listeners)) model.on(name, listener);
    this.load();
  }

  close() {
    for (const [name, listener] of Object.entries(this.listeners)) this.model.off(name, listener);
    this.viewport.close();
  }

  buildTools() {
    this.tools = html("div", { class: "tk-tools", role: "toolbar", "aria-label": "View" }, this.root);
    const button = (words, tells, act) => {
      const made = html("button", { type: "button", title: tells, "aria-label": tells }, this.tools);
      made.textContent = words;
      made.addEventListener("click", act);
      return made;
    };
    button("−", "Zoom out (key −)", () => this.viewport.zoomBy(1 / ZOOM_STEP));
    button("+", "Zoom in (key +)", () => this.viewport.zoomBy(ZOOM_STEP));
    button("Fit", "Show all of it (key 0)", () => this.viewport.fit());
    this.fold = button("Open all", "Open or fold all groups", () => this.toggleAll());
    this.search = html(
      "input", { type: "search", placeholder: "Search (key /)", "aria-label": "Search nodes" },
      this.tools,
    );
    this.search.addEventListener("input", () => this.find());
    this.found = html("span", { class: "tk-found", role: "status" }, this.tools);
  }

  load() {
    this.graph = readGraph(this.model.get("graph"));
    const { nodes, groups } = this.graph;
    this.byId = new Map(nodes.map((node) => [node.id, node]));
    this.open.clear();
    this.fold.hidden = groups.length === 0;
    this.tools.hidden = nodes.length < MIN_TOOLS;
    this.viewport.isFitted = true;
    this.current = null;
    this.redraw();
    this.find();
    this.svg.setAttribute("aria-label", this.model.get("label"));
  }

  redraw() {
    this.drawing.draw(this.graph, this.open);
    const { boxes, wide, high } = this.drawing.arrangement;
    this.paintAll();
    this.viewport.setContent(wide, high, [...boxes.values()]);
    this.reach(boxes.has(this.current) ? this.current : boxes.keys().next().value);
    this.showSelected();
    this.markFound();
    const isAllOpen = this.open.size === this.graph.groups.length;
    this.fold.textContent = isAllOpen ? "Fold all" : "Open all";
  }

  // States as they were last sent whole, then what changed since.
  paintAll() {
    const changed = this.model.get("changed_states");
    this.states = { ...this.model.get("drawn_states"), ...changed };
    this.changedIds = Object.keys(changed);
    this.drawing.paint(this.states, this.graph.nodes, this.graph.nodes);
    this.viewport.drawMap();
  }

  paintChanged() {
    const drawn = this.model.get("drawn_states");
    const changed = this.model.get("changed_states");
    // What is as it was drawn again, such as a node that was run once more, is not among them.
    const ids = new Set([...this.changedIds, ...Object.keys(changed)]);
    this.changedIds = Object.keys(changed);
    const news = [];
    for (const id of ids) {
      const state = changed[id] ?? drawn[id] ?? ["pending", ""];
      const known = this.states[id];
      if (known?.[0] === state[0] && known?.[1] === state[1]) continue;
      this.states[id] = state;
      if (this.byId.has(id)) news.push(this.byId.get(id));
    }
    if (!news.length) return;
    this.drawing.paint(this.states, this.graph.nodes, news);
    this.viewport.drawMap();
    if (this.search.value) this.find();
  }

  showSelected() {
    const selected = this.model.get("selected");
    for (const { node, element: g } of this.drawing.arrangement.boxes.values()) {
      if (node) g.setAttribute("aria-pressed", String(node.id === selected));
    }
    this.bringOut(this.byId.get(selected)?.key ?? "");
  }

  // The box that shows a node: its own, or that of its folded group.
  boxOf(node) { return node.box === node.key || this.open.has(node.box) ? node.key : node.box; }

  // The boxes before and after a box.
  listAround(key) {
    const box = this.drawing.arrangement.boxes.get(key);
    if (!box) return { up: [], down: [] };
    const nodes = box.node ? [box.node] : box.group.members.map((i) => this.graph.nodes[i]);
    const keys = (side) => [
      ...new Set(nodes.flatMap((node) => node[side].map((other) => this.boxOf(other)))),
    ];
    return { up: keys("up"), down: keys("down") };
  }

  bringOut(key) {
    const { up, down } = this.listAround(key);
    this.drawing.bringOut(key, [...up.map((one) => [one, key]), ...down.map((one) => [key, one])]);
  }

  choose(id) {
    this.model.set("selected", id);
    this.model.save_changes();
    this.showSelected();
  }

  // Make a box the one that Tab comes to.
  reach(key) {
    const { boxes } = this.drawing.arrangement;
    boxes.get(this.current)?.element.setAttribute("tabindex", "-1");
    this.current = key;
    boxes.get(key)?.element.setAttribute("tabindex", "0");
  }

  focus(key) {
    const box = this.drawing.arrangement.boxes.get(key);
    if (!box) return;
    this.reach(key);
    this.show(box);
    box.element.focus({ preventScroll: true });
  }

  // Zoom, and keep the box that the keyboard is at where it is.
  zoom(factor, key) {
    const box = this.drawing.arrangement.boxes.get(key);
    this.viewport.zoomBy(factor, box && [box.x + box.wide / 2, box.y + this.graph.box[1] / 2]);
  }

  // Bring a box into view, of an open group its head, and the page to where the box is.
  show(box) {
    this.viewport.reveal(box.open ? { ...box, high: this.graph.box[1] } : box);
    box.title.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  toggle(key) {
    if (!this.open.delete(key)) this.open.add(key);
    this.reach(key);
    this.redraw();
    this.focus(key);
  }

  toggleAll() {
    const { groups } = this.graph;
    if (this.open.size === groups.length) this.open.clear();
    else for (const { key } of groups) this.open.add(key);
    this.redraw();
  }

  onClick(event) {
    const key = event.target.closest("[data-key]")?.dataset.key;
    if (key) this.activate(key);
  }

  activate(key) {
    const { node, group } = this.drawing.arrangement.boxes.get(key);
    if (group) return this.toggle(group.key);
    this.reach(key);
    return this.choose(node.id);
  }

  onFocus(event) {
    const key = event.target.dataset?.key;
    if (key && !this.byId.has(this.model.get("selected"))) this.bringOut(key);
  }

  onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const isHandled =
      event.target === this.search ? this.onSearchKey(event) : this.onGraphKey(event);
    if (!isHandled) return;
    event.preventDefault();
    event.stopPropagation(); // the notebook has shortcuts of its own on these keys
  }

  onGraphKey({ key, target }) {
    const at = target.dataset?.key;
    if (key === "+" || key === "=") this.zoom(ZOOM_STEP, at);
    else if (key === "-") this.zoom(1 / ZOOM_STEP, at);
    else if (key === "0") this.viewport.fit();
    else if (key === "/" && !this.tools.hidden) this.search.select();
    else if (!at) return false;
    else if (key === "Enter" || key === " ") this.activate(at);
    else if (key in ARROWS) this.focus(this.findNext(at, key));
    else if (key === "Escape" && this.drawing.arrangement.boxes.get(at).inside) {
      this.focus(this.drawing.arrangement.boxes.get(at).inside.key);
    } else return false;
    return true;
  }

  onSearchKey({ key, shiftKey }) {
    if (key === "Enter") this.showMatch(shiftKey ? -1 : 1);
    else if (key === "Escape") {
      const match = this.matches[this.matchAt];
      this.search.value = "";
      this.find();
      this.focus(match ? this.boxOf(match) : this.current);
    } else {
      return false;
    }
    return true;
  }

  // Along the lines: right to what depends on it, left to what it depends on; else what is nearest.
  findNext(key, arrow) {
    const { boxes } = this.drawing.arrangement;
    const from = boxes.get(key);
    const [dx] = ARROWS[arrow];
    const within = from.inside ?? (from.open && arrow === "ArrowDown" ? from.group : null);
    if (within?.siblings || (within && dx === 0)) {
      const beside = this.findNearest(from, arrow, (box) => box.inside === within);
      if (beside) return beside;
      if (arrow === "ArrowUp") return within.key;
    }
    if (dx !== 0) {
      const ends = this.listAround(key)[dx > 0 ? "down" : "up"];
      const far = (other) => Math.abs(boxes.get(other).y - from.y);
      const end = ends.sort((one, other) => far(one) - far(other))[0];
      if (end) return end;
    }
    return this.findNearest(from, arrow, (box) => !box.inside || box.inside === from.inside) ?? key;
  }

  // The nearest box in an arrow's direction: what lies aside of it counts double.
  findNearest(from, arrow, fits) {
    const [dx, dy] = ARROWS[arrow];
    let best = null;
    for (const [key, box] of this.drawing.arrangement.boxes) {
      if (!fits(box)) continue;
      const ahead = (box.x - from.x) * dx + (box.y - from.y) * dy;
      const aside = Math.abs((box.x - from.x) * dy) + Math.abs((box.y - from.y) * dx);
      if (ahead > 0 && (best === null || ahead + 2 * aside < best.far)) {
        best = { far: ahead + 2 * aside, key };
      }
    }
    return best?.key;
  }

  // Find nodes by a part of their id, capability or state.
  find() {
    const words = this.search.value.trim().toLowerCase();
    const tells = ({ id, below }) => `${id} ${below} ${this.states[id]?.[0] ?? ""}`.toLowerCase();
    this.matches = words ? this.graph.nodes.filter((node) => tells(node).includes(words)) : [];
    this.matchAt = -1;
    const many = this.matches.length;
    this.found.textContent = words ? `${many} of ${this.graph.nodes.length}` : "";
    this.markFound();
  }

  markFound() {
    const keys = new Set((this.matches ?? []).map((node) => this.boxOf(node)));
    const at = this.matches?.[this.matchAt];
    for (const [key, { element: g }] of this.drawing.arrangement.boxes) {
      g.classList.toggle("tk-match", keys.has(key));
      g.classList.toggle("tk-here", Boolean(at) && key === this.boxOf(at));
    }
    this.svg.classList.toggle("tk-searching", keys.size > 0);
  }

  showMatch(step) {
    const count = this.matches.length;
    if (!count) return;
    const next = (this.matchAt + step + count) % count;
    this.matchAt = this.matchAt < 0 && step < 0 ? count - 1 : next;
    const node = this.matches[this.matchAt];
    if (node.box !== node.key && !this.open.has(node.box)) {
      this.open.add(node.box);
      this.redraw();
    }
    this.markFound();
    this.reach(node.key);
    this.show(this.drawing.arrangement.boxes.get(node.key));
    this.found.textContent = `${this.matchAt + 1} of ${count}`;
  }
}

function render({ model, el }) {
  const view = new GraphView(model, el);
  return () => view.close();
}

export default { render };
