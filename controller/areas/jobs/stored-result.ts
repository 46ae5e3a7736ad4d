import { JOB_OUTPUT_MAX_BYTES } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { COMMAND_CLASS, OUTPUT_CLASS, type FinalState } from "../hosts/index.ts";
import type { Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { RunOutput } from "./output.ts";

export interface StoredResult {
  readonly state: FinalState;
  readonly code?: number;
  readonly message: string;
  readonly endedMs: number;
}

/** Where a command is looked up that nobody waits for any more. */
export interface CommandPlace {
  readonly objects: Pick<Objects, "read">;
  readonly platform: Principal;
  readonly host: string;
  readonly commandId: string;
}

/** How the agent said that the command ended, as it was kept when it came; `undefined` when it has not come. */
export async function storedResult(place: CommandPlace): Promise<StoredResult | undefined> {
  for await (const row of rowsOf(place, COMMAND_CLASS)) return resultOf(row);
  return undefined;
}

/** Hands over what the command wrote, each byte once and in order, as far as output is kept at all. */
export async function storedOutput(place: CommandPlace, output: RunOutput): Promise<void> {
  const pieces: { readonly offset: number; readonly stderr: boolean; readonly data: Buffer }[] = [];
  for await (const row of rowsOf(place, OUTPUT_CLASS)) {
    const offset = Number(row["offset"]);
    if (offset < JOB_OUTPUT_MAX_BYTES) pieces.push({ offset, stderr: row["stderr"] === true, data: Buffer.from(String(row["data"] ?? ""), "base64") });
  }
  let at = 0;
  for (const { offset, stderr, data } of pieces.sort((a, b) => a.offset - b.offset)) {
    const fresh = data.subarray(Math.max(0, at - offset));
    if (fresh.length > 0) output.take({ stderr, data: fresh });
    at = Math.max(at, offset + data.length);
  }
}

async function* rowsOf({ objects, platform, host, commandId }: CommandPlace, path: string): AsyncGenerator<Row> {
  const where = [{ kind: "equals", column: "command", values: [commandId] }] as const;
  for await (const page of objects.read(platform, { class: platform.ospace + path, subtree: false, where })) {
    for (const { values } of page) if (values["command"] === commandId && values["host"] === host) yield values;
  }
}

function resultOf(row: Row): StoredResult {
  const state = String(row["state"]);
  const exited = state === "ok" || state === "failed";
  return {
    state: state === "ok" || state === "timeout" || state === "cancelled" || state === "expired" ? state : "failed",
    ...(exited && row["code"] !== undefined ? { code: Number(row["code"]) } : {}),
    message: state === "interrupted" ? "The agent was interrupted while the command ran." : String(row["message"] ?? ""),
    endedMs: Number(row["ended"] ?? 0),
  };
}
