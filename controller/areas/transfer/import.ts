import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { withinTime } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import { IMPORT_ANSWER_MS, IMPORTS_UNDER_WAY_MAX } from "../../../common/limits.ts";
import { encodingGiven, UTF8 } from "../../../common/text/encodings.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Controllers, NewWork } from "../../store/journal/index.ts";
import type { Notifications } from "../notifications/index.ts";
import type { Objects, Rehearsals } from "../objects/index.ts";
import { allows, requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { Slices } from "../query/index.ts";
import { checkScript, type CheckedScript, type NotedRow } from "./check.ts";
import { mapSheet, type SheetFile, type SheetReport, type SheetRequest } from "./headed/index.ts";
import { PastNotes } from "./past/notes.ts";
import { PastPlan } from "./past/plan.ts";
import { reportOf, rowOf, TRANSFER_PATH, TransferRecords } from "./records.ts";
import { pathsBelow } from "./rooted.ts";
import { ImportRuns } from "./runs.ts";
import { scriptParts, scriptText, type ScriptPart } from "./source.ts";
import { workbookParts } from "./sheets/index.ts";
import { importJournal, ScriptStore, type ImportJournal, type OpenImport, type VersionedImport } from "./store.ts";
import type { TransferReport } from "./types.ts";

export interface ImportDependencies {
  readonly stores: Stores;
  readonly objects: Objects & Rehearsals;
  readonly notifications: Pick<Notifications, "publish">;
  readonly runtime: Runtime;
  readonly controllers: Controllers;
}

/** An upload in any format, as a script. */
export interface Upload {
  readonly name: string;
  /** The MQL script in UTF-8, to store and execute. Called several times. */
  content(): AsyncIterable<Uint8Array>;
  /**
   * The same script in parts that know their places in the client's upload. It also yields `undefined`, as
   * `scriptParts` does.
   */
  parts(): AsyncIterable<ScriptPart | undefined>;
  /** Called for each row when the row is checked. An error that it throws becomes a fault of the row. */
  note?(row: NotedRow): Promise<void>;
}

export interface ImportOptions {
  /** False: returns when the import is journaled; the import continues in the background. */
  readonly wait?: boolean;
  /** An ospace or a class path that replaces the ospace in the paths of all classes of the upload. */
  readonly root?: string | undefined;
  /**
   * True: also stores the times and earlier states that an export with times contains. Otherwise all rows are new
   * writes.
   */
  readonly times?: boolean | undefined;
  readonly signal?: AbortSignal;
}

interface CheckOptions extends ImportOptions {
  readonly past?: PastNotes;
  readonly plan?: PastPlan;
}

export interface ImportPlan extends CheckedScript {
  /** Lines about data that the import would not store; empty if there is none. */
  readonly message: string;
}

type Warned = Pick<CheckedScript, "warnings">;

/** The state of an import, with the warnings of its check. */
export type CheckedImport = TransferReport & Warned;

interface BegunImport {
  readonly held: VersionedImport;
  readonly warned: Warned;
}

/** An uploaded script. `encoding` is that of the file, UTF-8 if absent; the script is stored in UTF-8. */
export function scriptUpload(file: { readonly path: string; readonly filename: string }, encoding?: string): Upload {
  const read = (): AsyncIterable<Uint8Array> => createReadStream(file.path) as AsyncIterable<Uint8Array>;
  const named = encodingGiven(encoding, "[Valid] encoding");
  const content = named.kind === UTF8.kind ? read : () => bytesOf(scriptText(read(), named));
  return { name: file.filename, content, parts: () => scriptParts(read(), named) };
}

async function* bytesOf(text: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  for await (const piece of text) yield Buffer.from(piece);
}

/** An uploaded spreadsheet, converted to a script. */
export function workbookUpload(file: { readonly path: string; readonly filename: string }): Upload {
  const parts = (): AsyncIterable<ScriptPart> => workbookParts(file.path);
  return { name: file.filename, parts, content: () => scriptOf(parts()) };
}

async function* scriptOf(parts: AsyncIterable<ScriptPart>): AsyncGenerator<Uint8Array> {
  for await (const { text } of parts) yield Buffer.from(`${text};\n`);
}

/** Imports scripts: checks the whole script, journals it, then writes it. */
export class ImportService {
  readonly #dependencies: ImportDependencies;
  readonly #journal: ImportJournal;
  readonly #scripts: ScriptStore;
  readonly #records: TransferRecords;
  readonly #runs: ImportRuns;
  #underWay = 0;

  constructor(dependencies: ImportDependencies) {
    this.#dependencies = dependencies;
    this.#journal = importJournal(dependencies);
    this.#scripts = new ScriptStore(dependencies.stores);
    this.#records = new TransferRecords(dependencies);
    this.#runs = new ImportRuns({
      ...dependencies,
      journal: this.#journal,
      scripts: this.#scripts,
      records: this.#records,
    });
  }

  /**
   * Imports an upload. Resolves when everything is written. A fault of the upload is reported before anything is
   * written. A failure during the writing is reported with the progress so far. After `AppError("deadline")` the import
   * continues, and its object under `/system/transfer` shows the result.
   */
  async import(principal: Principal, upload: Upload, options: ImportOptions = {}): Promise<CheckedImport> {
    requirePermission(principal, "objects:write");
    this.#begins();
    const { clock } = this.#dependencies.runtime;
    const untilMs = clock.monotonicMs() + IMPORT_ANSWER_MS;
    const begun = this.#begin(principal, upload, options);
    const ended = begun.then(({ held }) => this.#runs.start(held)).finally(() => (this.#underWay -= 1));
    // If the caller does not wait, the object of the import contains the error.
    ended.catch(() => undefined);
    const { held, warned } = await begun;
    if (options.wait === false) return { ...reportOf(held.open), ...warned };
    return { ...outcome(held, await withinTime(clock, ended, untilMs - clock.monotonicMs())), ...warned };
  }

  /** Checks an upload like `import`, but writes nothing. */
  async plan(principal: Principal, upload: Upload, options: Omit<ImportOptions, "wait"> = {}): Promise<ImportPlan> {
    requirePermission(principal, "objects:write");
    const past = new PastNotes();
    const plan = new PastPlan(this.#dependencies.objects, principal, past);
    const checked = await this.#counted(() => this.#check(principal, upload, { ...options, past, plan }));
    return { ...checked, message: past.warnings().join("\n") };
  }

  /**
   * Imports a CSV file, or a sheet with a heading line, into one class. A fault in any row is reported before anything
   * is written.
   */
  async sheet(principal: Principal, file: SheetFile, request: SheetRequest): Promise<SheetReport & Warned> {
    requirePermission(principal, "objects:write");
    const { objects, runtime } = this.#dependencies;
    const { wait, signal } = request;
    const slices = new Slices({ tenant: principal.tenant, clock: runtime.clock, signal });
    const mapped = await this.#counted(() => mapSheet(file, request, { principal, objects, slices }));
    const { told, parts } = mapped;
    const upload: Upload = {
      name: file.filename,
      parts,
      content: () => scriptOf(parts()),
      note: (row) => mapped.note(row),
    };
    if (request.plan !== true) {
      const options = { ...(wait !== undefined && { wait }), ...(signal && { signal }) };
      return { ...(await this.import(principal, upload, options)), ...told };
    }
    const plan = await this.plan(principal, upload, signal ? { signal } : {});
    return { ...planned({ ...plan, message: "" }), ...told, ...(await mapped.changes()) };
  }

  maintain(tenant: string): Promise<void> {
    return this.#runs.maintain(tenant);
  }

  /** Implements `BegunWork.goesOn`: answers the imports whose object the principal may see. */
  async goesOn(principal: Principal, isTheirs: (username: string) => Promise<boolean>): Promise<readonly string[]> {
    requireOneOf(principal, ["users:write", "perms:write"]);
    if (!allows(principal, "objects:read")) return [];
    const { sees } = await this.#dependencies.objects.visible.records(principal, principal.ospace + TRANSFER_PATH);
    const seen: string[] = [];
    for await (const { open } of this.#journal.all(principal.tenant)) {
      if (!open.staged || open.end !== undefined || !sees({ id: `transfer:${open.id}` }, rowOf(open))) continue;
      if (await isTheirs(open.principal.user)) seen.push(`${open.id} (${open.name})`);
    }
    return seen;
  }

  /** Resolves when no import runs on this controller: each has ended, or pauses until `maintain`. */
  settled(): Promise<void> {
    return this.#journal.inFlight.settled();
  }

  /** Pauses running imports after their current chunk. */
  close(): Promise<void> {
    return this.#journal.inFlight.close();
  }

  /** Runs work that ends together with the call. Meanwhile it counts towards `IMPORTS_UNDER_WAY_MAX`. */
  async #counted<T>(work: () => Promise<T>): Promise<T> {
    this.#begins();
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
    }
  }

  #begins(): void {
    if (this.#underWay >= IMPORTS_UNDER_WAY_MAX)
      throw new AppError("limited", `At most ${IMPORTS_UNDER_WAY_MAX} imports are under way at once; try again later.`);
    this.#underWay += 1;
  }

  async #check(principal: Principal, upload: Upload, options: CheckOptions): Promise<CheckedScript> {
    const { root, signal, times = false, past = new PastNotes(), plan } = options;
    const { objects, runtime } = this.#dependencies;
    const pathOf = pathsBelow(root);
    const rehearsal = await objects.rehearse(principal);
    const note = upload.note && ((row: NotedRow) => upload.note?.(row) ?? Promise.resolve());
    const context = { principal, rehearsal, objects, clock: runtime.clock, signal, pathOf, note, times, past, plan };
    return checkScript(upload.parts(), context);
  }

  async #begin(principal: Principal, upload: Upload, options: ImportOptions): Promise<BegunImport> {
    const { total, ...warned } = await this.#check(principal, upload, options);
    const { root, times } = options;
    const open = this.#open(principal, upload, { total, root, times, digest: await digestOf(upload.content()) });
    // Hold the id until the run ends (see the test "maintenance of the same controller leaves an import alone").
    this.#journal.inFlight.hold(open.id);
    try {
      return { held: await this.#stage(open, upload), warned };
    } catch (error) {
      this.#journal.inFlight.letGo(open.id);
      throw error;
    }
  }

  /** Journals the import before it stores the script, so that no script is stored without an entry. */
  async #stage(open: NewWork<OpenImport>, upload: Upload): Promise<VersionedImport> {
    const begun = await this.#journal.begin(open);
    await this.#scripts.save(open, upload.content());
    const staged = await this.#journal.step(begun, { staged: true });
    if (!staged)
      throw new AppError("unavailable", "[Exec] The import was held up for too long: nothing was written, try again.");
    await this.#records.tell(staged.open);
    return staged;
  }

  #open(
    principal: Principal,
    upload: Upload,
    of: Pick<OpenImport, "total" | "digest" | "root" | "times">,
  ): NewWork<OpenImport> {
    const { runtime } = this.#dependencies;
    const startedMs = runtime.clock.nowMs();
    const id = ulidOf(startedMs, runtime.random.bytes(10));
    return {
      id,
      principal,
      name: upload.name,
      startedMs,
      notedMs: startedMs,
      ...of,
      done: 0,
      rows: 0,
      pass: "objects",
      isRelated: false,
      staged: false,
    };
  }
}

/** The report for an upload that was checked but not imported. */
export function planned(plan: ImportPlan): Pick<SheetReport, "id" | "state" | "total" | "done" | "message"> & Warned {
  const { total, ...others } = plan;
  return { id: "", state: "planned", total, done: 0, ...others };
}

function outcome({ open: begun }: VersionedImport, open: OpenImport | undefined): TransferReport {
  const report = reportOf(open ?? begun);
  if (report.state === "done") return report;
  const details = { transfer: report.id, total: report.total, done: report.done };
  if (report.state === "running") {
    throw new AppError(
      "deadline",
      `[Exec] The import goes on: transfer:${report.id} of ${begun.principal.ospace}${TRANSFER_PATH} tells how it ends.`,
      { details },
    );
  }
  const written = `${report.done} of ${report.total} statements were written, perhaps some more; importing the whole again is safe.`;
  throw new AppError(open?.end?.code ?? "internal", `${report.message}\n${written}`, { details });
}

async function digestOf(content: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const bytes of content) hash.update(bytes);
  return hash.digest("hex");
}
