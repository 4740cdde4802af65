/** Changes of the markup that make tables of facts readable. */

/** The number of characters from which a cell has sentences, and needs a wide column. */
const LONG_CELL = 60;

/** Changes a renderer of markdown-it. */
export function layOut(md) {
  breakNames(md);
  widenCells(md);
}

/** Lets long names of code, such as those of tests, break after their separators. */
function breakNames(md) {
  const render = md.renderer.rules.code_inline;
  md.renderer.rules.code_inline = (...args) =>
    render(...args).replace(/>([^<]+)</, (_, name) => `>${name.replace(/(::|[/_-])(?=\w)/g, "$1<wbr>")}<`);
}

/** Gives cells with sentences the class `long`. */
function widenCells(md) {
  md.renderer.rules.td_open = (tokens, index, options, _env, self) => {
    if (tokens[index + 1].content.length > LONG_CELL) tokens[index].attrJoin("class", "long");
    return self.renderToken(tokens, index, options);
  };
}
