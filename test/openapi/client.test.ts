import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OdpClient, OdpError } from "../../common/client/index.ts";
import { TABLE } from "../../common/client/gen/table.ts";
import { documentedPath } from "../../controller/http/interface/document/names.ts";
import { EXAMPLE_CALLS } from "../../controller/http/interface/document/examples.ts";
import { bundle } from "../helpers/programs/bundle.ts";
import { openWorld, type World } from "../security/world.ts";
import { answersOf, operationsIn, type Document, type Operation } from "../tools/client/document.ts";
import { EXAMPLE_REQUESTS } from "./gen/examples.ts";
import { Story } from "./story.ts";

/**
 * The typed client reaches every operation: its example is sent by the client, in the order of `EXAMPLE_CALLS`. The
 * types of the examples are checked by `npm run check`.
 */

const document = JSON.parse(readFileSync("deploy/docs/openapi.json", "utf8")) as Document;
const operations = operationsIn(document);

let world: World;
let script: string;
let url: string;
beforeAll(async () => {
  script = await bundle("controller/script-worker.ts", `scripts/client-${process.pid}.mjs`);
  world = await openWorld({ scripts: pathToFileURL(script) });
  url = await world.app.listen({ host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(script, { force: true });
});

test("the client has every operation of the document, and no other", () => {
  const ids = operations.map(({ described }) => described.operationId).sort();
  expect(Object.keys(TABLE).sort()).toEqual(ids);
  expect(Object.keys(EXAMPLE_REQUESTS).sort()).toEqual(ids);
});

interface AnyRequest {
  readonly path?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** A client without its types: the names are only known when the test runs. */
type AnyClient = Readonly<
  Record<"answer" | "download", (id: string, request: AnyRequest) => Promise<{ text?(): Promise<string> }>> &
    Record<"lines" | "events", (id: string, request: AnyRequest, options?: object) => AsyncIterable<unknown>>
>;

/** Reads a stream of events until its first byte: the world has no event that would come. */
async function begun(events: (signal: AbortSignal) => AsyncIterable<unknown>): Promise<void> {
  const leave = new AbortController();
  heard = () => leave.abort();
  const read = async () => {
    for await (const event of events(leave.signal)) expect(event).toHaveProperty("data");
  };
  await expect(read()).rejects.toMatchObject({ code: "cancelled" });
}

/** Called for each answer that begins. */
let heard: () => void = () => {};

const hearing: typeof fetch = async (to, init) => {
  const response = await fetch(to, init);
  heard();
  return response;
};

/** Makes the call in the way that its answers ask for. Of events, reads the first. */
async function made(client: OdpClient, { described }: Operation, request: AnyRequest): Promise<unknown> {
  const any = client as unknown as AnyClient;
  const id = described.operationId;
  const { lines, events, isContent, message } = answersOf(described);
  const [usual] = Object.keys(described.responses["200"]?.content ?? {});
  if (events) return begun((signal) => any.events(id, request, { signal }));
  if (lines && !message) for await (const line of any.lines(id, request)) expect(line).toBeTypeOf("object");
  else if (isContent && usual !== "application/json") return (await any.download(id, request)).text?.();
  else return any.answer(id, request);
}

function withMembers(
  request: AnyRequest,
  members: Readonly<Record<string, unknown>> = {},
  filename?: string,
): AnyRequest {
  const { path, query, body } = request;
  const own = (place: object | undefined) =>
    Object.fromEntries(Object.entries(members).filter(([name]) => name in (place ?? {})));
  const isObject = typeof body === "object" && body !== null;
  const filled = isObject ? { ...body, ...own(body) } : body;
  return {
    ...(path && { path: { ...path, ...own(path) } }),
    ...(query && { query: { ...query, ...own(query) } }),
    ...(body !== undefined && { body: isObject ? named(filled as object, filename) : body }),
    // A member that the example does not show.
    ...(body === undefined && path === undefined && Object.keys(members).length > 0 && { body: members }),
  };
}

function named(body: object & { readonly uploadfile?: unknown }, filename = "example.txt"): object {
  if (body.uploadfile === undefined) return body;
  const files = [body.uploadfile].flat().map((file: unknown) => {
    const content = Buffer.isBuffer(file) ? new Uint8Array(file) : (file as { readonly content: string }).content;
    return { name: filename, content };
  });
  return { ...body, uploadfile: Array.isArray(body.uploadfile) ? files : files[0] };
}

test("every example is sent by the client, and its answer is understood", async () => {
  const story = new Story(world);
  const faults: string[] = [];
  for (const name of Object.keys(EXAMPLE_CALLS)) {
    const [method = "", path = ""] = name.split(" ");
    const operation = operations.find(
      (one) => one.path === documentedPath(path) && one.method === method.toLowerCase(),
    );
    if (operation === undefined) throw new Error(`The document has no ${name}.`);
    const { headers, members, filename } = await story.before(name);
    const session = headers["cookie"]?.split("=")[1];
    const client = new OdpClient({
      url,
      fetch: hearing,
      ...(session !== undefined && { session }),
    });
    const request = withMembers(EXAMPLE_REQUESTS[operation.described.operationId as "getHost"], members, filename);
    const code = await made(client, operation, request).then(
      () => undefined,
      (error: unknown) => (error instanceof OdpError ? error.code : error),
    );
    if (code !== story.codeOf(name)) faults.push(`${name} ${JSON.stringify(request)}: ${String(code)}`);
  }
  expect(faults).toEqual([]);
});
