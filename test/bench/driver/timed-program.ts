import { spawn } from "node:child_process";
import { once } from "node:events";

const PROGRAM_MAX_MS = 600_000;

export interface TimedOptions {
  readonly environment: NodeJS.ProcessEnv;
  /** Its standard input; without it, there is none. */
  readonly input?: string;
}

/** Milliseconds from the start of a program to its end, and its output. Throws if it fails. */
export async function tookMs(
  [program = "", ...words]: readonly string[],
  { environment, input }: TimedOptions,
): Promise<{ readonly ms: number; readonly output: string }> {
  const began = performance.now();
  const stdin = input === undefined ? "ignore" : "pipe";
  const child = spawn(program, words, { env: environment, stdio: [stdin, "pipe", "pipe"], timeout: PROGRAM_MAX_MS });
  const pieces: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => pieces.push(piece));
  child.stdin?.end(input);
  const [code] = (await once(child, "close")) as [number | null];
  const ms = performance.now() - began;
  const output = Buffer.concat(pieces).toString();
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${output.slice(0, 2_000)}`);
  return { ms, output };
}
