import { isOdpError, OdpClient, OdpError, type ClientOptions, type MessageOf } from "../../../common/client/index.ts";

/**
 * A program of a user of the package, which `client.test.ts` compiles against it and runs in Node and in a page.
 * Returns what it found; nothing of it may depend on where it runs.
 */
export async function run(options: ClientOptions, name: string): Promise<Record<string, unknown>> {
  const client = new OdpClient(options);
  await client.signIn({ company: "matrix", username: "admin", password: "correct horse battery" });
  const found = {
    rows: await rows(client, `/matrix/typed/${name}`),
    failure: await failure(client),
    revisions: await revisions(client, `/matrix/typed/${name}`),
    files: await files(client, `typed ${name}/größe 100%`),
    frames: await frames(client, `/matrix/watched/${name}`),
    events: await events(client, `${name}.js`),
    lastLine: await lastLine(client),
    cancelled: await cancelled(client),
  };
  await client.signOut();
  const signedOut = await client.call("getHost").catch((error: unknown) => isOdpError(error, "signin"));
  return { ...found, signedOut };
}

async function rows(client: OdpClient, path: string) {
  const fields = [
    { name: "page", type: "varchar", iskey: true },
    { name: "size", type: "bigint" },
  ];
  await client.call("postMxobjectSchemaClass", { body: { class: path, fields } });
  const values = [
    ["/a", 1n],
    ["/b", 2n ** 53n + 1n],
    ["/c", 3],
  ];
  await client.call("postMxobjectMql", { body: { mql: `insert into ${path} page=?, size=?`, values } });
  const mql = `select page, size from ${path} order by page limit 2`;
  const pages: unknown[] = [];
  for await (const page of client.pages("postMxobjectMql", { body: { mql } })) pages.push(page.message);
  return pages;
}

async function failure(client: OdpClient) {
  const error: unknown = await client
    .call("getMxobjectMql", { query: { mql: "select hots from /matrix/system/hostinfo" } })
    .catch((reason: unknown) => reason);
  if (!(error instanceof OdpError)) throw error;
  const { code, status, details, isUndone } = error;
  return { code, status, nearest: details?.["nearest"], isUndone };
}

async function revisions(client: OdpClient, key: string) {
  await client.call("postConfigSet", { body: { key, value: "one" } }, { ifNoneMatch: "*" });
  const { message, revision } = await client.answer("getConfigGet", { query: { key } });
  const typed: MessageOf<"getConfigGet"> = message;
  const change = (value: string) => client.call("postConfigSet", { body: { key, value } }, { ifMatch: revision ?? "" });
  await change("two");
  const stale = await change("three").catch((error: unknown) => isOdpError(error, "stale") && error.isUndone);
  return { read: typed.value, stale, now: (await client.call("getConfigGet", { query: { key } })).value };
}

async function files(client: OdpClient, folder: string) {
  const text = "line\nnext\r\nlast";
  const uploadfile = [new File([text], "a b.txt"), { name: "ü.txt", content: new TextEncoder().encode(text) }];
  const { warnings } = await client.answer("postFsByPath", {
    path: { path: folder },
    body: { uploadfile, attr: '{\n"a":1}' },
  });
  const download = await client.download("getFsByPath", { path: { path: `${folder}/ü.txt` } });
  const names = await client.call("getFsByPath", { path: { path: folder }, query: { type: "dir" } });
  return { isWhole: (await download.text()) === text, count: Array.isArray(names) && names.length, warnings };
}

async function frames(client: OdpClient, key: string) {
  const found: unknown[] = [];
  for await (const frame of client.socket("/config/watch", { query: { key } })) {
    if ("ready" in frame) await client.call("postConfigSet", { body: { key, value: "seen" } });
    else if ("value" in frame) found.push(frame.value);
    if (found.length > 0) break;
  }
  return found;
}

async function events(client: OdpClient, script: string) {
  await client.call("putFsByPath", {
    path: { path: `script/${script}` },
    body: { data: "log.warn('from ' + INPUT); OUTPUT = 42" },
  });
  const output = await client.call("postScriptExecJs", { body: { filepath: script, input: "here", rawdata: true } });
  for await (const { id, data } of client.events("getConsolelogServerjsFollow", {
    query: { name: `/${script}` },
  }))
    if (data.logs.length > 0)
      return { output, hasId: id === data.position, msg: data.logs.map(({ msg }) => msg?.split(": ")[1]) };
  return output;
}

async function lastLine(client: OdpClient) {
  let last: object = {};
  for await (const line of client.lines("getAuditExport")) last = line;
  return "end" in last;
}

async function cancelled(client: OdpClient) {
  const leave = new AbortController();
  const call = client.call("getMxobjectMql", { query: { mql: "show classes" } }, { signal: leave.signal });
  leave.abort();
  return call.catch((error: unknown) => isOdpError(error, "cancelled"));
}

/** Never called: `tsc` refuses each of these. */
export async function refused(client: OdpClient): Promise<void> {
  // @ts-expect-error There is no such operation.
  await client.call("getHorst");
  // @ts-expect-error The body is missing.
  await client.call("postConfigSet");
  // @ts-expect-error A member is missing.
  await client.call("postConfigSet", { body: { key: "/a" } });
  // @ts-expect-error The member has another type.
  await client.call("postJob", { body: { name: "backup", exec: "true" } });
  // @ts-expect-error The operation has no revisions.
  await client.call("postUserTokens", { body: { name: "n", scopes: ["*:read"] } }, { ifMatch: "0" });
  // @ts-expect-error It answers no lines.
  for await (const line of client.lines("getHost")) console.log(line);
  // @ts-expect-error The message is a list.
  const { host } = await client.call("getHost");
  console.log(host);
}
