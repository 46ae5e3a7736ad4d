import { pino } from "pino";
import { expect, it } from "vitest";
import { terminalLog } from "./terminal.ts";

it("shows one readable line, with the reason and the facts", () => {
  const lines: string[] = [];
  const log = pino({ base: { pid: 1, hostname: "h" } }, terminalLog({ write: (line: string) => lines.push(line) > 0 }));
  log.warn({ err: new Error("no route"), host: "web-1", attempt: 2 }, "the host does not answer");
  log.error("it is over");
  expect(lines).toEqual(["warning: the host does not answer: no route host=web-1 attempt=2\n", "error: it is over\n"]);
});
