import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROUND_SECONDS = 2;
const CONNECTIONS = 16;
const DEADLINE_MS = 60_000;
const INSTALL_DEADLINE_MS = 300_000;

export interface WrkCall {
  readonly port: number;
  readonly method: "GET" | "POST";
  /** `%d` is replaced by a number that differs from call to call, also in `body`; `%014d` by one of 14 digits. */
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Largest value of that number. */
  readonly most?: number;
}

/** Installs wrk where it is missing, if that is possible. Throws with a reason otherwise. */
export async function requireWrk(): Promise<void> {
  try {
    await run("which", ["wrk"]);
  } catch {
    await run("apt-get", ["install", "-y", "-qq", "wrk"], { timeout: INSTALL_DEADLINE_MS }).catch((error: unknown) => {
      throw new Error("wrk is neither installed nor can apt-get install it", { cause: error });
    });
  }
}

/**
 * Calls per second by wrk, a client in C with one thread: a client in Node would cost as much as the server. Throws if a
 * call fails, because a bench of failures measures nothing.
 */
export async function wrkRate({ port, method, path, body, headers, most = 1 }: WrkCall): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "odp-bench-wrk-"));
  try {
    const script = join(folder, "calls.lua");
    await writeFile(script, scriptOf({ method, path, body, headers, most }));
    const load = ["-t1", `-c${CONNECTIONS}`, `-d${ROUND_SECONDS}s`, "-s", script, `http://127.0.0.1:${port}`];
    const { stdout } = await run("wrk", load, { timeout: DEADLINE_MS });
    const failed = /(?:Non-2xx or 3xx responses|Socket errors).*/.exec(stdout)?.[0];
    if (failed !== undefined) throw new Error(`${method} ${path}: ${failed}`);
    return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function scriptOf({
  method,
  path,
  body,
  headers = {},
  most,
}: Omit<Required<WrkCall>, "port" | "body" | "headers"> & Pick<WrkCall, "body" | "headers">): string {
  const text = (value: string): string => `[==[${value}]==]`;
  const lines = Object.entries(headers).map(([name, value]) => `headers[ ${text(name)} ] = ${text(value)}`);
  const at = (value: string): string => (/%\d*d/.test(value) ? `string.format(${text(value)}, n)` : text(value));
  return `local headers = {}
${lines.join("\n")}
local n = 0
request = function()
  n = n % ${String(most)} + 1
  return wrk.format("${method}", ${at(path)}, headers, ${body === undefined ? "nil" : at(body)})
end
`;
}
