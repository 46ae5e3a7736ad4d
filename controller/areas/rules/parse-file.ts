import { createHash } from "node:crypto";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { CHANGE_BATCH_MAX, PARSE_FILE_MAX_BYTES, RECORD_MAX_BYTES } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { NewRecord, ObjectRow, Objects, TenantRoom } from "../objects/index.ts";
import { rowGate, type RowGate } from "../query/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { Workers } from "../../workers/index.ts";
import type { RuleBodies } from "./bodies.ts";
import { ParseSlices } from "./slices.ts";
import type { RuleTasks } from "./tasks.ts";
import type { ParsedRecord, Rule, Rules } from "./types.ts";

/** Where `parsefile` gets its file from. */
export interface FileSource {
  /** `AppError("not_found")` when there is no such file for this principal. */
  open(principal: Principal, path: string, space: "user" | "system"): Promise<OpenFile>;
}

export interface OpenFile {
  /** SHA-256 of the content. */
  readonly digest: string;
  readonly size: number;
  /** The time of records parsed out of it. */
  readonly modifiedMs: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface ParseFileRequest {
  readonly rule: string;
  readonly filename: string;
  readonly space: "user" | "system";
  readonly signal: AbortSignal;
}

export interface ParseFileResult {
  readonly class: string;
  readonly records: number;
  /** Records that were removed after an earlier run, and stay so. */
  readonly removed: number;
  readonly failed: number;
  /** The first faults, with line numbers from 1. */
  readonly errors: { line: number; error: string }[];
  /** Fields that the records have and no column takes, with the number of these records. */
  readonly warnings: readonly string[];
}

const ERRORS_SHOWN = 20;
/** More different names are no headings of columns. */
const UNUSED_FIELDS_COUNTED = 20;

interface Dependencies {
  readonly rules: Rules;
  readonly objects: Objects;
  readonly files: FileSource;
  readonly clock: Clock;
  readonly workers?: Workers<RuleTasks> | undefined;
  readonly bodies?: Pick<RuleBodies, "work"> | undefined;
  /** Absent: no tenant has a quota. */
  readonly room?: TenantRoom;
}

/**
 * Parses a file line by line and stores the records. A record's identity is the file's content and its line, so parsing
 * the same file with the same rule again writes the same rows.
 */
export class FileParser {
  readonly #dependencies: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  async parse(principal: Principal, request: ParseFileRequest): Promise<ParseFileResult> {
    requirePermission(principal, "rules:write");
    const { rules, files, clock, workers } = this.#dependencies;
    const rule = await rules.load(principal, request.rule);
    const file = await files.open(principal, request.filename, request.space);
    if (file.size > PARSE_FILE_MAX_BYTES)
      throw new AppError("too_large", `A file to parse has at most ${PARSE_FILE_MAX_BYTES} bytes.`);
    const { tenant } = principal;
    const slices = new ParseSlices({
      clock,
      workers,
      tenant,
      signal: request.signal,
      bodies: this.#dependencies.bodies,
    });
    const run = new FileRun({ principal, rule, source: request.filename, timeMs: file.modifiedMs, slices });
    // A caller who may write nothing of the class is told so before anything is parsed.
    if (rule.class !== "") await this.#gates(run, { class: rule.class });
    const identity = createHash("sha256").update(`${file.digest}\n${rule.key}\n${rule.digest}`).digest("hex");
    for await (const lines of batches(file.bytes)) {
      request.signal.throwIfAborted();
      await this.#store(run, await run.parse(lines), identity);
    }
    return run.result();
  }

  async #store(run: FileRun, parsed: readonly ParsedRecord[], identity: string): Promise<void> {
    const good = new Map<string, FileRow[]>();
    for (const record of parsed) {
      const line = run.first + record.ordinal;
      if (!record.ok) {
        run.fail(line, record.error);
        continue;
      }
      const { values, by, class: path = run.rule.class, part = "" } = record;
      const made = { values, timeMs: run.timeMs, identity: `file/${identity}/${line}${part}` };
      const key = `${path}\n${by?.user ?? ""}`;
      const row = { line, class: path, by, record: made };
      const same = good.get(key);
      if (same) same.push(row);
      else good.set(key, [row]);
    }
    for (const rows of good.values()) await this.#ingestAll(run, rows);
  }

  async #ingestAll(run: FileRun, rows: readonly FileRow[]): Promise<void> {
    const [first] = rows;
    if (first === undefined) return;
    try {
      const gates = await this.#gates(run, first);
      if (gates.some(({ isByRow }) => isByRow)) for (const row of rows) await this.#ingest(run, [row], gates);
      else await this.#ingest(run, rows, gates);
    } catch (error) {
      if (first.by === undefined || !isAppError(error, "denied", "not_found")) throw error;
      for (const { line } of rows) run.fail(line, errorText(error));
    }
  }

  /** Both the caller and the author of a body may write what is written. */
  async #gates(run: FileRun, { class: path, by }: Pick<FileRow, "class" | "by">): Promise<readonly RowGate[]> {
    const { objects, clock } = this.#dependencies;
    const gates: RowGate[] = [];
    for (const principal of by === undefined ? [run.principal] : [run.principal, by])
      gates.push(await run.gate(principal, path, { objects, clock }));
    return gates;
  }

  /** One bad value must not keep a thousand good records out: then they go one by one. */
  async #ingest(run: FileRun, records: readonly FileRow[], gates: readonly RowGate[]): Promise<void> {
    try {
      for (const gate of gates) await gate.check(records.map(({ record }) => record.values));
      const { objects, room } = this.#dependencies;
      const { principal } = run;
      await room?.require(principal.tenant, { objects: records.length, bytes: 0 });
      const path = records[0]?.class ?? run.rule.class;
      const ids = await objects.ingest(
        principal,
        path,
        records.map(({ record }) => record),
      );
      const found = await objects.get(
        principal,
        ids.map((id) => ({ id, class: path })),
      );
      run.stored(found);
    } catch (error) {
      if (!isAppError(error, "invalid", "too_large", "denied")) throw error;
      if (records.length === 1) run.fail(records[0]?.line ?? 0, errorText(error));
      else for (const record of records) await this.#ingest(run, [record], gates);
    }
  }
}

/** A row of a line. */
interface FileRow {
  readonly line: number;
  readonly record: NewRecord;
  readonly class: string;
  /** The author of the body that made it. */
  readonly by?: Principal | undefined;
}

interface GateContext {
  readonly objects: Objects;
  readonly clock: Clock;
}

interface FileRunOptions {
  readonly principal: Principal;
  readonly rule: Rule;
  readonly source: string;
  readonly timeMs: number;
  readonly slices: ParseSlices;
}

class FileRun {
  readonly principal: Principal;
  readonly rule: Rule;
  readonly timeMs: number;
  readonly #gates = new Map<string, RowGate>();
  readonly #source: string;
  readonly #slices: ParseSlices;
  /** Line number of the batch's first line. */
  first = 1;
  #next = 1;
  #records = 0;
  #removed = 0;
  #failed = 0;
  readonly #errors: { line: number; error: string }[] = [];
  readonly #unused = new Map<string, number>();

  constructor({ principal, rule, source, timeMs, slices }: FileRunOptions) {
    this.principal = principal;
    this.rule = rule;
    this.timeMs = timeMs;
    this.#source = source;
    this.#slices = slices;
  }

  /** What a principal may write of a class, asked once for the file. */
  async gate(principal: Principal, path: string, context: GateContext): Promise<RowGate> {
    const key = `${principal.user}\n${path}`;
    const known = this.#gates.get(key);
    if (known) return known;
    const gate = rowGate({ principal, catalog: await context.objects.catalog(principal) }, path, context);
    this.#gates.set(key, gate);
    return gate;
  }

  parse(lines: readonly string[]): Promise<readonly ParsedRecord[]> {
    this.first = this.#next;
    this.#next += lines.length;
    const place = { timeMs: this.timeMs, host: "", source: this.#source, groups: {} };
    return this.#slices.parse(
      this.rule,
      lines.map((text) => ({ text, ...place })),
      (field) => this.#countUnused(field),
    );
  }

  #countUnused(field: string): void {
    const before = this.#unused.get(field);
    if (before !== undefined || this.#unused.size < UNUSED_FIELDS_COUNTED) this.#unused.set(field, (before ?? 0) + 1);
  }

  /** As they are found when they were written. */
  stored(found: readonly (ObjectRow | undefined)[]): void {
    const there = found.filter((row) => row !== undefined).length;
    this.#records += there;
    this.#removed += found.length - there;
  }

  fail(line: number, error: string): void {
    this.#failed += 1;
    if (this.#errors.length < ERRORS_SHOWN) this.#errors.push({ line, error });
  }

  result(): ParseFileResult {
    const warnings = Array.from(
      this.#unused,
      ([field, count]) => `${this.rule.class} has no column for ${field}, which ${count} records have: left out.`,
    );
    return {
      class: this.rule.class,
      records: this.#records,
      removed: this.#removed,
      failed: this.#failed,
      errors: this.#errors,
      warnings,
    };
  }
}

/** Lines without their ends, at most `CHANGE_BATCH_MAX` at a time. */
async function* batches(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder("utf-8");
  let rest = "";
  let lines: string[] = [];
  for await (const chunk of bytes) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/);
    rest = parts.pop() ?? "";
    if (rest.length > RECORD_MAX_BYTES)
      throw new AppError("too_large", `A line has more than ${RECORD_MAX_BYTES} bytes.`);
    for (const line of parts) {
      if (lines.push(line) < CHANGE_BATCH_MAX) continue;
      yield lines;
      lines = [];
    }
  }
  rest += decoder.decode();
  if (rest !== "") lines.push(rest);
  if (lines.length > 0) yield lines;
}
