import type { Exec, ExecOptions, ExecResult } from "../../agent/commands/exec.ts";
import { wait } from "../../common/time.ts";
import type { Ledger } from "./ledger.ts";
import type { Process } from "./process.ts";

/** A command line: a name, then its behaviour as `key=number`. */
interface Script {
  readonly name: string;
  /** Total duration. */
  readonly ms: number;
  readonly lines: number;
  readonly code: number;
  /** Runs forever: interval between lines in ms. */
  readonly every: number;
}

const CANCELLED: ExecResult = { ended: "cancelled", code: 143, message: "ended by SIGTERM" };

/** Programs that take simulated time and print unique lines. */
export function simulatedExec({
  host,
  process,
  ledger,
}: {
  readonly host: string;
  readonly process: Process;
  readonly ledger: Ledger;
}): Exec {
  return async (options) => {
    // Runs of a repeated schedule are distinguished by their run id.
    const script = parse(options.line.replace("$ODP_RUN_ID", options.env?.ODP_RUN_ID ?? ""));
    const isJob = options.env?.ODP_POLICY === undefined;
    if (options.signal?.aborted) return { ...CANCELLED, message: "cancelled before it began" };
    if (isJob) ledger.begin(host, script.name);
    const ending = endingOf(options, process);
    const say = isJob
      ? (text: string) => options.onOutput?.(Buffer.from(text), false)
      : (text: string) => tell(options, ledger, text);
    const next = isJob ? (at: number) => `${script.name}#${at}\n` : () => `${ledger.line(host, script.name)}\n`;
    await print({ script, ending, process, say, next });
    ending.stop();
    if (ending.reason === "cancelled") return CANCELLED;
    if (ending.reason === "timeout") return { ended: "timeout", code: 143, message: "ended by SIGTERM" };
    if (isJob)
      ledger.wrote.set(
        `${host}/${script.name}`,
        Array.from({ length: script.lines }, (_, at) => `${script.name}#${at}\n`).join(""),
      );
    return { ended: "exit", code: script.code, message: script.code === 0 ? "" : `ended with code ${script.code}` };
  };
}

async function tell(options: ExecOptions, ledger: Ledger, text: string): Promise<void> {
  await options.onOutput?.(Buffer.from(text), false);
  ledger.taken.add(text.trim());
}

interface Printing {
  readonly script: Script;
  readonly ending: Ending;
  readonly process: Process;
  readonly say: (text: string) => void | Promise<void> | undefined;
  readonly next: (at: number) => string;
}

async function print({ script, ending, process, say, next }: Printing): Promise<void> {
  const stepMs = script.every > 0 ? script.every : script.ms / (script.lines + 1);
  for (let at = 0; !ending.signal.aborted && (script.every > 0 || at < script.lines); at++) {
    await wait(process.clock, stepMs, ending.signal);
    if (ending.signal.aborted) return;
    try {
      await say(next(at));
    } catch {
      // The reader gave up; the output of a program that has to end is lost.
    }
  }
  await wait(process.clock, stepMs, ending.signal);
}

interface Ending {
  readonly signal: AbortSignal;
  reason: "cancelled" | "timeout" | undefined;
  stop(): void;
}

function endingOf({ signal, timeoutMs }: ExecOptions, process: Process): Ending {
  const abort = new AbortController();
  const end = (reason: "cancelled" | "timeout"): void => {
    ending.reason ??= reason;
    abort.abort();
  };
  const cancel = (): void => end("cancelled");
  signal?.addEventListener("abort", cancel, { once: true });
  const stopTimer = timeoutMs === undefined ? () => undefined : process.clock.after(timeoutMs, () => end("timeout"));
  const ending: Ending = {
    signal: abort.signal,
    reason: undefined,
    stop: () => {
      stopTimer();
      signal?.removeEventListener("abort", cancel);
    },
  };
  return ending;
}

function parse(line: string): Script {
  const [name = "", ...rest] = line.split(" ");
  const given = new Map(rest.map((part) => part.split("=", 2) as [string, string]));
  const number = (key: string): number => Number(given.get(key) ?? 0);
  return { name, ms: number("ms"), lines: number("lines"), code: number("code"), every: number("every") };
}
