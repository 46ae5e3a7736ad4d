import { randomBytes } from "node:crypto";
import { pino } from "pino";
import type { Notification } from "../../../controller/areas/notifications/types.ts";
import { ObjectService, type ClassGuard, type ObjectTriggers } from "../../../controller/areas/objects/index.ts";
import type { Principal } from "../../../controller/areas/permissions/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import { ExportService, ImportService, TRANSFER_CLASS } from "../../../controller/areas/transfer/index.ts";
import type { CheckedImport, ImportOptions } from "../../../controller/areas/transfer/import.ts";
import { scriptParts } from "../../../controller/areas/transfer/source.ts";
import type { ExportRequest, TransferReport } from "../../../controller/areas/transfer/types.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { realClock } from "../time/clock.ts";

export interface TestTransferOptions {
  readonly own?: string;
  /** Ids of the running controllers; may change. */
  readonly present?: ReadonlySet<string>;
  /** Guards of system classes with a column `a`, by path without the ospace. */
  readonly guards?: Readonly<Record<string, ClassGuard>>;
  readonly triggers?: ObjectTriggers;
}

/** Objects, queries, exports and imports of one controller over an engine. */
export class TestTransfer {
  readonly runtime: Runtime;
  readonly objects: ObjectService;
  readonly query: QueryService;
  readonly exports: ExportService;
  readonly imports: ImportService;
  readonly told: Notification[] = [];
  #listeners: (() => void)[] = [];

  constructor(stores: Stores, options: TestTransferOptions = {}) {
    const { own = "one", present = new Set([own]), guards = {}, triggers } = options;
    const runtime = (this.runtime = {
      clock: realClock,
      random: { next: () => Math.random(), bytes: (count: number) => randomBytes(count) },
      log: pino({ level: "silent" }),
    });
    this.objects = new ObjectService({ visible: visibleObjects, stores, runtime, ...(triggers && { triggers }) });
    for (const [path, guard] of Object.entries(guards))
      this.objects.registerSystemClass({ path, columns: [{ name: "a", type: "int", meaning: "A" }], guard });
    this.objects.registerSystemClass(TRANSFER_CLASS);
    this.query = new QueryService({ objects: this.objects, runtime });
    this.exports = new ExportService(this);
    const controllers = { own, has: (id: string) => present.has(id) };
    const notifications = { publish: (_tenant: string, notification: Notification) => this.#hear(notification) };
    this.imports = new ImportService({ stores, objects: this.objects, notifications, runtime, controllers });
  }

  async script(
    principal: Principal,
    request: ExportRequest = {},
    bounds: { readonly idsHeldMax?: number } = {},
  ): Promise<string> {
    let text = "";
    for await (const piece of await new ExportService({ ...this, ...bounds }).script(principal, request)) text += piece;
    return text;
  }

  take(principal: Principal, text: string, options: ImportOptions = {}): Promise<CheckedImport> {
    return this.takeBytes(principal, Buffer.from(text), options);
  }

  takeBytes(principal: Principal, bytes: Buffer, options: ImportOptions = {}): Promise<CheckedImport> {
    const content = (): AsyncIterable<Uint8Array> => pieces(bytes);
    return this.imports.import(principal, { name: "test.mql", content, parts: () => scriptParts(content()) }, options);
  }

  /** The last report of an import; without `id`, of the first one to end. */
  ended(id?: string): Promise<TransferReport> {
    const over = (): TransferReport | undefined =>
      this.told
        .map(({ msg }) => JSON.parse(msg) as TransferReport)
        .find((report) => report.state !== "running" && report.id === (id ?? report.id));
    return new Promise((resolve) => {
      const look = (): void => {
        const report = over();
        if (report) resolve(report);
        else this.#listeners.push(look);
      };
      look();
    });
  }

  #hear(notification: Notification): void {
    this.told.push(notification);
    for (const listener of this.#listeners.splice(0)) listener();
  }

  async close(): Promise<void> {
    await this.imports.close();
    await this.objects.close();
  }
}

async function* pieces(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 50_000) yield await Promise.resolve(bytes.subarray(at, at + 50_000));
}
