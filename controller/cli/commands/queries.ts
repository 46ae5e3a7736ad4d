import type { DownloadId, RequestOf } from "../../../common/client/index.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import type { Shell } from "../declared/shell.ts";
import { rowsOf, viewOf } from "../formats/columns.ts";
import { EnvelopeRows } from "../formats/envelope.ts";
import { isStreamed } from "../formats/streamed.ts";
import { callByPath } from "./raw.ts";
import { columnsOnly, readsOnly } from "./reading.ts";

/** `odp mql` and `odp api`. */
export const QUERY_COMMANDS: readonly CommandDeclaration[] = [
  {
    name: "mql",
    isReading: true,
    summary: "run MQL and show the rows of its last statement",
    arguments: [{ name: "statement", summary: "one statement or several; absent with --file", isOptional: true }],
    flags: [
      {
        name: "file",
        short: "f",
        value: "path",
        summary: "read the statements from a file; - is the standard input",
        completes: "files",
      },
      {
        name: "value",
        value: "value",
        summary: "value of the next ? in the statements; JSON, or else a text",
        isRepeated: true,
      },
    ],
    examples: [
      `odp mql "select host, load1 from /matrix/demo/load limit 5"`,
      `odp mql "select * from /matrix/visit where page = ?" --value /index.html -o csv`,
    ],
    run: mql,
  },
  {
    name: "api",
    isReading: true,
    summary: "make any call of the HTTP interface, and show its message",
    details: "The path is as in the OpenAPI document, with its parameters filled in.",
    arguments: [
      { name: "method", summary: "GET, POST, PUT, PATCH or DELETE" },
      { name: "path", summary: "path, such as /host/web-1" },
    ],
    flags: [
      { name: "query", short: "q", value: "name=value", summary: "member of the query", isRepeated: true },
      { name: "body", value: "json", summary: "JSON of the body" },
      {
        name: "file",
        short: "f",
        value: "path",
        summary: "read the JSON of the body from a file; - is the standard input",
        completes: "files",
      },
    ],
    examples: [
      "odp api get /host/web-1",
      `odp api post /config/set --body '{"key":"/matrix/etc/mail","value":"smtp.example.com"}'`,
    ],
    run: callByPath,
  },
];

async function mql(call: Call): Promise<void> {
  const { shell } = call;
  const [statement, file] = [call.optional("statement"), call.optional("file")];
  if ((statement === undefined) === (file === undefined)) throw new UsageError("Give the statement, or --file.");
  const text = statement ?? (await shell.input(file ?? "-")).toString("utf8");
  if (call.optional("watch") !== undefined) await requireRepeatable(text, file);
  const values = call.list("value").map(valueOf);
  const body = { mql: text, meta: true, ...(values.length > 0 && { values }) };
  if (isStreamed(shell.format)) return streamed(shell, body);
  const columns = shell.isPaged ? undefined : await columnsOnly(text);
  if (columns !== undefined) return streamed(shell, body, columns);
  const client = await shell.client();
  const { message, meta, more, warnings } = await client.answer("postMxobjectMql", { body }, { signal: shell.ended() });
  for (const warning of warnings) shell.note(`warning: ${warning}`);
  await shell.show(
    message,
    Array.isArray(message) && message.length > 0 ? viewOf(rowsOf(message), timesIn(meta)) : undefined,
  );
  if (more) noteMore(shell, message.length);
}

/** Writes the rows as they arrive. `columns`: for a table, a statement that answers the columns and no row. */
async function streamed(shell: Shell, body: MqlBody, columns?: string): Promise<void> {
  const client = await shell.client();
  // The rows of an answer are read as content is.
  const id = "postMxobjectMql" as string as DownloadId;
  const download = await client.download(id, { body } as never, { signal: shell.ended() });
  const envelope = new EnvelopeRows();
  let count = 0;
  async function* countedRows(): AsyncGenerator<readonly unknown[]> {
    for await (const rows of envelope.rows(download)) {
      count += rows.length;
      yield rows;
    }
  }
  const timesOf = columns === undefined ? undefined : () => timesBy(shell, { ...body, mql: columns }, envelope);
  if (!(await shell.stream(countedRows(), timesOf))) return;
  const { meta, warnings = download.warnings } = envelope.end;
  for (const warning of warnings) shell.note(`warning: ${warning}`);
  if (meta?.["more"] === true) noteMore(shell, count);
}

type MqlBody = Extract<RequestOf<"postMxobjectMql">["body"], object>;

/** The columns that hold times are told after the rows. Before, another statement has to be asked. */
async function timesBy(shell: Shell, body: MqlBody, { end }: EnvelopeRows): Promise<ReadonlySet<string>> {
  if (end.meta !== undefined) return timesIn(end.meta);
  const client = await shell.client();
  return timesIn(
    (await client.answer("postMxobjectMql", { body }, { signal: shell.ended(), isRepeatable: true })).meta,
  );
}

function noteMore(shell: Shell, count: number): void {
  shell.note(`${counted(count, "row")}; there are more: add LIMIT n, or LIMIT -1 for all of them.`);
}

async function requireRepeatable(mql: string, file: string | undefined): Promise<void> {
  if (file === "-") throw new UsageError("--watch reads the statements again: give them as an argument or in a file.");
  if (!(await readsOnly(mql))) throw new UsageError("--watch repeats the statements, so they may only read.");
}

/** Names of the columns that hold times. */
export function timesIn({ columns }: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  if (typeof columns !== "object" || columns === null) return new Set();
  const all = Object.values(columns).flat() as readonly { readonly name?: unknown; readonly type?: unknown }[];
  return new Set(all.flatMap(({ name, type }) => (type === "timestamp" && typeof name === "string" ? [name] : [])));
}

/** A value of JSON, or the text itself. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
