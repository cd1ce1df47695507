// Texts whose contrast with what lies behind them is below 4.5, for the body of a function.
const luminance = (colour) => {
  const v = colour.map((x) => x / 255).map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
};
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const painted = (...layers) => {
  canvas.clearRect(0, 0, 1, 1);
  for (const [colour, alpha] of layers) {
    canvas.globalAlpha = alpha;
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
  }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const bad = [];
for (const element of document.querySelectorAll("main *, header *, footer")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || !element.getClientRects().length) continue;
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.unshift([getComputedStyle(at).backgroundColor, 1]);
  if (element.matches("svg .figure")) { // a number on a coloured cell
    let before = element.previousElementSibling;
    while (before.localName === "text") before = before.previousElementSibling;
    const cell = getComputedStyle(before);
    layers.push([cell.fill, Number(cell.fillOpacity)]);
  }
  const style = getComputedStyle(element);
  const ink = element.closest("svg") ? style.fill : style.color;
  const [a, b] = [luminance(painted(...layers)), luminance(painted(...layers, [ink, 1]))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) bad.push([element.getAttribute("class"), element.textContent.slice(0, 30), ratio.toFixed(2)]);
}
return bad;
