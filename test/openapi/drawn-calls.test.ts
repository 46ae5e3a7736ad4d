import { rm } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import { documentedPath } from "../../controller/http/interface/document/names.ts";
import { openApiDocument } from "../../controller/http/interface/openapi.ts";
import { storeFolder } from "../helpers/runs/folders.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { httpFor, requestOf } from "../security/answering.ts";
import { callOf, type Draw, type DrawnCall } from "../security/draw.ts";
import { nameOf } from "../security/people.ts";
import { openWorld, type World } from "../security/world.ts";
import { DescribedAnswers, type Described, type OpenApi } from "./described.ts";

/**
 * Drawn calls of every endpoint: the document describes the status, the content type and the body of each answer, as an
 * envelope and as a problem. Streams of events are read by the tests of their areas.
 */

const CALLS_PER_ENDPOINT = 4;
/** At least so many endpoints answer success to one of these calls. */
const SUCCESSES = 80;
const LOGIN = "matrix.admin";
/** A call may wait for hosts; such an answer comes later than this and is left out. */
const CALL_MAX_MS = 5_000;

let world: World;
let app: FastifyInstance;
let folder: string;
let document: OpenApi;

beforeAll(async () => {
  world = await openWorld();
  folder = await storeFolder("odp-described-");
  const { assembly } = world;
  const principal = testPrincipal();
  app = await httpFor(assembly, { callers: new Map([[LOGIN, principal]]), dataDir: folder });
  document = openApiDocument(assembly.endpoints, { version: "test" }) as unknown as OpenApi;
  await assembly.query.rows(
    principal,
    `create class /matrix/vault (code varchar, note varchar, secret varchar, keys(code)) with autosearch=true, version=true;
     create edge type leads;
     insert into /matrix/vault code='closed', note='x'; insert into /matrix/vault code='open', note='y'`,
  );
  await assembly.hosts.save(principal, { host: "vault" });
  await assembly.jobs.save(principal, { name: "vault", dir: "d", exec: ["true"] });
  await assembly.rules.put(principal, "/matrix/rules/vault", "--class=/matrix/vault\n--parser=text\n--fields=code");
});
afterAll(async () => {
  await app.close();
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

function describedOf({ method, path }: Endpoint): Described {
  const described = document.paths[documentedPath(path)]?.[method.toLowerCase()];
  if (described === undefined) throw new Error(`The document has no ${method} ${path}.`);
  return described;
}

async function answered(call: DrawnCall, accept: string) {
  const { headers, ...request } = requestOf(call, LOGIN);
  const signal = AbortSignal.timeout(CALL_MAX_MS);
  try {
    const response = await app.inject({ ...request, headers: { ...headers, accept }, signal });
    const { statusCode: status, body } = response;
    return { status, contentType: response.headers["content-type"]?.toString(), body };
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

test("the document describes every answer to drawn calls", async () => {
  const answers = new DescribedAnswers(document);
  const faults: string[] = [];
  const succeeded = new Set<string>();
  for (const [at, endpoint] of world.assembly.endpoints.entries()) {
    if (endpoint.events) continue;
    const random = seededRandom(at + 1);
    const draw: Draw = (list) => list[Math.floor(random.next() * list.length)] as never;
    for (let made = 0; made < CALLS_PER_ENDPOINT; made++) {
      const call = callOf(endpoint, draw);
      const answer = await answered(call, made % 2 === 0 ? "application/json" : "application/problem+json");
      if (answer === undefined) continue;
      if (answer.status < 400) succeeded.add(nameOf(endpoint));
      const fault = answers.faultOf(describedOf(endpoint), answer);
      if (fault !== undefined) faults.push(`${nameOf(endpoint)} ${JSON.stringify(call.input)}: ${fault}`);
    }
  }
  expect(faults).toEqual([]);
  expect(succeeded.size).toBeGreaterThan(SUCCESSES);
});
