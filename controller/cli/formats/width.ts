/** Characters that take two columns: East Asian wide and full-width ones, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|[\u{17000}-\u{18cff}\u{1b000}-\u{1b2ff}\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;
const ASCII = /^[\x20-\x7e]*$/;
/** Signs that are drawn over others. */
const NO_COLUMN = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

let segmenter: Intl.Segmenter | undefined;

/** The segmenter is made at its first use, which takes longer than the rest of a table of ASCII. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** Columns of a terminal that a text without control characters takes. */
export function columnsOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of graphemesOf(text)) columns += columnsOfOne(segment);
  return columns;
}

/** The text in at most `max` columns: a longer one ends with an ellipsis. Only its beginning is looked at. */
export function cutTo(text: string, max: number): string {
  // A sign has one UTF-16 unit at least, and marks of the longest known ones a few more.
  const beginning = text.length > max * 16 ? text.slice(0, max * 16) : text;
  if (beginning === text && columnsOf(text) <= max) return text;
  if (ASCII.test(beginning)) return `${beginning.slice(0, Math.max(0, max - 1))}…`;
  let [shown, columns] = ["", 0];
  for (const { segment } of graphemesOf(beginning)) {
    const more = columnsOfOne(segment);
    if (columns + more > max - 1) break;
    shown += segment;
    columns += more;
  }
  return `${shown}…`;
}

/** The text with blanks behind it, up to `columns`. */
export function padTo(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - columnsOf(text)));
}

function columnsOfOne(grapheme: string): number {
  if (NO_COLUMN.test(grapheme)) return 0;
  return WIDE.test(grapheme) ? 2 : 1;
}
