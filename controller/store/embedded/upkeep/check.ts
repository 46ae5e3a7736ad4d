import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "../../../../common/errors.ts";
import { CHECK_FAULTS_SHOWN_MAX } from "../../../../common/limits.ts";
import { counted } from "../../../../common/text/counted.ts";
import { isThere, nodeFiles } from "../../../files.ts";
import { shownKey } from "../environment/checked-table.ts";
import { valueLength, ValueReader } from "../environment/checksums.ts";
import { Contents } from "../blobs/contents.ts";
import { ALL_CHECKED, isCheckedTable, isPlainRow } from "../environment/environment.ts";
import { walkTables } from "../lmdb/file-check.ts";
import { PageFile, type Tree } from "../lmdb/page-file.ts";
import type { WalkListener } from "../lmdb/tree-walk.ts";
import { lockFolder } from "../environment/lock.ts";
import { NO_CHECKSUM, rowFault } from "./row-faults.ts";
import type { EmbeddedRuntime } from "../runtime.ts";

export interface StoreCheck {
  /** One line per table and one per fault. */
  readonly lines: readonly string[];
  readonly faults: number;
}

/**
 * Reads a whole store that no controller uses, without LMDB, and reports damage. Structure is checked page by page,
 * values by decoding them, contents by their digests. `AppError("conflict")` if a controller has the store open.
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

  /** Lists a limited number of faults per store; counts all. */
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
  /** Keys of values without a checksum; only as many as are listed. */
  readonly unchecked: Buffer[];
  isAllChecked: boolean;
}

function checkTables(path: string, report: Report): void {
  const counts: Count[] = [];
  try {
    const file = new PageFile(path);
    try {
      walkTables(file, (table, tree) => listener(countOf(table, tree), counts, report));
    } finally {
      file.close();
    }
  } catch (error) {
    report.fault(errorText(error));
  }
  // A row in one of the tables says whether every value must have a checksum.
  const isAllChecked = counts.some((count) => count.isAllChecked);
  for (const { table, tree, found, unchecked } of counts) {
    for (const key of isAllChecked ? unchecked : [])
      report.fault(`${table}, the value of ${shownKey(key)}: ${NO_CHECKSUM}`);
    if (found === tree.entries) report.tell(`${table}: ${counted(found, "entry", "entries")}`);
    else report.fault(`${table}: ${found} of ${counted(tree.entries, "entry", "entries")} can be read`);
  }
}

function countOf(table: string, tree: Tree): Count {
  return { table, tree, found: 0, unchecked: [], isAllChecked: false };
}

function listener(count: Count, counts: Count[], report: Report): WalkListener {
  counts.push(count);
  return {
    fault: (page, what) => report.fault(`${count.table}, page ${page}: ${what}`),
    entry(key, value, isTree) {
      count.found += 1;
      const fault = isTree ? undefined : valueFault(count, key, value);
      if (fault !== undefined) report.fault(`${count.table}, the value of ${shownKey(key)}: ${fault}`);
    },
  };
}

const reader = new ValueReader();

function valueFault(count: Count, key: Buffer, stored: Buffer): string | undefined {
  const { table, unchecked } = count;
  if (!isCheckedTable(table)) return undefined;
  const value = reader.read(stored, Buffer.alloc(valueLength(stored)));
  const isSound = reader.isSound(key, value);
  if (table === "meta" && ALL_CHECKED.equals(key)) count.isAllChecked = true;
  if (isSound === undefined && !isPlainRow(table, key) && unchecked.length <= CHECK_FAULTS_SHOWN_MAX)
    unchecked.push(Buffer.from(key));
  return rowFault(table, { value, isSound });
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
