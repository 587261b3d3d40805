"use strict";
// Shows values under the pointer and zooms by dragging, or by the keys of `press`. Without this script the page shows the static drawings.
(() => {
  const drawing = document.querySelector("svg");
  if (!drawing) return;
  const LEFT = 54, RIGHT = 18, TOP = 26, BOTTOM = 40, BETWEEN = 34, MIN_DRAG = 6;
  const cursors = [];

  function make(tag, attributes, parent, text) {
    const element = document.createElementNS(drawing.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);

  function showTip(event, title, rows) {
    tip.replaceChildren();
    const head = document.createElement("b");
    head.textContent = title;
    tip.append(head);
    for (const [colour, name, value] of rows) {
      const row = document.createElement("div");
      if (colour) {
        const patch = document.createElement("i");
        patch.style.background = colour;
        row.append(patch);
      }
      row.append(name + ": " + value);
      tip.append(row);
    }
    tip.hidden = false;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    const right = event.clientX + 16 + width < window.innerWidth;
    tip.style.left = Math.max(4, right ? event.clientX + 16 : event.clientX - 16 - width) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 12, window.innerHeight - height - 4)) + "px";
  }

  function hideTip() {
    tip.hidden = true;
    for (const follow of cursors) follow(null);
  }

  // A number of four digits and at most four decimals: nothing is known better, as simbridge/text.py has it.
  function written(value) {
    if (Math.abs(value) < 1e-9) return "0";
    if (Math.abs(value) < 1e-4) return value > 0 ? "<0.0001" : "0";
    return String(Number(Number(value.toPrecision(4)).toFixed(4))).replace("-", "\u2212");
  }

  function nearest(times, t) {
    let low = 0, high = times.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] < t) low = middle; else high = middle;
    }
    return Math.abs(times[low] - t) <= Math.abs(times[high] - t) ? low : high;
  }

  function roundSteps(low, high, most) {
    const raw = (high - low) / most, decade = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * decade).find((s) => s >= raw * 0.999);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
    const places = Math.max(0, -Math.floor(Math.log10(step)) + (String(step / decade).includes(".") ? 1 : 0));
    return ticks.map((tick) => [tick, tick.toFixed(Math.min(places, 9)).replace("-", "\u2212")]);
  }

  function decades(low, high) {
    const ticks = [];
    for (let d = Math.ceil(Math.log10(low) - 1e-9); d <= Math.log10(high) + 1e-9; d++) {
      const power = [...String(d)].map((c) => "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"["-0123456789".indexOf(c)]);
      ticks.push([10 ** d, d >= -3 && d <= 3 ? String(Number((10 ** d).toPrecision(3))) : "10" + power.join("")]);
    }
    // A zoomed view may hold no whole decade.
    return ticks.length > 1 ? ticks : roundSteps(low, high, 4).filter(([tick]) => tick > 0);
  }

  // The range of a panel: the whole one, or that of its lines within an interval.
  function rangeOf(panel, begin, end, whole) {
    if (whole) return [panel.low, panel.high];
    let low = Infinity, high = -Infinity;
    for (const line of panel.lines) {
      line.t.forEach((t, k) => {
        if (t >= begin && t <= end && line.y[k] !== null) {
          low = Math.min(low, line.y[k]);
          high = Math.max(high, line.y[k]);
        }
      });
    }
    if (!(low <= high)) return [panel.low, panel.high];
    if (panel.log) return [low / 1.3, high * 1.3];
    const margin = 0.08 * (high - low) || 0.01 * (Math.abs(high) || 1);
    return [low - margin, high + margin];
  }

  class Chart {
    constructor(holder, number) {
      this.data = JSON.parse(holder.dataset.chart);
      this.name = "clip" + number;
      this.label = holder.querySelector("svg").getAttribute("aria-label").replace(/\.$/, "");
      // A view of fewer than five samples shows nothing.
      const samples = this.data.panels.flatMap((panel) => panel.lines.map((line) => line.t.length));
      this.shortest = 5 * (this.data.end - this.data.begin) / Math.max(2, ...samples);
      this.canvas = document.createElement("div");
      this.canvas.className = "canvas";
      holder.append(this.canvas);
      holder.classList.add("live");
      this.whole();
      new ResizeObserver(() => this.draw()).observe(this.canvas);
      const at = (event) => this.timeAt(event.clientX - this.canvas.getBoundingClientRect().left);
      this.canvas.addEventListener("pointerdown", (event) => {
        this.from = [event.clientX, at(event)];
        event.preventDefault();
      });
      this.canvas.addEventListener("pointermove", (event) => {
        this.showValues(event, at(event));
        if (this.from) this.select(this.from[1], at(event));
      });
      this.canvas.addEventListener("pointerup", (event) => {
        if (this.from && Math.abs(event.clientX - this.from[0]) > MIN_DRAG) this.zoom(this.from[1], at(event));
        this.from = null;
      });
      this.canvas.addEventListener("pointerleave", () => {
        hideTip();
        this.from = null;
        if (this.selection) this.selection.setAttribute("width", 0);
      });
      this.canvas.addEventListener("dblclick", () => {
        this.whole();
        this.draw();
      });
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "group");
      this.canvas.setAttribute("aria-label", this.label + ". Left and right arrow keys show values, + and - zoom.");
      this.canvas.addEventListener("keydown", (event) => this.press(event));
      this.canvas.addEventListener("blur", hideTip);
      cursors.push((t) => this.follow(t));
    }

    // Arrow keys move the cursor by a hundredth of what is seen; + zooms in on it, - shows all; Escape hides the values.
    press(event) {
      if (event.key === "Escape") hideTip();
      const span = this.end - this.begin, { begin, end } = this.data;
      const from = this.at >= this.begin && this.at <= this.end ? this.at : this.begin + span / 2;
      const step = { ArrowLeft: -0.01, ArrowRight: 0.01, "+": 0, "-": 0 }[event.key];
      if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.at = Math.min(this.end, Math.max(this.begin, from + step * span));
      if (event.key === "+") this.zoom(Math.max(begin, this.at - span / 4), Math.min(end, this.at + span / 4));
      if (event.key === "-") {
        this.whole();
        this.draw();
      }
      const box = this.canvas.getBoundingClientRect();
      this.showValues({ clientX: box.left + this.across(this.at), clientY: box.top + TOP }, this.at);
    }

    whole() {
      [this.begin, this.end, this.zoomed] = [this.data.begin, this.data.end, false];
    }

    zoom(one, other) {
      if (Math.abs(one - other) < this.shortest) return;
      [this.begin, this.end, this.zoomed] = [Math.min(one, other), Math.max(one, other), true];
      this.draw();
    }

    timeAt(x) {
      const part = (x - LEFT) / (this.width - LEFT - RIGHT);
      return this.begin + Math.min(1, Math.max(0, part)) * (this.end - this.begin);
    }

    across(t) {
      return LEFT + (t - this.begin) / (this.end - this.begin) * (this.width - LEFT - RIGHT);
    }

    draw() {
      this.width = this.canvas.clientWidth;
      if (this.width < LEFT + RIGHT + 40) return;
      const { panels, height, bands } = this.data, inner = this.width - LEFT - RIGHT;
      const svg = make("svg", { width: this.width, height: height, class: "figure", role: "img" });
      svg.setAttribute("aria-label", this.label);
      const each = (height - TOP - BOTTOM - BETWEEN * (panels.length - 1)) / panels.length;
      const times = roundSteps(this.begin, this.end, Math.max(3, this.width / 110));
      panels.forEach((panel, number) => {
        const top = TOP + number * (each + BETWEEN), bottom = top + each;
        const [low, high] = rangeOf(panel, this.begin, this.end, !this.zoomed);
        const scale = panel.log ? Math.log10 : (v) => v;
        const up = (v) => bottom - (scale(v) - scale(low)) / (scale(high) - scale(low)) * each;
        const clip = make("clipPath", { id: this.name + "-" + number }, svg);
        make("rect", { x: LEFT, y: top - 1, width: inner, height: each + 2 }, clip);
        for (const [t] of times) make("line", { x1: this.across(t), x2: this.across(t), y1: top, y2: bottom, class: "grid" }, svg);
        for (const [value, text] of panel.log ? decades(low, high) : roundSteps(low, high, 4)) {
          make("line", { x1: LEFT, x2: LEFT + inner, y1: up(value), y2: up(value), class: "grid" }, svg);
          make("text", { x: LEFT - 6, y: up(value) + 4, "text-anchor": "end" }, svg, text);
        }
        make("text", { x: LEFT, y: top - 8 }, svg, panel.title);
        make("text", { x: LEFT + inner, y: top - 8, "text-anchor": "end" }, svg, panel.remark);
        const inside = make("g", { "clip-path": "url(#" + this.name + "-" + number + ")" }, svg);
        for (const [from, to] of bands) {
          make("rect", { x: this.across(from), y: top, width: Math.max(1, this.across(to) - this.across(from)), height: each, class: "band" }, inside);
        }
        for (const limit of panel.limits) make("line", { x1: LEFT, x2: LEFT + inner, y1: up(limit), y2: up(limit), class: "limit" }, inside);
        for (const line of panel.lines) this.drawLine(line, up, inside);
        for (const [where, t, value] of this.data.marks) {
          if (where === number && t >= this.begin && t <= this.end) make("text", { x: this.across(t), y: up(value) + 5, class: "mark" }, svg, "\u2716");
        }
        make("path", { d: `M${LEFT} ${top}V${bottom}H${LEFT + inner}`, class: "spine" }, svg);
      });
      for (const [t, text] of times) {
        if (this.across(t) > this.width - 8) continue;
        make("text", { x: this.across(t), y: height - BOTTOM + 17, "text-anchor": "middle" }, svg, text);
      }
      make("text", { x: LEFT + inner / 2, y: height - 5, "text-anchor": "middle" }, svg, this.data.axis);
      this.selection = make("rect", { y: TOP, width: 0, height: height - TOP - BOTTOM, class: "selection" }, svg);
      this.cursor = make("line", { y1: TOP, y2: height - BOTTOM, class: "cursor", visibility: "hidden" }, svg);
      this.canvas.replaceChildren(svg);
    }

    drawLine(line, up, parent) {
      let path = "", pen = false, previous = -1;
      // One sample beyond either edge, so that the line reaches it.
      const first = Math.max(0, nearest(line.t, this.begin) - 1), last = Math.min(line.t.length - 1, nearest(line.t, this.end) + 1);
      for (let k = first; k <= last; k++) {
        const value = line.y[k];
        if (value === null) {
          pen = false;
          continue;
        }
        const lone = !pen && (k === last || line.y[k + 1] === null);
        path += (pen ? "L" : "M") + this.across(line.t[k]).toFixed(2) + " " + up(value).toFixed(2) + (lone ? "h.01" : "");
        pen = true;
      }
      const style = { d: path, fill: "none", stroke: line.colour, "stroke-width": line.width, "stroke-linecap": line.dash ? "butt" : "round" };
      if (line.dash) style["stroke-dasharray"] = line.dash;
      if (path) make("path", style, parent);
    }

    select(one, other) {
      this.selection.setAttribute("x", this.across(Math.min(one, other)));
      this.selection.setAttribute("width", Math.abs(this.across(one) - this.across(other)));
    }

    showValues(event, t) {
      const rows = [];
      for (const panel of this.data.panels) {
        for (const line of panel.lines) {
          const k = line.t.length ? nearest(line.t, t) : -1;
          if (k < 0 || line.y[k] === null) continue;
          rows.push([line.colour, panel.lines.length > 1 || this.data.panels.length > 1 ? line.name : panel.title, written(line.y[k]) + panel.unit]);
        }
      }
      showTip(event, t.toFixed(3) + " s", rows);
      for (const follow of cursors) follow(t);
    }

    follow(t) {
      if (!this.cursor) return;
      const seen = t !== null && t >= this.begin && t <= this.end;
      this.cursor.setAttribute("visibility", seen ? "visible" : "hidden");
      if (!seen) return;
      this.cursor.setAttribute("x1", this.across(t));
      this.cursor.setAttribute("x2", this.across(t));
    }
  }

  class Path {
    constructor(holder) {
      this.data = JSON.parse(holder.dataset.map);
      this.svg = holder.querySelector("svg");
      this.box = this.svg.getAttribute("viewBox");
      this.size = this.box.split(" ").slice(2).map(Number);
      this.dot = make("circle", { r: 6, class: "here", visibility: "hidden" }, this.svg);
      this.selection = make("rect", { width: 0, height: 0, class: "selection" }, this.svg);
      this.svg.addEventListener("pointerdown", (event) => {
        this.from = this.place(event);
        event.preventDefault();
      });
      this.svg.addEventListener("pointermove", (event) => this.move(event));
      this.svg.addEventListener("pointerup", (event) => this.zoom(event));
      this.svg.addEventListener("pointerleave", () => {
        this.from = null;
        this.selection.setAttribute("width", 0);
        hideTip();
      });
      this.svg.addEventListener("dblclick", () => this.svg.setAttribute("viewBox", this.box));
      cursors.push((t) => this.show(t === null ? -1 : nearest(this.data.t, t)));
    }

    place(event) {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      return [point.x, point.y];
    }

    show(k) {
      this.dot.setAttribute("visibility", k < 0 ? "hidden" : "visible");
      if (k < 0) return;
      const scale = this.svg.viewBox.baseVal.width / this.size[0];
      this.dot.setAttribute("r", 6 * scale);
      this.dot.setAttribute("stroke-width", 2 * scale);
      this.dot.setAttribute("cx", this.data.x[k]);
      this.dot.setAttribute("cy", this.data.y[k]);
    }

    move(event) {
      const [x, y] = this.place(event), { data } = this;
      if (this.from) {
        const [left, top] = [Math.min(x, this.from[0]), Math.min(y, this.from[1])];
        const box = { x: left, y: top, width: Math.abs(x - this.from[0]), height: Math.abs(y - this.from[1]) };
        for (const [name, value] of Object.entries(box)) this.selection.setAttribute(name, value);
      }
      let best = -1, least = Infinity;
      for (let k = 0; k < data.x.length; k++) {
        const distance = (data.x[k] - x) ** 2 + (data.y[k] - y) ** 2;
        if (distance < least) [best, least] = [k, distance];
      }
      if (best < 0) return;
      for (const follow of cursors) follow(data.t[best]);
      this.show(best);
      showTip(event, data.t[best].toFixed(3) + " s", data.columns.map(({ name, values }) => {
        const [title, unit] = name.split("|");
        return ["", title, written(values[best]) + unit];
      }));
    }

    zoom(event) {
      const from = this.from, [x, y] = this.place(event);
      this.from = null;
      this.selection.setAttribute("width", 0);
      if (!from) return;
      const scale = this.svg.viewBox.baseVal.width / this.size[0];
      const [width, height] = [Math.abs(x - from[0]), Math.abs(y - from[1])];
      if (Math.max(width, height) < MIN_DRAG * scale) return;
      const share = Math.max(width / this.size[0], height / this.size[1], 1e-3);
      const [w, h] = this.size.map((side) => side * share);
      this.svg.setAttribute("viewBox", [(x + from[0] - w) / 2, (y + from[1] - h) / 2, w, h].join(" "));
    }
  }

  document.querySelectorAll("[data-chart]").forEach((holder, number) => new Chart(holder, number));
  document.querySelectorAll("[data-map]").forEach((holder) => new Path(holder));
  document.body.classList.add("interactive");
})();
