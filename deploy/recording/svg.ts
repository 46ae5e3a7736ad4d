import { escapeHtml } from "../../common/text/html.ts";

/** A command of a recording with what it showed. */
export interface Recorded {
  readonly command: string;
  readonly output: string;
}

const LINE_HEIGHT = 19;
const CHARACTER_WIDTH = 8.05;
const MARGIN = 22;
/** Height of the bar above the text. */
const BAR = 34;
/** Pause before a command, and from a command to its output. */
const COMMAND_S = 1.6;
const OUTPUT_S = 0.7;

/**
 * A picture of a terminal whose lines appear one command after another. Readers who want no motion see all lines at
 * once.
 */
export function recordingSvg(recorded: readonly Recorded[], columns: number): string {
  const lines = linesOf(recorded, columns);
  const width = Math.ceil(columns * CHARACTER_WIDTH) + 2 * MARGIN;
  const height = BAR + lines.length * LINE_HEIGHT + MARGIN;
  const texts = lines.map(({ text, kind, atS }, at) =>
    text === ""
      ? ""
      : `<text class="${kind}" style="animation-delay:${atS.toFixed(1)}s" x="${MARGIN}" y="${BAR + (at + 1) * LINE_HEIGHT - 5}">${escapeHtml(text)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(`A terminal with the commands ${recorded.map(({ command }) => command).join("; ")}`)}">
<style>
text{font:13.4px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;white-space:pre;opacity:0;animation:shown .2s forwards}
.command{fill:#9cd67d;font-weight:600}
.output{fill:#d5dee7}
@keyframes shown{to{opacity:1}}
@media (prefers-reduced-motion:reduce){text{opacity:1;animation:none}}
</style>
<rect width="${width}" height="${height}" rx="12" fill="#17212b"/>
<circle cx="24" cy="18" r="5.5" fill="#ee6a5f"/><circle cx="43" cy="18" r="5.5" fill="#f5bd4f"/><circle cx="62" cy="18" r="5.5" fill="#61c454"/>
${texts.filter((text) => text !== "").join("\n")}
</svg>
`;
}

interface Line {
  readonly text: string;
  readonly kind: "command" | "output";
  /** Time from the beginning at which the line appears. */
  readonly atS: number;
}

function linesOf(recorded: readonly Recorded[], columns: number): readonly Line[] {
  return recorded.flatMap(({ command, output }, nth): readonly Line[] => {
    const atS = nth * (COMMAND_S + OUTPUT_S);
    const shown = output.replaceAll("\r", "").replace(/\n+$/, "").split("\n");
    return [
      ...wrapped(`$ ${command}`, columns).map((text): Line => ({ text, kind: "command", atS })),
      ...shown
        .flatMap((line) => wrapped(line, columns))
        .map((text): Line => ({ text, kind: "output", atS: atS + OUTPUT_S })),
      { text: "", kind: "output", atS },
    ];
  });
}

function wrapped(text: string, columns: number): readonly string[] {
  const parts = text.match(new RegExp(`.{1,${columns}}`, "gu"));
  return parts ?? [""];
}
