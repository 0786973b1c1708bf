"use strict";
// Values under the pointer, for each chart; and everything unfolded on paper.
for (const figure of document.querySelectorAll(".chart")) {
  const picture = figure.querySelector(":scope > svg");
  const cursor = figure.querySelector(".cursor");
  const reading = figure.querySelector(".reading");
  const curves = [...picture.querySelectorAll(".curve")].map((line) => ({
    label: line.dataset.label,
    values: JSON.parse(line.dataset.values),
    times: line.dataset.times.split(" "),
    places: [...line.points].map((point) => point.x),
  }));
  const nearest = (places, x) => {
    let low = 0;
    let high = places.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (places[middle] < x) low = middle;
      else high = middle;
    }
    return x - places[low] < places[high] - x ? low : high;
  };
  picture.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    const filled = curves.filter((curve) => curve.places.length > 0);
    if (filled.length === 0) return;
    const place = nearest(filled[0].places, at.x);
    const x = filled[0].places[place];
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.removeAttribute("hidden");
    const parts = filled.map((curve) => `${curve.label} ${curve.values[nearest(curve.places, x)].toLocaleString("en")}`);
    reading.textContent = `${filled[0].times[place]}  ·  ${parts.join("  ·  ")}  ${figure.dataset.unit}`;
  });
  picture.addEventListener("pointerleave", () => {
    cursor.setAttribute("hidden", "");
    reading.textContent = "\u00a0";
  });
}
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
