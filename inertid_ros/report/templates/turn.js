"use strict";
(function () {
  var place = document.querySelector("[data-turn]");
  var bodies = JSON.parse(document.getElementById("ellipsoid-data").textContent);
  var drawings = place.querySelectorAll("svg"), space = "http://www.w3.org/2000/svg";
  var start = [[0, 0], [90, 0]], low = [1e9, 1e9, 1e9], high = [-1e9, -1e9, -1e9];
  bodies.forEach(function (body) {
    [body.g, body.c].forEach(function (e) {
      if (e) { for (var k = 0; k < 3; k++) {
        var size = Math.hypot(e.a[k][0], e.a[k][1], e.a[k][2]);
        low[k] = Math.min(low[k], e.m[k] - size); high[k] = Math.max(high[k], e.m[k] + size);
      } }
    });
  });
  var middle = low.map(function (v, k) { return (v + high[k]) / 2; });
  var half = 0.54 * Math.max(high[0] - low[0], high[1] - low[1], high[2] - low[2]);
  function views(turn, tilt) {  // rows: right and up of the drawing in the root frame
    var a = turn * Math.PI / 180, b = tilt * Math.PI / 180;
    return [[Math.cos(a), Math.sin(a), 0], [Math.sin(b) * Math.sin(a), -Math.sin(b) * Math.cos(a), Math.cos(b)]];
  }
  function dot(u, v) { return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]; }
  function add(svg, name, attributes) {
    var element = document.createElementNS(space, name);
    Object.keys(attributes).forEach(function (key) { element.setAttribute(key, attributes[key]); });
    svg.appendChild(element);
  }
  function draw(svg, angles) {
    var view = views(angles[0], angles[1]), box = svg.viewBox.baseVal, scale = box.height / (2 * half);
    function at(p) {
      var d = p.map(function (v, k) { return v - middle[k]; });
      return [box.width / 2 + scale * dot(view[0], d), box.height / 2 - scale * dot(view[1], d)];
    }
    function outline(e, factor, style) {
      var p = [0, 0, 0], r = view.map(function (row) {
        return p.map(function (_, j) {
          return factor[j] * (row[0] * e.a[0][j] + row[1] * e.a[1][j] + row[2] * e.a[2][j]);
        });
      });
      var xx = dot(r[0], r[0]), xy = dot(r[0], r[1]), yy = dot(r[1], r[1]);
      var mean = (xx + yy) / 2, off = Math.hypot((xx - yy) / 2, xy), angle = 0.5 * Math.atan2(2 * xy, xx - yy);
      var c = at(e.m);
      add(svg, "ellipse", { rx: scale * Math.sqrt(mean + off), ry: scale * Math.sqrt(Math.max(mean - off, 0)),
        transform: "translate(" + c + ") rotate(" + (-angle * 180 / Math.PI) + ")", style: "fill:none;" + style });
    }
    while (svg.firstChild) { svg.removeChild(svg.firstChild); }
    bodies.forEach(function (body) {
      var from = at(body.p < 0 ? [0, 0, 0] : bodies[body.p].o), to = at(body.o);
      add(svg, "line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1], style: "stroke:var(--faint)" });
    });
    bodies.forEach(function (body) {
      if (body.g) { outline(body.g, [1, 1, 1], "stroke:var(--given);stroke-dasharray:4 2"); }
      if (body.c) {
        outline(body.c, body.i, "stroke:var(--band)");
        outline(body.c, [1, 1, 1], "stroke:var(--calibrated)");
      }
    });
  }
  drawings.forEach(function (svg, index) {
    var angles = start[index % 2].slice(), held = null;
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointerdown", function (e) { held = [e.clientX, e.clientY]; svg.setPointerCapture(e.pointerId); });
    svg.addEventListener("pointerup", function () { held = null; });
    function turned(dx, dy) {
      angles[0] -= dx; angles[1] = Math.max(-90, Math.min(90, angles[1] + dy)); draw(svg, angles);
    }
    svg.addEventListener("pointermove", function (e) {
      if (held) { turned((e.clientX - held[0]) / 2, (e.clientY - held[1]) / 2); held = [e.clientX, e.clientY]; }
    });
    svg.addEventListener("keydown", function (e) {
      var step = { ArrowLeft: [-10, 0], ArrowRight: [10, 0], ArrowUp: [0, -10], ArrowDown: [0, 10] }[e.key];
      if (step) { turned(step[0], step[1]); e.preventDefault(); }
    });
  });
  place.querySelector(".turning").style.display = "block";
}());
