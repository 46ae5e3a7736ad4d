import type { ClassView, Column, ColumnType } from "../../../controller/areas/objects/index.ts";

/** A record class with these columns that is in no store. */
export function classView(path: string, columns: Readonly<Record<string, ColumnType>>): ClassView {
  const made = Object.entries(columns).map(
    ([name, type], number): Column => ({ name, type, number, definedBy: path, indexed: false, key: false }),
  );
  const options = {
    keyMode: "uuid",
    ttlSeconds: undefined,
    version: false,
    versionTtlSeconds: undefined,
    timeZone: undefined,
    autosearch: false,
    alias: undefined,
    nickname: undefined,
    remedy: undefined,
    hints: {},
  } as const;
  const [label = ""] = path.split("/").slice(-1);
  return {
    cid: 7,
    path,
    label,
    parent: path.slice(0, -label.length - 1),
    kind: "record",
    columns: made,
    keys: [],
    options,
    modifiedAtMs: 0,
    system: false,
    guard: undefined,
    column: (name) => made.find((column) => column.name === name),
  };
}
