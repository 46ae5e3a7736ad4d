import { randomBytes } from "node:crypto";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { isatty } from "node:tty";
import { setFlagsFromString } from "node:v8";
import { closeInherited } from "../common/descriptors.ts";
import { errorText, isAppError } from "../common/errors.ts";
import { outliveOutput } from "../common/outputs.ts";
import { REGEXP_V8_FLAGS } from "../common/regex/pattern.ts";
import type { Clock, Random } from "../common/time.ts";
import { runAgent } from "./agent.ts";
import { readConfig } from "./config.ts";
import { createLog } from "./log.ts";

const VERSION = "0.1.0";

// Close inherited file descriptors; otherwise commands would inherit them too.
closeInherited({ closeSync, readdirSync, readFileSync });

const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
const random: Random = { next: () => Math.random(), bytes: (count) => randomBytes(count) };
const log = createLog(clock, (line) => process.stdout.write(line));

outliveOutput(process, { isatty, closeSync, openSync });
for (const flag of REGEXP_V8_FLAGS) setFlagsFromString(flag);
// A controller that is known only by an IP address causes a deprecation warning, which is of no use here.
process.noDeprecation = true;
const ending = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => ending.abort());
// The other timers do not keep the process alive, so this one does until the work has ended.
const alive = setInterval(() => undefined, 3_600_000);

try {
  // Commands get the environment without the agent's own variables.
  const environment = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("ODP_AGENT_")),
  );
  await runAgent(
    readConfig(process.argv.slice(2), process.env),
    { clock, random, log, environment, version: VERSION },
    ending.signal,
  );
} catch (error) {
  log("error", isAppError(error) ? error.message : "the agent failed", {
    code: isAppError(error) ? error.code : "internal",
    error: errorText(error),
  });
  process.exitCode = 1;
} finally {
  clearInterval(alive);
}
