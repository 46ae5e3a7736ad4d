import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { Readable } from "node:stream";
import { text as textFrom } from "node:stream/consumers";
import { fromBufferPromise } from "yauzl";
import { buildHttp } from "../../controller/app.ts";
import { requirePermission, type Principal } from "../../controller/areas/permissions/index.ts";
import type { Answer, Call, Endpoint, UploadedFile } from "../../controller/http/interface/endpoint.ts";
import { asAppError, failureEnvelope } from "../../controller/http/answer/failure.ts";
import type { Fields } from "../../controller/http/body/fields.ts";
import { outputFilter, type Filter } from "../../controller/http/answer/filter.ts";
import { readInput } from "../../controller/http/input/input.ts";
import { realClock } from "../helpers/time/clock.ts";
import { testRuntime } from "../helpers/time/runtime.ts";
import type { DrawnCall } from "./draw.ts";
import type { World } from "./world.ts";

/**
 * Everything that a call reveals to its caller, as one text, without HTTP: permission check, input by its schema,
 * handler, the members that its output names, and the text of a failure. Costs a fraction of a request, for very many
 * calls. An event stream tells its events to `heard`, until the signal of the call fires.
 */
export async function answerOf(call: DrawnCall, by: Caller): Promise<string> {
  const { endpoint, path, text } = call;
  const files: UploadedFile[] = [];
  try {
    if (endpoint.permission !== "public") requirePermission(by.principal, endpoint.permission);
    const sources = { path: fieldsOf(path), query: NONE, body: fieldsOf(call.input), bodyIsJson: true };
    const input = readInput(endpoint, sources) as never;
    for (const file of call.files ?? []) files.push(await uploaded(file, { ...by, endpoint, input }));
    const answer = await endpoint.handler({
      principal: by.principal,
      input,
      files,
      text,
      client: CLIENT,
      signal: by.signal,
      present: () => Promise.resolve(by.principal),
    });
    if (!("events" in answer)) return await textOf(endpoint, answer);
    for await (const { data } of answer.events) by.heard?.(JSON.stringify(filtered(endpoint.output, data)));
    return "";
  } catch (error) {
    return JSON.stringify(failureEnvelope(asAppError(error), by.principal.traceparent));
  } finally {
    for (const { path: place, taken } of files) await (taken ? taken.release() : rm(place, { force: true }));
  }
}

type DrawnFile = NonNullable<DrawnCall["files"]>[number];

/** The file as its endpoint gets it: taken in, or in the folder. */
async function uploaded(
  { field, filename, content }: DrawnFile,
  { principal, folder, endpoint, input }: Caller & { readonly endpoint: Endpoint; readonly input: never },
): Promise<UploadedFile> {
  const size = Buffer.byteLength(content);
  const file = { field, filename, size };
  if (!endpoint.takeIn) {
    const path = join(folder, randomUUID());
    await writeFile(path, content);
    return { ...file, path };
  }
  const bytes = Readable.from([Buffer.from(content)]);
  const arriving = { principal, input, field, filename, bytes, announcedBytes: size };
  return { ...file, path: "", taken: await endpoint.takeIn(arriving) };
}

export interface Caller {
  readonly principal: Principal;
  readonly signal: AbortSignal;
  /** Folder for the uploads of the call. */
  readonly folder: string;
  readonly heard?: (event: string) => void;
}

const CLIENT: Call<unknown>["client"] = {
  remote: "192.0.2.1",
  session: undefined,
  maySignIn: true,
  ticket: undefined,
  browser: false,
  lastEventId: undefined,
};

const NONE: Fields = new Map();

function fieldsOf(members: Readonly<Record<string, unknown>>): Fields {
  return new Map(Object.entries(members).map(([name, value]) => [name, [value]]));
}

async function textOf({ output }: Endpoint, answer: Answer<unknown>): Promise<string> {
  if ("rows" in answer) {
    const rows: unknown[] = [];
    for await (const page of answer.rows) rows.push(...page);
    return JSON.stringify([filtered(output, rows), answer.meta, answer.warnings, answer.headers]);
  }
  if ("message" in answer) return JSON.stringify({ ...answer, message: filtered(output, answer.message) });
  if ("stored" in answer) {
    const { stored, ...head } = answer;
    const pieces = await Readable.from(stored.read({ start: 0, end: stored.size })).toArray();
    return JSON.stringify({ ...head, etag: stored.etag }) + (await unpacked(Buffer.concat(pieces as Buffer[])));
  }
  if (!("content" in answer)) return JSON.stringify(answer);
  const { content, ...head } = answer;
  const told =
    content instanceof Readable ? Buffer.concat(await Readable.from(content).map(Buffer.from).toArray()) : content;
  return JSON.stringify(head) + (await unpacked(Buffer.from(told as string)));
}

const ZIP_BEGINS = "PK\u0003\u0004";

/** The bytes as a text; of a workbook, the texts of its parts. */
async function unpacked(bytes: Buffer): Promise<string> {
  if (!bytes.subarray(0, ZIP_BEGINS.length).equals(Buffer.from(ZIP_BEGINS))) return bytes.toString("utf8");
  const texts: string[] = [];
  const zip = await fromBufferPromise(bytes);
  for await (const entry of zip.eachEntry()) texts.push(await textFrom(await zip.openReadStreamPromise(entry)));
  return texts.join("\n");
}

const filters = new WeakMap<Endpoint["output"], { readonly of: Filter | undefined }>();

function filtered(output: Endpoint["output"], value: unknown): unknown {
  let filter = filters.get(output);
  if (filter === undefined) filters.set(output, (filter = { of: outputFilter(output) }));
  return filter.of === undefined ? value : filter.of(value);
}

/**
 * The HTTP interface of the world, which trusts the identity that a caller claims. So no call, and no other caller, can
 * end its session, change its password or lock it out.
 */
export function httpFor(
  { endpoints, audit }: World["assembly"],
  { callers, dataDir }: { readonly callers: ReadonlyMap<string, Principal>; readonly dataDir: string },
): Promise<FastifyInstance> {
  const none = (): Promise<undefined> => Promise.resolve(undefined);
  const byPassword = ({ login }: { readonly login: string }, traceparent: string): Promise<Principal | undefined> => {
    const principal = callers.get(login);
    return Promise.resolve(principal && { ...principal, traceparent });
  };
  const signIn = { bySession: none, byToken: none, byPassword, onChange: () => {} };
  return buildHttp({
    runtime: testRuntime(realClock),
    endpoints,
    sockets: [],
    services: { signIn, audit, ready: () => Promise.resolve({ lost: [] }) },
    settings: { dataDir, version: "test" },
  });
}

/** The same call as an HTTP request: the text of its answer. */
export async function requested(
  app: FastifyInstance,
  call: DrawnCall,
  by: { readonly login: string; readonly signal: AbortSignal },
): Promise<string> {
  try {
    const answer = await app.inject({ ...requestOf(call, by.login), signal: by.signal });
    return answer.body + JSON.stringify(answer.headers);
  } catch (error) {
    if (by.signal.aborted) return "";
    throw error;
  }
}

/** A call as an HTTP request of the person. */
export function requestOf(call: DrawnCall, login: string) {
  const { method } = call.endpoint;
  const url = call.endpoint.path.replaceAll(/:(\w+)|\*/g, (_all, name: string | undefined) =>
    encodeURIComponent(call.path[name ?? "*"] ?? ""),
  );
  const authorization = `Basic ${Buffer.from(`${login}:-`).toString("base64")}`;
  const { headers, ...sent } = bodyOf(call);
  return { method, url, headers: { ...headers, authorization }, ...sent };
}

function bodyOf({ endpoint: { method }, input, text, files }: DrawnCall) {
  if (method === "GET" || method === "DELETE") return { headers: {}, query: textsOf(input) };
  if (text !== undefined) return { headers: { "content-type": "text/plain" }, query: textsOf(input), payload: text };
  if (files === undefined) return { headers: {}, payload: { ...input } };
  const payload = new FormData();
  for (const [name, value] of Object.entries(textsOf(input))) payload.append(name, value);
  for (const { field, filename, content } of files) payload.append(field, new File([content], filename));
  return { headers: {}, payload };
}

function textsOf(input: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
}
