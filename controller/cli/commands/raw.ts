import { TABLE } from "../../../common/client/gen/table.ts";
import type { CallId, DownloadId, OperationId } from "../../../common/client/index.ts";
import { planOf } from "../../../common/client/plan.ts";
import { suggestion } from "../../../common/text/nearest.ts";
import type { Call } from "../declared/call.ts";
import { isRow, rowsOf, viewOf } from "../formats/columns.ts";
import { TIMES } from "../gen/times.ts";
import { UsageError } from "../declared/usage.ts";

interface Found {
  readonly id: OperationId;
  readonly path: Readonly<Record<string, string>>;
}

/** Makes the call that a method and a path name. */
export async function callByPath(call: Call): Promise<void> {
  const { shell } = call;
  const { id, path } = operationAt(call.text("method"), call.text("path"));
  if (call.optional("watch") !== undefined && !(planOf(id).isRead && planOf(id).method === "GET"))
    throw new UsageError("--watch repeats the call, so it may only be one that reads.");
  const body = await bodyOf(call);
  if (body !== undefined && planOf(id).method === "GET")
    throw new UsageError("A GET has no body: give its values by --query <name>=<value>.");
  const request = { path, query: queryOf(call.list("query")), ...(body !== undefined && { body }) };
  const client = await shell.client();
  const signal = shell.ended();
  if (planOf(id).hasContent) {
    const download = await client.download(id as DownloadId, request as never, { signal });
    for (const warning of download.warnings) shell.note(`warning: ${warning}`);
    for await (const piece of download) if (!(await shell.write(piece))) return;
    return;
  }
  const { message, warnings, failed } = await client.answer(id as CallId, request as never, { signal });
  for (const warning of warnings) shell.note(`warning: ${warning}`);
  if (failed) shell.note(`${failed.count} of ${failed.of} failed.`);
  const rows = Array.isArray(message) ? rowsOf(message) : isRow(message) ? [message] : [];
  await shell.show(message, rows.length === 0 ? undefined : viewOf(rows, new Set(TIMES[id])));
}

/** The operation with the fewest parameters that has the path. `UsageError` if there is none. */
export function operationAt(method: string, path: string): Found {
  const wanted = method.toUpperCase();
  const found = Object.entries(TABLE).flatMap(([id, line]): Found[] => {
    const [of = "", template = ""] = line.split(" ");
    const values = of === wanted ? parametersIn(template, path) : undefined;
    return values === undefined ? [] : [{ id: id as OperationId, path: values }];
  });
  const [first] = found.sort((one, other) => Object.keys(one.path).length - Object.keys(other.path).length);
  if (first !== undefined) return first;
  const known = Object.values(TABLE).map((line) => line.split(" ").slice(0, 2).join(" "));
  throw new UsageError(`There is no call ${wanted} ${path}${suggestion(`${wanted} ${path}`, known)}`);
}

/** Values of the parameters of a template; `undefined` if the path is another one. `{path}` takes all that follows. */
function parametersIn(template: string, path: string): Readonly<Record<string, string>> | undefined {
  const [parts, given] = [template.split("/"), path.split("/")];
  const values: Record<string, string> = {};
  for (const [at, part] of parts.entries()) {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    const value = name === "path" ? given.splice(at).join("/") : given[at];
    if (name === undefined ? value !== part : !value) return undefined;
    if (name !== undefined) values[name] = value ?? "";
  }
  if (given.length > parts.length) return undefined;
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, decoded(value)]));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError(`${text} has a % that encodes nothing: write %25.`);
  }
}

function queryOf(pairs: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const query: Record<string, string[]> = {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1) throw new UsageError(`--query takes <name>=<value>, not ${pair}.`);
    (query[pair.slice(0, at)] ??= []).push(pair.slice(at + 1));
  }
  return query;
}

async function bodyOf(call: Call): Promise<unknown> {
  const [text, file] = [call.optional("body"), call.optional("file")];
  if (text !== undefined && file !== undefined) throw new UsageError("Give one of --body and --file.");
  if (text !== undefined) return jsonIn(text, "--body");
  return file === undefined ? undefined : jsonIn((await call.shell.input(file)).toString("utf8"), file);
}

/** `UsageError` with the reason for a text that is no JSON. */
export function jsonIn(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${where} is no JSON: ${(error as Error).message}.`);
  }
}
