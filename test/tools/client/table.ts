import { answersOf, isPaged, memberNames, operationsIn, redirects, type Document, type Operation } from "./document.ts";

/**
 * Operations that run statements, scripts or jobs, or make several changes, although their permission does not end with
 * `:run`. The client never repeats operations of either kind by itself.
 */
const ACTS: ReadonlySet<string> = new Set([
  "getJobByPath",
  "getMxobjectMql",
  "postMxobjectMql",
  "postMxobjectActiontoclass",
  "postMxobjectImport",
  "postMxobjectImportclass",
  "getScriptExecJs",
  "postScriptExecJs",
  "getActionParsefile",
  "postAgent",
  "postConfigImport",
  "postMonitoringPolicyPreview",
  "postFsExport",
  "postFsImport",
]);

/** The way from one page to the next, by a name that `Plan` of the client knows. */
export const PAGED: Readonly<Record<string, string>> = {
  getClusterAhead: "ahead",
  getConfigList: "list",
  getFilesTrash: "list",
  getFilesVersionsByPath: "list",
  getFs: "list",
  getFsByPath: "list",
  getFsSearch: "list",
  getFsSearchByPath: "list",
  getMxobjectMql: "mql",
  postMxobjectMql: "mqlbody",
};

/** The file by which the client finds method, path and form of an operation: a text with them for each. */
export function tableFile(document: Document): string {
  const operations = operationsIn(document);
  const unknown = [...ACTS, ...Object.keys(PAGED)].filter(
    (id) => !operations.some(({ described }) => described.operationId === id),
  );
  const unlisted = operations.filter(
    ({ described }) => isPaged(described) && PAGED[described.operationId] === undefined,
  );
  if (unlisted.length > 0) throw new Error(`PAGED has no line for ${unlisted.map(({ path }) => path).join()}.`);
  if (unknown.length > 0) throw new Error(`There is no operation ${unknown.join()}.`);
  const lines = operations.map(
    (operation) => `  ${operation.described.operationId}: ${JSON.stringify(rowOf(operation))},`,
  );
  return [
    "// Generated from deploy/docs/openapi.json by `npm run gen`. Do not edit.\n",
    'import type { Operations } from "./operations.ts";\n',
    "/** Method, path and marks of each operation; `Plan` of `../plan.ts` reads them. */",
    `export const TABLE: Readonly<Record<keyof Operations, string>> = {\n${lines.join("\n")}\n};\n`,
  ].join("\n");
}

function rowOf(operation: Operation): string {
  const { method, path, described } = operation;
  const { message, value, isContent } = answersOf(described);
  const names = memberNames(described);
  const types = Object.keys(described.requestBody?.content ?? {});
  const marks = [
    ...(isAct(operation) ? ["acts"] : isRead(operation) ? ["reads"] : []),
    ...(types.includes("multipart/form-data") ? ["multipart"] : []),
    ...(value !== undefined ? [message === undefined ? "bare" : "rawdata"] : []),
    ...(names.includes("stream") ? [described.requestBody === undefined ? "stream" : "streambody"] : []),
    ...(isContent ? ["content"] : []),
    ...(redirects(described) ? ["redirect"] : []),
    ...(PAGED[described.operationId] === undefined ? [] : [`pages=${PAGED[described.operationId]}`]),
  ];
  return [method.toUpperCase(), path, ...marks].join(" ");
}

function isAct({ described }: Operation): boolean {
  return ACTS.has(described.operationId) || described["x-permission"]?.endsWith(":run") === true;
}

/** True if the operation certainly changes nothing: by its permission, or as a probe. */
function isRead({ method, described }: Operation): boolean {
  const { "x-permission": permission, tags } = described;
  return permission?.endsWith(":read") === true || (tags.includes("probes") && method === "get");
}
