import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "../../../common/errors.ts";
import { CHECK_FAULTS_SHOWN_MAX } from "../../../common/limits.ts";
import { isThere, nodeFiles } from "../../files.ts";
import { decodeStored } from "../format.ts";
import { Contents } from "./contents.ts";
import { decodeEntity } from "./entity-form.ts";
import { walkTables } from "./lmdb/file-check.ts";
import { PageFile, type Tree } from "./lmdb/page-file.ts";
import type { WalkListener } from "./lmdb/tree-walk.ts";
import { lockFolder } from "./lock.ts";
import type { EmbeddedRuntime } from "./runtime.ts";

/** How much of a key is shown. */
const KEY_SHOWN_BYTES = 48;

export interface StoreCheck {
  /** One line for each table, and one for each thing that is wrong. */
  readonly lines: readonly string[];
  readonly faults: number;
}

/**
 * Reads a whole store that no controller works on, without LMDB, and says what is damaged. Structure is checked page by
 * page, values by decoding them, contents by their digests. `AppError("conflict")` when a controller has it open.
 */
export async function checkStore(dir: string, runtime: EmbeddedRuntime): Promise<StoreCheck> {
  const unlock = lockFolder(dir, runtime.clock.nowMs());
  try {
    const report = new Report();
    for (const name of await storesIn(dir)) {
      report.begin(name);
      checkTables(join(dir, name, "lmdb", "data.mdb"), report);
      await checkContents(join(dir, name, "blobs", "contents"), report, runtime);
    }
    return report;
  } finally {
    unlock();
  }
}

class Report implements StoreCheck {
  readonly lines: string[] = [];
  faults = 0;
  #shown = 0;

  begin(store: string): void {
    this.lines.push(`${store}:`);
    this.#shown = 0;
  }

  tell(line: string): void {
    this.lines.push(`  ${line}`);
  }

  /** Shows a bounded number of faults of one store and counts all. */
  fault(what: string): void {
    this.faults += 1;
    this.#shown += 1;
    if (this.#shown <= CHECK_FAULTS_SHOWN_MAX) this.tell(`DAMAGED ${what}`);
    else if (this.#shown === CHECK_FAULTS_SHOWN_MAX + 1) this.tell("DAMAGED … and more");
  }
}

async function storesIn(dir: string): Promise<readonly string[]> {
  const tenants = (await isThere(nodeFiles, join(dir, "tenants"))) ? await readdir(join(dir, "tenants")) : [];
  return ["system", ...tenants.filter((name) => !name.includes(".")).map((name) => join("tenants", name))];
}

interface Count {
  readonly table: string;
  readonly tree: Tree;
  found: number;
}

function checkTables(path: string, report: Report): void {
  const counts: Count[] = [];
  try {
    const file = new PageFile(path);
    try {
      walkTables(file, (table, tree) => listener({ table, tree, found: 0 }, counts, report));
    } finally {
      file.close();
    }
  } catch (error) {
    report.fault(errorText(error));
  }
  for (const { table, tree, found } of counts) {
    if (found === tree.entries) report.tell(`${table}: ${found} entries`);
    else report.fault(`${table}: ${found} of ${tree.entries} entries can be read`);
  }
}

function listener(count: Count, counts: Count[], report: Report): WalkListener {
  counts.push(count);
  return {
    fault: (page, what) => report.fault(`${count.table}, page ${page}: ${what}`),
    entry(key, value, isTree) {
      count.found += 1;
      const fault = isTree ? undefined : valueFault(count.table, value);
      if (fault !== undefined) report.fault(`${count.table}, the value of ${shown(key)}: ${fault}`);
    },
  };
}

/**
 * A value that decodes may still have been changed where any byte is as good as another: only contents have digests.
 */
function valueFault(table: string, value: Buffer): string | undefined {
  if (table === "terms" || table.startsWith("(")) return undefined;
  try {
    if (table === "objects") decodeEntity(value).indexed();
    else decodeStored(value);
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

async function checkContents(folder: string, report: Report, { random }: EmbeddedRuntime): Promise<void> {
  if (!(await isThere(nodeFiles, folder))) return;
  const contents = new Contents({ folder, files: nodeFiles, random });
  let found = 0;
  for (const shelf of (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory())) {
    for (const digest of await readdir(join(folder, shelf.name))) {
      const fault = await contentFault(contents, digest);
      if (fault !== undefined) report.fault(`content ${digest}: ${fault}`);
      found += 1;
    }
  }
  report.tell(`contents: ${found}`);
}

async function contentFault(contents: Contents, digest: string): Promise<string | undefined> {
  try {
    for await (const part of contents.read(digest, {})) void part;
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

function shown(key: Buffer): string {
  return JSON.stringify(key.subarray(0, KEY_SHOWN_BYTES).toString("latin1"));
}
