import { COMMAND_ID_MAX_CHARACTERS, COMMAND_PIECES_PER_READ } from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import type { Value } from "../../../../common/value.ts";
import type { CommandOutput, CommandResult, Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import type { NewRecord, ObjectRow, Unrestricted } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { COMMAND_CLASS, OUTPUT_CLASS } from "../store.ts";
import type { EntrySource, Target } from "../types.ts";

const MESSAGE_MAX_CHARACTERS = 8_000;
const SIGNAL_MAX_CHARACTERS = 20;

export interface CommandRecordsDependencies {
  readonly objects: Unrestricted<"ingest" | "read" | "get">;
  /** Returns the principal by which the controller itself acts in a tenant. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
}

/** Stored output and results of commands. A result is never stored before the output that precedes it. */
export class CommandRecords {
  readonly #objects: CommandRecordsDependencies["objects"];
  readonly #actAs: CommandRecordsDependencies["actAs"];

  constructor(dependencies: CommandRecordsDependencies) {
    this.#objects = dependencies.objects;
    this.#actAs = dependencies.actAs;
  }

  /** Idempotent. Ignores entries of other kinds. */
  async keep(source: EntrySource, entries: readonly Entry[]): Promise<void> {
    await this.#keep(source, entries, { class: OUTPUT_CLASS, valuesOf: (entry) => outputValues(source.host, entry) });
    await this.#keep(source, entries, { class: COMMAND_CLASS, valuesOf: (entry) => resultValues(source.host, entry) });
  }

  /** Result of the command; `undefined` if none is stored. */
  async result(target: Target, commandId: string): Promise<CommandResult | undefined> {
    for await (const rows of this.#rows(target, commandId, COMMAND_CLASS)) {
      const row = rows.find((one) => isOf(one, target, commandId));
      if (row) return resultOf(commandId, row);
    }
    return undefined;
  }

  /**
   * Stored output beyond `offset`, in ordered pieces, which may overlap. Bytes that are being stored may be missing.
   */
  async *output(target: Target, commandId: string, offset: number): AsyncGenerator<CommandOutput> {
    const found: { readonly id: string; readonly class: string; readonly at: number }[] = [];
    for await (const rows of this.#rows(target, commandId, OUTPUT_CLASS)) {
      for (const row of rows) {
        if (!isOf(row, target, commandId)) continue;
        const piece = pieceOf(commandId, row);
        if (piece.offset + piece.data.length > offset)
          found.push({ id: row.id, class: row.class.path, at: piece.offset });
      }
    }
    found.sort((a, b) => a.at - b.at);
    // Read again in order, so that a long output is never in memory as a whole.
    for (let at = 0; at < found.length; at += COMMAND_PIECES_PER_READ) {
      const principal = await this.#actAs(target.tenant, target.traceparent);
      for (const row of await this.#objects.unrestricted.get(
        principal,
        found.slice(at, at + COMMAND_PIECES_PER_READ),
      )) {
        if (row) yield pieceOf(commandId, row);
      }
    }
  }

  async *#rows(target: Target, commandId: string, path: string): AsyncGenerator<readonly ObjectRow[]> {
    const principal = await this.#actAs(target.tenant, target.traceparent);
    const where = [{ kind: "equals", column: "command", values: [commandId] } as const];
    yield* this.#objects.unrestricted.read(principal, {
      class: principal.ospace + path,
      subtree: false,
      where,
      newestFirst: true,
    });
  }

  async #keep(
    source: EntrySource,
    entries: readonly Entry[],
    kind: { class: string; valuesOf: (entry: Entry) => NewRecord["values"] | undefined },
  ): Promise<void> {
    const records: NewRecord[] = [];
    for (const entry of entries.filter(isNamed)) {
      const values = kind.valuesOf(entry);
      if (values) records.push({ values, timeMs: entry.timeMs, identity: `${source.streamId}/${entry.sequence}/0` });
    }
    if (records.length === 0) return;
    const principal = await this.#actAs(source.tenant, entries[0]?.traceparent ?? "");
    await this.#objects.unrestricted.ingest(principal, principal.ospace + kind.class, records);
  }
}

/**
 * False for an entry whose command id is too long. Such entries are ignored here; the caller records them as errors.
 */
function isNamed({ body }: Entry): boolean {
  return (
    (body?.$case !== "output" && body?.$case !== "result") || body.value.commandId.length <= COMMAND_ID_MAX_CHARACTERS
  );
}

function isOf(row: ObjectRow, target: Target, commandId: string): boolean {
  return row.values.command === commandId && row.values.host === target.host;
}

function pieceOf(commandId: string, { values }: ObjectRow): CommandOutput {
  const { stderr, offset, data } = values;
  return { commandId, stderr: stderr === true, offset: Number(offset), data: Buffer.from(textOf(data), "base64") };
}

function resultOf(commandId: string, { values }: ObjectRow): CommandResult {
  const { state, code, signal, pid, outdropped, errdropped, message, started, ended } = values;
  return {
    commandId,
    state: textOf(state),
    code: Number(code ?? 0),
    message: textOf(message),
    startedMs: Number(started ?? 0),
    endedMs: Number(ended ?? 0),
    ...(typeof signal === "string" && { signal }),
    ...(typeof pid === "number" && { pid }),
    ...(typeof outdropped === "number" && { outDropped: outdropped }),
    ...(typeof errdropped === "number" && { errDropped: errdropped }),
  };
}

function textOf(value: Value | undefined): string {
  return typeof value === "string" ? value : "";
}

function outputValues(host: string, entry: Entry): NewRecord["values"] | undefined {
  if (entry.body?.$case !== "output") return undefined;
  const { commandId, stderr, offset, data } = entry.body.value;
  return { command: commandId, host, stderr, offset, data: data.toString("base64") };
}

function resultValues(host: string, entry: Entry): NewRecord["values"] | undefined {
  if (entry.body?.$case !== "result") return undefined;
  const { commandId, code, signal, pid, outDropped, errDropped, message, startedMs, endedMs, state } = entry.body.value;
  return {
    command: commandId,
    host,
    state,
    code,
    ...(signal !== undefined && { signal: beginningOf(signal, SIGNAL_MAX_CHARACTERS) }),
    ...(pid !== undefined && { pid }),
    ...(outDropped !== undefined && { outdropped: outDropped }),
    ...(errDropped !== undefined && { errdropped: errDropped }),
    message: beginningOf(message, MESSAGE_MAX_CHARACTERS),
    started: startedMs,
    ended: endedMs,
  };
}
