import { errorText, isAppError } from "../../../common/errors.ts";
import { CLI_DOCTOR_CALL_MS, CLI_DOCTOR_CERTIFICATE_DAYS, CLI_DOCTOR_CLOCK_MAX_MS } from "../../../common/limits.ts";
import { OdpClient, type Fetch } from "../../../common/client/index.ts";
import type { Clock } from "../../../common/time.ts";
import type { Access } from "../contexts/access.ts";
import { isLoopback } from "../transport/loopback.ts";
import { PARTS } from "./parts.ts";

export interface Check {
  readonly check: string;
  readonly result: "ok" | "warning" | "failed";
  readonly detail: string;
}

export interface CheckOptions {
  readonly access: Pick<Access, "url" | "user" | "credentials" | "context">;
  readonly version: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly fetch: Fetch;
  /** Milliseconds since 1970 at which the certificate of an address ends. */
  readonly certificateEnd: (url: URL, signal: AbortSignal) => Promise<number>;
}

const DAY_MS = 86_400_000;

/** Looks at the way to the controller, at the session and at the state of the controller. Throws nothing but a cancel. */
export async function checksOf(options: CheckOptions): Promise<readonly Check[]> {
  const seen = new SeenAnswers(options);
  const client = new OdpClient({
    ...options.access.credentials,
    ...{ url: options.access.url, timeoutMs: CLI_DOCTOR_CALL_MS, attempts: 1, fetch: seen.fetch },
  });
  const reading = { client, signal: options.signal };
  const steps: readonly (readonly [string, () => Promise<Omit<Check, "check">>])[] = [
    ["address", () => address(options)],
    ["connection", () => connection(reading, options.clock)],
    ["encryption", () => encryption(options)],
    ["clock", () => Promise.resolve(seen.clockCheck())],
    ["version", () => versions(reading, options.version)],
    ["session", () => session(reading, options.access)],
    ["rights", () => rights(reading)],
    ["readiness", () => readiness(reading)],
  ];
  const checks: Check[] = [];
  for (const [check, step] of steps) {
    try {
      checks.push({ check, ...(await step()) });
    } catch (error) {
      if (options.signal.aborted) throw error;
      checks.push({ check, result: "failed", detail: errorText(error) });
    }
  }
  return checks;
}

function ok(detail: string): Omit<Check, "check"> {
  return { result: "ok", detail };
}

function warning(detail: string): Omit<Check, "check"> {
  return { result: "warning", detail };
}

/** An address without the user and password that it may have. */
export function addressText(text: string): string {
  const url = new URL(text);
  [url.username, url.password, url.search, url.hash] = ["", "", "", ""];
  return url.href;
}

function address({ access: { url, context } }: CheckOptions): Promise<Omit<Check, "check">> {
  const from = context === undefined ? "of the environment or the command line" : `of the context ${context}`;
  return Promise.resolve(ok(`${addressText(url)}, ${from}`));
}

type Reading = { readonly client: OdpClient; readonly signal: AbortSignal };

async function connection({ client, signal }: Reading, clock: Clock): Promise<Omit<Check, "check">> {
  const beganMs = clock.monotonicMs();
  await client.call("getHealthz", {}, { signal });
  return ok(`answers in ${Math.ceil(clock.monotonicMs() - beganMs)} ms`);
}

async function encryption(options: CheckOptions): Promise<Omit<Check, "check">> {
  const url = new URL(options.access.url);
  if (url.protocol !== "https:") {
    if (isLoopback(url.hostname)) return ok("none, and the controller is on this machine");
    return warning("none: passwords and answers can be read on the way. Use an address with https://.");
  }
  const leftDays = Math.floor(((await options.certificateEnd(url, options.signal)) - options.clock.nowMs()) / DAY_MS);
  const text = `the certificate holds for ${leftDays} days`;
  return leftDays < CLI_DOCTOR_CERTIFICATE_DAYS ? warning(`${text}: renew it`) : ok(text);
}

async function versions({ client, signal }: Reading, own: string): Promise<Omit<Check, "check">> {
  const { info } = (await client.call("getOpenapiJson", {}, { signal })) as {
    readonly info?: { readonly version?: string };
  };
  const theirs = info?.version ?? "unknown";
  const text = `controller ${theirs}, odp ${own}`;
  return theirs === own ? ok(text) : warning(`${text}: use an odp of the same version`);
}

async function session({ client, signal }: Reading, access: CheckOptions["access"]): Promise<Omit<Check, "check">> {
  await client.call("getUserTokens", {}, { signal });
  const { token, session: kept } = access.credentials;
  const by = token !== undefined ? "an API token" : kept !== undefined ? "a session" : "a password";
  return ok(`signed in${access.user === undefined ? "" : ` as ${access.user}`} by ${by}`);
}

/** Tries the calls of a bundle. A right that is missing is no fault; another failure of a call is one. */
async function rights({ client, signal }: Reading): Promise<Omit<Check, "check">> {
  const [denied, broken]: readonly [string[], string[]] = [[], []];
  for (const { about, read } of PARTS) {
    try {
      await read({ client, signal });
    } catch (error) {
      if (isAppError(error, "cancelled", "deadline", "signin", "unavailable", "unknown_outcome")) throw error;
      if (isAppError(error, "denied", "not_found", "unsupported")) denied.push(about);
      else broken.push(`${about}: ${errorText(error)}`);
    }
  }
  const missing = denied.length === 0 ? [] : [`does not read: ${denied.join(", ")}`];
  if (broken.length > 0) return warning([...missing, ...broken].join("; "));
  return ok(missing[0] ?? "reads all that a bundle has");
}

async function readiness({ client, signal }: Reading): Promise<Omit<Check, "check">> {
  const { lost = [], warnings = [], damaged = [] } = await client.call("getReadyz", {}, { signal });
  const told = [
    ...lost.map((node) => `lost: ${node}`),
    ...warnings,
    ...(damaged.length === 0 ? [] : [`damaged: ${JSON.stringify(damaged)}`]),
  ];
  return told.length === 0 ? ok("ready") : warning(told.join("; "));
}

/** Compares the clocks by the header `Date` of the first answer, which has whole seconds. */
class SeenAnswers {
  readonly #options: Pick<CheckOptions, "clock" | "fetch">;
  #aheadMs: number | undefined;

  constructor(options: Pick<CheckOptions, "clock" | "fetch">) {
    this.#options = options;
  }

  readonly fetch: Fetch = async (url, init) => {
    const { clock, fetch } = this.#options;
    const sentMs = clock.nowMs();
    const response = await fetch(url, init);
    const theirsMs = Date.parse(response.headers.get("date") ?? "");
    if (!Number.isNaN(theirsMs)) this.#aheadMs ??= theirsMs + 500 - (sentMs + clock.nowMs()) / 2;
    return response;
  };

  clockCheck(): Omit<Check, "check"> {
    if (this.#aheadMs === undefined) return warning("no answer told the time of the controller");
    const seconds = Math.floor(Math.abs(this.#aheadMs) / 1_000);
    if (Math.abs(this.#aheadMs) <= CLI_DOCTOR_CLOCK_MAX_MS) return ok("as this machine, within two seconds");
    return warning(
      `the controller is ${seconds} s ${this.#aheadMs > 0 ? "ahead of" : "behind"} this machine: set both clocks by NTP`,
    );
  }
}
