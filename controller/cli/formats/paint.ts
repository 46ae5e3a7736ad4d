/** Colours of a terminal. */
export interface Paint {
  readonly heading: (text: string) => string;
  /** Known states get a colour. */
  readonly value: (text: string) => string;
  readonly error: (text: string) => string;
}

const same = (text: string): string => text;

/** No colours. */
export const PLAIN: Paint = { heading: same, value: same, error: same };

const GOOD: ReadonlySet<string> = new Set(["ok", "online", "running", "deployed"]);
const BAD: ReadonlySet<string> = new Set(["failed", "offline", "timeout", "unreachable", "expired", "interrupted"]);

const inColour =
  (code: number) =>
  (text: string): string =>
    text === "" ? "" : `\u001b[${code}m${text}\u001b[0m`;

const COLOURED: Paint = {
  heading: inColour(1),
  error: inColour(31),
  value(text) {
    if (GOOD.has(text)) return inColour(32)(text);
    return BAD.has(text) ? inColour(31)(text) : text;
  },
};

/** Colours only on a terminal that has them, and never if `NO_COLOR` is set (https://no-color.org). */
export function paintFor(
  { isTTY = false }: { readonly isTTY?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>>,
): Paint {
  const isRefused = (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  return isTTY && !isRefused ? COLOURED : PLAIN;
}
