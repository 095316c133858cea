// Where boxes and lines of a graph are, in pixels, given which of its groups are open.
//
// Python laid boxes out on a grid of layers and rows. An open group is larger than its box: the
// layers right of it and the rows below it move away, so that what was straight stays straight.
const PAD = 12;
const MEMBER_GAP = 10;
const MAX_COLUMN = 25; // members below each other in a group whose members have lines of their own

// The columns and rows of an open group, and its size.
function measureGroup(group, [wide, high]) {
  const count = group.members.length;
  const columns = group.siblings
    ? Math.ceil(Math.sqrt((1.4 * count * high) / wide))
    : Math.ceil(count / MAX_COLUMN);
  const rows = Math.ceil(count / columns);
  return {
    columns,
    rows,
    wide: columns * (wide + MEMBER_GAP) - MEMBER_GAP + 2 * PAD,
    high: high + rows * (high + MEMBER_GAP) - MEMBER_GAP + PAD,
  };
}

// Boxes by their key, lines between them, and the room that all of it takes.
function arrange(graph, open) {
  const { box = [0, 0], gap = [0, 0], margin = 0, nodes = [], groups = [], edges = [] } = graph;
  const [wide, high] = box;
  const places = [
    ...nodes.filter((node) => node.at).map((node) => node.at),
    ...groups.map((group) => group.at),
    ...edges.flatMap((edge) => edge.route),
  ];
  const layers = new Array(1 + Math.max(-1, ...places.map(([layer]) => layer))).fill(wide);
  const growth = new Map(); // how much larger the largest open group of a row is than a box
  const sizes = new Map();
  for (const group of groups.filter((one) => open.has(one.key))) {
    const size = measureGroup(group, box);
    const [layer, row] = group.at;
    sizes.set(group.key, size);
    layers[layer] = Math.max(layers[layer], size.wide);
    growth.set(row, Math.max(growth.get(row) ?? 0, size.high - high));
  }
  const lefts = [];
  layers.reduce((left, width, i) => ((lefts[i] = left), left + width + gap[0]), margin);
  const grown = [...growth];
  const top = (row) =>
    grown.reduce((y, [at, more]) => (at < row - 1e-6 ? y + more : y), margin + row * (high + gap[1]));

  const boxes = new Map();
  for (const node of nodes) {
    if (!node.at) continue;
    boxes.set(node.key, { x: lefts[node.at[0]], y: top(node.at[1]), wide, high, node });
  }
  for (const group of groups) {
    const x = lefts[group.at[0]];
    const y = top(group.at[1]);
    const size = sizes.get(group.key);
    boxes.set(group.key, { x, y, wide: size?.wide ?? wide, high: size?.high ?? high, group });
    if (!size) continue;
    group.members.forEach((member, i) => {
      // Siblings read like a text; what has lines of its own stands below each other.
      const column = group.siblings ? i % size.columns : Math.floor(i / size.rows);
      const row = group.siblings ? Math.floor(i / size.columns) : i % size.rows;
      boxes.set(nodes[member].key, {
        x: x + PAD + column * (wide + MEMBER_GAP),
        y: y + high + row * (high + MEMBER_GAP),
        wide, high, node: nodes[member], inside: group,
      });
    });
  }
  const all = [...boxes.values()];
  const lines = drawLines(graph, open, boxes, { lefts, layers, top, half: high / 2 });
  const lowest = Math.max(0, ...places.map(([, row]) => top(row) + high));
  return {
    boxes,
    lines,
    wide: Math.max(0, ...all.map((one) => one.x + one.wide)) + margin,
    high: Math.max(lowest, ...all.map((one) => one.y + one.high)) + margin,
  };
}

// Lines between boxes; where both ends show their nodes, between those.
function drawLines({ nodes = [], groups = [], edges = [], links = [] }, open, boxes, grid) {
  const byKey = new Map(groups.map((group) => [group.key, group]));
  const isOpen = (key) => open.has(key);
  const showsNodes = (key) => !byKey.has(key) || (isOpen(key) && !byKey.get(key).siblings);
  const inner = new Map();
  for (const [from, to] of links) {
    const pair = `${nodes[from].box} ${nodes[to].box}`;
    if (!inner.has(pair)) inner.set(pair, []);
    inner.get(pair).push([nodes[from].key, nodes[to].key]);
  }
  return edges.flatMap(({ from, to, route }) => {
    if ((isOpen(from) || isOpen(to)) && showsNodes(from) && showsNodes(to)) {
      const pairs = inner.get(`${from} ${to}`) ?? [];
      return pairs.map(([one, other]) => ({
        from: one, to: other, path: joinBoxes(boxes.get(one), boxes.get(other), grid.half),
      }));
    }
    return [{ from, to, path: followRoute(route, boxes.get(from), grid) }];
  });
}

// A curve from the right of one box to the left of another.
function joinBoxes(from, to, half) {
  const [x, y, toX, toY] = [from.x + from.wide, from.y + half, to.x, to.y + half];
  const bend = Math.max(28, (toX - x) / 2);
  return `M${x} ${y}C${x + bend} ${y} ${toX - bend} ${toY} ${toX} ${toY}`;
}

// A line along its route: curves through the gaps, straight past the boxes of layers between.
function followRoute(route, from, { lefts, layers, top, half }) {
  let y = top(route[0][1]) + half;
  let right = from.x + from.wide;
  let path = `M${right} ${y}`;
  route.slice(1).forEach(([layer, row], i) => {
    const next = top(row) + half;
    const left = lefts[layer];
    const edge = lefts[layer - 1] + layers[layer - 1];
    if (edge > right) path += `L${edge} ${y}`;
    const middle = (edge + left) / 2;
    path += `C${middle} ${y} ${middle} ${next} ${left} ${next}`;
    y = next;
    right = left + layers[layer];
    if (i < route.length - 2) path += `L${right} ${y}`;
    else right = left;
  });
  return path;
}
