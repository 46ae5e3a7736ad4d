import { mkdtemp, open, rm, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createExec } from "../../../agent/commands/exec.ts";
import { createHost } from "../../../agent/policies/host.ts";
import { Outbox } from "../../../agent/outbox/outbox.ts";
import { LogFiles } from "../../../agent/plugins/log-policy/files.ts";
import { logWork } from "../../../agent/plugins/log-policy/log-policy.ts";
import { Switches } from "../../../agent/plugins/log-policy/rotation/switches.ts";
import type { LogPolicySpec } from "../../../common/api/policies.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { TestClock } from "../time/runtime.ts";
import { realClock, seededRandom } from "../time/clock.ts";

/** Bounds of the agent that a test makes smaller. */
type Bounds = Parameters<typeof logWork>[3];

interface Opened {
  readonly outbox: Outbox;
  readonly writer: FileHandle;
  readonly bounds: Bounds;
}

const SIGNAL = new AbortController().signal;

/** A log `app.log`, its writer, and a follower that checks the file when the test says so. */
export class LogLooks implements AsyncDisposable {
  readonly folder: string;
  readonly log: string;
  readonly #bounds: Bounds;
  readonly clock = new TestClock();
  /** Lines of the agent's own log. */
  readonly logged: Readonly<Record<string, unknown>>[] = [];
  writer: FileHandle;
  #spec: LogPolicySpec;
  #outbox: Outbox;
  #files: LogFiles;

  private constructor(folder: string, spec: LogPolicySpec, opened: Opened) {
    this.folder = folder;
    this.#bounds = opened.bounds;
    this.log = join(folder, "app.log");
    this.#spec = { ...spec, dir: folder };
    this.#outbox = opened.outbox;
    this.writer = opened.writer;
    this.#files = this.#follower();
  }

  /** `flags` of the writer: `a` always writes at the end, `w` at the end of its last write. */
  static async begin({
    flags = "a",
    bounds = {},
    ...spec
  }: Partial<LogPolicySpec> & { readonly flags?: "a" | "w"; readonly bounds?: Bounds } = {}): Promise<LogLooks> {
    const folder = await mkdtemp(join(tmpdir(), "odp-looks-"));
    const writer = await open(join(folder, "app.log"), flags);
    const outbox = await openOutbox(folder);
    const whole: LogPolicySpec = {
      kind: "log",
      name: "p",
      rule: "/matrix/rules/a",
      match: "^app\\.log$",
      dir: folder,
      ...spec,
    };
    const looks = new LogLooks(folder, whole, { outbox, writer, bounds });
    await looks.#files.load();
    return looks;
  }

  /** The agent ends and begins again with what its disk holds, by a policy that may have changed. */
  async restart(changes: Partial<LogPolicySpec> = {}): Promise<void> {
    this.#spec = { ...this.#spec, ...changes };
    await this.#files.closeAll();
    await this.#outbox.close();
    this.#outbox = await openOutbox(this.folder);
    this.#files = this.#follower();
    await this.#files.load();
  }

  marks(): readonly (readonly [key: string, value: string])[] {
    return this.#outbox.marks("policy/p/file-");
  }

  /** The agent begins again with marks of a version that knew no heading lines. */
  withoutHeadings(): Promise<void> {
    return this.withMarks(() => ({ heading: undefined }));
  }

  /** The agent begins again with marks of another version. */
  async withMarks(changes: (state: Record<string, unknown>) => Record<string, unknown>): Promise<void> {
    const marks = this.marks().map(([key, value]) => {
      const state = JSON.parse(value) as Record<string, unknown>;
      return { key, value: JSON.stringify({ ...state, ...changes(state) }) };
    });
    await this.#outbox.append([], { marks });
    await this.restart();
  }

  /** A look during which so many writes reach the disk, and no more; then the agent begins again. */
  async killedAfter(writes: number): Promise<void> {
    const outbox = this.#outbox;
    const append = outbox.append.bind(outbox);
    let left = writes;
    outbox.append = (...given) => (left-- > 0 ? append(...given) : Promise.reject(new Error("killed")));
    await this.look().catch(() => undefined);
    await this.restart();
  }

  /** Rises with every write to the disk. */
  get version(): number {
    return this.#outbox.version;
  }

  /** True if the agent looks again at once. */
  get needsLook(): boolean {
    return this.#files.missing;
  }

  /** The reason why the policy does not follow something. */
  get problem(): string | undefined {
    return this.#files.problem;
  }

  /** Opens the file again after it was recreated. */
  async reopen(): Promise<void> {
    this.writer = await open(this.log, "a");
  }

  async look(): Promise<void> {
    await this.#files.scan(SIGNAL);
    await this.read();
  }

  /** Checks so often that a file that was never found counts as deleted. */
  async looks(count = 6): Promise<void> {
    for (let done = 0; done < count; done++) await this.look();
  }

  scan(): Promise<readonly string[]> {
    return this.#files.scan(SIGNAL);
  }

  /** The agent closes all files, as it does those that are silent longest. */
  closeIdle(): Promise<void> {
    return this.#files.closeIdle(0);
  }

  compareCopies(): Promise<void> {
    return this.#files.compareCopies();
  }

  async read(): Promise<void> {
    this.#files.touch("app.log");
    this.#files.touchAll();
    for (const file of this.#files.dirtyLogs().flat()) if (file.dirty) await file.read(SIGNAL);
  }

  /** Writes nothing for `ms`; then existing data is read. */
  async silence(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.read();
  }

  async gaps() {
    return (await this.entries()).flatMap(({ body }) => (body?.$case === "gap" ? [body.value] : []));
  }

  async gapCounts(): Promise<readonly number[]> {
    return (await this.gaps()).map(({ count }) => count);
  }

  async lines(): Promise<readonly string[]> {
    return (await this.records()).flatMap(({ records }) => records.map((record) => record.toString()));
  }

  async records() {
    return (await this.entries()).flatMap(({ body }) => (body?.$case === "records" ? [body.value] : []));
  }

  async entries() {
    const reader = this.#outbox.reader(1);
    const found: Entry[] = [];
    for (let some = await reader.next(10_000, 1 << 26); some.length > 0; some = await reader.next(10_000, 1 << 26))
      found.push(...some);
    await reader.close();
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.writer.close();
    await this.#files.closeAll();
    await this.#outbox.close();
    await rm(this.folder, { recursive: true });
  }

  #follower(): LogFiles {
    const spec = this.#spec;
    const host = createHost({
      log: (level, message, fields) => this.logged.push({ level, message, ...fields }),
      clock: this.clock,
      random: seededRandom(1),
      exec: createExec({ clock: realClock, folder: join(this.folder, "running"), environment: {} }),
      depots: { folder: () => undefined, ensure: () => Promise.reject(new Error("no depots here")) },
      outbox: this.#outbox,
    });
    const policy = { name: "p", revision: 1, spec: JSON.stringify(spec), depot: undefined };
    return new LogFiles(logWork(policy, spec, host, this.#bounds), new Switches());
  }
}

function openOutbox(folder: string): Promise<Outbox> {
  return Outbox.open({ folder: join(folder, "outbox"), clock: realClock, random: seededRandom(1) });
}
