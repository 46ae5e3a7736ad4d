import type { Writable } from "node:stream";

/** Names of the pino levels shown on the terminal. */
const LEVELS: Readonly<Record<number, string>> = { 40: "warning", 50: "error", 60: "fatal" };

const OF_EVERY_LINE = new Set(["time", "pid", "hostname"]);

/** A pino stream that prints one readable line per entry. The log file has the whole entry as JSON. */
export function terminalLog(out: Pick<Writable, "write">): { write(line: string): void } {
  return {
    write(line) {
      const { level, msg, err, ...rest } = JSON.parse(line) as Record<string, unknown>;
      const reason = typeof err === "object" && err !== null && "message" in err ? `: ${String(err.message)}` : "";
      const facts = Object.entries(rest)
        .filter(([name]) => !OF_EVERY_LINE.has(name))
        .map(([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
      out.write(`${LEVELS[Number(level)] ?? "note"}: ${String(msg)}${reason}${facts.join("")}\n`);
    },
  };
}
