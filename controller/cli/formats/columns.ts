/** One column of a table. */
export interface Column {
  readonly name: string;
  readonly of: (row: Row) => unknown;
  /** Member that it shows, if that has another name. */
  readonly member?: string;
  /** True: only with `-o wide` and `-o csv`. */
  readonly isWide?: boolean;
  /** True: the terminal shows it whole, because it is typed again, as an id. */
  readonly isWhole?: boolean;
  /** True: milliseconds since 1970, or a list of them. Tables show date and time; 0 is no time. */
  readonly isTime?: boolean;
  /** True for a time: a table on a terminal shows how long ago it is. */
  readonly isNear?: boolean;
}

export type Row = Readonly<Record<string, unknown>>;

/** How rows of one kind are shown. */
export interface View {
  readonly columns: readonly Column[];
  /** Member that names a row, for `-o name`. */
  readonly name: string;
}

/** A column that shows the member of that name, or the one of another name under this heading. */
export function column(name: string, options: Partial<Omit<Column, "name">> = {}): Column {
  const { member = name } = options;
  return { name, of: (row) => row[member], ...options };
}

/** Members that name a row of a kind that has no view of its own, in the order of their worth. */
const NAMES = ["name", "fullname", "host", "key", "id"] as const;

/** A column for each member of the rows, in the order in which these first appear. */
export function viewOf(rows: readonly Row[], times: ReadonlySet<string> = new Set()): View {
  const members = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return {
    columns: members.map((member) => column(member, { isTime: times.has(member) })),
    name: NAMES.find((name) => members.includes(name)) ?? members[0] ?? "",
  };
}

/** Each value as a row. */
export function rowsOf(values: readonly unknown[]): readonly Row[] {
  return values.map((value) => (isRow(value) ? value : { value }));
}

export function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
