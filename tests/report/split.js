// Words that stand on two lines, for the body of a function.
const split = [], range = document.createRange();
const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode;
  if (node.parentElement.closest("svg, pre, code, script")) continue;
  for (const word of node.textContent.matchAll(/[A-Za-z]{2,16}/g)) {
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
    if (lines.size > 1) split.push(word[0]);
  }
}
return split;
