// The part of a drawing that is seen: zoomed by keys, buttons and Ctrl + wheel, moved by dragging,
// and an overview of all of it where a part is hidden.
const MAX_SCALE = 2.5;
const READABLE_SCALE = 0.5; // below it, a drawing opens with a part of it rather than all
const MIN_HEIGHT = 72;
const MIN_MAPPED_HEIGHT = 150; // with room for the overview below a line of boxes
const MAX_HEIGHT = 480;
const MAP_SIZE = [168, 104];

class Viewport {
  constructor(frame, svg, map) {
    Object.assign(this, { frame, svg, map, x: 0, y: 0, scale: 1, content: [0, 0] });
    this.isFitted = true; // until a person zooms or moves: then a new size does not undo that
    this.boxes = [];
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(frame);
    svg.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.drag(svg, (event) => !event.target.closest("[data-key]"), (dx, dy) => {
      this.moveBy(-dx / this.scale, -dy / this.scale);
    });
    this.drag(map, (event) => (this.centreOn(...this.fromMap(event)), true), (_dx, _dy, event) => {
      this.centreOn(...this.fromMap(event));
    });
  }

  get wide() { return this.frame.clientWidth || 800; }
  get high() { return this.frame.clientHeight || MAX_HEIGHT; }

  // Show a drawing of a size; its first one as large as it can be read.
  setContent(wide, high, boxes) {
    this.content = [wide, high];
    this.boxes = boxes;
    if (this.isFitted) this.open();
    else this.apply();
  }

  resize() {
    if (this.isFitted) this.open();
    else this.apply();
  }

  // All of it, unless that were too small to read: then its beginning.
  open() {
    const [wide, high] = this.content;
    if (!wide || !high) return;
    const across = Math.max(Math.min(1, this.wide / wide), READABLE_SCALE);
    if (!this.frame.style.height || this.isOurHeight()) {
      const least = wide * across > this.wide ? MIN_MAPPED_HEIGHT : MIN_HEIGHT;
      this.ownHeight = `${Math.ceil(Math.min(MAX_HEIGHT, Math.max(least, high * across)))}px`;
      this.frame.style.height = this.ownHeight;
    }
    this.scale = Math.max(Math.min(1, this.wide / wide, this.high / high), READABLE_SCALE);
    this.x = Math.min(0, (wide - this.wide / this.scale) / 2);
    this.y = Math.min(0, (high - this.high / this.scale) / 2);
    this.apply();
  }

  isOurHeight() { return this.frame.style.height === this.ownHeight; }

  fit() {
    const [wide, high] = this.content;
    this.scale = Math.min(1, this.wide / wide, this.high / high);
    this.x = (wide - this.wide / this.scale) / 2;
    this.y = (high - this.high / this.scale) / 2;
    this.isFitted = true;
    this.apply();
  }

  zoomBy(factor, [x, y] = [this.x + this.wide / this.scale / 2, this.y + this.high / this.scale / 2]) {
    const least = Math.min(0.2, this.wide / this.content[0], this.high / this.content[1]);
    const scale = Math.min(MAX_SCALE, Math.max(least, this.scale * factor));
    this.x = x - ((x - this.x) * this.scale) / scale;
    this.y = y - ((y - this.y) * this.scale) / scale;
    this.scale = scale;
    this.isFitted = false;
    this.apply();
  }

  moveBy(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.isFitted = false;
    this.apply();
  }

  centreOn(x, y) {
    this.moveBy(x - this.wide / this.scale / 2 - this.x, y - this.high / this.scale / 2 - this.y);
  }

  // Move as little as shows a box, and what is around it.
  reveal({ x, y, wide, high }) {
    const [seenWide, seenHigh] = [this.wide / this.scale, this.high / this.scale];
    const shift = (start, size, at, seen) => {
      const room = Math.min(24, Math.max(0, (seen - size) / 2));
      if (start - room < at) return start - room - at;
      return Math.max(0, Math.min(start + size + room - at - seen, start - room - at));
    };
    const [dx, dy] = [shift(x, wide, this.x, seenWide), shift(y, high, this.y, seenHigh)];
    if (dx || dy) this.moveBy(dx, dy);
  }

  onWheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const { left, top } = this.svg.getBoundingClientRect();
    const at = [
      this.x + (event.clientX - left) / this.scale,
      this.y + (event.clientY - top) / this.scale,
    ];
    this.zoomBy(Math.exp(-event.deltaY / 300), at);
  }

  drag(target, starts, move) {
    let last = null;
    target.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !starts(event)) return;
      last = [event.clientX, event.clientY];
      target.setPointerCapture(event.pointerId);
    });
    target.addEventListener("pointermove", (event) => {
      if (!last) return;
      move(event.clientX - last[0], event.clientY - last[1], event);
      last = [event.clientX, event.clientY];
    });
    for (const name of ["pointerup", "pointercancel"]) {
      target.addEventListener(name, () => (last = null));
    }
  }

  apply() {
    const [wide, high] = [this.wide / this.scale, this.high / this.scale];
    this.svg.setAttribute("viewBox", `${this.x} ${this.y} ${wide} ${high}`);
    this.svg.dataset.far = this.scale < 0.3 ? "all" : this.scale < 0.55 ? "some" : "";
    const [fullWide, fullHigh] = this.content;
    const isHidden =
      this.x > 1 || this.y > 1 || this.x + wide < fullWide - 1 || this.y + high < fullHigh - 1;
    this.map.hidden = !isHidden;
    this.drawMap();
  }

  mapScale() { return Math.min(MAP_SIZE[0] / this.content[0], MAP_SIZE[1] / this.content[1]); }

  fromMap(event) {
    const { left, top } = this.map.getBoundingClientRect();
    return [(event.clientX - left) / this.mapScale(), (event.clientY - top) / this.mapScale()];
  }

  // Draw the overview at the next frame, once for however many changes.
  drawMap() {
    if (this.map.hidden || this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.paintMap();
    });
  }

  paintMap() {
    const scale = this.mapScale();
    const [wide, high] = this.content.map((side) => Math.max(8, Math.ceil(side * scale)));
    const sharp = window.devicePixelRatio || 1;
    Object.assign(this.map, { width: wide * sharp, height: high * sharp });
    Object.assign(this.map.style, { width: `${wide}px`, height: `${high}px` });
    const ink = this.map.getContext("2d");
    ink.scale(sharp * scale, sharp * scale);
    for (const { x, y, wide: width, high: height, element, open } of this.boxes) {
      if (open) continue; // its members are drawn
      ink.fillStyle = getStateColour(element);
      ink.fillRect(x, y, Math.max(width, 1.5 / scale), Math.max(height, 1.5 / scale));
    }
    ink.lineWidth = 1.5 / scale;
    ink.strokeStyle = getComputedStyle(this.map).color;
    ink.strokeRect(this.x, this.y, this.wide / this.scale, this.high / this.scale);
  }

  close() { this.watch.disconnect(); }
}
const STATE_COLOURS = {
  pending: "#a9b0bb", queued: "#5a77b8", running: "#e0a000", completed: "#2f8f4a",
  failed: "#d0352b", cancelled: "#808080",
};

function getStateColour(element) {
  return STATE_COLOURS[element.dataset.status] ?? STATE_COLOURS.pending;
}
