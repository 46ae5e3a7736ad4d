import { damaged, PageFile, readTree, TREE_BYTES, type Tree } from "./page-file.ts";
import { TreeWalk, type WalkListener } from "./tree-walk.ts";

const MAIN = "(names of the tables)";
const FREE = "(free pages)";

/**
 * Call it before LMDB opens the file. LMDB maps the file into memory without a check, and a truncated file would end
 * the process. Meta pages are always read, the trees only if the file is shorter than it once was.
 * `AppError("unavailable")` names the damage.
 */
export function requireOpenable(path: string): void {
  const file = new PageFile(path);
  try {
    if (file.pageCount > file.meta.lastPage) return;
    walkTables(file, (table) => ({
      entry: () => {},
      fault: (page, what) => {
        throw damaged(path, `page ${page} of ${table}: ${what}`);
      },
    }));
  } finally {
    file.close();
  }
}

/** Walks every table of the file in turn, and calls the listener created for it. */
export function walkTables(file: PageFile, listen: (table: string, tree: Tree) => WalkListener): void {
  const walk = new TreeWalk(file);
  const { free, main } = file.meta;
  const tables: { readonly name: string; readonly tree: Tree }[] = [];
  const names = listen(MAIN, main);
  walk.walk(free, listen(FREE, free), "numbers");
  walk.walk(main, {
    fault: names.fault,
    entry(key, value, isTree) {
      names.entry(key, value, isTree);
      if (isTree && value.length >= TREE_BYTES) tables.push({ name: tableName(key), tree: readTree(value, 0) });
    },
  });
  for (const { name, tree } of tables) walk.walk(tree, listen(name, tree));
}

/** The library ends names with a zero byte. */
function tableName(key: Buffer): string {
  return key.toString("latin1").replace(/\0$/, "");
}
